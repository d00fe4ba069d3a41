# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a member's resolver answers on the way back to a state: both VIPs, until the routers have returned."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.name_server import Answer
from ansible_collections.onprem.lb.plugins.module_utils._host.states import (
    manager,
    restoring,
    store,
)
from ansible_collections.onprem.lb.plugins.module_utils._shared import resolver_records
from support.states import CONFIGS, MARK, Systemd, file, native

ID, API, APPS = "20260131T120000Z", "api-int.lab.example.com", "apps.lab.example.com"
OLD, NEW = "192.0.2.100", "192.0.2.110"
UNIT = "onprem-lb-resolver.service"
RELOAD, RESTART = (f"systemctl --no-block {verb} {UNIT}" for verb in ("try-reload-or-restart", "try-restart"))


def named(vip, routed="one", ingress="192.0.2.20"):
    """A member whose router and resolver have this VIP; without a resolver where it is empty."""
    here = native(routed=routed)
    config = f"{MARK}port=53\naddress=/{APPS}/{ingress}\nlocal-ttl=30\n"
    texts = zip(resolver_records.PATHS, (config, f"{MARK}{vip} {API}\n"))
    return here._replace(files=[*here.files, *(file(path, text) for path, text in texts if vip)])


class Host(Systemd):
    """A member as it becomes: which addresses its resolver has loaded, at each command.

    :param silent: whether its resolver answers nothing any more once it has started anew
    """

    def __init__(self, monkeypatch, now, then, silent=False):
        super().__init__()
        self.now, self.events, self.silent = now, [], silent
        self.loaded = {**self.answers(now)}
        monkeypatch.setattr(store, "load", lambda _id: store.State(ID, "a run", then))
        monkeypatch.setattr(manager.Member, "now", lambda _member: self.now)
        monkeypatch.setattr(manager.records, "note_written", lambda _known: None)
        monkeypatch.setattr(manager.fallback_unit, "begin", lambda *_given: [])
        monkeypatch.setattr(manager.resolver, "ask", self.ask)
        monkeypatch.setattr(manager.time, "sleep", lambda _seconds: None)
        monkeypatch.setattr(restoring, "openings", lambda *_given: [])
        monkeypatch.setattr(restoring, "files", lambda _now, then: setattr(self, "now", then))

    @staticmethod
    def answers(state):
        return resolver_records.addresses(manager._answering(state))

    def ask(self, server, name, kind):
        assert server == "127.0.0.1"
        own = f"*.{APPS}" if name.endswith(APPS) else name
        return Answer(None, []) if self.silent else Answer(0, sorted(self.loaded.get(own, [])) if kind == "A" else [])

    def run_command(self, command, **options):
        if command[-1] == UNIT:  # a reload reads the names alone
            found = self.answers(self.now)
            kept = {name: ips for name, ips in self.loaded.items() if "try-restart" not in command and name != API}
            read = {name: ips for name, ips in found.items() if "try-restart" in command or name == API}
            self.loaded = {**kept, **read}
        if command[:2] != ["systemctl", "show"]:
            self.events.append((" ".join(command), self.loaded.get(API, [])))
        return super().run_command(command, **options)

    @property
    def member(self):
        return manager.Member(self.run_command, self, CONFIGS, [])


def test_both_vips_are_answered_from_before_the_return_until_all_have_returned(monkeypatch):
    host = Host(monkeypatch, named(NEW, "new"), named(OLD, "old"))
    done = manager.name(host.member, ID, alone=False)
    assert (done["paths"], done["failed"]) == ([resolver_records.NAMES], []) and host.loaded[API] == [NEW, OLD]
    manager.restore(host.member, ID, dry=False)
    assert host.events[1:] == [("systemctl reload keepalived.service", [NEW, OLD])]
    assert manager.name(host.member, ID, alone=True)["failed"] == [] and host.loaded[API] == [OLD]
    assert {command for command, _loaded in host.events} == {"systemctl reload keepalived.service", RELOAD}


def test_a_wildcard_alone_restarts_the_resolver_which_is_asked_then(monkeypatch):
    other = "192.0.2.21"
    host = Host(monkeypatch, named(NEW, ingress=other), named(NEW))
    done = manager.name(host.member, ID, alone=False)
    assert done == {"paths": [resolver_records.CONFIG], "commands": [RESTART], "failed": []}
    assert host.loaded[f"*.{APPS}"] == [other, "192.0.2.20"]
    assert manager.name(host.member, ID, alone=True)["failed"] == [] and host.loaded[f"*.{APPS}"] == ["192.0.2.20"]


@pytest.mark.parametrize("alone", [True, False])
def test_one_that_does_not_answer_then_is_a_failure(monkeypatch, alone):
    host = Host(monkeypatch, named(NEW), named(OLD), silent=True)
    assert "127.0.0.1 does not answer" in manager.name(host.member, ID, alone)["failed"][0]


@pytest.mark.parametrize("alone", [True, False])
def test_it_does_so_once(monkeypatch, alone):
    host = Host(monkeypatch, named(NEW), named(OLD))
    manager.name(host.member, ID, alone)
    assert manager.name(host.member, ID, alone) == {"paths": [], "commands": [], "failed": []}


@pytest.mark.parametrize("now, then", [(NEW, NEW), ("", OLD), (NEW, ""), ("", "")])
@pytest.mark.parametrize("alone", [True, False])
def test_where_no_name_changes_nothing_does(monkeypatch, now, then, alone):
    host = Host(monkeypatch, named(now), named(then))
    assert manager.name(host.member, ID, alone) == {"paths": [], "commands": [], "failed": []}
    assert (host.events, host.now) == ([], named(now))
