# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`pair_checks` and `pair_sync`: what each engine gets, what the forecast says, and what is refused."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from support.plans import refusals
from support.plans.pairs import pair
from support.rendering import keepalived

GATEWAY = {"gateway": "192.0.2.254"}
TWO_VIPS = ["192.0.2.10", "198.51.100.10"]


def on_two_links(**settings):
    """Two members with a VIP on each of eth0 and eth1."""
    members = pair(vips=TWO_VIPS, **settings)
    for number, one in enumerate(members, 1):
        mac = f"02:00:00:00:01:0{number}"
        own = {"interface": "eth1", "address": f"198.51.100.{number}", "prefix": 24, "mac": mac}
        one["host"]["addresses"].append(own)
    return members


def planned(members):
    found = _pair.plan(members)
    assert found.faults == []
    return found


def router(**settings):
    return planned(pair(**settings)).members["lb1"].router


def in_keepalived(of_router):
    return [line.strip() for line in keepalived(of_router._asdict(), "lb1").splitlines()]


def in_agent(of_router):
    found = agent.translate({**of_router._asdict(), "services": []})
    assert found["faults"] == []
    return found["vrrp"]


KINDS = {
    "a gateway": (
        GATEWAY,
        ["vrrp_script gateway-192.0.2.254 {", 'script "/usr/bin/ping -n -q -c 1 -W 2 192.0.2.254"', "fall 3"],
        {"type": "script", "command": "/usr/bin/ping -n -q -c 1 -W 2 192.0.2.254"},
    ),
    "a script": (
        {"script": "/usr/local/bin/storage --quick", "interval": 5, "rise": 2},
        [
            "vrrp_script script-storage {",
            'script "/usr/local/bin/storage --quick"',
            "interval 5",
            "timeout 5",
            "rise 2",
        ],
        {"type": "script", "command": "/usr/local/bin/storage --quick", "interval": 5, "timeout": 5, "rise": 2},
    ),
    "a URL": (
        {"url": "http://192.0.2.40:8080/up", "name": "api", "timeout": 1},
        ["vrrp_script api {", 'script "/usr/bin/curl --max-time 1 -kLfs -o /dev/null http://192.0.2.40:8080/up"'],
        {"type": "http", "address": "192.0.2.40", "port": 8080, "path": "/up", "timeout": 1},
    ),
    "an interface": ({"interface": "eth7"}, ["track_interface {", "eth7 weight 0"], {"interface": "eth7"}),
}


@pytest.mark.parametrize("check, lines, keys", KINDS.values(), ids=KINDS)
def test_each_kind_is_tracked_by_both_engines(check, lines, keys):
    found = router(checks=[check])
    written = in_keepalived(found)
    assert [line for line in lines if line not in written] == []
    vrrp = in_agent(found)
    (own,) = [each for each in vrrp["checks"] if not each["name"].startswith("haproxy_")]
    assert {key: own[key] for key in keys} == keys
    assert {"name": own["name"], "weight": 0} in vrrp["instances"][0]["track"]


def test_without_checks_nothing_else_than_the_balancer_is_tracked():
    found = router()
    assert [script["name"] for script in found.scripts] == ["haproxy_alive"]
    assert [file["name"] for file in found.track_files] == ["haproxy_down", "haproxy_answers"]
    assert found.instances[0]["track_interfaces"] == []


def test_a_vip_does_not_track_its_own_interface_again():
    """keepalived refuses that, because the interface is tracked anyway."""
    found = planned(on_two_links(checks=[{"interface": "eth1"}]))
    instances = found.members["lb1"].router.instances
    assert [[each["name"] for each in one["track_interfaces"]] for one in instances] == [["eth1"], []]
    lines = [(line["vip"], line["event"]) for line in found.outages if line["event"] == "eth1_failed"]
    assert lines == [("192.0.2.10", "eth1_failed")]


def test_a_check_that_fails_is_one_more_failure_in_the_forecast():
    found = planned(pair(checks=[GATEWAY]))
    ms = {line["event"]: line["outage_ms"] for line in found.outages}
    without = {line["event"]: line["outage_ms"] for line in planned(pair()).outages}
    assert ms == {
        **without,
        "gateway-192.0.2.254_failed": 12072,
    }  # three silent pings in 12 s, as keepalived skips the runs between, then as when haproxy dies
    (line,) = [line for line in found.table if "gateway" in line]
    assert line.split()[:4] == ["gateway-192.0.2.254", "failed", "lb1", "->"]


def test_a_negative_weight_moves_the_vip_and_the_forecast_judges_it():
    assert planned(pair(checks=[{**GATEWAY, "weight": -50}])).members["lb1"].router.instances[0]["track_scripts"][
        -1
    ] == {
        "name": "gateway-192.0.2.254",
        "weight": -50,
    }
    (fault,) = refusals.of_pair(checks=[{**GATEWAY, "weight": -1}], preempt=False)
    assert fault.startswith("192.0.2.10: when the check gateway-192.0.2.254 fails on lb1, ")


