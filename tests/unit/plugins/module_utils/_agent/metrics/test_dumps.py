# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keepalived writes of itself, in the words of the agent's report."""

from __future__ import annotations

import re

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.metrics import dumps
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import show
from hypothesis import given, settings
from hypothesis import strategies as st
from support.scope import FULL
from support.texts import TEXT
from support.vrrp.keepalived_dumps import DATA, STATISTICS

FRONT = {
    "name": "front-4",
    "interface": "eth0",
    "vrid": 51,
    "state": "Backup",
    "since": 1795410246.731659,
    "priority": {"configured": 253, "effective": 243},
    "addresses": ["192.0.2.10/24", "2001:db8::10"],
    "held": [],
    "last_advertisement": {"at": pytest.approx(1795410252.811173)},  # when its timer fires, less 3.050781 s
    "sent": 1,
    "received": 7,
    "takeovers": 1,
    "discarded": {"hop_limit": 2, "authentication": 4},
}
SIX = {
    "name": "six",
    "interface": "eth0",
    "vrid": 52,
    "state": "Active",
    "since": 1795410247.05375,
    "priority": {"configured": 150, "effective": 150},
    "addresses": ["2001:db8::11"],
    "held": ["2001:db8::11"],
    "last_advertisement": None,  # its timer is that of its own next Advertisement
    "sent": 7,
    "received": 0,
    "takeovers": 1,
    "discarded": {},
}


def test_it_tells_what_the_agent_tells():
    assert dumps.report(DATA, STATISTICS) == {
        "instances": [FRONT, SIX],
        "checks": [
            {"name": "haproxy", "type": "script", "up": True},
            {"name": "load", "type": "script", "up": False},
            {"name": "down", "type": "file", "up": True},
        ],
    }


@pytest.mark.parametrize("word, state", [("FAULT", "Fault"), ("INIT", "Initialize"), ("BACKUP", "Backup")])
def test_each_state_has_the_agents_name(word, state):
    found = dumps.report(DATA.replace("State = MASTER", f"State = {word}"), STATISTICS)
    assert found["instances"][1]["state"] == state


def test_a_track_file_with_a_number_is_a_check_that_fails():
    found = dumps.report(DATA.replace("Status = 0\n", "Status = 1\n"), STATISTICS)
    assert found["checks"][2] == {"name": "down", "type": "file", "up": False}


def test_a_check_without_a_result_has_none():
    found = dumps.report(DATA.replace("Status = GOOD", "Status = INIT"), STATISTICS)
    assert found["checks"][0]["up"] is None


def test_a_backup_that_has_heard_nothing_knows_no_advertisement():
    found = dumps.report(DATA, STATISTICS.replace("Received: 7", "Received: 0"))
    assert found["instances"][0]["last_advertisement"] is None


@pytest.mark.parametrize("lines", [1, 2, 20], ids=["the last", "two", "an instance"])
def test_statistics_that_are_not_complete_are_none_yet(lines):
    assert dumps.report(DATA, "".join(STATISTICS.splitlines(keepends=True)[:-lines])) is None
    assert dumps.report(DATA, STATISTICS[:-1]) is None  # of a longer number, perhaps


def test_both_engines_have_the_same_metrics():
    text = show.prometheus_of_router(dumps.report(DATA, STATISTICS)).splitlines()
    labels = 'instance_name="front-4",interface="eth0",vrid="51"'
    for line in (
        'onprem_lb_vrrp_state{%s,state="Backup"} 1',
        "onprem_lb_vrrp_takeovers_total{%s} 1",
        'onprem_lb_vrrp_discarded_total{%s,reason="hop_limit"} 2',
    ):
        assert line % labels in text
    assert 'onprem_lb_vrrp_check_up{check="load",type="script"} 0' in text
    assert len([line for line in text if line.startswith("# TYPE")]) == len(show.ROUTER)


@st.composite
def damaged(draw, text):
    """A dump in which something else stands in some places."""
    for _time in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        end = draw(st.integers(at, min(len(text), at + 40)))
        text = text[:at] + draw(st.one_of(TEXT, st.just("9" * 5000), st.just("\u00b2"), st.just("\n"))) + text[end:]
    return text


@settings(max_examples=2000 if FULL else 100, deadline=None)
@given(data=damaged(DATA), statistics=damaged(STATISTICS))
def test_of_a_damaged_dump_the_report_has_what_can_be_read(data, statistics):
    found = dumps.report(data, statistics)
    for instance in found["instances"] if found else ():
        numbers = [instance[key] for key in ("vrid", "since", "sent", "received", "takeovers")]
        assert all(0 <= number < 10**18 for number in [*numbers, *instance["priority"].values()])
    assert all(since < 10**18 for _state, since in dumps.states(data).values())


@pytest.mark.parametrize("number", ["9" * 400, "9" * 5000, "\u00b2", "nan", "one"])
def test_what_is_no_number_of_keepalived_counts_as_none(number):
    counted, transition = f"  Became master: {number}\n", f"   Last transition = {number} (some time)\n"
    statistics = re.sub(r"  Became master: .*\n", lambda _found: counted, STATISTICS)
    data = re.sub(r"   Last transition = .*\n", lambda _found: transition, DATA)
    assert counted in statistics and transition in data
    first = dumps.report(data, statistics)["instances"][0]
    assert (first["takeovers"], first["since"]) == (0, 0.0)
