# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Of what FRR prints each value counts that is of its kind, and no other one ends the program that reads it."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.metrics import sessions
from hypothesis import given, settings
from hypothesis import strategies as st
from support.scope import FULL
from support.texts import TEXT

NOW = 1_000_000.0
PEER = {
    "remoteAs": 64512,
    "state": "Established",
    "peerUptimeMsec": 5000,
    "pfxSnt": 2,
    "pfxRcd": 1,
    "connectionsEstablished": 3,
    "connectionsDropped": 2,
}
BFD = {"peer": "192.0.2.1", "status": "up", "remote-receive-interval": 300}
USUAL = sessions.Session("192.0.2.1", 64512, "ipv4", "Established", NOW - 5, 2, 1, 3, 2, "up", 300)
NONE = USUAL._replace(asn=0, state="", since=None, sent=0, accepted=0, established=0, dropped=0)

JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.just(10**400), st.floats(), TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=5,
)


def read(peer, bfd):
    return sessions.read(json.dumps({"ipv4Unicast": {"peers": {"192.0.2.1": peer}}}), json.dumps(bfd), NOW)


def test_a_session_has_the_values_of_its_peer():
    assert read(PEER, [BFD]) == [USUAL]


@pytest.mark.parametrize("value", [None, True, "5", -1, 1.5, 10**400, [], {}, [[[]]]], ids=repr)
def test_a_value_of_another_kind_stands_for_nothing(value):
    assert read(dict.fromkeys(PEER, value), [BFD]) in ([NONE], [NONE._replace(state="5")])
    assert read(PEER, [{**BFD, "status": value}])[0].bfd in ("", "5")
    assert read(PEER, [{**BFD, "remote-receive-interval": value}])[0].bfd_interval == 0


@pytest.mark.parametrize("text", ["", "% BGP instance not found", "[" * 200_000, "1" * 5000, "null", "[]", '"a"'])
def test_what_is_no_answer_has_no_sessions(text):
    assert sessions.read(text, text, NOW) == []


@settings(max_examples=2000 if FULL else 100, deadline=None)
@given(
    peers=st.one_of(JSON, st.dictionaries(TEXT, st.fixed_dictionaries({}, optional=dict.fromkeys(PEER, JSON)))),
    bfd=st.one_of(JSON, st.lists(st.fixed_dictionaries({}, optional=dict.fromkeys(BFD, JSON)))),
)
def test_each_session_can_be_shown_whatever_frr_prints(peers, bfd):
    for found in sessions.read(json.dumps({"ipv6Unicast": {"peers": peers}}), json.dumps(bfd), NOW):
        assert all(text.isprintable() for text in (found.peer, found.state, found.bfd))
        assert all(0 <= number <= 1 << 53 for number in (found.asn, found.sent, found.accepted, found.bfd_interval))
        assert found.since is None or found.since <= NOW
