"""The plan of an IPI-like cluster: who carries which VIP, what decides, and what is refused."""

from __future__ import annotations

import copy
import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import presets as ipi_presets
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from support.plans.clusters import SETTINGS, cluster, living, node

PLANS = {}


def planned(*names, **settings):
    """Return a plan without faults. To forecast it takes long: the same one is made once."""
    question = json.dumps([names, settings])
    if question not in PLANS:
        PLANS[question] = ipi.plan(cluster(*names, **settings))
    plan = copy.deepcopy(PLANS[question])
    assert plan.faults == []
    return plan


def instances(plan, name):
    return {instance["name"]: instance for instance in plan.members[name].router.instances}


def faults(*names, **settings):
    return ipi.plan(cluster(*names, **settings)).faults


def outages(plan):
    return {(line["vip"], line["event"]): line["outage_ms"] for line in plan.outages}


def test_the_api_is_on_the_masters_and_the_ingress_on_all_nodes_workers_first():
    plan = planned()
    assert {name: sorted(instances(plan, name)) for name in plan.members} == {
        "master-0": ["vmware_API", "vmware_INGRESS"],
        "master-2": ["vmware_API", "vmware_INGRESS"],
        "master-1": ["vmware_API", "vmware_INGRESS"],
        "worker-0": ["vmware_INGRESS"],
    }
    assert [vip.order[0] for vip in plan.vips] == ["master-0", "worker-0"]


def test_the_vrids_are_openshifts_and_both_families_share_them():
    plan = planned(api_vips=["10.0.0.200", "2001:db8::200"], ingress_vips=["10.0.0.201", "2001:db8::201"])
    assert [vip.vrid for vip in plan.vips] == [109, 109, 124, 124]
    assert len({vip.name for vip in plan.vips}) == 4
    assert instances(plan, "master-0")["vmware_API_v6"]["version"] == 3


def test_the_default_election_is_fast_and_stays_where_it_is():
    plan = planned()
    first, second = (instances(plan, name)["vmware_API"] for name in ("master-0", "master-2"))
    assert (first["priority"], second["priority"], first["preempt"]) == (254, 253, False)
    assert first["peers"] == ["10.0.0.90", "10.0.0.99"]
    found = outages(plan)
    assert found["10.0.0.200", "haproxy_killed"] == 72
    assert found["10.0.0.200", "api_failing"] == 60 and "api_failing" not in str(plan.watched["haproxy"]["fatal"])
    assert found["10.0.0.201", "router_stopped"] == found["10.0.0.201", "router_draining"] == 2122
    assert found["10.0.0.201", "host_cut"] == 3072


def test_only_masters_balance_and_only_the_api():
    plan = planned()
    (service,) = plan.members["master-0"].balancer.services
    assert (service["port"], service["balance"], service["bind"]) == (9445, "roundrobin", ["*", "::"])
    assert [server["address"] for server in service["servers"]] == ["10.0.0.34", "10.0.0.90", "10.0.0.99"]
    assert {server["port"] for server in service["servers"]} == {6443}
    worker = plan.members["worker-0"]
    assert (worker.balancer.services, worker.balancer.monitors) == ([], [])
    assert [file["name"] for file in worker.router.track_files] == ["chk_ingress"]
    assert worker.expected.units == ["keepalived.service"]


def test_the_bootstrap_host_is_a_backup_until_it_is_done():
    def servers(**settings):
        plan = planned(bootstrap="10.0.0.9", **settings)
        return plan.members["master-0"].balancer.services[0]["servers"]

    assert [(server["name"], server["backup"]) for server in servers()][-1] == ("bootstrap", True)
    assert "bootstrap" not in [server["name"] for server in servers(bootstrap_complete=True)]


def test_several_ingress_vips_are_several_nodes_worth_and_each_fails_over_alone():
    plan = planned(ingress_vips=["10.0.0.201", "10.0.0.202", "10.0.0.203"])
    ingress = [vip for vip in plan.vips if "INGRESS" in vip.name]
    assert [vip.order[0] for vip in ingress] == ["worker-0", "master-0", "master-2"]
    assert len({vip.vrid for vip in plan.vips}) == 4
    before = {line["vip"]: line["before"] for line in plan.outages}
    assert len({before[vip.address] for vip in ingress}) == 3


