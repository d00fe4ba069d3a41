"""The plan: what it decides for good input, and the one sentence it has for each bad one."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.members import hosts as _members
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from support.plans.pairs import member, pair, running


def instances(plan, name):
    return plan.members[name].router.instances


def test_the_defaults_give_a_pair_of_native_members():
    plan = _pair.plan(pair())
    assert plan.faults == []
    first, second = instances(plan, "lb1")[0], instances(plan, "lb2")[0]
    assert (first["state"], first["priority"], first["vrid"]) == ("MASTER", 254, 51)
    assert (second["state"], second["priority"], second["vrid"]) == ("BACKUP", 253, 51)
    assert (first["interface"], first["source"], first["peers"]) == ("eth0", "192.0.2.1", ["192.0.2.2"])
    assert first["track_scripts"] == [{"name": "haproxy_alive", "weight": 0}]
    assert first["track_files"] == [{"name": "haproxy_down", "weight": 0}, {"name": "haproxy_answers", "weight": -253}]
    assert plan.members["lb1"].router.scripts[0]["command"] == "/usr/bin/killall -0 haproxy"


def test_default_services_are_8443_to_the_masters_and_80_and_443_to_the_infra_nodes():
    services = _pair.plan(pair()).members["lb1"].balancer.services
    assert [(s["port"], [server["address"] for server in s["servers"]]) for s in services] == [
        (8443, ["192.0.2.21", "192.0.2.22"]),
        (80, ["192.0.2.31", "192.0.2.32"]),
        (443, ["192.0.2.31", "192.0.2.32"]),
    ]
    assert {(s["mode"], s["balance"], s["check"]["type"]) for s in services} == {("tcp", "source", "tcp")}
    assert all(s["bind"] == ["*"] for s in services)


def test_with_two_vips_each_member_is_master_of_one():
    plan = _pair.plan(pair(vips=["192.0.2.10", "192.0.2.11"]))
    states = {name: [(i["state"], i["vrid"], i["priority"]) for i in instances(plan, name)] for name in ("lb1", "lb2")}
    assert states == {
        "lb1": [("MASTER", 51, 254), ("BACKUP", 52, 253)],
        "lb2": [("BACKUP", 51, 253), ("MASTER", 52, 254)],
    }


def test_an_ipv6_vip_shares_the_vrid_and_is_version_3_and_served():
    plan = _pair.plan(pair(vips=["192.0.2.10", "2001:db8::10"]))
    assert [(i["vrid"], i["version"]) for i in instances(plan, "lb1")] == [(51, 2), (51, 3)]
    assert instances(plan, "lb1")[1]["source"] == "2001:db8::1"
    assert plan.members["lb1"].balancer.services[0]["bind"] == ["*", "::"]
    assert ["2001:db8::10", 80] in plan.targets


@pytest.mark.parametrize(
    "bind, reached", [(["192.0.2.10"], ["192.0.2.10"]), (["::"], ["2001:db8::10"]), (["*", "::"], None), (["*"], None)]
)
def test_a_service_is_looked_for_only_through_the_vips_that_it_is_bound_to(bind, reached):
    vips = ["192.0.2.10", "2001:db8::10"]
    service = {"name": "web", "port": 80, "bind": bind, "servers": ["192.0.2.31"]}
    plan = _pair.plan(pair(vips=vips, services=[service]))
    assert [address for address, _port in plan.targets] == (reached or vips)


def test_a_vip_in_two_equal_subnets_needs_the_interface_named():
    members = pair()
    for one in members:
        one["host"]["addresses"].append({**one["host"]["addresses"][1], "interface": "eth1", "address": "192.0.2.77"})
    assert (
        "lb1: VIP 192.0.2.10 is in the subnet of eth0 and eth1: say which with pair_interface."
        in _pair.plan(members).faults
    )


def test_the_firewall_is_opened_at_the_interface_of_every_vip():
    members = pair(vips=["192.0.2.10", "198.51.100.10"])
    for number, one in enumerate(members, 1):
        mac = f"02:00:00:00:01:0{number}"
        own = {"interface": "eth1", "address": f"198.51.100.{number}", "prefix": 24, "mac": mac}
        one["host"]["addresses"].append(own)
    assert _pair.plan(members).members["lb1"].firewall.interfaces == ["eth0", "eth1"]


def test_three_members_stand_in_line():
    plan = _pair.plan([*pair(), member(3)])
    assert [instances(plan, name)[0]["priority"] for name in ("lb1", "lb2", "lb3")] == [254, 253, 228]
    assert instances(plan, "lb2")[0]["peers"] == ["192.0.2.1", "192.0.2.3"]


@pytest.mark.parametrize("settings", [{"preempt": False}, {"preempt_delay": 5}])
def test_a_member_that_may_have_to_wait_starts_as_backup(settings):
    plan = _pair.plan(pair(**settings))
    assert instances(plan, "lb1")[0]["state"] == "BACKUP"


def test_the_plan_says_for_how_long_the_vip_is_gone():
    outages = {line["event"]: line["outage_ms"] for line in _pair.plan(pair()).outages}
    assert outages["haproxy_killed"] == 72  # Skew_Time of 253 is 12 ms
    assert outages["haproxy_hung"] == 2622  # after two late answers, and once the lower priority has settled
    assert outages["host_cut"] == 3072
    assert outages["haproxy_reloaded"] == 0


def test_both_engines_are_asked_where_they_answer_and_at_a_port_of_ones_own():
    lb1 = _pair.plan(pair(answer_port=9555)).members["lb1"]
    asking = {script["name"]: script for script in lb1.router.scripts}
    assert asking["haproxy_alive"]["command"] == "/usr/bin/killall -0 haproxy"
    assert [*asking] == ["haproxy_alive"] and lb1.balancer.answer_port == 9555
    assert lb1.router.track_files[1:] == [{"name": "haproxy_answers", "path": "/run/onprem-lb-haproxy_answers.failing"}]
    assert {"name": "answer_port", "port": 9555} in lb1.expected.services
    agent = _pair.plan(pair(engine="agent", answer_port=9555)).members["lb1"]
    assert agent.router.track_files[1:] == []
    assert agent.router.instances[0]["track_scripts"][1] == {
        "name": "haproxy_answers",
        "weight": -253,
        "offers": True,
    }
    assert agent.router.scripts[1]["any_of"] == [["http://127.0.0.1:9555/"]] and agent.balancer.answer_port == 9555


@pytest.mark.parametrize(
    "settings, weight",
    [
        ({"priorities": [100, 98]}, -253),
        ({"priorities": [200, 100]}, -253),
        ({"priorities": [200, 100], "preempt": False}, 0),  # no room to tell those that answer from the others
        ({"priorities": [254, 1]}, 0),
        ({"preempt": False}, -253),
        # By the last of the offers, which comes when short intervals have long been over.
        ({"preempt": False, "vrrp_version": 3, "advert_interval": 0.1, "track_interval": 1}, -253),
        ({"vips": ["192.0.2.10", "192.0.2.11"], "sync": True}, 0),  # no weight counts in a group
    ],
)
@pytest.mark.parametrize("engine", ["native", "agent"])
def test_a_balancer_that_hangs_loses_its_vip_whatever_the_priorities(engine, settings, weight):
    plan = _pair.plan(pair(engine=engine, **settings))
    assert plan.faults == []
    kind = "track_scripts" if engine == "agent" else "track_files"
    tracked = {item["name"]: item["weight"] for item in plan.members["lb1"].router.instances[0][kind]}
    assert tracked["haproxy_answers"] == weight
    hung = [line for line in plan.outages if line["event"] == "haproxy_hung"]
    assert hung and all(line["after"] == "lb2" for line in hung if line["before"] == "lb1")


@pytest.mark.parametrize("settings", [{"answer_port": 0}, {"track_weight": 4, "priorities": [100, 98]}])
def test_a_balancer_that_is_not_to_be_asked_has_no_port_for_it(settings):
    lb1 = _pair.plan(pair(**settings)).members["lb1"]
    assert [script["name"] for script in lb1.router.scripts] == ["haproxy_alive"]
    assert lb1.balancer.answer_port == 0
    assert [item["name"] for item in instances(_pair.plan(pair(**settings)), "lb1")[0]["track_scripts"]] == [
        "haproxy_alive"
    ]


@pytest.mark.parametrize(
    "port, sentence",
    [
        (80, "service infra_nodes-80 and pair_answer_port both listen on 127.0.0.1 port 80: change a port"),
        (70000, "pair_answer_port is 70000: a port (0 for none) from 0 to 65535 is required."),
    ],
)
def test_a_port_where_the_balancer_could_not_be_asked_is_refused(port, sentence):
    assert any(fault.startswith(sentence) for fault in _pair.plan(pair(answer_port=port)).faults)


def test_the_fast_setting_shortens_the_loss_of_a_host():
    plan = _pair.plan(pair(vrrp_version=3, advert_interval=0.1))
    outages = {line["event"]: line["outage_ms"] for line in plan.outages}
    assert plan.faults == []
    assert outages["host_cut"] == 361


def test_a_vip_that_a_member_holds_is_not_its_own_address():
    members = pair()
    held = {"interface": "eth0", "address": "192.0.2.10", "prefix": 32, "mac": "02:00:00:00:00:01"}
    members[0]["host"]["addresses"].append(held)
    members[1]["host"]["answering"] = {"192.0.2.10": ["02:00:00:00:00:01"]}
    plan = _pair.plan(members)
    assert plan.faults == []
    assert instances(plan, "lb1")[0]["source"] == "192.0.2.1"


def test_a_vip_with_a_prefix_length_of_its_own_may_be_held_too():
    members = pair(vips=["192.0.2.10/24"])
    held = {"interface": "eth0", "address": "192.0.2.10", "prefix": 24, "mac": "02:00:00:00:00:01"}
    members[0]["host"]["addresses"].append(held)
    members[0]["host"]["instances"] = [running(addresses=["192.0.2.10/24"])]
    assert _pair.plan(members).faults == []


def test_the_narrowest_subnet_wins_and_pair_interface_overrules():
    members = pair()
    for one in members:
        mac = one["host"]["addresses"][1]["mac"]
        address = f"192.0.2.{int(one['name'][2]) + 4}"
        one["host"]["addresses"].append({"interface": "eth1", "address": address, "prefix": 28, "mac": mac})
    assert instances(_pair.plan(members), "lb1")[0]["interface"] == "eth1"
    for one in members:
        one["settings"]["interface"] = "eth0"
    assert instances(_pair.plan(members), "lb1")[0]["interface"] == "eth0"


BAD = {
    "no_vip": ({"vips": []}, "pair_vips is []: a list of at least one address is required."),
    "vip_in_no_subnet": ({"vips": ["203.0.113.9"]}, "lb1: VIP 203.0.113.9 is in no interface's subnet"),
    "vip_is_no_address": ({"vips": ["192.0.2.300"]}, "pair_vips[0] is '192.0.2.300': an IPv4 or IPv6 address"),
    "vip_is_the_network": ({"vips": ["192.0.2.0/24"]}, "this is the subnet's own network or broadcast address"),
    "vip_is_a_members_only_address": ({"vips": ["192.0.2.1"]}, "lb1: VIP 192.0.2.1 is this host's own address on eth0"),
    "vip_twice": ({"vips": ["192.0.2.10", "192.0.2.10"]}, "pair_vips[1] is 192.0.2.10 again: name each VIP once."),
    "vip_twice_in_two_spellings": ({"vips": ["2001:db8::a", "2001:db8:0::a"]}, "pair_vips[1] is 2001:db8::a again"),
    "vrid_twice": (
        {"vips": [{"address": "192.0.2.10", "vrid": 7}, {"address": "192.0.2.11", "vrid": 7}]},
        "pair_vips[1] has VRID 7, which 192.0.2.10 has too: give one of them another vrid.",
    ),
    "vrid_0": ({"vrid": 0}, "pair_vrid is 0: a VRID from 1 to 255 is required."),
    "vrid_256": ({"vrid": 256}, "pair_vrid is 256: a VRID from 1 to 255 is required."),
    "vrid_runs_out": ({"vrid": 255, "vips": ["192.0.2.10", "192.0.2.11"]}, "pair_vips[1] would get VRID 256"),
    "unknown_vip_key": (
        {"vips": [{"address": "192.0.2.10", "vird": 7}]},
        "pair_vips[0] has the unknown key 'vird': did you mean 'vrid'?",
    ),
    "first_is_no_member": ({"vips": [{"address": "192.0.2.10", "first": "lb9"}]}, "pair_vips[0].first is 'lb9'"),
    "priority_out_of_range": ({"priorities": [300, 100]}, "pair_priorities is [300, 100]: in it 300 is wrong"),
    "priorities_upside_down": ({"priorities": [98, 100]}, "pair_priorities is [98, 100]: the first is the holder's"),
    "priorities_for_too_few": ({"priorities": [100]}, "pair_priorities has 1 entries for 2 members"),
    "the_articles_tie": (
        {"priorities": [100, 98], "track_weight": 2},
        "when haproxy dies on lb1, its 100 ties with lb2's 100, so the VIP would never move: "
        "make the weight larger than 2",
    ),
    "weight_out_of_range": ({"track_weight": 999}, "pair_track_weight is 999: a weight from -253 to 253 is required."),
    "auth_pass_too_long": ({"auth_pass": "123456789"}, "pair_auth_pass has 9 characters"),
    "fast_with_version_2": ({"advert_interval": 0.1}, "VRRP version 2 takes 1 to 255 whole seconds; version 3 takes"),
    "no_masters": ({"masters": []}, "pair_masters is empty: name the servers' addresses, or set pair_services."),
    "backend_is_no_address": ({"masters": ["master-1"]}, "'master-1': haproxy resolves no bare name"),
    "port_out_of_range": (
        {"services": [{"name": "web", "port": 70000, "servers": ["192.0.2.31"]}]},
        "pair_services[0] (web).port is 70000: a port from 1 to 65535 is required.",
    ),
    "server_weight_out_of_range": (
        {"services": [{"name": "web", "port": 80, "servers": [{"address": "192.0.2.31", "weight": 300}]}]},
        "pair_services[0] (web).servers[0].weight is 300",
    ),
    "down_file_of_two_words": ({"down_file": "/run/a b"}, "pair_down_file is '/run/a b': an absolute path of letters"),
    "metrics_file_that_nobody_reads": (
        {"metrics_file": "/run/lb.txt"},
        "pair_metrics_file is '/run/lb.txt': node_exporter reads files whose names end with .prom alone.",
    ),
    "metrics_file_of_two_words": (
        {"metrics_file": "/run/a b.prom"},
        "pair_metrics_file is '/run/a b.prom': an absolute path",
    ),
    "no_services": ({"services": []}, "pair_services is empty, so that nothing would be served: name at least one"),
    "no_servers": (
        {"services": [{"name": "web", "port": 80, "servers": []}]},
        "pair_services[0] (web).servers is []: a list of 1 or more is required.",
    ),
    "unknown_service_key": (
        {"services": [{"name": "web", "port": 80, "ballance": "source", "servers": ["192.0.2.31"]}]},
        "has the unknown key 'ballance': did you mean 'balance'?",
    ),
    "interface_not_there": ({"interface": "ens9"}, "lb1: pair_interface is 'ens9', which is not there: there are"),
}


@pytest.mark.parametrize("settings, sentence", BAD.values(), ids=BAD)
def test_bad_input_is_refused_with_a_sentence_that_names_it(settings, sentence):
    plan = _pair.plan(pair(**settings))
    assert any(sentence in fault for fault in plan.faults), plan.faults
    assert plan.members == {}, "a refused plan must hold nothing that could be applied"


def test_one_member_is_no_pair():
    assert _pair.plan([member(1)]).faults == ["The pair has 1 member (lb1): two or more are needed."]
    assert "two or more are needed" in _pair.plan([]).faults[0]


def test_weight_4_moves_the_vip_after_the_whole_wait():
    plan = _pair.plan(pair(priorities=[100, 98], track_weight=4, track_events=False, track_interval=1))
    assert plan.faults == []
    killed = next(line for line in plan.outages if line["event"] == "haproxy_killed")
    assert killed["outage_ms"] == pytest.approx(1000 + 3000 + 1000 * (256 - 102) / 256 + 60, abs=1)


def test_members_that_disagree_are_named_with_both_values():
    sentences = _pair.plan([member(1), member(2, vrid=77)]).faults
    assert "pair_vrid: lb1 and lb2 disagree (51 and 77): set it once, for the whole group." in sentences


def test_a_disagreement_about_the_password_does_not_show_it():
    sentences = _pair.plan([member(1, auth_pass="aaaa1111"), member(2, auth_pass="bbbb2222")]).faults
    assert any("pair_auth_pass" in sentence for sentence in sentences)
    assert not any("aaaa1111" in sentence or "bbbb2222" in sentence for sentence in sentences)


def test_members_may_have_different_interfaces():
    members = pair()
    for info in members[1]["host"]["addresses"][1:]:
        info["interface"] = "ens5"
    members[1]["settings"]["interface"] = "ens5"
    plan = _pair.plan(members)
    assert plan.faults == []
    assert instances(plan, "lb2")[0]["interface"] == "ens5"


def test_a_vip_that_another_host_answers_for_is_refused_with_the_answer():
    members = pair()
    members[0]["host"]["answering"] = {"192.0.2.10": ["aa:bb:cc:dd:ee:ff"]}
    assert _pair.plan(members).faults == [
        "VIP 192.0.2.10 is already answered by aa:bb:cc:dd:ee:ff, which is none of the members: "
        "choose a free address, or take it away there."
    ]


def test_a_port_that_another_program_has_is_refused_with_its_name():
    members = pair()
    members[1]["host"]["listeners"].append({"address": "0.0.0.0", "port": 80, "program": "nginx", "pid": 99})
    assert _pair.plan(members).faults == [
        "lb2: port 80 of service infra_nodes-80 is already taken by nginx (pid 99): "
        "stop that program or move the service."
    ]


def test_haproxy_itself_and_other_addresses_are_not_in_the_way():
    members = pair(services=[{"name": "web", "port": 80, "bind": ["192.0.2.10"], "servers": ["192.0.2.31"]}])
    members[0]["host"]["listeners"] += [
        {"address": "0.0.0.0", "port": 80, "program": "haproxy", "pid": 9},
        {"address": "127.0.0.1", "port": 80, "program": "nginx", "pid": 8},
    ]
    assert _pair.plan(members).faults == []


def test_what_a_host_cannot_do_is_a_fault_with_its_name():
    members = pair()
    members[0]["host"]["problems"] = ["systemd does not run here."]
    assert _pair.plan(members).faults == ["lb1: systemd does not run here."]


def test_the_password_is_the_users_then_the_one_in_use_then_a_fresh_one():
    members = pair()
    assert _members.auth_pass(members, new_uuid=lambda: "0f3a9c1e-77aa-4d") == "0f3a9c1e"
    members[1]["host"]["instances"] = [running("x", auth_pass="keepthis")]
    assert _members.auth_pass(members, new_uuid=lambda: "another1") == "keepthis"
    members[0]["settings"]["auth_pass"] = "explicit"
    assert _members.auth_pass(members, new_uuid=lambda: "another1") == "explicit"


def test_the_plan_holds_no_password():
    assert "geheim77" not in str(_pair.plan(pair(auth_pass="geheim77")))
