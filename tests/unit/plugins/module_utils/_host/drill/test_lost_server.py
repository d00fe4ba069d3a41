# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One server that is lost for the balancer of a host alone. What a kernel makes of the rules: test_lost_servers."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.drill import faults, lost_server
from ansible_collections.onprem.lb.plugins.module_utils._shared import events

SERVER = {"address": "192.0.2.21", "port": 8443, "services": {"web": ["a"]}}
BOTH_UP = (("web", "a", "up"), ("web", "b", "up"))
each_event = pytest.mark.parametrize("event", events.ON_SERVER)


def script(event, known=BOTH_UP, engine="native", **server):
    return faults.script_for(event, faults.Target(engine=engine, server={**SERVER, **server}, known=known))


def refusal(event, **given):
    with pytest.raises(lost_server.Refused) as refused:
        script(event, **given)
    return str(refused.value)


def test_each_event_of_a_server_has_rules():
    assert set(lost_server.RULES) == set(events.ON_SERVER)


@each_event
@pytest.mark.parametrize("address, family", [("192.0.2.21", "ip"), ("2001:db8::21", "ip6")])
def test_the_rules_concern_the_address_and_port_of_the_server_and_nothing_else(event, address, family):
    lines = [line for line in lost_server.rules(event, address, 8443).split("; ") if line.startswith("add rule")]
    ways = {"output": f"{family} daddr {address} tcp dport 8443 ", "input": f"{family} saddr {address} tcp sport 8443 "}
    for line in lines:
        _add, _rule, _inet, table, hook, _rest = line.split(maxsplit=5)
        assert table == "onprem_lb_drill" and ways[hook] in line
    assert lines


@each_event
@pytest.mark.parametrize("engine, unit", [("native", "haproxy.service"), ("agent", "onprem-lb-proxy.service")])
def test_a_server_that_another_one_can_replace_is_lost_until_it_is_reverted(event, engine, unit):
    found = script(event, engine=engine)
    assert found.units == (unit,) and found.inject == f"nft '{found.rules}'"
    assert found.revert == "nft 'add table inet onprem_lb_drill; delete table inet onprem_lb_drill'"


@each_event
@pytest.mark.parametrize("state", ["down", "maint", "drain", "not checked yet"])
def test_the_last_server_that_is_up_is_never_lost(event, state):
    said = refusal(event, known=[("web", "a", "up"), ("web", "b", state), ("other", "b", "up")])
    assert said == "No server of web is up besides a: a drill never takes the last one away."


@each_event
def test_nor_is_it_where_another_service_has_no_other_one_or_has_it_twice(event):
    other = {"web": ["a"], "shop": ["a1", "a2"]}
    said = refusal(event, services=other, known=[*BOTH_UP, ("shop", "a1", "up"), ("shop", "a2", "up")])
    assert said == "No server of shop is up besides a1 and a2: a drill never takes the last one away."


@each_event
@pytest.mark.parametrize("services, known", [({"web": ["a"]}, []), ({"web": ["a", "z"]}, BOTH_UP), ({"web": []}, [])])
def test_nor_is_one_of_which_the_balancer_says_nothing(event, services, known):
    said = refusal(event, services=services, known=known)
    assert said == f"{event} needs to know which servers of web are up, and the balancer does not say it."


@each_event
def test_one_that_serves_nobody_cannot_be_lost(event):
    said = refusal(event, known=[("web", "a", "down"), ("web", "b", "up")])
    assert said == "a of web is not up (down): it cannot be lost."


@each_event
def test_a_server_that_has_only_a_name_is_refused(event):
    assert refusal(event, address="web.example.com") == (
        f"{event} needs the address of a server, and 'web.example.com' is none."
    )