def test_a_shard_has_its_own_vip_vrid_members_and_checks():
    shard = {
        "address": "10.0.0.210",
        "name": "intranet",
        "members": ["master-1", "worker-0"],
        "checks": ["http://localhost:1937/healthz/ready"],
    }
    plan = planned(ingress_vips=["10.0.0.201", shard])
    found = instances(plan, "worker-0")["vmware_INGRESS_intranet"]
    assert [item["name"] for item in found["track_files"]] == ["chk_vmware_ingress_intranet_1"]
    assert "vmware_INGRESS_intranet" not in instances(plan, "master-0")
    asked = {each["name"]: (each["port"], each["path"]) for each in plan.members["worker-0"].questions}
    assert asked["chk_vmware_ingress_intranet_1"] == (1937, "/healthz/ready")
    assert [item["name"] for item in instances(plan, "master-0")["vmware_INGRESS"]["track_files"]] == ["chk_ingress"]


@pytest.mark.parametrize("names_it", [{"name": "intranet"}, {"domain": "intranet.example"}], ids=str)
@pytest.mark.parametrize("place", [0, 1])
def test_no_vip_moves_to_a_node_with_the_routers_of_another_shard(names_it, place):
    vips = ["10.0.0.201"]
    vips.insert(place, {"address": "10.0.0.210", "members": ["worker-0", "master-1"], **names_it})
    plan = planned(ingress_vips=vips)
    orders = {vip.address: sorted(vip.order) for vip in plan.vips}
    assert orders["10.0.0.201"] == ["master-0", "master-2"] and orders["10.0.0.210"] == ["master-1", "worker-0"]
    holders = {line["vip"]: {line["before"], line["after"]} for line in plan.outages if line["event"] == "host_cut"}
    assert holders["10.0.0.201"] == {"master-0", "master-2"}


def test_a_vip_may_have_the_nodes_of_a_shard_where_it_names_them():
    shard = {"address": "10.0.0.210", "name": "intranet", "members": ["worker-0", "master-1"]}
    plan = planned(ingress_vips=[{"address": "10.0.0.201", "members": ["worker-0", "master-0"]}, shard])
    assert plan.vips[1].order == ["worker-0", "master-0"]


def test_a_node_without_a_router_carries_nothing_and_needs_nothing():
    worker = planned(ingress_members=["master-0", "master-1"]).members["worker-0"]
    assert (worker.router.instances, worker.firewall.ports, worker.expected.units) == ([], [], [])


def test_ocp45_is_what_openshift_4_5_did():
    plan = planned("master-0", "master-2", "master-1", preset="ocp45")
    api, ingress = (instances(plan, "master-0")[f"vmware_{role}"] for role in ("API", "INGRESS"))
    assert (api["vrid"], ingress["vrid"], api["priority"], ingress["priority"]) == (109, 124, 40, 40)
    assert (api["auth_pass"], ingress["auth_pass"]) == ("vmware_a", "vmware_i")
    assert (api["track_scripts"], api["state"]) == ([{"name": "chk_ocp", "weight": 50}], "BACKUP")
    scripts = {script["name"]: script for script in plan.members["master-0"].router.scripts}
    assert scripts["chk_ocp"]["any_of"] == [["https://localhost:6443/readyz", "http://localhost:50936/readyz"]]
    assert scripts["chk_ingress"]["any_of"] == [["http://localhost:1936/healthz"]]
    assert {script["interval"] for script in scripts.values()} == {1}


def test_the_haste_and_the_ports_of_ocp45_are_said_but_not_refused():
    warnings = planned(preset="ocp45").warnings
    assert any("chk_ocp sees a dead API server after 1 s and haproxy after 6 s" in warning for warning in warnings)
    assert any("ipi_ready_port is 50936" in warning for warning in warnings)
    assert planned().warnings == []


@pytest.mark.parametrize(("former", "name"), [("current", "upstream"), ("seed", "ocp45")])
def test_a_former_name_of_a_preset_is_understood_with_a_warning(former, name):
    plan, today = planned(preset=former), planned(preset=name)
    warning = f"ipi_preset is '{former}', which is called '{name}' now: write that, the old name will go."
    assert plan.warnings == [warning, *today.warnings]
    assert plan._replace(warnings=[]) == today._replace(warnings=[])