def test_an_interface_with_a_weight_that_is_too_small_is_refused_with_the_weight_that_is_not():
    (fault,) = refusals.of_pair(checks=[{"interface": "eth7", "weight": -10}], priorities=[150, 100])
    assert fault == (
        "192.0.2.10: when the check eth7 fails on lb1, its 140 stays above lb2's 100, so the VIP would never move: "
        "make the weight larger than 50, the distance of the priorities, or 0 (FAULT)."
    )


def test_no_check_notices_that_haproxy_dies():
    weak = {"priorities": [150, 100], "track_weight": -10, "track_events": False}
    (fault,) = refusals.of_pair(checks=[{"interface": "eth7"}], **weak)
    assert fault.startswith("192.0.2.10: when haproxy dies on lb1, its 140 stays above lb2's 100")


def test_no_check_notices_that_another_fails():
    checks = [{"interface": "eth7", "weight": -10}, GATEWAY]
    (fault,) = refusals.of_pair(checks=checks, priorities=[150, 100])
    assert fault.startswith("192.0.2.10: when the check eth7 fails on lb1, its 140 stays above lb2's 100")


@pytest.mark.parametrize(
    "check, warned",
    [
        (GATEWAY, True),
        ({**GATEWAY, "weight": -50}, False),
        ({"url": "https://api.example/up"}, True),
        ({"url": "http://localhost:8080/up"}, False),
        ({"url": "http://[::1]:8080/up"}, False),
        ({"script": "/usr/local/bin/storage"}, False),
        ({"interface": "eth7"}, False),
    ],
)
def test_what_may_fail_for_all_members_at_once_is_warned_of(check, warned):
    target = check.get("gateway") or check.get("url")
    sentence = f"while {target} answers none of the members, none of them holds the VIPs: a weight such as -50 lets"
    assert any(sentence in line for line in planned(pair(checks=[check])).warnings) == warned


def test_a_weight_is_advised_only_where_a_member_preempts():
    (warning,) = planned(pair(checks=[GATEWAY], preempt=False)).warnings
    assert warning.endswith("none of them holds the VIPs.")


@pytest.mark.parametrize(
    "engine, check, sentence",
    [
        ("agent", GATEWAY, "ping is missing, which pair_checks (gateway-192.0.2.254) needs: install iputils-ping on"),
        ("agent", {"url": "http://api.example/up"}, "curl is missing, which pair_checks (url-api.example-up) needs"),
        ("agent", {"url": "http://192.0.2.40/up"}, ""),
        ("native", GATEWAY, ""),  # its package is installed
        ("native", {"url": "http://api.example/up"}, ""),
    ],
)
def test_a_program_that_nobody_installs_has_to_be_there(engine, check, sentence):
    members = pair(checks=[check], engine=engine)
    members[1]["host"]["missing_programs"] = ["ping", "curl"]
    faults = _pair.plan(members).faults
    assert len(faults) == bool(sentence)
    assert all(fault.startswith(f"lb2: {sentence}") for fault in faults)


WRONG = {
    "a text": ("eth1", "pair_checks is 'eth1': a list is required."),
    "a list of texts": (["eth1"], "pair_checks[0] is 'eth1': a mapping with the keys name, gateway, script, url,"),
    "another key": ([{"ping": "192.0.2.254"}], "pair_checks[0] has the unknown key 'ping': "),
    "nothing": (
        [{"weight": 5}],
        "pair_checks[0] has nothing to check: give it one of gateway, script, url, interface.",
    ),
    "two kinds": (
        [{**GATEWAY, "interface": "eth1"}],
        "pair_checks[0] has gateway and interface: make each a check of its own.",
    ),
    "a gateway's name": (
        [{"gateway": "router"}],
        "pair_checks[0].gateway is 'router': an IPv4 or IPv6 address is required.",
    ),
    "a link-local gateway": (
        [{"gateway": "fe80::1"}],
        "pair_checks[0].gateway is fe80::1, which may be on every link: name another address of it.",
    ),
    "a VIP": (
        [{"gateway": "192.0.2.10"}],
        "pair_checks (gateway-192.0.2.10).gateway is 192.0.2.10, a VIP of the pair: name a host outside the pair.",
    ),
    "a member": (
        [{"gateway": "192.0.2.2"}],
        "pair_checks (gateway-192.0.2.2).gateway is 192.0.2.2, lb2's own address: name a host outside the pair.",
    ),
    "a script without its path": (
        [{"script": "storage"}],
        "pair_checks[0].script is 'storage': write the program's absolute path, in one line.",
    ),
    "no URL": ([{"url": "api/up"}], "pair_checks[0].url is 'api/up': a URL such as "),
    "an interface's name": ([{"interface": "e/1"}], "pair_checks[0].interface is 'e/1': "),
    "the VIP's own interface": (
        [{"interface": "eth0"}],
        "pair_checks (eth0) is the interface of all VIPs, which is always tracked: leave it out.",
    ),
    "an interface with an interval": (
        [{"interface": "eth7", "interval": 1}],
        "pair_checks[0].interval has no effect on an interface check, because the kernel watches the "
        "interface: leave it out.",
    ),
    "a weight": ([{**GATEWAY, "weight": 300}], "pair_checks[0].weight is 300: a weight from -253 to 253 is required."),
    "a number of failures": ([{**GATEWAY, "fall": 0}], "pair_checks[0].fall is 0: a whole number from 1 to 1000"),
    "an interval": ([{**GATEWAY, "interval": "often"}], "pair_checks[0].interval is 'often': a number from 0.01 to"),
    "the layout's own name": (
        [{**GATEWAY, "name": "haproxy_alive"}],
        "pair_checks[0] (haproxy_alive).name is 'haproxy_alive', which the layout itself uses: choose another.",
    ),
    "a name twice": (
        [GATEWAY, {"script": "/bin/true", "name": "gateway-192.0.2.254"}],
        "pair_checks has the name 'gateway-192.0.2.254' twice: give each its own.",
    ),
}


