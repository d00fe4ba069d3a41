# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host that is no member hears through the VIPs: an answer, or no more than the kernel's."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.filter.plan import layout_drafts
from ansible_collections.onprem.lb.plugins.module_utils._plan.operations.outside import SILENT, asked, heard_through
from support.members import SECOND, VIP
from support.plans.pairs import pair

TARGETS = [[VIP, 80], [VIP, 443], [VIP, 9000]]
ALL = {"reached": [f"{VIP} {port}" for port in (80, 443, 9000)]}
MUTE = f"{VIP} accepts no connection from client: {SILENT}"
SERVERS = [{"name": "one", "address": "192.0.2.21"}]
HTTP = {"name": "web", "port": 80, "mode": "http", "servers": SERVERS}
OPAQUE = {"name": "raw", "port": 5000, "servers": SERVERS}


def drafts(*services, **settings):
    """Return the plan of a pair as the playbook has it."""
    settings.update(masters=[], infra_nodes=[], services=list(services), vips=[VIP])
    found = layout_drafts(unread(**settings), "pair")
    assert len(found) == 1
    return found


def unread(faults=(), **settings):
    known = {"faults": list(faults), "members": ["lb1", "lb2"], "host": None}
    return [{**member, **known, "address": member["name"]} for member in pair(**settings)]


def words(plans, targets, heard=None):
    heard = {"reached": [f"{vip} {port}" for vip, port in targets]} if heard is None else heard
    return [each["words"] for each in asked(plans, targets, heard)]


def test_what_is_asked_is_what_the_plan_says_of_the_ports_that_accept_a_connection():
    plans = drafts(HTTP, OPAQUE)
    assert words(plans, [[VIP, 80], [VIP, 5000]]) == ["HTTP at 80"]
    assert (
        words(plans, [[VIP, 5000]]) == words(plans, [[VIP, 80]], {"reached": []}) == words(plans, [[VIP, 80]], {}) == []
    )


def test_without_a_plan_the_usual_ports_are_asked_as_usual():
    assert words([], TARGETS) == ["HTTP at 80"]
    both = [f"{kind} at {port}" for port in (443, 6443) for kind in ("TLS", "HTTP")]
    assert words([], [[VIP, 443], [SECOND, 6443]]) == both
    assert words(drafts(HTTP), [[SECOND, 9000]]) == []


def test_the_user_says_who_opens_the_firewall():
    (kept,), (left,) = drafts(HTTP), drafts(HTTP, firewall=False)
    assert [80 in kept["members"]["lb1"]["opens"], kept["members"]["lb1"]["left_to_user"]] == [True, ""]
    assert [left["members"]["lb1"]["opens"], left["members"]["lb1"]["left_to_user"]] == [[], "pair_firewall"]


def test_of_a_plan_with_faults_the_faults_are_told():
    (found,) = layout_drafts(unread(["pair_vipz is no variable."]), "pair")
    assert found == {"faults": ["pair_vipz is no variable."], "targets": [], "names": {}, "members": {}}
    assert words([found], [[VIP, 80]]) == ["HTTP at 80"]


def tried(words, failures, good=0, port=443, vip=VIP):
    item = {"vip": vip, "port": port, "words": words}
    failed = sum(failures.values())
    return {"item": item, "tried": failed + good, "failed_attempts": failed, "failures": failures}


TLS, PLAIN = "TLS at 443", "HTTP at 443"
ACCEPTS = f"{VIP} accepts connections from client"
STILL = f"{ACCEPTS} at port 443, and does not answer"


@pytest.mark.parametrize(
    "results, line, is_fault",
    [
        ([tried(TLS, {}, 3)], f"{VIP} answers client (TLS at 443).", False),
        ([tried(TLS, {"timeout": 2, "reset": 1}, 1)], f"{VIP} answers client (TLS at 443).", False),
        ([tried(TLS, {"slow": 2})], f"{VIP} answers client (TLS at 443).", False),
        ([tried(TLS, {"timeout": 5}), tried(PLAIN, {}, 1)], f"{VIP} answers client (HTTP at 443).", False),
        (
            [tried(PLAIN, {"unavailable": 5})],
            f"{VIP} answers client (HTTP at 443: 502, 503 or 504, as without a server).",
            False,
        ),
        ([tried(TLS, {"timeout": 5})], f"{STILL} TLS within 3 s: {SILENT}", True),
        ([tried(TLS, {"timeout": 5}), tried(PLAIN, {"timeout": 5})], f"{STILL} TLS or HTTP within 3 s: {SILENT}", True),
        (
            [tried(TLS, {"timeout": 5}), tried(PLAIN, {"closed": 5})],
            f"{ACCEPTS}, and ends them without an answer to TLS or HTTP.",
            False,
        ),
        ([tried(TLS, {"not TLS": 5})], f"{ACCEPTS}, and ends them without an answer to TLS.", False),
        ([], f"{ACCEPTS} (connects only).", False),
        ([tried(TLS, {}, 3, vip=SECOND)], f"{ACCEPTS} (connects only).", False),
        (
            [{"item": {"vip": VIP}, "failed": True, "msg": "no python"}],
            f"{ACCEPTS} (connects only). client cannot be read: no python.",
            False,
        ),
    ],
)
def test_only_a_vip_from_which_nothing_ever_came_is_silent(results, line, is_fault):
    assert heard_through(TARGETS, "client", ALL, results) == ([line], [line] if is_fault else [])


@pytest.mark.parametrize(
    "reached, line",
    [
        ([443], f"{VIP} answers client (TLS at 443), but accepts no connection at ports 80 and 9000."),
        ([443, 80], f"{VIP} answers client (TLS at 443), but accepts no connection at port 9000."),
    ],
)
def test_ports_that_are_closed_are_named_and_are_no_fault(reached, line):
    heard = {"reached": [f"{VIP} {port}" for port in reached]}
    assert heard_through(TARGETS, "client", heard, [tried(TLS, {}, 1)]) == ([line], [])


UNASKED = "Nothing was asked through the VIPs."


@pytest.mark.parametrize(
    "heard, lines, faults",
    [
        ({"reached": []}, [MUTE], [MUTE]),
        ({"unreachable": True, "msg": "no route"}, [f"client cannot be reached: no route. {UNASKED}"], []),
        ({"failed": True, "msg": "no python"}, [f"client cannot be read: no python. {UNASKED}"], []),
        ({"skipped": True, "changed": False}, [], []),
        ({}, [], []),
    ],
)
def test_a_host_that_cannot_ask_is_said_and_a_vip_that_accepts_nothing_is_a_fault(heard, lines, faults):
    assert heard_through(TARGETS, "client", heard, []) == (lines, faults)
    assert heard_through(TARGETS, "", heard, []) == ([], [])
