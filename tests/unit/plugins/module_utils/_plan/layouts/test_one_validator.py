# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Ansible or another role would judge in other words, or not at all, the plan refuses: a row for each input."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import cluster as ipi_cluster
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import judged
from ansible_collections.onprem.lb.plugins.module_utils._plan.members import identity
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent, haproxy, variables
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair
from support.plans import refusals

TRUTH = "true or false is required."
NO_LIST = 'a list is required, such as ["a", "b"].'
NO_VIPS = 'a list of at least one address is required, such as ["192.0.2.10"].'
WORD = {
    "pair_state: absnet in forecast and site": (
        refusals.of_pair(state="absnet"),
        ["pair_state is 'absnet': one of present, absent is required: did you mean absent?"],
    ),
    "preempt: 'nein'": (refusals.of_pair(preempt="nein"), [f"pair_preempt is 'nein': {TRUTH}"]),
    "pair_firewall: 'vielleicht'": (
        refusals.of_pair(firewall="vielleicht"),
        [f"pair_firewall is 'vielleicht': {TRUTH}"],
    ),
    "ipi_verify: verify": (refusals.of_cluster(verify="verify"), [f"ipi_verify is 'verify': {TRUTH}"]),
    "pair_listen: soon": (
        refusals.of_pair(listen="soon"),
        ["pair_listen is 'soon': a number from 0 to 3600 seconds is required."],
    ),
    "pair_vips: {}": (
        refusals.of_pair(vips={}),
        ["pair_vips is a mapping: a list of at least one address is required."],
    ),
    "pair_vips: a text": (
        refusals.of_pair(vips="[192.0.2.10]"),
        [
            "pair_vips is '[192.0.2.10]': a list of at least one address is required, and this is a string: put each "
            'item into double quotes, as in ["a", "b"].'
        ],
    ),
    "ipi_api_vips is one text (site too)": (
        refusals.of_cluster(api_vips="10.0.0.200"),
        [f"ipi_api_vips is '10.0.0.200': {NO_VIPS}"],
    ),
    "api VIP text": (
        refusals.of_cluster(api_vips=["api"]),
        ["ipi_api_vips[0] is 'api': an IPv4 or IPv6 address, with or without a prefix length, is required."],
    ),
    "service key ports": (
        refusals.of_service(ports=[443]),
        ["pair_services[0] (web) has the unknown key 'ports': did you mean 'port'?"],
    ),
    "servers text": (
        refusals.of_service(servers="192.0.2.21"),
        [f"pair_services[0] (web).servers is '192.0.2.21': {NO_LIST}"],
    ),
    "pair_masters: comma text": (
        refusals.of_pair(masters="192.0.2.21,192.0.2.22"),
        [f"pair_masters is '192.0.2.21,192.0.2.22': {NO_LIST}"],
    ),
    "an ipi_server_check that contradicts itself": (
        refusals.of_cluster(server_check={"host": "api.example.com", "type": "tcp"}),
        ["ipi_server_check.host is for a check of type http or https or smtp, and this one is tcp: leave it out."],
    ),
    "a shard's domain": (
        refusals.of_cluster(
            ingress_vips=[
                {"address": "10.0.0.201", "members": ["master-1", "master-2"]},
                {"address": "10.0.0.202", "domain": "a_b", "members": ["worker-0", "master-0"]},
            ]
        ),
        [
            "ipi_ingress_vips[1].domain is 'a_b': its part 'a_b' has to be 1 to 63 letters, digits and inner hyphens; "
            "correct it."
        ],
    ),
}


@pytest.mark.parametrize("faults, sentences", WORD.values(), ids=WORD)
def test_what_argument_specs_would_refuse_is_refused_by_the_plan(faults, sentences):
    assert faults == sentences


def test_a_variable_that_is_null_has_its_default():
    """The row `every variable null`, and `preset null`: of those that a layout can do without."""
    needed = {"vips", "masters", "infra_nodes"}
    assert refusals.of_pair(**dict.fromkeys(set(pair.SETTINGS) - needed)) == []
    needed = {"masters", "cluster_name", "api_vips", "ingress_vips"}
    assert refusals.of_cluster(**dict.fromkeys(set(ipi_cluster.SETTINGS) - needed)) == []


