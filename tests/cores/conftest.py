# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controllers on which the archive is installed as README says, each with another version of ansible-core."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Union

import ansible_collections.ansible.posix
import pytest
import pythons
from support.paths import ROOT
from support.scope import FULL

VENVS = ROOT / ".cache" / "cores"
# `galaxy.yml` depends on it. It comes from the package `ansible`, because Galaxy may be out of reach.
POSIX = Path(ansible_collections.ansible.posix.__path__[0])
# The versions of ansible-core, each with a Python that it supports. The first one is what meta/runtime.yml requires.
CORES = {"2.16": "3.12", "2.18": "3.13", "2.21": "3.13"}
OLDEST = next(iter(CORES))
NATIVE = {"ANSIBLE_JINJA2_NATIVE": "true"}  # with it a text may become a number; later ones know no other way

Word = Union[str, Path]


@dataclass(frozen=True)
class Controller:
    """A controller with one version of ansible-core.

    :ivar venv: the folder of its virtual environment
    :ivar home: the user's folder, with the installed collections
    """

    core: str
    venv: Path
    home: Path

    def run(self, program: str, *words: Word, folder: Path | None = None, **environment: str) -> str:
        """Run a program of the virtual environment and return its output. It must succeed."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "PYTHON"))}
        own = {
            "PATH": f"{self.venv / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.home),
            "ANSIBLE_COLLECTIONS_PATH": str(self.home / "collections"),
        }
        done = subprocess.run(
            [self.venv / "bin" / program, *words],
            cwd=folder or self.home,
            env={**kept, **own, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def play(self, playbook: str, *words: Word, **environment: str) -> Dict[str, Any]:
        """Run a playbook and return its plays and its recap, as Ansible's JSON callback has them."""
        environment["ANSIBLE_STDOUT_CALLBACK"] = "ansible.posix.json"
        output = self.run("ansible-playbook", *words, playbook, **environment)
        return json.loads(output[output.index("{\n") :])


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive")
    program = Path(sys.executable).parent / "ansible-galaxy"
    subprocess.run([program, "collection", "build", "--output-path", folder], cwd=ROOT, check=True)
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="session", params=CORES if FULL else [OLDEST])
def controller(request: pytest.FixtureRequest, archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Controller:
    python = {each.name: each.path for each in pythons.available(full=True)}.get(CORES[request.param])
    if python is None:
        pytest.skip(f"there is no Python {CORES[request.param]} with venv on this machine")
    made = Controller(request.param, VENVS / request.param, tmp_path_factory.mktemp("home"))
    subprocess.run([python, "-m", "venv", "--clear", made.venv], check=True)
    made.run(
        "pip", "install", "--quiet", f"ansible-core=={request.param}.*", "--requirement", ROOT / "requirements.txt"
    )
    collections = made.home / "collections"
    made.run("ansible-galaxy", "collection", "install", "--offline", "--no-deps", "-p", collections, archive)
    shutil.copytree(POSIX, collections / "ansible_collections" / "ansible" / "posix")
    return made


def printed(run: Dict[str, Any]) -> List[Any]:
    """Return what the tasks of a run print."""
    results = [result for play in run["plays"] for task in play["tasks"] for result in task["hosts"].values()]
    done = [result for result in results if not result.get("skipped")]
    actions = ("debug", "ansible.builtin.debug", "onprem.lb.refuse")
    return [result["msg"] for result in done if result.get("action") in actions and result.get("msg")]
