# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role drill, played against recorded results: its rounds, its lock, a member that reboots, and what it writes."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from support import members
from support.drills import simulated
from support.plans.pairs import pair
from support.recorded_hosts import locked
from support.recorded_plays import run, tasks_of

VIP = "192.0.2.10"
HOSTS = {"probe": {"client": {}}, "pair": {"lb1": {}, "lb2": {}}}
SEEN = {**simulated()[0]["seen"], "holder_after": "lb1", "holder_before": "lb1"}


def member(name, number):
    host = {"addresses": [{"interface": "eth0", "address": f"192.0.2.{number}", "mac": f"02:00:00:00:00:0{number}"}]}
    return {"name": name, "host": host}


def plan(event):
    line = {"event": event, "vip": VIP, "before": "lb1", "after": "lb2", "back": "lb1", "outage_ms": 72, "back_ms": 60}
    router = {"instances": [{"interface": "eth0", "addresses": [f"{VIP}/32"], "preempt_delay": 0}]}
    balancer = {"services": "[]", "redirect": None}
    carrier = {"engine": "native", "router": router, "balancer": balancer, "direct": {}}
    carriers = dict.fromkeys(("lb1", "lb2"), carrier)
    outages = [{**line, "two_holders_ms": 0}]
    return {"outages": outages, "targets": [[VIP, 80]], "members": carriers, "advert_interval": 1, "vips": []}


def drilled(event="haproxy_killed", answers=None, planned=None, timeouts=None, **variables):
    plans = {"faults": [], "plans": [planned or plan(event)]}
    read = {at: {**member(f"lb{at}", at), "timeouts": timeouts or {}} for at in (1, 2)}
    facts = {f"lb{at}": {"__layout_plans": plans, "__layout_member": read[at]} for at in (1, 2)}
    usual = {
        "member_lock": locked,
        "vip_probe": SEEN,
        "member_info": members.seen(1),
        "drill_event": {"injected_at": "2026-01-31T12:00:02+00:00"},
    }
    wanted = {"drill_events": [event], "drill_history": "", "drill_report": "", "drill_html": "", **variables}
    return run(tasks_of("drill", hosts="probe"), HOSTS, {**usual, **(answers or {})}, facts=facts, **wanted)


def events(play):
    return [f"{call.on} {call.given['event']}" for call in play.of("drill_event") if not call.check]


def between_locks(play):
    """Return what is done between the locks of both members, in any order, and their release."""
    lines = [
        str(call) for call in play.of("member_lock", "drill_event") if call.module == "member_lock" or not call.check
    ]
    assert sorted(lines[:2]) == ["lb1 member_lock", "lb2 member_lock"]
    assert sorted(lines[-2:]) == ["lb1 member_lock absent", "lb2 member_lock absent"]
    return lines[2:-2]


@pytest.fixture(scope="module")
def usual():
    """A drill of one event, which writes no report."""
    return drilled()


def test_the_members_are_asked_locked_drilled_and_released(usual):
    assert [(call.on, call.check) for call in usual.of("drill_event")][:2] == [("lb1", True), ("lb1", False)]
    assert between_locks(usual) == ["lb1 drill_event haproxy_killed"]


def probed(play):
    return [(call.given.get("send", "")[:5], call.given.get("tls", False)) for call in play.of("vip_probe")]


def test_what_is_answered_is_asked_in_each_round(usual):
    assert probed(usual) == [("GET /", False)] * 3
    assert probed(drilled(drill_send="PING")) == [("PING", False)] * 3


def test_a_dry_run_tries_the_probe_and_says_what_would_be_injected():
    play = drilled(check=True, drill_repeats=2)
    assert (play.code, probed(play), play.of("member_lock", "config_files")) == (0, [("GET /", False)], [])
    assert [call.on for call in play.of("drill_event")] == ["lb1"]
    assert f"haproxy_killed on lb1, {VIP}: 2 rounds" in str(play.said)


def test_what_the_user_sends_may_be_secret_and_is_shown_nowhere():
    play = drilled(drill_send="GET / HTTP/1.0\r\nAuthorization: MarkSend\r\n\r\n")
    assert ["MarkSend" in call.given["send"] for call in play.of("vip_probe")] == [True] * 3
    assert "MarkSend" not in str([play.shown, play.said])


