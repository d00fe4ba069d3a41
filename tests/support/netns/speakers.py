# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Speakers of BGP in namespaces: members with the role's files, and their routers. All of them are FRR."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader
from ansible_collections.onprem.lb.plugins.module_utils._host.write import frr as _frr

from support.netns.frrs import PROGRAMS, USER
from support.waiting import LIMIT_S, until

RELOADER = next((path for path in _frr.RELOADERS if os.path.exists(path)), "")
UNIT = "Id=frr.service\nActiveState=active\nUnitFileState=enabled\nNeedDaemonReload=no\n"
DAEMONS = _frr.DAEMONS


def _ask(daemon, command):
    """Have a daemon do a command, and return what it says: three zeros and its status end that."""
    daemon.sendall(f"{command}\0".encode())
    said = b""
    while said[-4:-1] != bytes(3):
        data = daemon.recv(65536)
        if not data:
            raise ConnectionResetError(f"the daemon has ended: {command}")
        said += data
    assert said[-1:] == b"\0", said
    return said[:-4].decode()


class Speaker:
    """FRR in a node's namespace, without its watchdog."""

    def __init__(self, node):
        self.node = node
        self.folder = Path(tempfile.mkdtemp(prefix="onpremlb-frr-"))  # its user cannot enter the tests' own folder
        shutil.chown(self.folder, USER, USER)
        self.folder.chmod(0o755)
        first, *others = DAEMONS
        self.running = {first: self.spawn(first)}
        until((self.folder / "zserv.api").exists, "zebra does not start")  # the others would ask again after 10 s
        self.running.update((name, self.spawn(name)) for name in others)
        until(lambda: all((self.folder / f"{name}.vty").exists() for name in DAEMONS), "FRR does not start")

    def spawn(self, name):
        config = self.folder / f"{name}.conf"
        config.touch()
        shutil.chown(config, USER, USER)
        options = ["-f", config, "-i", self.folder / f"{name}.pid", "-z", self.folder / "zserv.api", "-P", 0]
        options += ["--vty_socket", self.folder, *(["--bfdctl", self.folder / "bfdd.sock"] if name == "bfdd" else [])]
        command = ["ip", "netns", "exec", self.node.namespace, *map(str, [PROGRAMS / name, *options])]
        with (self.folder / f"{name}.out").open("w") as out:
            return subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)

    def vtysh(self, *words, check=True):
        command = ["vtysh", "--vty_socket", str(self.folder), *words]
        return subprocess.run(command, check=check, capture_output=True, text=True).stdout

    def say(self, command):
        """Return what bgpd says, from its own socket: tests ask often, and vtysh reads its commands for 30 ms first."""
        with socket.socket(socket.AF_UNIX) as bgpd:
            bgpd.settimeout(LIMIT_S)
            bgpd.connect(str(self.folder / "bgpd.vty"))
            _ask(bgpd, "enable")
            return _ask(bgpd, command)

    def configure(self, text):
        file = self.folder / "given.conf"
        file.write_text(text)
        self.vtysh("-f", str(file))

    def paths(self, family="ipv4"):
        """Return the prefixes that its neighbours have announced, with what it knows of each."""
        return json.loads(self.say(f"show bgp {family} unicast json") or "{}").get("routes", {})

    def summary(self):
        """Return what it knows of each neighbour, of both families."""
        summary = json.loads(self.say("show bgp summary json") or "{}")
        return dict(each for known in summary.values() for each in known.get("peers", {}).items())

    def sessions(self):
        """Return ``{peer: (state, how often it was established)}``."""
        return {peer: (known["state"], known["connectionsEstablished"]) for peer, known in self.summary().items()}

    def are_up(self, *peers):
        return all(self.sessions().get(peer, ("",))[0] == "Established" for peer in peers)

    def kill(self, name):
        self.running[name].send_signal(signal.SIGKILL)
        self.running[name].wait()

    def close(self):
        for process in self.running.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(self.folder)


class Member(Speaker):
    """A host of the role `frr`, whose module writes to a folder of the test."""

    def __init__(self, node, etc):
        super().__init__(node)
        self.path = etc / "frr.conf"
        self.frr = _OfNamespace(Reader(self._run, shutil.which))

    def _run(self, command):
        if command[0] == "systemctl":
            return 0, UNIT if command[1] == "show" else "", ""
        at = next((at for at, word in enumerate(command) if word.endswith(("vtysh", "frr-reload.py"))), None)
        own = command if at is None else [*command[: at + 1], "--vty_socket", str(self.folder), *command[at + 1 :]]
        done = subprocess.run(own, check=False, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def load(self, text):
        """Do as the module `frr_config`, and return what it has planned."""
        planned = self.planned(text)
        _frr.carry_out(planned, self.frr, os.rename)
        return planned

    def planned(self, text):
        wanted = [{"path": str(self.path), "content": text, "mode": "0640", "check": "vtysh", "keep": False}]
        return _frr.plan(self.frr, wanted, [], text)


class _OfNamespace(_frr.Frr):
    def missing(self):
        return []


@contextlib.contextmanager
def speakers(*starting):
    """Start several, which end with the test."""
    with contextlib.ExitStack() as stack:
        started = [start() for start in starting]
        for each in started:
            stack.callback(each.close)
        yield started
