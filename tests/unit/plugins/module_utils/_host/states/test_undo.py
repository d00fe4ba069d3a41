# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program by which a member returns: what it does in which order, and what it leaves to whom."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core.packet import Advertisement
from ansible_collections.onprem.lb.plugins.module_utils._host.link import neighbours, sniffer
from ansible_collections.onprem.lb.plugins.module_utils._host.states import arming, restoring, snapshot, undo, undoing
from ansible_collections.onprem.lb.plugins.module_utils._shared.vrrp_routers import Observation
from support.states import INSTANCE, RUNS, STOPPED, Systemd, native

FREE = undoing.Seen([], {})
HELD = undoing.Seen([], {"192.0.2.10": ["aa:bb"]})


class Host:
    """A member on which an undo runs: its files are `now`, and its events are listed in their order."""

    def __init__(self, monkeypatch, now, role, boot="this boot"):
        self.now, self.events, self.said = now, [], []
        self.systemd = Systemd(haproxy=True, keepalived=now.units["keepalived.service"].active)
        monkeypatch.setattr(arming, "boot_id", lambda: "this boot")
        monkeypatch.setattr(arming, "block", lambda _run: self.events.append("block"))
        monkeypatch.setattr(arming, "unblock", lambda _run: self.events.append("unblock"))
        monkeypatch.setattr(snapshot, "take", lambda *_given: self._taken())
        monkeypatch.setattr(restoring, "files", self._restore)
        monkeypatch.setattr(restoring, "openings", lambda *_given: self.events.append("firewall"))
        self.due = arming.Due("20260131T120000Z", "20260131T120000Z", role, 40, 5, boot)

    def _taken(self):
        active = self.systemd.active["keepalived.service"]
        units = {**self.now.units, "keepalived.service": snapshot.Unit(active, True)}
        return self.now._replace(units=units)

    def _restore(self, now, then):
        changed = undo.changes.of_files(now, then).paths
        self.now = self.now._replace(files=then.files)
        self.events += ["files"] if changed else []
        return changed

    def run_command(self, command, **options):
        if command[1] != "show":
            self.events.append(" ".join(command))
        return self.systemd.run_command(command, **options)

    def go(self, then, *looks):
        seen = iter(looks)

        def look(_instances):
            found = next(seen)
            if isinstance(found, Exception):
                raise found
            return found() if callable(found) else found

        program = undo.Undo(self.due, then, self, look, self.said.append)
        return program.go(lambda: self.events.append("ready"))


@pytest.fixture
def clock(monkeypatch):
    """Each look takes 6 s."""
    times = iter(range(0, 1000, 6))
    monkeypatch.setattr(undo.time, "monotonic", lambda: next(times))
    monkeypatch.setattr(undo.time, "sleep", lambda _seconds: None)


def test_where_nothing_changes_on_the_link_the_files_return_and_are_loaded(monkeypatch):
    host = Host(monkeypatch, native(served="two", routed="two"), "alone")
    assert host.go(native())
    assert host.events == [
        "files",
        "ready",
        "systemctl reload haproxy.service",
        "firewall",
        "systemctl reload keepalived.service",
    ]


def test_a_server_of_direct_return_stops_before_its_program_goes(monkeypatch):
    name, now = "onprem-lb-direct-server.service", native(served="two")
    host = Host(monkeypatch, now._replace(units={**now.units, name: RUNS}), "alone")
    assert host.go(native())
    assert host.events[:3] == [f"systemctl stop {name}", "files", "ready"]


def test_the_router_of_another_one_stops_first_and_starts_last(monkeypatch, clock):
    host = Host(monkeypatch, native(routed="two"), "other")
    assert host.go(native(), HELD, FREE, FREE, FREE)
    assert host.events == [
        "block",
        "systemctl stop keepalived.service",
        "files",
        "ready",
        "firewall",
        "unblock",
        "systemctl start keepalived.service",
    ]
    assert "The router stays stopped: 192.0.2.10 is held with other settings, by aa:bb." in host.said


def test_what_a_run_writes_while_the_router_waits_is_taken_back_before_it_starts(monkeypatch, clock):
    host = Host(monkeypatch, native(routed="two"), "other")

    def late():
        host.now = native(routed="late")
        return FREE

    assert host.go(native(), FREE, late, FREE, FREE)
    assert host.now.files == native().files and host.events.count("files") == 2
    assert host.events[-1] == "systemctl start keepalived.service"


def test_a_link_that_cannot_be_watched_keeps_the_router_stopped(monkeypatch, clock):
    host = Host(monkeypatch, native(routed="two"), "other")
    assert host.go(native(), sniffer.CannotListen("eth0 is down."), OSError("no"), FREE, FREE, FREE)
    assert "The router stays stopped: the link cannot be watched: eth0 is down.." in host.said


def test_a_signal_ends_the_wait_and_leaves_the_router_stopped(monkeypatch, clock):
    host = Host(monkeypatch, native(routed="two"), "other")
    program = undo.Undo(
        host.due, native(), host, lambda _instances: setattr(program, "ends", True) or HELD, host.said.append
    )
    assert program.go(lambda: None) is False
    assert host.events[-1] == "firewall" and not host.systemd.active["keepalived.service"]


def test_after_a_boot_the_first_one_waits_as_well(monkeypatch, clock):
    host = Host(monkeypatch, native(routed="two", keepalived=STOPPED), "first", boot="an earlier one")
    assert host.go(native(), FREE, FREE, FREE)
    assert host.events[0] == "block" and host.events.index("files") < host.events.index("ready")
    assert host.events[-2:] == ["unblock", "systemctl start keepalived.service"]


def test_a_router_that_did_not_run_stays_stopped_and_nobody_waits_for_it(monkeypatch):
    host = Host(monkeypatch, native(routed="two"), "other")
    assert host.go(native(keepalived=STOPPED))
    assert not host.systemd.active["keepalived.service"]


def test_a_command_that_fails_is_logged_and_the_others_follow(monkeypatch):
    host = Host(monkeypatch, native(served="two", routed="two"), "alone")
    host.systemd.fails["systemctl reload haproxy"] = "no"
    assert host.go(native())
    assert "systemctl reload haproxy.service failed: no" in host.said
    assert host.events[-1] == "systemctl reload keepalived.service"


def heard(host, priority=100, own=False):
    """An Advertisement with the old settings."""
    message = Advertisement(2, 51, priority, 1_000_000, ("192.0.2.10",), auth_pass=b"secret")
    return Observation(0.0, "eth0", f"02:00:00:00:00:{host}", f"192.0.2.{host}", "192.0.2.11", message, own)


def test_a_look_shows_the_other_routers_that_advertise_and_who_answers_for_the_vips(monkeypatch):
    """This host's own router may still send: it agrees with itself, and a member would start too early."""
    asked, sent = [], [heard(11, own=True), heard(12), heard(13, priority=0)]
    monkeypatch.setattr(sniffer, "listen", lambda interfaces, seconds: asked.append((interfaces, seconds)) or sent)
    answering = {"192.0.2.10": ["aa:bb"]}
    monkeypatch.setattr(neighbours, "holders_on_link", lambda links, _seconds: asked.append(links) or answering)
    seen = undo.look([{**INSTANCE, "advert_interval": 2.0}])
    assert [router["source"] for router in seen.heard] == ["192.0.2.12"]
    assert undoing.agrees(seen.heard[0], INSTANCE) and seen.answering == answering
    assert asked == [(["eth0"], 3.0), {"eth0": ["192.0.2.10"]}]