@pytest.mark.parametrize("preset", ipi_presets.PRESETS)
def test_what_a_preset_has_set_up_changes_nothing_in_the_next_run(preset):
    """Also where it makes the passwords of the cluster's name, each VIP's another one."""
    held = {"10.0.0.200": "master-0", "10.0.0.201": "worker-0"}
    plan = planner.draft(ipi.LAYOUT, living(SETTINGS["masters"], held, preset=preset))
    assert plan.faults == [] and not plan.sole_router and not plan.routers_together
    assert [line for line in plan.warnings if line.startswith("During the transition")] == []
    assert {member.expected.settle for member in plan.members.values()} == {0}


def test_the_forecast_shows_what_the_presets_that_copy_openshift_cost():
    default, ocp45, upstream = (
        outages(planned(preset=name))["10.0.0.200", "haproxy_killed"] for name in ("default", "ocp45", "upstream")
    )
    assert default < 100 < ocp45 < upstream


def test_what_upstream_still_sees_when_haproxy_dies_is_not_taken_for_dead():
    plan = planned(preset="upstream")
    assert plan.watched["haproxy"]["blind_trackers"] == ["chk_ocp_both", "chk_mcs"]
    assert 9000 < outages(plan)["10.0.0.200", "haproxy_killed"] < 10000


def test_upstream_has_the_server_line_the_checks_and_the_timeouts_of_its_releases():
    plan = planned(preset="upstream")
    balancer = plan.members["master-0"].balancer
    (service,) = balancer.services
    wanted = {"type": "https", "path": "/readyz", "interval": 5, "fall": 3, "rise": 1, "fast_interval": 0}
    assert {key: service["check"][key] for key in wanted} == wanted
    assert {server["weight"] for server in service["servers"]} == {1}
    assert (balancer.timeouts["tunnel"], balancer.timeouts["fin"]) == ("5m", "1s")
    tracked = {each["name"]: each["weight"] for each in instances(plan, "master-0")["vmware_API"]["track_scripts"]}
    assert tracked == {"chk_ocp_lb": 20, "chk_ocp_both": 5, "chk_mcs": 3}
    scripts = {script["name"]: script for script in plan.members["master-0"].router.scripts}
    mcs = scripts["chk_mcs"]
    assert mcs["any_of"] == [["https://localhost:22623/healthz"]]
    assert (mcs["interval"], mcs["rise"], mcs["fall"]) == (2, 3, 3)


def test_a_dead_api_server_has_a_line_in_the_forecast_of_every_preset():
    """`ocp45` checks the node's own API server, so that the VIP moves away from a dead one."""
    lines = {
        preset: {line["vip"]: line for line in planned(preset=preset).outages if line["event"] == "api_failing"}
        for preset in ipi_presets.PRESETS
    }
    assert [set(found) for found in lines.values()] == [{"10.0.0.200"}] * 3
    moves = {name: found["10.0.0.200"]["before"] != found["10.0.0.200"]["after"] for name, found in lines.items()}
    assert moves == {"default": False, "upstream": False, "ocp45": True}
    assert 1000 < lines["ocp45"]["10.0.0.200"]["outage_ms"] < 5000


@pytest.mark.parametrize("preset", ["upstream", "ocp45"])
def test_a_password_of_the_users_counts_in_the_presets_that_have_their_own(preset):
    plan = planned(preset=preset, auth_pass="0f3a9c1e")
    assert {each["auth_pass"] for each in instances(plan, "master-0").values()} == {""}  # that of the role


def test_a_check_that_may_be_answered_by_either_of_two_asks_both():
    scripts = {script["name"]: script for script in planned(preset="upstream").members["master-0"].router.scripts}
    assert scripts["chk_ocp_both"]["any_of"] == [
        ["http://localhost:9444/haproxy_ready"],
        ["https://localhost:6443/readyz"],
    ]


def test_any_port_can_be_another_and_a_bad_choice_is_said():
    plan = planned(lb_port=30445, monitor_port=40000)
    assert plan.members["master-0"].balancer.services[0]["port"] == 30445
    assert plan.members["master-0"].balancer.redirect == (["10.0.0.200"], {6443: 30445}, "")
    assert any("ipi_lb_port is 30445, which Kubernetes may give" in warning for warning in plan.warnings)
    assert any("ipi_monitor_port is 40000, which the kernel may give" in warning for warning in plan.warnings)


