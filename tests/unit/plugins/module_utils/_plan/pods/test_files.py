# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The files that the pods read: those of the roles, with what a container has otherwise."""

from __future__ import annotations

import json

from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy import config as proxy
from ansible_collections.onprem.lb.plugins.module_utils._agent.sidecar import config as sidecar
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import config as vrrp
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._plan.pods import files
from ansible_collections.onprem.lb.plugins.plugin_utils import templates
from support.paths import GOLDEN
from support.plans import clusters, pods
from support.plans.clusters import cluster

RESOURCES = "/etc/kubernetes/static-pod-resources/onprem-lb"


def differing(text, golden):
    """The lines that only a text has, and those that only a golden file has."""
    own, other = text.splitlines(), (GOLDEN / golden).read_text().splitlines()
    return [line for line in own if line not in other], [line for line in other if line not in own]


def test_haproxy_has_the_configuration_of_the_unit_and_logs_to_its_standard_output():
    mine, units = differing(pods.text("haproxy.cfg"), "ipi-default.haproxy.cfg")
    assert (mine, units) == (["    log stdout format raw local0"], ["    log /dev/log local0"])


def test_keepalived_has_that_of_its_unit_and_tells_the_sidecar():
    mine, units = differing(pods.text("keepalived.conf", nodes=pods.MASTERS), "ipi-default.keepalived.conf")
    own = ("haproxy.down", "chk_api.failing", "chk_haproxy.failing", "chk_ingress.failing")
    assert mine == [
        "    vrrp_notify_fifo /run/onprem-lb-vrrp/changes",
        *(f"    file /run/onprem-lb-vrrp/{file}" for file in own),
    ]
    units = [line for line in units if not line.startswith("    file /run/")]
    assert all("last Advertisement" in line or "notify_backup" in line for line in units)


def test_the_sidecar_asks_beside_keepalived():
    asked = json.loads(pods.text("sidecar.json", nodes=pods.MASTERS))["router"]["questions"]
    assert [(each["name"], each["file"]) for each in asked] == [
        (name, f"/run/onprem-lb-vrrp/{name}.failing") for name in ("chk_api", "chk_haproxy", "chk_ingress")
    ]
    assert "questions" not in json.loads(pods.text("sidecar.json", engine="agent"))["router"]


def test_the_track_file_is_the_pods_wherever_that_of_the_units_is():
    for engine, file in (("native", "keepalived.conf"), ("agent", "vrrp.json")):
        text = pods.text(file, engine=engine, down_file="/var/lib/elsewhere/haproxy.down")
        assert "/run/onprem-lb-vrrp/haproxy.down" in text and "elsewhere" not in text


def test_the_agent_accepts_its_configurations():
    for preset in ("default", "upstream", "ocp45"):
        assert proxy.parse(pods.text("proxy.json", engine="agent", preset=preset))[1] == []
        assert vrrp.parse(pods.text("vrrp.json", engine="agent", preset=preset))[1] == []


def test_the_sidecar_accepts_its_own_and_asks_the_balancers_own_monitor():
    for engine in ("native", "agent"):
        settings, faults = sidecar.parse(pods.text("sidecar.json", engine=engine))
        assert faults == []
        assert (settings.balancer.ready_port, settings.balancer.ready_path) == (9444, "/haproxy_ready")
        assert settings.balancer.down_file == "/run/onprem-lb-vrrp/haproxy.down"
        assert bool(settings.router.keepalived) == (engine == "native")
    settings, _faults = sidecar.parse(pods.text("sidecar.json", preset="ocp45"))
    assert (settings.balancer.ready_port, settings.balancer.ready_path) == (50936, "/readyz")


def test_the_sidecar_loads_the_redirect_and_takes_it_away():
    balancer = json.loads(pods.text("sidecar.json"))["balancer"]
    assert balancer["start_commands"] == [["nft", "--file", "/etc/onprem-lb-agent/sidecar/api-redirect.nft"]]
    assert balancer["stop_commands"] == [["nft", "add table inet onprem_lb_api; delete table inet onprem_lb_api"]]
    assert "10.0.0.200:9445" in pods.text("api-redirect.nft")


def test_the_machine_config_server_is_guarded_only_where_somebody_is_kept_out():
    paths = [file.path for file in pods.made().configurations]
    assert f"{RESOURCES}/sidecar/machine-config.nft" not in paths
    assert "first" not in json.loads(pods.text("sidecar.json"))
    guarded = {"machine_networks": ["10.0.0.0/24"]}
    assert "22623" in pods.text("machine-config.nft", **guarded)
    first = [["nft", "--file", "/etc/onprem-lb-agent/sidecar/machine-config.nft"]]
    assert json.loads(pods.text("sidecar.json", **guarded))["first"] == first


def test_a_bootstrap_host_has_both_pods_until_the_bootstrap_is_complete():
    own = {"masters": [*clusters.SETTINGS["masters"], *clusters.BOOTSTRAP], "bootstrap": "bootstrap-0"}
    nodes = [*clusters.ADDRESSES, *clusters.BOOTSTRAP]
    for name in ("bootstrap-0", "master-0"):
        assert "dport 22623 dnat ip to 10.0.0.200" in pods.text("api-redirect.nft", name, nodes=nodes, **own)
    for engine in ("native", "agent"):
        over = pods.made("bootstrap-0", nodes=nodes, engine=engine, bootstrap_complete=True, **own)
        assert (over.configurations, over.manifests) == ([], {})


def test_a_sidecar_of_a_worker_looks_after_keepalived_alone():
    settings = json.loads(pods.text("sidecar.json", "worker-0"))
    assert (
        "balancer" not in settings and settings["router"]["keepalived"] == "/etc/onprem-lb-keepalived/keepalived.conf"
    )


def test_where_the_router_polls_the_sidecar_writes_no_track_file_and_still_has_the_redirect():
    balancer = json.loads(pods.text("sidecar.json", preset="upstream"))["balancer"]
    assert balancer["down_file"] == "" and balancer["start_commands"]


def test_what_the_programs_of_a_pod_refuse_is_said_with_the_name_of_the_member():
    plan = planner.draft(ipi.LAYOUT, cluster()).members["master-0"]
    found = files.of_member("master-0", plan, "much too long", pods.OPTIONS, templates.render)
    assert found.faults and all(fault.startswith("master-0: ") for fault in found.faults)
    assert found.manifests == {} and found.configurations == []
