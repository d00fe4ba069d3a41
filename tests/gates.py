# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs ansible-test sanity, ansible-lint or antsibull-docs for `make`; the first two also on what has changed alone.

    make sanity
    make ansible-lint SINCE=main

ansible-test makes a virtual environment for each of its tests. They stay in .cache/sanity/home.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import List, Optional

import changed
from support.paths import COLLECTIONS, ROOT

SANITY = ROOT / ".cache" / "sanity"  # has the collection under its own name and in git, as ansible-test wants it
HOME = SANITY / "home"
KEPT = (".config", ".pip", ".cache")  # pip's configuration, and what it has downloaded
LINT_HAS = ("changelog", "pep8", "yamllint")  # `make lint` reads all files for these, and each change runs it
# In place of a script that ansible-test downloads. It does with pip's wheel what ensurepip does in 5 seconds more.
INSTALL_PIP = """\
import ensurepip, pathlib, sysconfig, zipfile

folders = pathlib.Path(ensurepip.__file__).with_name("_bundled"), pathlib.Path("/usr/share/python-wheels")
wheels = [wheel for folder in folders for wheel in folder.glob("pip-*.whl")]
if wheels:
    zipfile.ZipFile(wheels[0]).extractall(sysconfig.get_path("purelib"))
else:
    ensurepip.bootstrap()
"""


def sanity(files: Optional[List[str]]) -> int:
    """Run ansible-test sanity on these files, or on everything."""
    prepare_home(HOME, Path.home())
    version = "{}.{}".format(*sys.version_info[:2])
    skipped = [f"--skip-test={name}" for name in LINT_HAS if files is not None]
    command = ["ansible-test", "sanity", "--python", version, *skipped, *(files or [])]
    folder = SANITY / "ansible_collections" / "onprem" / "lb"
    return subprocess.run(command, cwd=folder, env={**os.environ, "HOME": str(HOME)}, check=False).returncode


def prepare_home(home: Path, users: Path) -> None:
    """Make a home folder for ansible-test, with the script that installs pip, and with pip's own files."""
    cache = home / ".ansible" / "test" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    for name in script_names():
        (cache / name).write_text(INSTALL_PIP)
    for name in KEPT:
        if (users / name).is_dir() and not (home / name).exists():
            (home / name).symlink_to(users / name)


def script_names() -> set[str]:
    """Return the names of the script that this ansible-test looks for, get_pip_VERSION.py."""
    spec = find_spec("ansible_test")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("ansible-test is not installed: run `make setup`.")
    source = Path(spec.submodule_search_locations[0], "_internal", "python_requirements.py").read_text()
    versions = re.findall(r"\bpip='([\d.]+)'", source)
    return {f"get_pip_{version.replace('.', '_')}.py" for version in versions}


def ansible_lint(files: Optional[List[str]]) -> int:
    """Run ansible-lint on these files, or on everything. It ignores those of a kind that it does not know."""
    command = ["ansible-lint", "--strict", *(files or [])]
    return subprocess.run(command, cwd=COLLECTIONS / "ansible_collections" / "onprem" / "lb", check=False).returncode


def linted(paths: List[str]) -> List[str]:
    """Return those of the paths that a run of ansible-lint on everything would find."""
    excluded = tuple(re.findall(r"^  - (\S+/)", (ROOT / ".ansible-lint").read_text(), re.MULTILINE))
    return [path for path in paths if path.endswith((".yml", ".yaml")) and not path.startswith((".", *excluded))]


def docs(_files: Optional[List[str]]) -> int:
    """Check the documentation of all plugins and roles. A filter that has no page is one of the roles' own."""
    command = (
        "antsibull-docs",
        "lint-collection-docs",
        "--plugin-docs",
        "--skip-rstcheck",
        "--message-format",
        "json",
        ".",
    )
    folder = COLLECTIONS / "ansible_collections" / "onprem" / "lb"
    run = subprocess.run(command, cwd=folder, check=False, stdout=subprocess.PIPE, text=True)
    wrong = [message for message in json.loads(run.stdout)["messages"] if not is_of_own_filter(message["path"])]
    for message in wrong:
        print(f"{message['path']}:{message['row'] or 0}:{message['column'] or 0}: {message['message']}")
    return int(bool(wrong))


def is_of_own_filter(path: str) -> bool:
    """Return whether a message is about a filter without a page, which antsibull-docs calls by its name."""
    return path.startswith("plugins/filter/") and not (ROOT / path).with_suffix(".yml").exists()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gate", choices=["sanity", "ansible-lint", "docs"])
    parser.add_argument("--since", default="", help="a commit, a branch or a tag; everything without it")
    arguments = parser.parse_args()
    gates = {"sanity": (sanity, list), "ansible-lint": (ansible_lint, linted), "docs": (docs, list)}
    run, relevant = gates[arguments.gate]
    if not arguments.since:
        return run(None)
    files = relevant([path for path in changed.judged(arguments.since) if (ROOT / path).is_file()])
    print(f"{arguments.gate}: {len(files)} files of the change since {arguments.since}.", flush=True)
    return run(files) if files else 0


if __name__ == "__main__":
    sys.exit(main())
