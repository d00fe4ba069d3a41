# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pair in the lab, and a controller that runs Ansible on it as a row says."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple

import pytest
from support.paths import COLLECTIONS, ROOT

from .rows import PASSWORD, Row

PROGRAMS = Path(sys.executable).parent
CALLBACKS = Path(__file__).with_name("callback")
SETTINGS = ROOT / "molecule" / "default" / "inventory" / "pair.yml"
LAB = (sys.executable, "lab")
SCENARIO = ("--scenario", "controllers")
VAULT = "Open-7"
# Besides the lab's own user: one who has to give a password, and one whose path is narrow.
PREPARED = f"""
for name in clerk narrow; do
    id "$name" 2>/dev/null || useradd --create-home --shell /bin/bash "$name"
    install -d -m 0700 -o "$name" "/home/$name/.ssh"
    install -m 0600 -o "$name" /home/ops/.ssh/authorized_keys "/home/$name/.ssh/authorized_keys"
done
install -d -m 0700 /root/.ssh
install -m 0600 /home/ops/.ssh/authorized_keys /root/.ssh/authorized_keys
printf 'clerk:{PASSWORD}\\nroot:{PASSWORD}\\n' | chpasswd
usermod --password '*' narrow
echo 'clerk ALL=(ALL) ALL' >/etc/sudoers.d/clerk
printf 'Defaults:narrow secure_path=/usr/bin:/bin\\nnarrow ALL=(ALL) NOPASSWD: ALL\\n' >/etc/sudoers.d/narrow
python3 -m venv --without-pip /opt/venv
"""


class Run(NamedTuple):
    """How a run has ended."""

    code: int
    printed: str
    recap: Dict[str, Dict[str, int]]

    def changed(self) -> List[str]:
        """Return the hosts that it has changed."""
        return sorted(host for host, counts in self.recap.items() if counts["changed"])


class Controller:
    """Runs Ansible on the pair, with nothing configured but what the documentation advises, and what a row says."""

    def __init__(self, inventory: str, folder: Path) -> None:
        self.inventory = inventory
        self.folder = folder
        (folder / "ansible.cfg").write_text("[connection]\npipelining = true\n")  # or a run takes twice as long
        (folder / "vault").write_text(VAULT)

    def run(self, row: Row, port: int) -> Run:
        """Run a row's playbook, with a service that listens on a port."""
        recap = self.folder / "recap.json"
        recap.unlink(missing_ok=True)
        words = [*self._inventories(row), f"--extra-vars={json.dumps({'haproxy_extra_lines': listens(port)})}"]
        if row.vaulted:
            words.append(f"--vault-password-file={self.folder / 'vault'}")
        done = self._call(self._command(row, words), **{"RECAP": str(recap), **row.environment})
        return Run(done.returncode, done.stdout, json.loads(recap.read_text()) if recap.exists() else {})

    def _command(self, row: Row, words: List[str]) -> List[str]:
        playbook = "onprem.lb.site"
        if row.play:
            own = self.folder / "own.yml"
            own.write_text(json.dumps([row.play]))
            playbook = str(own)  # ansible-runner runs in another folder
        if not row.runner:
            return ["ansible-playbook", *words, playbook]
        (self.folder / "project").mkdir(exist_ok=True)
        (self.folder / "project" / "run.yml").write_text(json.dumps([{"import_playbook": playbook}]))
        return ["ansible-runner", "run", str(self.folder), "--playbook", "run.yml", f"--cmdline={shlex.join(words)}"]

    def _inventories(self, row: Row) -> List[str]:
        vaulted = {name: {"__ansible_vault": self._encrypted(text)} for name, text in row.vaulted.items()}
        own = self.folder / "own.json"
        own.write_text(json.dumps({"pair": {"vars": {**row.variables, **vaulted}}}))
        return [f"--inventory={path}" for path in (self.inventory, SETTINGS, own)]

    def _encrypted(self, text: str) -> str:
        done = self._call(["ansible-vault", "encrypt_string", "--vault-password-file=vault", text])
        return "\n".join(re.findall(r"^ *(\$ANSIBLE_VAULT\S+|[0-9a-f]+)$", done.stdout, re.MULTILINE))

    def _call(self, command: List[str], **more: str) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "MOLECULE_"))}
        own = {
            "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.folder),
            "ANSIBLE_CONFIG": str(self.folder / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
            "ANSIBLE_CALLBACK_PLUGINS": str(CALLBACKS),
            "ANSIBLE_CALLBACKS_ENABLED": "onprem.lb.failures",
            "ANSIBLE_NOCOLOR": "1",
        }
        return subprocess.run(
            command,
            cwd=self.folder,
            env={**kept, **own, **more},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )


def listens(port: int) -> List[str]:
    return ["listen row", f"    bind :{port}", "    mode http", "    monitor-uri /"]


def lab(*words: str, **options: Any) -> str:
    environment = {**os.environ, "LAB_IMAGE": os.environ.get("LAB_IMAGE", "debian12")}
    done = subprocess.run([*LAB, *words], cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


@pytest.fixture(scope="session")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    """Start the hosts, and set a pair up on them; they are removed in the end."""
    try:
        lab("up", *SCENARIO)
        for host in ("lb1", "lb2"):
            lab("ssh", *SCENARIO, host, "sudo", "sh", "-ec", shlex.quote(PREPARED))
        made = Controller(lab("inventory", *SCENARIO), tmp_path_factory.mktemp("controller"))
        first = made.run(Row(), 8100)
        assert first.code == 0 and first.changed() == ["lb1", "lb2"], first.printed
        yield made
    finally:
        lab("down", *SCENARIO)
