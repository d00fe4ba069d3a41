# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No balancer connects to itself, or listens where no client can come."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import haproxy
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair
from support.plans import pairs, refusals


def through(port, *servers, name="web"):
    return {"name": name, "port": port, "servers": list(servers)}


WEB = "pair_services[0] (web).servers: "
BACK = "is a VIP, which comes back to the balancer: name the server's own address."
MOVE = "name another address or port."
LOOPS = {
    "a server is the VIP itself, same port": (
        refusals.of_service(servers=["192.0.2.10"]),
        [f"{WEB}192.0.2.10 at 192.0.2.10 port 443 {BACK}"],
    ),
    "servers are the balancers themselves, same port": (
        refusals.of_service(servers=["192.0.2.1", "192.0.2.2"]),
        [f"{WEB}192.0.2.{at} at 192.0.2.{at} port 443 is the balancer on lb{at}: {MOVE}" for at in (1, 2)],
    ),
    "a server is a balancer by its IPv6 address in another spelling": (
        refusals.of_service(servers=["2001:DB8:0::1"], bind=["*", "::"]),
        [f"{WEB}2001:db8::1 at 2001:db8::1 port 443 is the balancer on lb1: {MOVE}"],
    ),
    "agent engine: server is the VIP, same port": (
        refusals.of_service(servers=["192.0.2.10"], engine="agent"),
        [f"{WEB}192.0.2.10 at 192.0.2.10 port 443 {BACK}"],
    ),
    "a loop over two services: 443 -> VIP:80 -> VIP:443": (
        refusals.of_pair(
            services=[
                through(443, {"address": "192.0.2.10", "port": 80}),
                through(80, {"address": "192.0.2.10", "port": 443}, name="plain"),
            ]
        ),
        [
            f"{WEB}192.0.2.10 at 192.0.2.10 port 80 {BACK}",
            f"pair_services[1] (plain).servers: 192.0.2.10 at 192.0.2.10 port 443 {BACK}",
        ],
    ),
    "a loop over two services: 443 -> loopback:80": (
        refusals.of_pair(
            services=[through(443, {"address": "127.0.0.1", "port": 80}), through(80, "192.0.2.21", name="plain")]
        ),
        [f"{WEB}127.0.0.1 at 127.0.0.1 port 80 is the balancer itself: {MOVE}"],
    ),
    "pair_masters: a server is the VIP": (
        refusals.of_pair(masters=["192.0.2.10"]),
        [f"pair_masters: 192.0.2.10 at 192.0.2.10 port 8443 {BACK}"],
    ),
    "a server is a balancer, in a forecast": (
        refusals.of_forecast("192.0.2.1", "192.0.2.2", services=[through(443, "192.0.2.2")]),
        [f"{WEB}192.0.2.2 at 192.0.2.2 port 443 is the balancer on lb2: {MOVE}"],
    ),
    "server 224.0.0.1 / 255.255.255.255": (
        refusals.of_service(servers=["255.255.255.255"]),
        ["pair_services[0] (web).servers[0].address is '255.255.255.255': no host can be reached at that address."],
    ),
    "bind an address that is no VIP and nobody's": (
        refusals.of_service(bind=["198.51.100.7"]),
        [
            "pair_services[0] (web).bind has 198.51.100.7, which is no VIP here and no member's address: "
            "name a VIP, or '*'."
        ],
    ),
    "ipi_bootstrap: bootstrap = api VIP": (
        refusals.of_cluster(bootstrap="10.0.0.200"),
        ["ipi_bootstrap is 10.0.0.200, a VIP of the cluster: name the bootstrap machine's own address."],
    ),
    "ipi_bootstrap: bootstrap = a worker": (
        refusals.of_cluster(bootstrap="10.0.0.51"),
        ["ipi_bootstrap is 10.0.0.51, worker-0's own address: name the bootstrap machine's own address."],
    ),
}


@pytest.mark.parametrize("faults, sentences", LOOPS.values(), ids=LOOPS)
def test_a_balancer_never_connects_to_itself_nor_listens_where_nobody_comes(faults, sentences):
    assert faults == sentences


@pytest.mark.parametrize(
    "service",
    [
        {"servers": [{"address": "192.0.2.1", "port": 8080}]},  # another program on the balancer's host
        {"bind": ["192.0.2.10"], "servers": ["127.0.0.1"]},
        {"bind": ["0.0.0.0"]},
        {"bind": ["192.0.2.1"]},
    ],
    ids=["another port of a balancer", "loopback beside the VIP alone", "bind 0.0.0.0 only", "a member's own address"],
)
def test_what_is_no_loop_is_served(service):
    assert refusals.of_service(**service) == []


@pytest.mark.parametrize(
    "addresses, sentence",
    [
        (["192.0.2.31", "192.0.2.10"], f"app.example.com (192.0.2.10) port 443 {BACK}"),
        (["192.0.2.2"], f"app.example.com (192.0.2.2) port 443 is the balancer on lb2: {MOVE}"),
    ],
)
def test_a_name_that_is_a_balancer_on_any_member_is_refused(addresses, sentence):
    members = pairs.pair(services=[through(443, "app.example.com")])
    members[1]["host"]["resolved"] = {"app.example.com": addresses}
    assert pair.plan(members).faults == [f"{WEB}app.example.com at {sentence}"]


def test_a_name_that_is_another_host_or_is_not_resolved_yet_is_none():
    members = pairs.pair(services=[through(443, "app.example.com", "new.example.com")])
    members[0]["host"]["resolved"] = {"app.example.com": ["192.0.2.31"]}
    assert pair.plan(members).faults == []


def test_the_role_haproxy_knows_its_own_host():
    settings = {"services": [through(443, "app.example.com")], "stats": {}, "tuning": {}}
    own = [{"address": "192.0.2.1"}]
    assert haproxy.model(settings, [], "lb1", own)["faults"] == []
    assert haproxy.model(settings, [], "lb1", own, {"app.example.com": ["192.0.2.1"]})["faults"] == [
        "haproxy_services[0] (web).servers: app.example.com at app.example.com (192.0.2.1) port 443 is the balancer on "
        f"lb1: {MOVE}"
    ]
