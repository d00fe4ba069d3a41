# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a member's resolver answers on the way back to a state: both VIPs, until the routers have returned."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.states import (
    manager,
    restoring,
    store,
)
from ansible_collections.onprem.lb.plugins.module_utils._shared import resolver_records
from support.states import CONFIGS, MARK, Systemd, file, native

ID, API = "20260131T120000Z", "api-int.lab.example.com"
OLD, NEW = "192.0.2.100", "192.0.2.110"


def named(vip, routed="one"):
    """A member whose router and resolver have this VIP; without a resolver where it is empty."""
    here = native(routed=routed)
    text = f"{MARK}port=53\nlocal=/{API}/\nhost-record={API},{vip},30\nlocal-ttl=30\n"
    return here._replace(files=[*here.files, *([file(resolver_records.PATH, text)] if vip else [])])


class Host(Systemd):
    """A member as it becomes: which addresses its resolver has loaded, at each command."""

    def __init__(self, monkeypatch, now, then):
        super().__init__()
        self.now, self.loaded, self.events = now, self.answers(now), []
        monkeypatch.setattr(store, "load", lambda _id: store.State(ID, "a run", then))
        monkeypatch.setattr(manager.Member, "now", lambda _member: self.now)
        monkeypatch.setattr(manager.records, "note_written", lambda _known: None)
        monkeypatch.setattr(manager.fallback_unit, "begin", lambda *_given: [])
        monkeypatch.setattr(restoring, "openings", lambda *_given: [])
        monkeypatch.setattr(restoring, "files", lambda _now, then: setattr(self, "now", then))

    @staticmethod
    def answers(state):
        text = {each.path: each.content.decode() for each in state.files}.get(resolver_records.PATH, "")
        return resolver_records.addresses(text).get(API, [])

    def run_command(self, command, **options):
        if command[-1] == "onprem-lb-resolver.service":
            self.loaded = self.answers(self.now)
        if command[:2] != ["systemctl", "show"]:
            self.events.append((" ".join(command), self.loaded))
        return super().run_command(command, **options)

    @property
    def member(self):
        return manager.Member(self.run_command, self, CONFIGS, [])


def test_both_vips_are_answered_from_before_the_return_until_after_the_router_has_changed(monkeypatch):
    host = Host(monkeypatch, named(NEW, "new"), named(OLD, "old"))
    done = manager.name_both(host.member, ID)
    assert (done["paths"], done["failed"]) == ([resolver_records.PATH], []) and host.loaded == [NEW, OLD]
    manager.restore(host.member, ID, dry=False)
    assert host.events[1:] == [
        ("systemctl reload keepalived.service", [NEW, OLD]),
        ("systemctl --no-block try-restart onprem-lb-resolver.service", [OLD]),
    ]


def test_it_does_so_once(monkeypatch):
    host = Host(monkeypatch, named(NEW), named(OLD))
    manager.name_both(host.member, ID)
    assert manager.name_both(host.member, ID) == {"paths": [], "commands": [], "failed": []}


@pytest.mark.parametrize("now, then", [(NEW, NEW), ("", OLD), (NEW, ""), ("", "")])
def test_where_no_name_changes_nothing_does(monkeypatch, now, then):
    host = Host(monkeypatch, named(now), named(then))
    assert manager.name_both(host.member, ID) == {"paths": [], "commands": [], "failed": []}
    assert (host.events, host.now) == ([], named(now))
