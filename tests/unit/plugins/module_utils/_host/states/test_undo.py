# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program by which a member returns: what it does in which order, and what it leaves to whom."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import netlink
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core.packet import Advertisement
from ansible_collections.onprem.lb.plugins.module_utils._host import records
from ansible_collections.onprem.lb.plugins.module_utils._host.link import neighbours, sniffer
from ansible_collections.onprem.lb.plugins.module_utils._host.states import arming, restoring, snapshot, undo, undoing
from ansible_collections.onprem.lb.plugins.module_utils._shared import held_back
from ansible_collections.onprem.lb.plugins.module_utils._shared.vrrp_routers import Observation
from support.states import CONFIGS, INSTANCE, RUNS, STOPPED, Systemd, file, native

FREE = undoing.Seen([], {})
ACTIVE = undoing.Seen([], {}, serves=True)  # this host's own router
HELD = undoing.Seen([], {"192.0.2.10": ["aa:bb"]})
FIRST = "192.0.2.12"
NEW = {**INSTANCE, "auth_pass": "new"}


def advertises(instance, source=FIRST):
    """What is heard of another router with the settings of an instance."""
    router = {key: instance[key] for key in ("vrid", "version", "auth_pass")}
    addresses = [address.partition("/")[0] for address in instance["addresses"]]
    return undoing.Seen([{**router, "interval": 1.0, "addresses": addresses, "source": source}], {})


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
        monkeypatch.setattr(restoring, "openings", lambda _host, then: self._open(then.openings))
        monkeypatch.setattr(restoring, "current_openings", lambda _host: ["tcp 443 from anywhere"])
        self.due = arming.Due("20260131T120000Z", "20260131T120000Z", role, 40, 5, boot, [FIRST])
        self.written = {file.path: [records.checksum(file.content)] for file in now.files}
        self.opened = []

    def _open(self, openings):
        self.events.append("firewall")
        self.opened = openings

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

        program = undo.Undo(self.due, then, self, look, self.said.append, self.written)
        return program.go(lambda: self.events.append("ready"))


@pytest.fixture
def clock(monkeypatch):
    """Each look takes 6 s."""
    _ticks(monkeypatch, 6)


@pytest.fixture
def slow_clock(monkeypatch):
    """A look takes 2 s, or twice that before the router has stopped."""
    _ticks(monkeypatch, 2)


def _ticks(monkeypatch, seconds):
    times = iter(range(0, 1000, seconds))
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


def test_the_router_of_another_one_stops_once_the_first_is_heard_and_starts_last(monkeypatch, clock):
    host = Host(monkeypatch, native(routed="two"), "other")
    assert host.go(native(), advertises(NEW), HELD, FREE, FREE, FREE)
    assert host.events == [
        "block",
        "systemctl stop keepalived.service",
        "ready",
        "firewall",
        "files",
        "ready",
        "firewall",
        "unblock",
        "systemctl start keepalived.service",
    ]
    assert "The router stays stopped: 192.0.2.10 is held with other settings, by aa:bb." in host.said


@pytest.mark.parametrize("seen", [ACTIVE, HELD, advertises(NEW, "192.0.2.13")], ids=["itself", "an answer", "a third"])
def test_where_the_first_is_not_heard_the_router_of_another_one_never_stops_and_the_rest_returns(
    monkeypatch, clock, seen
):
    now = native(served="two", routed="two")
    host = Host(monkeypatch, now, "other")
    assert host.go(native(), seen)
    assert host.events == ["files", "ready", "systemctl reload haproxy.service", "firewall"]
    assert now.files[1] in host.now.files  # keepalived's
    assert host.said[-1] == "Everything else is as it was before."
    why = "the member that returns first is not heard, and might not take the VIPs"
    assert f"The router stays as it is: {why}. The next run of onprem.lb.site repairs that." in host.said


