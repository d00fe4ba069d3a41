# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the collection's playbooks as a user does, on hosts that cannot be reached."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from support.paths import COLLECTIONS, ROOT

PROGRAM = Path(sys.executable).parent / "ansible-playbook"
# A task that connects to a host, or becomes root, fails.
UNREACHABLE = """
[all:vars]
ansible_ssh_executable=there_is_none
ansible_become=true
ansible_become_exe=there_is_none
"""
PAIR = """
[pair]
lb1 ansible_host=192.0.2.11
lb2 ansible_host=192.0.2.12

[pair:vars]
pair_vips=["192.0.2.10/24"]
pair_masters=["192.0.2.21"]
pair_infra_nodes=["192.0.2.31"]
"""
# What Ansible reads from the environment.
ENVIRONMENT = {
    "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
    "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
    "ANSIBLE_NOCOLOR": "1",
    "ANSIBLE_INVENTORY_ENABLED": "yaml,ini",  # to load the others takes a tenth of a run's time
    "ANSIBLE_BECOME_EXE": "there_is_none",
    # If root runs the tests, becoming root would succeed.
    "ANSIBLE_BECOME_USER": "nobody",
}


def play(folder: Path, groups: str, playbook: str, *arguments: str) -> tuple[int, str]:
    """Return the exit code and the output of one run; the folder is the user's home and working directory."""
    command = [*written(folder, groups), playbook, *arguments]
    with tempfile.NamedTemporaryFile() as stdout, tempfile.NamedTemporaryFile() as stderr:
        code = prepared().play([command, str(folder), stdout.name, stderr.name])
        return code, (stdout.read() + stderr.read()).decode()


def play_anew(folder: Path, groups: str, playbook: str, *arguments: str, **environment: str) -> tuple[int, str]:
    """Start the program itself, as a user does, with more variables in its environment."""
    own = {"ANSIBLE_HOME": str(folder / "ansible"), "HOME": str(folder), **environment}
    done = subprocess.run(
        [PROGRAM, *written(folder, groups), playbook, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **ENVIRONMENT, **own},
        cwd=folder,
        umask=0o077,
    )
    return done.returncode, done.stdout + done.stderr


def written(folder: Path, groups: str) -> tuple[str, str]:
    inventory = folder / "inventory.ini"
    inventory.write_text(UNREACHABLE + groups)
    return "-i", str(inventory)


class Prepared:
    """A process that has imported Ansible, for all runs of this process."""

    def __init__(self) -> None:
        self.home = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen(
            [sys.executable, "-P", Path(__file__).with_name("prepared_ansible.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **ENVIRONMENT, "ANSIBLE_HOME": self.home.name},
        )

    def play(self, run: list) -> int:
        """Return the exit code of a run: the fields of `prepared_ansible.Run`."""
        self.process.stdin.write(json.dumps(run) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def end(self) -> None:
        self.process.communicate()
        self.home.cleanup()


@functools.lru_cache(maxsize=None)
def prepared() -> Prepared:
    return Prepared()


def end_prepared() -> None:
    if prepared.cache_info().currsize:
        prepared().end()
        prepared.cache_clear()


def printed(said: str) -> list[str]:
    """Return the lines that the tasks of a run print."""
    return [json.loads(line) for line in re.findall(r'^        ("(?:[^"\\]|\\.)*"),?$', said, re.MULTILINE)]