def test_the_machine_config_server_is_for_the_machine_networks_only():
    guard = planned(machine_networks=["10.0.0.0/24", "2001:db8::/64"]).members["master-0"].balancer.guard
    assert "ip saddr 10.0.0.0/24 accept" in guard and "ip6 saddr 2001:db8::/64 accept" in guard
    assert "tcp dport 22623" in guard


def test_another_cluster_with_one_of_our_vrids_is_refused_with_its_name():
    sentence = (
        "VIP 10.0.0.200 has VRID 147, which the ingress of cluster cnf11 has too: give the VIP another vrid in "
        "ipi_api_vips."
    )
    clash = {"cluster_name": "cnf10", "other_clusters": ["cnf11", "cnf10"]}
    assert faults(**clash) == [sentence]
    assert faults(**clash, api_vips=[{"address": "10.0.0.200", "vrid": 240}]) == []


BAD = {
    "no_cluster_name": ({"cluster_name": ""}, "ipi_cluster_name is empty"),
    "dotted_cluster_name": ({"cluster_name": "a.b"}, "with a dot: give the bare name"),
    "down_file_of_two_words": ({"down_file": "/run/a b"}, "ipi_down_file is '/run/a b': an absolute path of letters"),
    "no_api_vip": ({"api_vips": []}, "ipi_api_vips is []: a list of at least one address is required."),
    "no_ingress_vip": ({"ingress_vips": ""}, "ipi_ingress_vips is ''"),
    "vip_twice": ({"ingress_vips": ["10.0.0.200"]}, "ipi_ingress_vips[0] is 10.0.0.200 again: name each VIP once."),
    "vip_in_no_subnet": ({"api_vips": ["192.0.2.1"]}, "master-0: VIP 192.0.2.1 is in no interface's subnet"),
    "vip_is_a_nodes_own": ({"api_vips": ["10.0.0.34"]}, "master-0: VIP 10.0.0.34 is this host's own address on ens192"),
    "vrid_twice": (
        {"ingress_vips": [{"address": "10.0.0.201", "vrid": 109}]},
        "ipi_ingress_vips[0] has VRID 109, which 10.0.0.200 has too",
    ),
    "unknown_member": ({"ingress_members": ["worker-9"]}, "ipi_ingress_members names worker-9, which is not a node"),
    "unknown_preset": ({"preset": "fast"}, "ipi_preset is 'fast'"),
    "bad_network": ({"machine_networks": ["10.0.0.300/8"]}, "ipi_machine_networks[0] is '10.0.0.300/8'"),
    "bad_server_check": ({"server_check": 5}, "ipi_server_check is 5: a mapping"),
    "bad_bootstrap": (
        {"bootstrap": "boot"},
        "'boot': an IPv4 or IPv6 address is required. Or name a host of ipi_masters.",
    ),
    "interface_not_there": ({"interface": "eth9"}, "ipi_interface is 'eth9', which is not there"),
    "shard_without_a_url": (
        {"ingress_vips": [{"address": "10.0.0.201", "checks": ["localhost:1937"]}]},
        "ipi_ingress_vips[0].checks is ['localhost:1937']",
    ),
    "checks_of_an_api_vip": (
        {"api_vips": [{"address": "10.0.0.200", "checks": ["https://localhost:6443/readyz"]}]},
        "ipi_api_vips[0] has the unknown key 'checks': known are address, vrid.",
    ),
    "shard_without_members": (
        {"ingress_vips": ["10.0.0.201", {"address": "10.0.0.202", "name": "intranet"}]},
        "ipi_ingress_vips[1] is of a router shard and lacks 'members': name the nodes that run its routers.",
    ),
    "shards_leave_one_node": (
        {
            "ingress_members": ["master-0", "master-1", "worker-0"],
            "ingress_vips": ["10.0.0.201", {"address": "10.0.0.202", "name": "a", "members": ["worker-0", "master-1"]}],
        },
        "ipi_ingress_vips[0] has master-0 left besides the members of router shards: name its own members, "
        "two or more.",
    ),
    "other_cluster_with_a_dot": ({"other_clusters": ["a.b"]}, "ipi_other_clusters: The cluster's name is 'a.b', with"),
    "unknown_engine": ({"engine": "both"}, "ipi_engine is 'both': one of auto, native, agent is required."),
    "fast_with_version_2": ({"advert_interval": 0.1}, "VRRP version 2 takes 1 to 255 whole seconds"),
}


