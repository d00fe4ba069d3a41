# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Lives of the daemon, with a journal: all around it is a stand-in, the signals are real."""

from __future__ import annotations

import errno
import json
import os
import signal

from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import status_socket
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.loop import MILLION
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import lifecycle, settings

from support.vrrp.fakes import FRONT, Log

INSTANCE = {"name": "front", "interface": "eth0", "vrid": 51, "peers": ["192.0.2.2"], "addresses": ["192.0.2.10"]}
LIMIT = 20 * MILLION


class Notifier:
    def __init__(self, journal):
        self.journal = journal
        self.watchdog = None

    def __getattr__(self, said):
        return lambda *what: self.journal.append(" ".join(map(str, (f"systemd: {said}", *what))))


class Daemon:
    def __init__(self, world):
        self.world, self.settings = world, settings.Settings(())

    def start(self, new, later=False):
        self.world.journal.append(f"daemon: start{' later' * later}")
        self.settings = new
        if self.world.start_fails:
            raise OSError(errno.EIO, "no kernel")

    def to_json(self):
        return {"front": "Active"}

    def resume(self, known):
        self.world.journal.append(f"daemon: resume {known}")

    def apply(self, new):
        self.world.journal.append(f"daemon: apply {new.instances[0].priority}")
        self.settings = new

    def resign(self, gone):
        self.world.journal.append("daemon: leave")
        self.world.linger(gone)

    def stop(self):
        self.world.journal.append("daemon: stop")

    def report(self):
        return {"instances": [each.name for each in self.settings.instances]}


class Network:
    def __init__(self, journal):
        self.journal = journal

    def close(self):
        self.journal.append("network: close")


class Checks:
    def __init__(self, journal):
        self.journal = journal

    def start(self, _loop, _on_result, _on_message):
        self.journal.append("checks: start")
        return self

    def stop(self):
        self.journal.append("checks: stop")


class FakeNewProcess:
    """A process of a version that behaves as the test says."""

    pid = 4711

    def __init__(self, world, _loop, environ, state, on_ready, on_end):
        self.world, self.on_ready, self.on_end = world, on_ready, on_end
        self.environ, self.state, self.known, self.goes_on = environ, state, None, True
        if world.start_fails:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        world.new_processes.append(self)
        world.journal.append("new process: start")

    def commit(self, known):
        self.known = known
        self.world.meanwhile()
        return self.goes_on

    def close(self):
        self.world.journal.append("new process: close")


class FakeOldProcess:
    """A process with the same configuration in force, unless the test says something else."""

    def __init__(self, world, text=None):
        self.world = world
        self.text = world.path.read_text() if text is None else text
        self.status_path = str(world.folder / "vrrp.sock")
        self.status_socket = status_socket.listen(self.status_path)
        self.gone = False

    def request_handover(self):
        self.world.journal.append("old process: request handover")
        if self.gone:
            raise lifecycle.UpgradeAborted("It does not wait.")
        return {"since": 5.5, "daemon": {"front": "Active"}}

    def commit(self):
        self.world.journal.append("old process: commit")


class World:
    """Lives one life after the other, and keeps a journal of it."""

    def __init__(self, folder, monkeypatch):
        self.journal = journal = []
        self.folder, self.path = folder, folder / "agent.json"
        self.log, self.notifier = Log(journal), Notifier(journal)
        self.limits = []
        self.start_fails = False
        self.linger = lambda gone: gone()
        self.old_process, self.new_processes, self.meanwhile = None, [], lambda: None
        monkeypatch.setattr(lifecycle.daemon, "Daemon", lambda _around: Daemon(self))
        monkeypatch.setattr(lifecycle, "Network", lambda: Network(journal))
        monkeypatch.setattr(lifecycle, "Checks", Checks(journal))
        monkeypatch.setattr(lifecycle.realtime, "prepare", self.prepare)
        monkeypatch.setattr(lifecycle, "NewProcess", lambda *arguments: FakeNewProcess(self, *arguments))

    def prepare(self):
        self.journal.append("real-time")
        return self.limits

    def write(self, socket_name="vrrp.sock", **changes):
        whole = {"instances": [{**INSTANCE, **changes}], "status_socket": str(self.folder / socket_name)}
        self.path.write_text(json.dumps(whole))
        return settings.Settings((FRONT,), status_socket=whole["status_socket"])

    def lives(self, *happens, end=signal.SIGTERM):
        """Live; each of these happens after the other, and then it is stopped, unless ``end`` is None."""
        wanted = self.write()
        one = lifecycle.Lifecycle(str(self.path), self.log, self.notifier, {"HOME": "/"}, self.old_process)
        self.life = one
        waiting = [*happens, *([lambda: os.kill(os.getpid(), end)] if end else [])]

        def go_on():
            if waiting:
                waiting.pop(0)()
                one.loop.after(20_000, go_on)

        one.loop.after(0, go_on)
        one.loop.after(LIMIT, one.loop.stop)
        try:
            one.run(wanted)
        finally:
            one._signals.close()
            one.loop.close()
        assert not waiting, "it ended too early"
        return one

    def term(self):
        os.kill(os.getpid(), signal.SIGTERM)

    def hup(self):
        os.kill(os.getpid(), signal.SIGHUP)

    def upgrade(self):
        os.kill(os.getpid(), signal.SIGUSR2)

    def first_is_ready(self):
        self.new_processes[0].on_ready()

    def second_is_ready(self):
        self.new_processes[1].on_ready()


def first_of(callbacks):
    """Return what calls the first one, which comes later."""

    def call():
        callbacks[0]()

    return call


BEGIN = ["checks: start", "real-time", "daemon: start", "systemd: ready"]
GOODBYE = "says The addresses are given up; goodbye."
END = ["systemd: stopping", "daemon: stop", "checks: stop", "network: close", GOODBYE]
