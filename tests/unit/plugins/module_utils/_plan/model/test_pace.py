# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The defaults of checks and connections: fast, unless a user has set any of them."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent, pace, values
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.services import read_services
from support.rendering import haproxy

SYN_REPEATED_S = 1  # RFC 6298, section 2


def service(servers=2, **changes):
    addresses = [f"192.0.{number // 200}.{1 + number % 200}" for number in range(servers)]
    return {"name": "web", "port": 80, "servers": addresses, **changes}


def check_of(**changes):
    (found,), faults = read_services([service(**changes)], "services")
    assert not faults
    return {key: found["check"][key] for key in pace.FORMER}


def test_a_check_that_says_nothing_of_its_pace_is_fast():
    assert check_of() == {"interval": 0.2, "fall": 6, "fast_interval": 0}
    assert check_of(check={"type": "http", "rise": 4}) == check_of()


@pytest.mark.parametrize("own", [{"interval": 5}, {"fall": 2}, {"fast_interval": 1}, {"interval": 0.2}])
def test_whoever_sets_a_part_of_it_keeps_what_the_rest_was(own):
    assert check_of(check=own) == {"interval": 2, "fall": 3, "fast_interval": 0, **own}


def test_what_is_read_again_stays_as_it_is():
    read, _faults = read_services([service(servers=400)], "services")
    assert read_services(read, "services") == (read, [])


def test_many_servers_are_asked_less_often():
    assert [check_of(servers=number)["interval"] for number in (100, 101, 1000)] == [0.2, 0.202, 2]


def backend_of(**changes):
    return read_services([service(**changes)], "services")[0][0]


@pytest.mark.parametrize("number", [1, 2, 101, 1000, 3000])
def test_however_many_servers_there_are_late_ones_get_connections_by_default(number):
    backend = backend_of(servers=number)
    assert pace.has_fallback(backend, pace.ANSWER_S)
    assert pace.of_fallback(backend["check"])["interval"] > pace.CONNECT_S


@pytest.mark.parametrize(
    "own", [{"interval": 5}, {"interval": 0.2}, {"fall": 6}, {"fast_interval": 1}, {"interval": 2, "fall": 6}]
)
def test_a_pace_of_the_users_own_is_not_the_usual_one(own):
    assert not pace.is_usual(backend_of(check=own))


@pytest.mark.parametrize(
    "own, connect, answer, limit",
    [
        ({}, pace.CONNECT_S, pace.ANSWER_S, 0.28),
        ({}, 0.1, pace.ANSWER_S, 0.1),
        ({}, pace.CONNECT_S, 2, pace.CONNECT_S),
        ({}, 3, 20, 3),
        ({"interval": 5}, pace.CONNECT_S, pace.ANSWER_S, 5),
        ({"interval": 5}, 3, pace.ANSWER_S, 3),
        ({"interval": 5}, 30, pace.ANSWER_S, 10),
        ({"interval": 5}, pace.CONNECT_S, 0.5, 0.5),
    ],
)
def test_a_check_of_the_agents_takes_no_longer_than_what_a_user_sets_and_as_long_as_in_the_first_release(
    own, connect, answer, limit
):
    assert pace.agents_limit(backend_of(check=own), connect, answer) == limit


def test_a_lost_packet_is_no_lost_server():
    """A SYN that is lost may still arrive before the attempt ends, and two seconds without an answer are too short."""
    assert pace.CONNECT_S > SYN_REPEATED_S
    last_check_begins = (pace.FALL - 1) * 2 * pace.INTERVAL
    assert last_check_begins >= 2


def test_both_engines_have_the_same_limits():
    assert values.seconds(pace.CONNECT) == (pace.CONNECT_S, None) and values.seconds(pace.ANSWER) == (
        pace.ANSWER_S,
        None,
    )


def test_the_agent_pauses_after_a_run_without_an_answer_as_haproxy_does():
    found = agent.translate({"services": [service()]})["proxy"]["services"][0]["check"]
    usual = {"type": "tcp", "interval": 0.2, "fall": 6, "rise": 2, "fast_interval": 0.12, "timeout": 0.28}
    assert found == {**usual, "late_timeout": 10}


@pytest.mark.parametrize("interval", [0.1, 1, 3600])
@pytest.mark.parametrize("connect", ["10ms", "1050ms", "1h"])
def test_the_agent_accepts_what_comes_of_any_setting(interval, connect):
    given = {"services": [service(check={"interval": interval})], "timeout_connect": connect, "timeout_check": "1h"}
    assert agent.translate(given)["faults"] == []


@pytest.mark.parametrize("balance", ["source", "hdr(host)", "uri depth 2", "url_param id"])
def test_a_client_that_a_hash_would_send_to_the_same_server_again_gets_another_one(balance):
    lines = haproxy([service(balance=balance, mode="http", backend_lines=["hash-type map-based"])]).splitlines()
    at = [lines.index(f"    {line}") for line in ("option redispatch 1", "hash-type consistent", "hash-type map-based")]
    assert at == sorted(at)  # of two, HAProxy takes the last one, which is the user's


@pytest.mark.parametrize("balance", ["roundrobin", "leastconn", "random"])
def test_without_a_hash_there_is_none_to_choose(balance):
    assert "hash-type" not in haproxy([service(balance=balance)])