@pytest.mark.parametrize("settings, sentence", BAD.values(), ids=BAD)
def test_bad_input_is_refused_with_a_sentence_that_names_it(settings, sentence):
    plan = ipi.plan(cluster(**settings))
    assert any(sentence in fault for fault in plan.faults), plan.faults
    assert plan.members == {}, "a refused plan must hold nothing that could be applied"


def test_one_master_is_no_cluster():
    assert ipi.plan([node("master-0")]).faults == [
        "ipi_masters has 1 members: two or more are needed, three are usual."
    ]


def test_haproxy_must_notice_before_keepalived_does(monkeypatch):
    hasty = ipi_presets.PRESETS["ocp45"]
    monkeypatch.setitem(ipi_presets.PRESETS, "default", hasty)
    assert any("sees a dead API server after 1 s and haproxy after 6 s" in fault for fault in faults())
    assert faults(server_check={"interval": 0.4, "fall": 2}) == []


def test_another_type_of_check_does_not_keep_the_presets_path_and_an_own_path_is_refused():
    assert faults(server_check={"type": "tcp"}) == []
    (fault,) = faults(server_check={"type": "tcp", "path": "/readyz"})
    assert fault.endswith("check.path is for a check of type http or https, and this one is tcp: leave it out.")


def test_a_port_that_another_program_has_on_a_master_is_refused():
    nodes = cluster()
    nodes[1]["host"]["listeners"] = [{"address": "::", "port": 9454, "program": "nginx", "pid": 7}]
    assert any("master-2: port 9454 of service haproxy_monitor is already taken" in f for f in ipi.plan(nodes).faults)
    nodes[1]["host"]["listeners"] = []
    nodes[3]["host"]["listeners"] = [{"address": "::", "port": 9454, "program": "nginx", "pid": 7}]
    assert ipi.plan(nodes).faults == []


AGENT = ["onprem-lb-proxy.service", "onprem-lb-vrrp.service"]
OFFLINE = {"missing_packages": ["keepalived"], "unobtainable": "no package source answers"}


def mixed(*agents, changed=None, **settings):
    """The plan where some nodes can have no packages, and nothing says which engine they are to have."""
    nodes = cluster(**settings)
    for each in nodes:
        if each["name"] in agents:
            each["host"].update({**OFFLINE, **(changed or {})})
    return ipi.plan(nodes)


def test_a_node_without_packages_gets_the_agent_and_the_plan_says_why():
    plan = mixed("master-2")
    assert plan.faults == []
    assert plan.engines == [
        "master-0: native, its packages are installed",
        "master-2: agent, keepalived cannot be installed: no package source answers",
        "master-1: native, its packages are installed",
        "worker-0: native, its packages are installed",
    ]
    assert [plan.members[name].engine for name in ("master-0", "master-2")] == ["native", "agent"]


TRACKED = {"instances": [], "scripts": [], "track_files": []}


def tracked(member):
    """What each instance is without what it tracks, and that, by name: who asks is another one with each engine."""
    return [
        {
            **{key: value for key, value in instance.items() if key not in ("track_scripts", "track_files")},
            "tracked": {
                item["name"]: item["weight"] for item in [*instance["track_scripts"], *instance["track_files"]]
            },
        }
        for instance in member.router.instances
    ]


def test_the_election_means_the_same_with_either_engine():
    native, other = planned(), mixed("master-0", "master-2", "master-1", "worker-0")
    for name, member in native.members.items():
        assert tracked(other.members[name]) == tracked(member)
        assert other.members[name].router._replace(**TRACKED) == member.router._replace(**TRACKED)
        assert other.members[name].firewall == member.firewall
        assert other.members[name].balancer._replace(services=[]) == member.balancer._replace(services=[])


def test_each_engine_is_held_against_its_own_units_and_programs():
    plan = mixed("master-2", "worker-0")
    seen = {name: member.expected for name, member in plan.members.items()}
    assert seen["master-0"].units == ["haproxy.service", "keepalived.service"]
    assert (seen["master-2"].units, seen["worker-0"].units) == (AGENT, AGENT[1:])
    assert (seen["master-0"].programs, "proxy-worker" in seen["master-2"].programs) == (["haproxy"], True)
    assert {item["port"] for item in seen["master-2"].services} == {9445, 9444, 9454}


