# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module member_state: what each state asks for, in either mode. What that does: _host/states."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.states import arming, manager, program, state_data, store
from ansible_collections.onprem.lb.plugins.modules import member_state
from support.modules import refusal, run
from support.states import native

RUN = "20260131T120000Z"


@pytest.fixture
def asked(monkeypatch):
    """What the module asks for, each as the name of the function and what it is about."""
    calls = []

    def record(module, name):
        monkeypatch.setattr(module, name, lambda _subject, *given: calls.append((name, *given)))

    for name in ("postpone", "confirm", "abandon", "take_over"):
        record(arming, name)
    record(manager, "arm")
    record(manager, "hold_back")
    monkeypatch.setattr(arming, "announce", lambda: calls.append(("announce",)))
    monkeypatch.setattr(program, "build", lambda: b"program")
    return calls


DUE = arming.Due(RUN, RUN, "first", 40.0, 5.0)
GIVEN = {"run": RUN, "role": "first"}


@pytest.mark.parametrize(
    "given, call",
    [
        ({"state": "armed", **GIVEN, "purpose": "a test"}, ("arm", DUE, "a test", "")),
        ({"state": "armed", **GIVEN, "id": "20260130T120000Z"}, ("arm", DUE, "a run", "20260130T120000Z")),
        ({"state": "announced"}, ("announce",)),
        ({"state": "postponed", **GIVEN}, ("postpone", DUE, b"program")),
        ({"state": "confirmed", **GIVEN}, ("confirm", DUE, b"program")),
        ({"state": "confirmed"}, ("confirm", None, b"program")),
        ({"state": "abandoned", **GIVEN}, ("abandon", DUE, b"program")),
        ({"state": "taken_over"}, ("take_over",)),
        ({"state": "held_back"}, ("hold_back",)),
    ],
)
def test_each_state_asks_for_one_thing_and_a_dry_run_for_none(asked, given, call):
    assert run(member_state, given, check=True)["changed"] is False and asked == []
    assert run(member_state, given)["changed"] is False and asked == [call]


@pytest.mark.parametrize("in_time", [True, False])
def test_a_heartbeat_may_take_too_long(asked, monkeypatch, in_time):
    monkeypatch.setattr(arming, "postpone", lambda *_given: in_time)
    assert run(member_state, {"state": "postponed", **GIVEN})["postponed"] is in_time
    assert run(member_state, {"state": "postponed", **GIVEN}, check=True)["postponed"] is True


@pytest.mark.parametrize("state", ["armed", "abandoned"])
@pytest.mark.parametrize("check", [True, False])
def test_a_member_that_may_return_says_within_which_time_all_have_returned(asked, check, state):
    assert run(member_state, {"state": state, **GIVEN}, check=check)["returned_within"] == 63


@pytest.mark.parametrize("check", [True, False])
def test_a_return_at_once_says_what_it_does_or_would_do(monkeypatch, check):
    done = {"paths": ["/etc/haproxy/haproxy.cfg"], "commands": ["systemctl reload haproxy.service"], "failed": []}
    asked = []
    monkeypatch.setattr(manager, "restore", lambda _member, *given: asked.append(given) or dict(done))
    result = run(member_state, {"state": "restored", "id": RUN}, check=check)
    assert asked == [(RUN, check)] and result["changed"] and result["paths"] == done["paths"]


@pytest.mark.parametrize("state, alone", [("named", False), ("renamed", True)])
@pytest.mark.parametrize("check", [True, False])
def test_the_names_are_answered_and_in_check_mode_nothing_is_done(monkeypatch, check, state, alone):
    done, asked = {"paths": ["/etc/onprem-lb-resolver/dnsmasq.conf"], "commands": [], "failed": []}, []
    monkeypatch.setattr(manager, "name", lambda _member, wanted, alone: asked.append((wanted, alone)) or dict(done))
    result = run(member_state, {"state": state, "id": RUN}, check=check)
    assert asked == [(RUN, alone)] * (not check) and result["changed"] is not check


def test_a_command_that_fails_on_the_way_fails_the_task(monkeypatch):
    done = {"paths": [], "commands": [], "failed": ["systemctl reload haproxy.service failed: no"]}
    monkeypatch.setattr(manager, "restore", lambda *_given: done)
    assert run(member_state, {"state": "restored", "id": RUN})["msg"] == done["failed"][0]


def test_what_is_refused_is_a_sentence(monkeypatch):
    def refuse(*_given):
        raise store.Refused("There is no state 1 here: there is none.")

    monkeypatch.setattr(manager, "restore", refuse)
    assert refusal(member_state, {"state": "restored", "id": "1"}) == "There is no state 1 here: there is none."


@pytest.mark.parametrize("check", [True, False])
def test_a_backup_is_imported_under_the_id_that_is_given(monkeypatch, check):
    asked = []
    monkeypatch.setattr(manager, "imported", lambda _member, *given: asked.append(given) or {"id": RUN})
    monkeypatch.setattr(manager.Member, "now", lambda _member: native())
    given = {"state": "imported", "id": RUN, "backup": "20260130T120000Z", "saved": {"files": []}}
    result = run(member_state, given, check=check)
    assert asked == [({"files": []}, RUN, "20260130T120000Z", check)]
    assert (result["changed"], result["states"], result["engine"]) == (True, [{"id": RUN}], "native")


def test_the_present_state_is_exported_and_nothing_changes(monkeypatch):
    monkeypatch.setattr(manager.Member, "now", lambda _member: native())
    result = run(member_state, {"state": "exported"})
    assert not result["changed"] and state_data.of_data(result["saved"]) == native()
