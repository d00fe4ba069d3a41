# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs the daemon's lifecycle with real signals and fakes for everything else, and keeps a journal."""

from __future__ import annotations

import errno
import json
import os
import signal

from ansible_collections.onprem.lb.plugins.module_utils._agent.config.file import Found
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.loop import MILLION
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import lifecycle, settings

from support.vrrp.fakes import FRONT, Log
from support.waiting import LIMIT_S

INSTANCE = {"name": "front", "interface": "eth0", "vrid": 51, "peers": ["192.0.2.2"], "addresses": ["192.0.2.10"]}
LIMIT = LIMIT_S * MILLION


class Notifier:
    def __init__(self, journal):
        self.journal = journal
        self.watchdog = None

    def __getattr__(self, message):
        return lambda *values: self.journal.append(" ".join(map(str, (f"systemd: {message}", *values))))


class Daemon:
    def __init__(self, case):
        self.case, self.settings = case, settings.Settings(())

    def start(self, new):
        self.case.journal.append("daemon: start")
        self.settings = new
        if self.case.start_fails:
            raise OSError(errno.EIO, "no kernel")

    def advertise(self):
        self.case.journal.append("daemon: advertise")

    def apply(self, new):
        self.case.journal.append(f"daemon: apply {new.instances[0].priority}")
        self.settings = new

    def resign(self, gone):
        self.case.journal.append("daemon: leave")
        self.case.linger(gone)

    def stop(self):
        self.case.journal.append("daemon: stop")

    def held(self):
        return self.case.left

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


class LifecycleCase:
    """Runs lifecycles one after the other, with one journal."""

    def __init__(self, folder, monkeypatch):
        self.journal = journal = []
        self.folder, self.path = folder, folder / "agent.json"
        self.log, self.notifier = Log(journal), Notifier(journal)
        self.limits = []
        self.start_fails = False
        self.left = []  # the addresses that cannot be removed
        self.linger = lambda gone: gone()
        monkeypatch.setattr(lifecycle.daemon, "Daemon", lambda _around: Daemon(self))
        monkeypatch.setattr(lifecycle, "Network", lambda: Network(journal))
        monkeypatch.setattr(lifecycle, "Checks", Checks(journal))
        monkeypatch.setattr(lifecycle.realtime, "prepare", self.prepare)

    def prepare(self):
        self.journal.append("real-time")
        return self.limits

    def write(self, socket_name="vrrp.sock", **changes):
        whole = {"instances": [{**INSTANCE, **changes}], "status_socket": str(self.folder / socket_name)}
        self.path.write_text(json.dumps(whole))
        return settings.Settings((FRONT,), status_socket=whole["status_socket"])

    def run(self, *happens, end=signal.SIGTERM):
        """Run a lifecycle; call these functions one after the other, and then send the signal ``end``, if any."""
        initial = self.write()
        one = lifecycle.Lifecycle(str(self.path), self.log, self.notifier)
        self.lifecycle = one
        waiting = [*happens, *([lambda: os.kill(os.getpid(), end)] if end else [])]

        def go_on():
            if waiting:
                waiting.pop(0)()
                one.loop.after(20_000, go_on)

        one.loop.after(0, go_on)
        one.loop.after(LIMIT, one.loop.stop)
        try:
            one.run(Found(self.path.read_text(), initial, []))
        finally:
            one._signals.close()
            one.loop.close()
        assert not waiting, "it ended too early"
        return one

    def term(self):
        os.kill(os.getpid(), signal.SIGTERM)

    def hup(self):
        os.kill(os.getpid(), signal.SIGHUP)

    def upgrade(self, number=signal.SIGUSR1):
        os.kill(os.getpid(), number)


def first_of(callbacks):
    """Return a function that calls the first function in a list, which may still be empty."""

    def call():
        callbacks[0]()

    return call


BEGIN = ["checks: start", "real-time", "daemon: start", "systemd: ready"]
LEFT = "says The addresses stay, for the version that is installed now; goodbye."
GOODBYE = "says The addresses are given up; goodbye."
END = ["systemd: stopping", "daemon: stop", "checks: stop", "network: close", GOODBYE]