def test_what_is_not_answered_is_not_asked_and_the_row_says_that_the_probe_connects_only():
    def answer(call):
        return {**SEEN, "failed_attempts": SEEN["tried"], "failures": {}} if "send" in call.given else SEEN

    play = drilled("haproxy_hung", {"vip_probe": answer}, drill_budget=500)
    assert probed(play) == [("GET /", False), *[("", False)] * 2]
    assert "not measured" in str(play.said) and "connects only: no answer to HTTP at 80" in str(play.said)
    assert "set drill_send to something that the service answers." in str(play.faults())


SERVER = {"name": "web", "port": 80, "servers": ["192.0.2.31", "192.0.2.32"], "check": {"type": "http"}}


def losing(event="server_cut", servers=2, answers=None, **variables):
    """Return the drill of a lost server on a pair with one service."""
    service = {**SERVER, "servers": SERVER["servers"][:servers]}
    settings = pair(masters=[], infra_nodes=[], services=[service])
    planned = as_data(_pair.plan(settings))
    seen = {**SEEN, "holder_after": "lb1", "holder_before": "lb1"}
    return drilled(event, {"vip_probe": seen, **(answers or {})}, planned=planned, **variables)


def test_the_host_is_told_which_server_is_lost_and_the_probe_how_long_to_wait():
    play = losing()
    for call in play.of("drill_event")[:2]:
        assert call.given["server"] == {"address": "192.0.2.31", "port": 80, "services": {"web": ["192.0.2.31"]}}
    measured = play.of("vip_probe")[-1].given
    assert float(measured["late_ms"]) >= 1500 and float(measured["interval_ms"]) == 5
    slow = losing(timeouts={"haproxy_timeout_connect": "7s"}).of("vip_probe")[-1].given
    assert float(slow["late_ms"]) == 7500 and float(slow["interval_ms"]) > 5


def test_a_server_that_cannot_be_spared_is_refused_before_a_member_is_asked():
    play = losing(servers=1)
    assert play.code == 2 and "server_cut is not for 192.0.2.10: web has no second active server." in str(play.faults())
    assert play.did("drill_event", "member_lock") == []


IMPAIRED = {**dict.fromkeys(SEEN["impaired"], 0), "window_ms": 0.0}
UNNOTICED = {**SEEN, "impaired": IMPAIRED, "timeline": [{"at_ms": 0.0, "holders": ["lb1"]}]}
LOST = {"total": 2, "up": 1, "others": [{"service": "web", "name": "192.0.2.31", "state": "down"}]}


class Returning:
    """A member whose balancer has its server down from the event on, until it was read some times."""

    def __init__(self, readings, silent=None):
        self.left, self.silent, self.is_lost = readings, silent, False

    def __call__(self, call):
        self.left -= self.is_lost
        if self.is_lost and self.silent:
            return self.silent
        return members.seen(1, **({"servers": LOST} if self.is_lost and self.left >= 0 else {}))

    def armed(self, call):
        self.is_lost = self.is_lost or not call.check
        return {"injected_at": "2026-01-31T12:00:02+00:00", "reverted_at": "2026-01-31T12:00:19+00:00"}


def returned(readings, silent=None):
    returning = Returning(readings, silent)
    answers = {"member_info": returning, "drill_event": returning.armed, "vip_probe": UNNOTICED}
    return losing("server_back", answers=answers)


@pytest.mark.parametrize("readings", [1, 3])
def test_a_server_that_comes_back_is_read_before_the_probe_and_at_the_end(readings):
    play = returned(readings)
    found = [call.module for call in play.of("drill_event", "wait_for", "member_info", "vip_probe") if not call.check]
    first = found.index("drill_event")
    between = ["drill_event", "wait_for", "member_info", "vip_probe", *["member_info"] * readings]
    assert play.code == 0, play.faults()
    assert found[first : first + len(between)] == between
    assert "none late (plan: none late; gets connections after 400 ms)" in str(play.said)