def test_a_router_that_serves_nobody_stops_and_starts_last_with_the_old_settings(monkeypatch, slow_clock):
    """In FAULT with the new settings, it could end that beside the first one, once that has returned."""
    host = Host(monkeypatch, native(routed="two"), "other")
    assert host.go(native(), *[FREE] * 10)
    assert host.events[:2] == ["block", "systemctl stop keepalived.service"]
    assert host.events[-2:] == ["unblock", "systemctl start keepalived.service"]
    assert host.now.files == native().files
    assert "The router stays stopped: the first member may still take the VIPs with other settings." in host.said


def test_a_router_that_serves_at_the_second_look_never_stops(monkeypatch, slow_clock):
    host = Host(monkeypatch, native(routed="two"), "other")
    assert host.go(native(), FREE, ACTIVE)
    assert not {"block", "systemctl stop keepalived.service"} & {*host.events}


def test_one_that_did_not_run_before_goes_on_although_it_serves_nobody_yet(monkeypatch, clock):
    host = Host(monkeypatch, native(), "other")
    assert host.go(native(keepalived=STOPPED), FREE)
    assert "systemctl stop keepalived.service" not in host.events


def test_a_router_whose_vips_nobody_takes_starts_again_as_it_was(monkeypatch, clock):
    now = native(routed="two")
    host = Host(monkeypatch, now, "other")
    assert host.go(native(), advertises(NEW), FREE, FREE)
    assert host.events[-2:] == ["unblock", "systemctl start keepalived.service"] and now.files[1] in host.now.files


def test_the_first_one_keeps_its_router_beside_one_that_still_has_the_new_settings(monkeypatch, clock):
    now = native(served="two", routed="two")
    host = Host(monkeypatch, now, "first")
    assert host.go(native(), advertises(NEW))
    assert host.events == ["files", "ready", "systemctl reload haproxy.service", "firewall"]
    assert f"{FIRST} advertises the VIPs with other settings than the old ones" in host.said[1]


@pytest.mark.parametrize("seen", [FREE, HELD, advertises(INSTANCE)])
def test_the_first_one_returns_where_nobody_disagrees(monkeypatch, clock, seen):
    host = Host(monkeypatch, native(routed="two"), "first")
    assert host.go(native(), seen)
    assert host.events[-1] == "systemctl reload keepalived.service"


@pytest.mark.parametrize("role", ["first", "other"])
def test_a_link_that_cannot_be_watched_leaves_the_router_alone(monkeypatch, clock, role):
    host = Host(monkeypatch, native(routed="two"), role)
    assert host.go(native(), sniffer.CannotListen("eth0 is down."), OSError("no"))
    assert not {"block", "systemctl stop keepalived.service", "systemctl reload keepalived.service"} & {*host.events}
    assert "The router stays as it is: the link cannot be watched:" in host.said[1]


def test_a_router_that_checks_something_else_than_before_keeps_all_that_it_checks(monkeypatch, clock):
    """What it asks haproxy for may not be there in the state of before."""
    host = Host(monkeypatch, native(served="two", routed="two", asked="check port 2"), "other")
    assert host.go(native(), ACTIVE)
    assert host.events == ["ready", "firewall"]
    assert host.said[-1].startswith("So does everything else")


def test_openings_of_a_router_that_stays_are_not_closed(monkeypatch, clock):
    then = native()._replace(openings=["vrrp from 192.0.2.12"])
    host = Host(monkeypatch, native(routed="two"), "other")
    assert host.go(then, ACTIVE)
    assert host.opened == ["vrrp from 192.0.2.12", "tcp 443 from anywhere"]


def test_what_a_run_writes_while_the_router_waits_is_taken_back_before_it_starts(monkeypatch, clock):
    host = Host(monkeypatch, native(routed="two"), "other")

    def late():
        host.now = native(routed="late")
        return FREE

    assert host.go(native(), advertises(NEW), HELD, late, FREE, FREE)
    assert host.now.files == native().files
    assert host.events[-1] == "systemctl start keepalived.service"


