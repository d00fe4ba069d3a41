# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The return of a member that announces its VIPs: what it does in which order, and when it goes forth again."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.metrics import sessions
from ansible_collections.onprem.lb.plugins.module_utils._host import records
from ansible_collections.onprem.lb.plugins.module_utils._host.read import bgp
from ansible_collections.onprem.lb.plugins.module_utils._host.states import (
    arming,
    manager,
    restoring,
    serving,
    snapshot,
    state_data,
    store,
    undo,
)
from support.states import (
    FRR_CONF,
    GATE_CONF,
    R1,
    R2,
    STOPPED,
    VIP,
    VIP6,
    Systemd,
    announcing,
    frr,
    gate,
)

ON_LO = ["127.0.0.1", VIP]
SERVES, DOWN = serving.Seen(ON_LO, [R1], frr()), serving.Seen(["127.0.0.1"], [R1], frr())
LOADED, GATE_RELOADED = "frr-reload.py --reload /etc/frr/frr.conf", "systemctl reload onprem-lb-anycast.service"
HAPROXY_RELOADED = "systemctl reload haproxy.service"


class Host(Systemd):
    """A member on which an undo runs: its files are `now`, and its events are listed in their order."""

    def __init__(self, monkeypatch, now, role="other"):
        super().__init__(**{name.partition(".")[0]: unit.active for name, unit in now.units.items()})
        self.now, self.events, self.said = now, [], []
        monkeypatch.setattr(arming, "boot_id", lambda: "this boot")
        monkeypatch.setattr(snapshot, "take", lambda *_given: self._taken())
        monkeypatch.setattr(restoring, "files", self._restore)
        monkeypatch.setattr(restoring, "openings", lambda _host, then: self.events.append(f"open {then.openings}"))
        monkeypatch.setattr(restoring, "current_openings", lambda _host: ["new"])
        monkeypatch.setattr(restoring, "_load_frr", lambda _run: self.events.append(LOADED) or "")
        monkeypatch.setattr(undo.fallback_unit, "begin", lambda *_given: [])
        times = itertools.count(0, 6)
        monkeypatch.setattr(undo.time, "monotonic", lambda: next(times))
        monkeypatch.setattr(undo.time, "sleep", lambda _seconds: None)
        self.due = arming.Due("20260131T120000Z", "20260131T120000Z", role, 40, 16.4, "this boot")
        self.written = {file.path: [records.checksum(file.content)] for file in now.files}

    def _taken(self):
        units = {name: unit._replace(active=self.active[name]) for name, unit in self.now.units.items()}
        return self.now._replace(units=units)

    def _restore(self, now, then):
        changed = undo.changes.of_files(now, then).paths
        self.now = self.now._replace(files=then.files)
        self.events += [f"files {' '.join(path.rpartition('/')[2] for path in changed)}"] if changed else []
        return changed

    def run_command(self, command, **options):
        if command[1] != "show":
            self.events.append(" ".join(command))
        return super().run_command(command, **options)

    def go(self, then, *seen, before=("old",)):
        """Return; what the member sees last it sees from then on."""
        every = itertools.chain(seen, itertools.repeat(seen[-1]))
        program = undo.Undo(
            self.due,
            then._replace(openings=[*before]),
            self,
            say=self.said.append,
            written=self.written,
            sees=lambda _now, _reader: next(every),
        )
        assert program.go(lambda: self.events.append("ready"))
        self.events = list(dict.fromkeys(self.events))
        return program


@pytest.mark.parametrize("role", ["alone", "first", "other"])
def test_no_role_stops_what_serves_and_the_firewall_closes_last(monkeypatch, role):
    host = Host(monkeypatch, announcing(served="two"), role)
    assert host.go(announcing(), SERVES).stays == ""
    assert host.events == ["files haproxy.cfg", "ready", HAPROXY_RELOADED, "open ['old', 'new']", "open ['old']"]
    assert host.said[-1] == "This member runs again what it ran before."


def test_frr_and_the_gate_follow_the_balancer(monkeypatch):
    then = announcing(conf=frr([R1, R2]), config=gate([VIP, VIP6]))
    host = Host(monkeypatch, announcing(served="two"))
    assert host.go(then, SERVES).stays == ""
    assert host.events[1:] == ["ready", HAPROXY_RELOADED, "open ['old', 'new']", LOADED, GATE_RELOADED, "open ['old']"]


def test_an_established_session_keeps_frr_and_its_openings_and_the_rest_returns(monkeypatch):
    host = Host(monkeypatch, announcing(served="two", conf=frr(password="two")))
    undone = host.go(announcing(), SERVES._replace(running=frr(password="two")))
    assert undone.stays == f"the session with {R1} is established, and would end" and undone.kept == "FRR"
    assert host.events == ["files haproxy.cfg", "ready", HAPROXY_RELOADED, "open ['old', 'new']"]
    assert next(each for each in host.now.files if each.path == FRR_CONF).content == frr(password="two").encode()


def test_without_a_vip_on_lo_it_returns_wholly(monkeypatch):
    host = Host(monkeypatch, announcing(served="two", conf=frr(password="two")))
    assert host.go(announcing(), DOWN).stays == ""
    assert LOADED in host.events and host.now.files == announcing().files


