# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The pods of nodes that announce their VIPs by BGP: FRR and the health gate are those of the role and of the unit."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.anycast import config as anycast
from ansible_collections.onprem.lb.plugins.module_utils._agent.sidecar import config as sidecar
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from support.plans import pods
from support.plans.clusters import cluster
from support.rendering import frr, render

PASSWORD = pods.BGP["bgp"]["password"]
ROUTER, ROUTER6 = {"address": "10.0.0.1", "asn": 64601}, {"address": "2001:db8::1", "asn": 64601}
KINDS = {
    "one router": {},
    "no BFD, no password": {"bgp": {"asn": 64512, "peers": [ROUTER]}},
    "both families": {
        "bgp": {"asn": 64512, "peers": [ROUTER, ROUTER6], "bfd": {"interval": 50, "multiplier": 4}},
        "api_vips": ["203.0.113.10", "2001:db8:f::10"],
    },
    "far routers": {
        "bgp": {
            "asn": 4200000001,
            "communities": ["64512:7"],
            "peers": [{"address": "192.0.2.1", "asn": 64700, "multihop": 3, "password": "ein/anderes", "port": 1179}],
        }
    },
}


def planned(name, **settings):
    plan = planner.draft(ipi.LAYOUT, cluster(**{**pods.BGP, **settings}))
    assert plan.faults == []
    return plan.members[name]


def text(file, name="master-0", **settings):
    return pods.text(file, name, **{**pods.BGP, **settings})


def router(name="master-0", **settings):
    return pods.pod("router", name, **{**pods.BGP, **settings})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["master-0", "worker-0"])
@pytest.mark.parametrize("engine", ["native", "agent"])
def test_frr_reads_what_the_role_would_write(kind, name, engine):
    settings = {"engine": engine, **KINDS[kind]}
    host = next(each["host"] for each in cluster() if each["name"] == name)
    own = [each["address"] for each in host["addresses"]]
    assert text("frr.conf", name, **settings) == frr(own, **planned(name, **settings).bgp["frr"])
    assert text("daemons", name, **settings) == render("frr", "daemons.j2")


@pytest.mark.parametrize("engine", ["native", "agent"])
@pytest.mark.parametrize("name", ["master-0", "worker-0"])
def test_the_gate_watches_what_that_of_the_unit_does_but_for_the_track_file(engine, name):
    units = planned(name, engine=engine).bgp["anycast"]
    mine = json.loads(text("anycast.json", name, engine=engine))
    assert mine["vips"] == units["vips"]
    changed = [(one, other) for one, other in zip(mine["checks"], units["checks"]) if one != other]
    down = {"name": "haproxy_down", "type": "file"}
    expected = ({**down, "file": "/run/onprem-lb-vrrp/haproxy.down"}, {**down, "file": "/run/haproxy.down"})
    assert changed == ([expected] if name == "master-0" else [])
    assert anycast.parse(json.dumps(mine))[1] == []


def test_nothing_of_vrrp_is_there():
    for engine in ("native", "agent"):
        made = pods.made(engine=engine, **pods.BGP)
        assert not any(file.path.endswith(("keepalived.conf", "vrrp.json")) for file in made.configurations)
        router_of = json.loads(text("sidecar.json", engine=engine))["router"]
        assert router_of == {"fifo": "/run/onprem-lb-vrrp/held"}, "the gate holds it"
        assert sidecar.parse(text("sidecar.json", engine=engine))[1] == []


def test_the_password_of_the_sessions_is_for_root_alone_and_a_secret():
    made = pods.made(**pods.BGP)
    assert [(each.path[-8:], each.mode) for each in made.configurations if PASSWORD in each.content] == [
        ("frr.conf", "0600")
    ]
    assert PASSWORD in made.secrets and PASSWORD not in str(made.manifests)


@pytest.mark.parametrize(
    "name, containers", [("master-0", ["sidecar", "anycast", "frr"]), ("worker-0", ["anycast", "frr"])]
)
def test_a_node_has_the_gate_and_frr_and_the_sidecar_only_for_its_balancer(name, containers):
    assert [each["name"] for each in router(name)["spec"]["containers"]] == containers
    assert [each["name"] for each in router(name, engine="agent")["spec"]["containers"]] == containers


def test_the_vips_leave_once_frr_has_had_time_to_end_its_sessions():
    """Both get SIGTERM at the same time."""
    gate = next(each for each in router()["spec"]["containers"] if each["name"] == "anycast")
    fifo, _config, pause, down_file = gate["command"][4:8]
    assert (fifo, down_file) == ("/run/onprem-lb-vrrp/held", "/run/onprem-lb-vrrp/haproxy.down")
    assert 0 < float(pause) < router()["spec"]["terminationGracePeriodSeconds"]


def test_another_router_or_another_check_starts_the_pod_anew_and_not_the_balancers():
    def marks(**settings):
        made = pods.made(**{**pods.BGP, **settings}).manifests.values()
        return [each["metadata"]["annotations"] for each in made]

    before, after = marks(), marks(bgp={"asn": 64512, "peers": [{**ROUTER, "asn": 64602}]})
    assert before[0] == after[0] and before[1] != after[1]


def test_the_guard_is_that_of_the_machine_config_server_alone():
    """The ports of the sessions are restricted, too."""
    assert "first" not in json.loads(text("sidecar.json"))
    assert "first" in json.loads(text("sidecar.json", machine_networks=["10.0.0.0/24"]))
