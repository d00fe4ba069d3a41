# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a table is like while it comes into use, and which connections it notes."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._agent.direct import rulesets
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.buckets import Server
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.handover import ROOM, noted, settling
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.rulesets import Service
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.sockets import Connection

VIP, API, WEB = "192.0.2.100", ("192.0.2.100", 6443), ("192.0.2.100", 443)
SERVERS = [Server(f"192.0.2.{number}") for number in (1, 2)]
MACS = {server.address: f"02:00:00:00:00:0{number}" for number, server in enumerate(SERVERS)}
CLIENT = "192.0.2.7"


def table(*services):
    return rulesets.of_balancer(services, "eth0", MACS, "02:00:00:00:00:00")  # which is the first server


def service(port, **more):
    return Service(VIP, port, SERVERS, 256, f"{port}", **more)


BOTH = table(service(6443, proxy_port=9445), service(443, left=True))


def test_a_table_that_settles_leaves_everything_of_some_places_to_the_host():
    found = settling(BOTH, [API])
    assert found.settling == {API} and found.structure == BOTH.structure
    assert set(found.elements["servers_0_settling"]) == set(found.elements["servers_0_left"]) == {"192.0.2.100 . 6443"}
    assert found.elements["servers_1_settling"] == {}
    assert set(found.elements["servers_1_left"]) == {"192.0.2.100 . 443"}
    assert BOTH.elements["servers_0_settling"] == {}, "the table that is required stays as it is"
    assert settling(BOTH, []) == BOTH


def test_then_one_change_leads_to_the_table_that_is_wanted():
    assert rulesets.change(settling(BOTH, [API, WEB]), BOTH).splitlines() == [
        f"delete element netdev onprem_lb_direct servers_{pool}_{name} {{ 192.0.2.100 . {port} }}"
        for pool, name, port in [(0, "left", 6443), (0, "settling", 6443), (1, "settling", 443)]
    ]


def test_a_connection_is_noted_under_the_port_to_which_its_client_sends():
    found = [Connection(VIP, 6443, CLIENT, 1), Connection(VIP, 9445, CLIENT, 2), Connection(VIP, 443, CLIENT, 3)]
    assert noted(BOTH, [*found, Connection(VIP, 80, CLIENT, 4)]) == (
        "add element netdev onprem_lb_direct servers_0_own "
        "{ 192.0.2.100 . 6443 . 192.0.2.7 . 1, 192.0.2.100 . 6443 . 192.0.2.7 . 2 }\n"
        "add element netdev onprem_lb_direct servers_1_own { 192.0.2.100 . 443 . 192.0.2.7 . 3 }\n"
    )
    assert noted(BOTH, []) == ""


def test_of_too_many_connections_those_are_noted_that_fit_into_the_set():
    """As otherwise nft would refuse all of them."""
    size = 256 * rulesets.OWN_PER_BUCKET
    assert f"size {size};" in BOTH.structure
    text = noted(BOTH, (Connection(VIP, 443, CLIENT, port) for port in range(1, 2 * size)))
    assert text.count(",") + 1 == size - size // ROOM
