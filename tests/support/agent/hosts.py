# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host on which the agent is installed, and configurations for it."""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import tempfile

from ansible_collections.onprem.lb.plugins.module_utils._host.deploy.steps import Unit
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy.system import Failed, Host
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy.units import Paths
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import DAEMONS

from support.agent import programs

PROXY = {"services": [{"name": "web", "port": 443, "servers": ["192.0.2.1"]}]}
VRRP = {
    "instances": [
        {
            "name": "front",
            "interface": "eth0",
            "vrid": 51,
            "auth_pass": "s3cret",
            "addresses": ["192.0.2.10"],
            "peers": ["192.0.2.2"],
        }
    ]
}


@functools.lru_cache(maxsize=None)
def answer(python, agent, text, name):
    """Return the real agent's verdict on a configuration, from a cache, because its start takes long."""
    with tempfile.NamedTemporaryFile(suffix=".pyz") as archive:
        archive.write(agent)
        archive.flush()
        return Host(programs.run, None, None).check_config(python, archive.name, text, name)


class FakeHost(Host):
    """A host with real files and fake users, units and processes."""

    def __init__(self, folder):
        paths = Paths(f"{folder}/lib", f"{folder}/etc", f"{folder}/units")
        super().__init__(None, lambda name: None, paths, f"{folder}/proc")
        os.makedirs(f"{folder}/proc", exist_ok=True)
        self.known, self.states, self.commands, self.failing = set(), {}, [], ""

    def _record(self, *words):
        """Record a command; it fails if it starts with the text in ``failing``."""
        self.commands.append(" ".join(words))
        if self.failing and self.commands[-1].startswith(self.failing):
            raise Failed(f"{self.failing} failed")

    def _runs(self, unit):
        archive = os.path.join(self.paths.library, self.pointer(self.paths.link))
        state = self.states.get(unit, Unit())._replace(active=True, pid=1, archive=archive)
        self.states[unit] = state._replace(loaded=self._configured(unit))

    def _configured(self, unit):
        (daemon,) = [daemon for daemon in DAEMONS if daemon.unit == unit]
        return hashlib.sha256(self.content(self.paths.config(daemon))).hexdigest()

    def has_systemd(self):
        return True

    def has_raw_sockets(self):
        return True

    def python_version(self, python):
        return sys.version_info[:2] if os.access(python, os.X_OK) else ()

    def check_config(self, python, archive, text, path):
        with open(archive, "rb") as agent:
            return answer(python, agent.read(), text, os.path.basename(path))

    def users(self):
        return frozenset(self.known)

    def units(self):
        return {daemon.unit: self.states.get(daemon.unit, Unit()) for daemon in DAEMONS}

    def conflicting(self):
        return ()

    def enabled_conflicting(self):
        return frozenset()

    def report(self, path):
        return {"instances": [{"interface": "eth0", "held": ["192.0.2.10/32"]}]}

    def create_user(self, name):
        self._record("useradd", name)
        self.known.add(name)

    def remove_user(self, name):
        self.known.remove(name)

    def systemctl(self, *arguments):
        self._record(*arguments)
        if arguments[0] == "enable":
            self.states[arguments[1]] = self.states.get(arguments[1], Unit())._replace(enabled=True)

    def stop(self, unit):
        self._record("stop", unit)
        self.states.pop(unit, None)

    def start(self, unit):
        self._record("start", unit)
        self._runs(unit)

    def reload(self, daemon, unit):
        self._record("reload", daemon.unit)
        self._runs(daemon.unit)

    def upgrade(self, daemon, unit, archive):
        self._record("upgrade", daemon.unit)
        self._runs(daemon.unit)

    def restart(self, daemon, unit, gracefully):
        self._record("restart", daemon.unit, "gracefully" if gracefully else "at once")
        self._runs(daemon.unit)