def test_only_haproxy_is_told_what_the_agent_does_anyway():
    plan = mixed("master-2")
    lines = {name: plan.members[name].balancer.services[0]["backend_lines"] for name in ("master-0", "master-2")}
    assert lines["master-0"] and not lines["master-2"]


def test_an_agent_that_is_stopped_serves_until_another_member_has_taken_over():
    stopped = ("10.0.0.200", "keepalived_stopped")
    assert outages(mixed("master-0"))[stopped] < outages(planned())[stopped]


def test_the_agents_own_listeners_are_not_in_its_way():
    listener = {"address": "::", "port": 9454, "program": "proxy-worker", "pid": 7}
    assert mixed("master-2", changed={"listeners": [listener]}).faults == []
    haproxys = {**listener, "program": "haproxy"}
    (fault,) = mixed("master-2", changed={"listeners": [haproxys]}).faults
    assert fault.startswith("master-2: port 9454 of service haproxy_monitor is already taken by haproxy")


def test_a_living_node_changes_its_engine_in_its_turn():
    nodes = cluster()
    for each in nodes[:2]:
        each["settings"]["engine"] = "agent"
        each["host"]["own_units"] = ["haproxy.service", "keepalived.service"]
    plan = ipi.plan(nodes)
    assert plan.faults == []
    assert plan.migration_order == ["master-0", "master-2"]
    assert plan.members["master-2"].replaced_programs == ["keepalived", "haproxy"]
    assert plan.members["master-1"].replaces == ""
    (line,) = [line for line in plan.engines if line.startswith("master-2: ")]
    assert line.endswith("; in place of native, as number 2 of 2")


def test_a_distribution_that_the_roles_do_not_know_is_one_for_the_agent():
    arch = {"os_family": "arch", "problems": ["this is arch: the roles know the families Debian and RedHat."]}
    assert mixed("master-2", changed=arch).faults == []


NFT = "master-2: nft is missing, which passes the API VIP's port on to the balancer: install nftables"
CURL = "master-2: curl is missing, which the check {} needs to ask {}: install curl"


@pytest.mark.parametrize(
    "settings, missing, sentence",
    [
        ({}, ["nft"], NFT),
        (
            {"preset": "ocp45"},
            ["curl"],
            CURL.format("chk_ocp", "https://localhost:6443/readyz, http://localhost:50936/readyz"),
        ),
        (
            {"ingress_vips": [{"address": "10.0.0.201", "checks": ["http://router.example/"]}]},
            ["curl"],
            CURL.format("chk_vmware_ingress_1", "http://router.example/"),
        ),
    ],
    ids=["nft", "two_urls", "a_name"],
)
def test_what_an_agent_lacks_and_no_role_installs_is_a_fault(settings, missing, sentence):
    (fault,) = mixed("master-2", changed={"missing_programs": missing}, **settings).faults
    assert fault == f"{sentence}, because with the engine agent nothing is downloaded."


def test_what_an_agent_does_not_need_may_be_missing():
    assert mixed("master-2", changed={"missing_programs": ["curl"]}).faults == []
    assert mixed("worker-0", changed={"missing_programs": ["curl", "nft"]}).faults == []
    nodes = cluster()
    for each in nodes:  # what is missing is installed
        each["host"].update({"missing_programs": ["curl", "nft"], "missing_packages": ["curl", "nftables"]})
    assert ipi.plan(nodes).faults == []


def test_a_node_that_carries_nothing_has_no_engine_to_speak_of():
    assert len(planned(ingress_members=["master-0", "master-1"]).engines) == 3


@pytest.mark.parametrize(
    "preset, own, pace",
    [
        ("default", {}, (0.2, 0, 6)),
        ("default", {"rise": 5}, (0.2, 0, 6)),
        ("default", {"interval": 3}, (3, 2, 2)),
        ("default", {"fall": 4}, (5, 2, 4)),
        ("upstream", {"fall": 4}, (5, 0, 4)),
    ],
)
def test_whoever_sets_the_pace_of_the_servers_check_keeps_what_the_rest_of_it_was(preset, own, pace):
    plan = ipi.plan(cluster(preset=preset, server_check=own))
    (service,) = next(iter(plan.members.values())).balancer.services
    assert tuple(service["check"][key] for key in ("interval", "fast_interval", "fall")) == pace
    lines = {"timeout connect 5s", "timeout check 10s"}.intersection(service["backend_lines"])
    assert len(lines) == (2 if preset == "upstream" else 0)