def test_a_link_that_cannot_be_watched_any_more_keeps_the_router_stopped(monkeypatch, clock):
    host = Host(monkeypatch, native(routed="two"), "other")
    looks = advertises(NEW), HELD, sniffer.CannotListen("eth0 is down."), OSError("no"), FREE, FREE, FREE
    assert host.go(native(), *looks)
    assert "The router stays stopped: the link cannot be watched: eth0 is down.." in host.said


def test_a_signal_ends_the_wait_and_leaves_the_router_stopped(monkeypatch, clock):
    host = Host(monkeypatch, native(routed="two"), "other")
    seen = iter([advertises(NEW), HELD])
    program = undo.Undo(host.due, native(), host, lambda _instances: next(seen), host.said.append, host.written)
    monkeypatch.setattr(undoing.Patience, "hindrance", lambda *_given: setattr(program, "ends", True) or "no")
    assert program.go(lambda: None) is False
    assert host.events[-1] == "firewall" and not host.systemd.active["keepalived.service"]


def test_after_a_boot_the_first_one_waits_as_well(monkeypatch, clock):
    now = native(served="two", routed="two", keepalived=STOPPED)
    host = Host(monkeypatch, now, "first", boot="an earlier one")
    assert host.go(native(), FREE, FREE, FREE)
    assert host.events[0] == "block" and host.events.index("files") < host.events.index("ready")
    assert host.events[-2:] == ["unblock", "systemctl start keepalived.service"]


def test_a_router_that_did_not_run_stays_stopped_once_its_vips_are_taken(monkeypatch, clock):
    host = Host(monkeypatch, native(routed="two"), "other")
    assert host.go(native(keepalived=STOPPED), advertises(NEW), HELD)
    assert not host.systemd.active["keepalived.service"] and host.events[-1] == "unblock"


@pytest.mark.parametrize("role", ["alone", "other"])
def test_a_router_that_did_not_run_goes_on_if_it_is_the_only_one(monkeypatch, clock, role):
    """The run has started it, and the others are gone: this member serves, whatever it did before."""
    record = file(held_back.PATHS[held_back.SWITCHOVER])
    then = native(keepalived=STOPPED)
    then = then._replace(files=[*then.files, record])
    host = Host(monkeypatch, native(), role)
    assert host.go(then, ACTIVE)
    assert host.systemd.active["keepalived.service"] and host.events == ["ready", "firewall"]
    assert record not in host.now.files


@pytest.mark.parametrize("role", ["alone", "first", "other"])
def test_a_router_whose_vips_cannot_be_read_goes_on(monkeypatch, clock, role):
    """Nobody is known to serve what it serves, although others are heard."""
    host = Host(monkeypatch, native()._replace(instances=[]), role)
    assert host.go(native(keepalived=STOPPED), advertises(INSTANCE))
    assert host.systemd.active["keepalived.service"] and host.events == ["ready", "firewall"]


def test_the_first_one_goes_on_alone_although_it_did_not_run_when_its_state_was_saved(monkeypatch, clock):
    host = Host(monkeypatch, native(routed="two"), "first")
    assert host.go(native(keepalived=STOPPED), FREE)
    assert "The router stays as it is: no other member advertises 192.0.2.10." in host.said[1]
    assert host.systemd.active["keepalived.service"]


def test_a_router_that_did_not_run_stops_beside_another_one_that_serves(monkeypatch, clock):
    host = Host(monkeypatch, native(), "alone")
    assert host.go(native(keepalived=STOPPED), advertises(INSTANCE))
    assert not host.systemd.active["keepalived.service"]


def test_what_somebody_else_has_changed_since_stays_and_is_named(monkeypatch, clock):
    host = Host(monkeypatch, native(served="by hand"), "alone")
    host.written.pop(CONFIGS["haproxy"])
    assert host.go(native())
    assert host.events == ["ready", "firewall"]
    assert "Somebody else has changed /etc/haproxy/haproxy.cfg since, so it stays." in host.said
    assert host.said[-1] == "This member runs again what it ran before, but for /etc/haproxy/haproxy.cfg."