@pytest.mark.parametrize("readings, said", [(0, "was not down before its return"), (10**6, "is not up again")])
def test_a_return_that_was_none_fails_and_is_not_measured(readings, said):
    play = returned(readings)
    assert play.code == 2 and said in str(play.faults()) and "not measured" in str(play.said)
    assert events(play) == ["lb1 server_back"] * 3 and len(between_locks(play)) == 3


@pytest.mark.parametrize("silent", [{"unreachable": True}, {"failed": True, "msg": "no room"}])
def test_a_return_of_which_the_balancer_says_nothing_is_not_known(silent):
    play = returned(1, silent)
    assert play.code == 2 and "is not known, because its balancer did not say so." in str(play.faults())
    assert len(between_locks(play)) == 3


def test_an_event_that_a_member_cannot_have_is_refused_before_anything_is_locked():
    for answer in ({"failed": True, "msg": "no tc"}, {"unreachable": True}):
        play = drilled(answers={"drill_event": answer})
        assert (
            play.code == 2 and "haproxy_killed is not for lb1" in str(play.faults()) and play.did("member_lock") == []
        )


def test_the_members_are_released_after_a_holder_that_cannot_be_reached():
    play = drilled(answers={"drill_event": lambda call: {} if call.check else {"unreachable": True}})
    assert play.code == 2 and "lb1 holds the VIP, but cannot be reached" in str(play.faults())
    assert len(between_locks(play)) == 1


class Rebooting:
    """A member that answers after its boot as before, once it was read some times."""

    def __init__(self, readings, meanwhile):
        self.left, self.meanwhile, self.before = readings, meanwhile, True

    def __call__(self, call):
        found = {**members.seen(1), "booted": "Sat", "held": []}
        if self.before:
            return found
        self.left -= 1
        return self.meanwhile if self.left > 0 else {**found, "booted": "Sun"}

    def armed(self, call):
        self.before = self.before and call.check
        return {"injected_at": "2026-01-31T12:00:02+00:00"}


@pytest.mark.parametrize(
    "meanwhile", [{"unreachable": True}, {"failed": True, "msg": "it shuts down"}, {**members.seen(1), "booted": "Sat"}]
)
def test_a_member_that_reboots_is_waited_for_and_locked_again(meanwhile):
    rebooting = Rebooting(8, meanwhile)
    play = drilled("host_rebooted", {"member_info": rebooting, "drill_event": rebooting.armed})
    assert len(play.of("wait_for_connection")) > 1
    assert between_locks(play) == ["lb1 drill_event host_rebooted", "lb1 member_lock"]


def test_a_member_that_is_not_back_in_time_ends_the_drill():
    rebooting = Rebooting(10**6, {**members.seen(1), "booted": "Sat"})
    answers = {"member_info": rebooting, "drill_event": rebooting.armed}
    play = drilled("host_rebooted", answers, __drill_deadline=0)
    assert play.code == 2 and "lb1 is not back from its reboot as it was." in str(play.faults())
    assert len(play.of("wait_for_connection")) == 1
    assert len(between_locks(play)) == 1


def test_a_member_that_cannot_be_read_hinders_no_drill():
    for answer in ({"unreachable": True}, {"failed": True, "msg": "no room"}):
        play = drilled(answers={"member_info": answer, "config_files": answer if "unreachable" in answer else {}})
        assert events(play) == ["lb1 haproxy_killed"] and play.said[-1]
        assert not any("no room" in str(fault) or "unreachable" in str(fault) for fault in play.faults())


def written(play):
    return [str(call.given.get("dest", call.given.get("path"))) for call in play.of("copy", "template", "file")]


def test_the_controller_gets_only_what_is_wanted(usual, tmp_path):
    assert written(usual) == []
    folder = tmp_path / "drills"
    names = {"drill_report": "r.json", "drill_html": "r.html", "drill_history": "drills"}
    play = drilled(**{key: str(tmp_path / name) for key, name in names.items()})
    made, report, page, record = written(play)
    assert (made, report, page) == (str(folder), str(tmp_path / "r.json"), str(tmp_path / "r.html"))
    assert record.startswith(f"{folder}/") and {call.on for call in play.of("copy", "template", "file")} == {
        "localhost"
    }
    folder.mkdir()
    assert str(folder) not in written(drilled(drill_history=str(folder)))