NULL = {
    "state": "one of present, absent is required.",
    "listen": "a number from 0 to 3600 seconds is required.",
    "retired": "a list is required.",
    "undo_after": "a number from 0 to 3600 seconds is required.",
}


@pytest.mark.parametrize("key", judged.TASKS)
def test_a_variable_that_the_tasks_read_is_not_null(key):
    wanted = NULL.get(key, TRUTH)
    assert refusals.of_pair(**{key: None}) == [f"pair_{key} is null: {wanted}"]
    assert refusals.of_cluster(**{key: None}) == [f"ipi_{key} is null: {wanted}"]


INVENTORY = ["lb1", "lb2", "lb3"]
WHERE = {"pair": "pair_members", "ipi": "ipi_masters and ipi_workers"}
MEMBERS = {
    "pair_members names nobody": (
        "pair",
        ["lb1", "lb9"],
        "lb1",
        ": lb9 is not a host in the inventory: correct the name.",
    ),
    "pair_members twice the same": ("pair", ["lb1", "lb1"], "lb1", ": lb1 is named twice, name each host once."),
    "pair_members leaves one of the group out": (
        "pair",
        ["lb1", "lb2"],
        "lb3",
        " does not name lb3, which this run is for: add it, or take it out of the group, "
        "or of the play's hosts where they are more than the members.",
    ),
    "pair_members is a text": (
        "pair",
        "lb1",
        "lb1",
        " is 'lb1': a list of names of the inventory's hosts is required.",
    ),
    "ipi_workers: workers nobody": (
        "ipi",
        ["lb1", "lb2", "worker-9"],
        "lb1",
        ": worker-9 is not a host in the inventory: correct the name.",
    ),
}


@pytest.mark.parametrize("layout, names, host, rest", MEMBERS.values(), ids=MEMBERS)
def test_a_member_is_a_host_of_the_inventory_and_each_host_of_the_run_a_member(layout, names, host, rest):
    assert identity.of_names(names, INVENTORY, host, layout) == [WHERE[layout] + rest]


def test_a_part_of_the_members_may_be_in_a_run():
    assert identity.of_names(["lb1", "lb2"], INVENTORY, "lb2", "pair") == []


OWN = [
    {"address": "192.0.2.1", "prefix": 24, "interface": "eth0"},
    {"address": "127.0.0.1", "prefix": 8, "interface": "lo"},
]
LOOPS = {
    "the host's own address": ("192.0.2.1", "is the balancer on lb1: name another address or port."),
    "loopback, on the port of another service": ("127.0.0.1", "is the balancer itself: name another address or port."),
}


@pytest.mark.parametrize("address, rest", LOOPS.values(), ids=LOOPS)
def test_no_component_role_connects_to_itself(address, rest):
    """As in a layout, by the addresses that the host has; the agent's role knows the VIPs, too."""
    given = [
        {"name": "web", "port": 443, "servers": [{"address": address, "port": 80}]},
        {"name": "plain", "port": 80, "servers": ["192.0.2.21"]},
    ]
    sentence = f"_services[0] (web).servers: {address} at {address} port 80 {rest}"
    found = haproxy.model({"services": given, "stats": {"enabled": False}, "tuning": {}}, [], "lb1", OWN)["faults"]
    assert found == [f"haproxy{sentence}"]
    assert agent.translate({"services": given}, host="lb1", addresses=OWN)["faults"] == [f"agent{sentence}"]


def test_the_agents_role_knows_its_own_vips():
    instance = {"name": "a", "interface": "eth0", "vrid": 1, "multicast": True, "addresses": ["192.0.2.10/24"]}
    service = {"name": "web", "port": 443, "servers": ["192.0.2.10"]}
    assert agent.translate({"services": [service], "instances": [instance]}, host="lb1")["faults"] == [
        "agent_services[0] (web).servers: 192.0.2.10 at 192.0.2.10 port 443 is a VIP, which comes back to the balancer"
        ": name the server's own address."
    ]


def test_a_variable_without_its_underscore_is_noticed():
    """The row `pairvips without underscore beside good config (pairvrid)`; roles ask for every name that begins so."""
    found = variables.unknown_variables(["pairvrid", "pair_vips"], ["pair_vrid", "pair_vips"])
    assert found.faults == ["pairvrid is not a variable of the role: did you mean pair_vrid?"]