def test_whoever_served_nobody_before_stays_as_it_is_while_it_serves(monkeypatch):
    host, then = Host(monkeypatch, announcing()), announcing()._replace(files=[], units={}, served=[])
    undone = host.go(then, SERVES)
    assert (undone.stays, undone.kept) == (serving.NOBODY_BEFORE, records.WHOLE)
    assert host.events == ["ready"] and host.now.files == announcing().files


def test_whoever_announced_nothing_before_and_serves_nobody_stops(monkeypatch):
    then = announcing()._replace(files=[], units={"haproxy.service": STOPPED})
    host = Host(monkeypatch, announcing())
    assert host.go(then, DOWN).stays == ""
    stops = [event for event in host.events if event.startswith("systemctl stop")]
    assert stops == [f"systemctl stop {name}.service" for name in ("haproxy", "onprem-lb-anycast", "frr")]


@pytest.mark.parametrize("after", [DOWN, SERVES._replace(established=[])], ids=["no VIP on lo", "no session"])
def test_if_it_does_not_serve_with_the_settings_of_before_it_goes_forth_again(monkeypatch, after):
    now = announcing(served="two")
    host = Host(monkeypatch, now)
    undone = host.go(announcing(), SERVES, after)
    assert undone.stays == f"with the settings of before it did not serve {VIP}" and undone.kept == records.WHOLE
    assert host.now.files == now.files and "open ['old']" not in host.events
    assert "This member runs again" not in str(host.said)


@pytest.mark.parametrize("after", [SERVES, serving.Seen(), serving.Seen(None, [R1])])
def test_what_it_cannot_see_any_more_is_no_reason_to_go_forth(monkeypatch, after):
    host = Host(monkeypatch, announcing(served="two"))
    assert host.go(announcing(), SERVES, after).stays == "" and host.now.files == announcing().files


def test_a_vip_that_only_the_run_has_brought_is_not_missed(monkeypatch):
    host = Host(monkeypatch, announcing(config=gate([VIP, VIP6])))
    before = SERVES._replace(on_lo=[*ON_LO, VIP6])
    assert host.go(announcing(), before, SERVES).stays == "" and GATE_RELOADED in host.events


@pytest.mark.parametrize("path", [FRR_CONF, GATE_CONF])
def test_what_somebody_else_has_changed_meanwhile_keeps_all_of_it(monkeypatch, path):
    host = Host(monkeypatch, announcing(served="two", conf=frr([R1, R2]), config=gate([VIP, VIP6])))
    host.written[path] = []
    assert host.go(announcing(), SERVES).stays == "somebody else has changed its configuration since"
    assert host.events == ["ready"]


@pytest.mark.parametrize(
    "units, established",
    [({}, None), ({"frr": STOPPED}, [])],
    ids=["it runs and says nothing", "it does not run"],
)
def test_an_frr_that_says_nothing_is_without_sessions_only_if_it_does_not_run(monkeypatch, units, established):
    def silent(_reader):
        raise bgp.NoAnswer("vtysh hangs")

    monkeypatch.setattr(undo, "addresses", lambda of_loopback: {VIP})
    monkeypatch.setattr(bgp, "sessions", silent)
    assert undo.see(announcing(**units), None) == serving.Seen({VIP}, established)


def test_addresses_that_cannot_be_read_are_not_known(monkeypatch):
    def fails(of_loopback):
        raise OSError("no memory")

    monkeypatch.setattr(undo, "addresses", fails)
    session = sessions.Session(R1, 64601, "ipv4", sessions.ESTABLISHED, None, 1, 0, 1, 0, "")
    others = [session._replace(peer=R2, state="Active")]
    monkeypatch.setattr(bgp, "sessions", lambda _reader: [session, *others])
    monkeypatch.setattr(bgp, "running_config", lambda _reader: frr())
    assert undo.see(announcing(), None) == serving.Seen(None, {R1}, frr())


@pytest.mark.parametrize("seen, vips", [(SERVES, [VIP]), (serving.Seen(), []), (DOWN, [])])
def test_a_run_saves_what_it_serves_for_certain(monkeypatch, seen, vips):
    saved = []
    monkeypatch.setattr(manager.Member, "now", lambda _member: announcing()._replace(served=[]))
    monkeypatch.setattr(undo, "see", lambda _now, _reader: seen)
    monkeypatch.setattr(store, "save", lambda state, _kept: saved.append(state.saved))
    monkeypatch.setattr(arming, "arm", lambda *_given: None)
    monkeypatch.setattr(arming, "target", lambda wanted: wanted.run)
    member = manager.Member(lambda _command: (0, "", ""), None, {}, [])
    manager.arm(member, arming.Due("20260131T120000Z", "", "other", 40, 16.4), "a run")
    assert saved[0].served == vips
    again = state_data.of_data(state_data.as_data(saved[0]))
    assert again.served == vips and again.digest == announcing().digest


def test_a_state_that_was_saved_before_this_was_known_served_nobody_for_certain():
    data = state_data.as_data(announcing())
    del data["served"]
    assert state_data.of_data(data).served == []