@pytest.mark.parametrize("checks, sentence", WRONG.values(), ids=WRONG)
def test_a_wrong_check_is_one_sentence(checks, sentence):
    (fault,) = refusals.of_pair(checks=checks)
    assert fault.startswith(sentence)


# -- the sync group


def test_with_pair_sync_both_engines_have_a_group_of_all_vips_and_one_member_is_master_of_all():
    found = planned(on_two_links(sync=True)).members
    groups = {name: member.router.sync_groups for name, member in found.items()}
    names = ["vip-192.0.2.10", "vip-198.51.100.10"]
    assert groups == dict.fromkeys(["lb1", "lb2"], [{"name": "pair", "instances": names}])
    assert [each["state"] for each in found["lb1"].router.instances] == ["MASTER", "MASTER"]
    assert [each["state"] for each in found["lb2"].router.instances] == ["BACKUP", "BACKUP"]
    written = in_keepalived(found["lb1"].router)
    at = written.index("vrrp_sync_group pair {")
    assert written[at + 1 : at + 4] == ["group {", *names]
    assert in_agent(found["lb1"].router)["sync_groups"] == [{"name": "pair", "instances": names}]


@pytest.mark.parametrize("settings", [{"sync": False, "vips": TWO_VIPS}, {"sync": True, "vips": TWO_VIPS[:1]}])
def test_without_it_and_with_a_single_vip_there_is_no_group(settings):
    members = on_two_links()
    for one in members:
        one["settings"].update(settings)
    assert planned(members).members["lb1"].router.sync_groups == []


def test_in_a_group_the_forecast_moves_all_vips_when_the_check_of_one_fails():
    found = planned(on_two_links(sync=True, checks=[{"interface": "eth1"}]))
    moves = {line["vip"]: (line["before"], line["after"]) for line in found.outages if line["event"] == "eth1_failed"}
    assert moves == dict.fromkeys(TWO_VIPS, ("lb1", "lb2"))
    first = {line["vip"]: line["before"] for line in found.outages}
    assert first == dict.fromkeys(TWO_VIPS, "lb1")


def test_a_group_survives_every_single_failure_without_preemption_too():
    assert planned(on_two_links(sync=True, preempt=False)).outages


def test_the_first_vip_says_where_all_of_them_are_first():
    vips = [{"address": "192.0.2.10", "first": "lb2"}, "198.51.100.10"]
    members = on_two_links(sync=True)
    for one in members:
        one["settings"]["vips"] = vips
    assert {vip.order[0] for vip in planned(members).vips} == {"lb2"}


SYNC = {
    "a VIP that is first elsewhere": (
        {"vips": ["192.0.2.10", {"address": "192.0.2.11", "first": "lb2"}]},
        "pair_vips[1].first is 'lb2', and with pair_sync all VIPs are where the first one is, on lb1: give it to "
        "pair_vips[0] instead.",
    ),
    "haproxy with a weight": (
        {"vips": ["192.0.2.10", "192.0.2.11"], "track_weight": -50},
        "pair_track_weight is -50, and no weight counts in a sync group (pair_sync): use 0 (FAULT).",
    ),
    "a check with a weight": (
        {"vips": ["192.0.2.10", "192.0.2.11"], "checks": [{**GATEWAY, "weight": -50}]},
        "pair_checks (gateway-192.0.2.254).weight is -50, and no weight counts in a sync group (pair_sync): use 0 "
        "(FAULT).",
    ),
    "no truth value": ({"sync": "both"}, "pair_sync is 'both': true or false is required."),
}


@pytest.mark.parametrize("settings, sentence", SYNC.values(), ids=SYNC)
def test_what_a_group_cannot_have_is_one_sentence(settings, sentence):
    assert refusals.of_pair(**{"sync": True, **settings}) == [sentence]


def test_a_vip_that_no_member_can_carry_is_refused_beside_a_check():
    faults = refusals.of_pair(vips=["203.0.113.1"], checks=[GATEWAY])
    assert [fault.partition(" is in no")[0] for fault in faults] == ["lb1: VIP 203.0.113.1", "lb2: VIP 203.0.113.1"]