@pytest.mark.parametrize("role", ["alone", "first", "other"])
def test_a_router_that_somebody_else_has_configured_since_is_left_alone(monkeypatch, clock, role):
    host = Host(monkeypatch, native(served="two", routed="by hand"), role)
    host.written[CONFIGS["keepalived"]] = [records.checksum(b"what the run has written")]
    assert host.go(native(), FREE)
    assert host.events == ["files", "ready", "systemctl reload haproxy.service", "firewall"]


def test_without_the_list_of_what_runs_have_written_nothing_is_taken_back(monkeypatch, clock):
    host = Host(monkeypatch, native(served="two", routed="two"), "alone")
    host.written.clear()
    assert host.go(native())
    assert host.events == ["ready", "firewall"] and sorted(host.now.files) == sorted(
        native(served="two", routed="two").files
    )
    assert f"Somebody else has changed {CONFIGS['haproxy']}, {CONFIGS['keepalived']} since, so it stays." in host.said


def test_an_undo_that_names_no_first_one_stops_no_router_that_is_heard_alone(monkeypatch, clock):
    """As a version before this one has armed it."""
    host = Host(monkeypatch, native(routed="two"), "other")
    host.due = host.due._replace(first=())
    assert host.go(native(), HELD)
    assert host.systemd.active["keepalived.service"] and "block" not in host.events
    assert "The router stays as it is: no other member advertises 192.0.2.10." in host.said[1]


DUE = {"run": "20260131T120000Z", "id": "20260131T120000Z", "role": "alone", "after": 40, "settle": 5}


@pytest.mark.parametrize(
    "file, text, said",
    [
        ("state", "{}", "The state 20260131T120000Z is damaged: "),
        ("due", "{", "due is damaged: "),
        ("due", json.dumps({**DUE, "of another version": 1}), ""),
        ("written", "", "written is damaged: "),
    ],
)
def test_a_state_that_cannot_be_read_leaves_the_member_as_it_is(monkeypatch, tmp_path, capsys, file, text, said):
    done, load = [], undo.store.load
    texts = {"due": json.dumps(DUE), "written": "{}", "state": "{}", file: text}
    for name, path in (("due", "due"), ("written", "written"), ("state", f"{DUE['id']}.json")):
        (tmp_path / path).write_text(texts[name])
    monkeypatch.setattr(records, "DUE", str(tmp_path / "due"))
    monkeypatch.setattr(records, "WRITTEN", str(tmp_path / "written"))
    monkeypatch.setattr(undo.store, "load", lambda which: load(which, str(tmp_path)))
    monkeypatch.setattr(arming, "clear", lambda _run: done.append("disarmed"))
    monkeypatch.setattr(undo.Undo, "go", lambda *_given: done.append("returns"))
    assert undo.main() == 1 and done == ["disarmed"]
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("This member stays as it is. ") and said in line


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
    monkeypatch.setattr(undo, "addresses", set)
    seen = undo.look([{**INSTANCE, "advert_interval": 2.0}])
    assert [router["source"] for router in seen.heard] == ["192.0.2.12"]
    assert undoing.agrees(seen.heard[0], INSTANCE) and seen.answering == answering and seen.serves
    assert asked == [(["eth0"], 3.0), {"eth0": ["192.0.2.10"]}]


@pytest.mark.parametrize("interface, serves", [("eth0", True), ("lo", False)])
def test_a_router_that_advertises_nothing_serves_as_long_as_a_vip_is_on_a_link_of_this_host(
    monkeypatch, interface, serves
):
    """One that hangs keeps its VIPs, and the kernel goes on answering for them. Direct return has VIPs on lo."""

    class Kernel:
        def links(self):
            return [netlink.Link(7, interface, True, b"")]

        def addresses(self):
            return [netlink.Address(7, "192.0.2.10", 24, True)]

        def close(self):
            pass

    monkeypatch.setattr(undo, "Netlink", Kernel)
    monkeypatch.setattr(sniffer, "listen", lambda _interfaces, _seconds: [])
    monkeypatch.setattr(neighbours, "holders_on_link", lambda _links, _seconds: {})
    assert undo.look([INSTANCE]).serves is serves
