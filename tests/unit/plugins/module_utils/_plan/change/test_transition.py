# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run with --limit that would leave a member alone with what the others no longer accept."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.keepalived import conf as keepalived_conf
from ansible_collections.onprem.lb.plugins.module_utils._plan.change.meanwhile import members_let_go
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from ansible_collections.onprem.lb.plugins.module_utils._shared.paths import GATE
from support.members import RECORD
from support.plans import clusters
from support.plans.pairs import pair, running
from support.plans.transitions import living
from support.rendering import keepalived

RUNNING_PASS = "0f3a9c1e"


def change(outside=False, holder="", **changes):
    """The plan of a run that changes a pair which runs already."""
    before = _pair.plan(pair())
    members = pair(**{"auth_pass": RUNNING_PASS, **changes})
    for member in members:
        name = member["name"]
        conf = keepalived({**before.members[name].router._asdict(), "auth_pass": RUNNING_PASS}, name)
        member["host"].update(
            instances=keepalived_conf.instances(conf), own_units=["haproxy.service", "keepalived.service"]
        )
    members[1]["outside_limit"] = outside
    return _pair.plan(holding(members, holder) if holder else members)


def change_of_lb1_alone(**changes):
    return change(True, **changes)


def limited(outside=True, **changes):
    """The faults of a run for lb1 alone."""
    return change(outside, **changes).faults


def test_nothing_that_changes_is_no_fault():
    assert limited() == []


@pytest.mark.parametrize(
    "changes, change",
    [
        ({"vrid": 77}, "192.0.2.10 would keep VRID 51 there instead of 77: both sides would hold the VIP"),
        ({"vrrp_version": 3}, "192.0.2.10 would keep VRRP version 2 there instead of 3: both sides would hold the VIP"),
        (
            {"advert_interval": 2},
            "192.0.2.10 would keep the advertisement interval 1 s there instead of 2 s: both sides would hold the VIP",
        ),
        ({"auth_pass": "an0ther1"}, "192.0.2.10 would keep another password there: both sides would hold the VIP"),
        (
            {"multicast": True},
            "192.0.2.10 would keep unicast there instead of multicast: both sides would hold the VIP",
        ),
        (
            {"vips": ["192.0.2.10", "192.0.2.11"]},
            "its VIPs would stay 192.0.2.10 instead of 192.0.2.10, 192.0.2.11: "
            "the members would not stand in for each other",
        ),
    ],
)
def test_what_both_must_change_together_is_refused_with_limit_alone(changes, change):
    assert limited(**changes) == [
        f"--limit leaves lb2 out, and {change}. Run it for all members, or accept that with -e pair_accept_split=true."
    ]
    assert limited(outside=False, **changes) == []
    plan = change_of_lb1_alone(**changes, accept_split="true")
    assert (plan.faults, plan.warnings[0]) == (
        [],
        f"Accepted with pair_accept_split: --limit leaves lb2 out, and {change}.",
    )


@pytest.mark.parametrize("value", ["perhaps", 2])
def test_what_is_no_truth_value_accepts_nothing(value):
    (fault,) = limited(accept_split=value, vrid=77)
    assert fault.startswith(f"pair_accept_split is {value!r}")


def test_a_member_that_others_do_not_send_to_yet_is_refused_with_limit_and_the_play_is_printed():
    """lb3 would hear nobody, and take the VIP."""
    members = living(3, joining=["lb3"])
    for one in members[:2]:
        one["outside_limit"] = True
    why, *play = _pair.plan(members).faults
    assert why == (
        "There is no safe transition from the running settings to this plan: run it without --limit, "
        "or accept that with -e pair_accept_split=true."
    )
    assert play[-1].endswith("192.0.2.10 is held by lb1 and lb3.")
    assert _pair.plan(living(3, joining=["lb3"])).joining == ["lb3"]


@pytest.mark.parametrize("changes", [{"preempt_delay": 5}, {"track_interval": 1}, {"priorities": [200, 199]}])
def test_what_the_others_need_not_know_is_changed_with_limit(changes):
    assert limited(**changes) == []


def test_a_member_that_runs_nothing_yet_cannot_be_left_behind():
    members = pair(vrid=77)
    members[1]["outside_limit"] = True
    assert _pair.plan(members).faults == []


@pytest.mark.parametrize(
    "changes, seconds",
    [
        ({}, 0),
        ({"priorities": [200, 199]}, 0),
        ({"vrid": 77}, 5),
        ({"advert_interval": 3}, 13),
        ({"auth_pass": "an0ther1"}, 5),
    ],
)
def test_the_verification_lasts_until_a_split_would_show_where_anything_on_the_link_changes(changes, seconds):
    assert [member.expected.settle for member in change(**changes).members.values()] == [seconds, seconds]


def test_a_member_that_leaves_makes_the_verification_last_as_well():
    members = pair()
    members[0]["host"]["instances"] = [running(peers=["192.0.2.2", "192.0.2.3"])]
    members[1]["host"]["instances"] = [running(peers=["192.0.2.1"])]
    assert [member.expected.settle for member in _pair.plan(members).members.values()] == [5, 0]


def holding(members, name):
    """Let a member hold the VIP."""
    (member,) = [member for member in members if member["name"] == name]
    member["host"]["addresses"].append({"interface": "eth0", "address": "192.0.2.10", "prefix": 32, "mac": "02::1"})
    return members


@pytest.mark.parametrize("holder", ["lb1", "lb2"])
@pytest.mark.parametrize(
    "changes", [{"vrid": 77}, {"vrrp_version": 3}, {"advert_interval": 2}, {"auth_pass": "an0ther1"}]
)
def test_only_the_holders_router_runs_while_a_setting_changes_that_all_must_share(changes, holder):
    assert change(holder=holder, **changes).sole_router == holder


MEANWHILE = (
    "During the transition, settings that all members share change, so for some 10 s only lb1's router runs. "
    "No other member can take over then."
)
TABLE = "192.0.2.10 during the transition to the new settings:"


@pytest.mark.parametrize(
    "changes, lines",
    [
        ({}, []),
        (
            {"auth_pass": "an0ther1"},
            [
                MEANWHILE,
                TABLE,
                "  password             another                  at most     0 ms   splits while members differ",
            ],
        ),
        (
            {"vrid": 77, "advert_interval": 2},
            [
                MEANWHILE,
                TABLE,
                "  VRID                 51 -> 77                 at most  7060 ms   splits while members differ",
                "  interval             1 s -> 2 s               at most     0 ms   splits while members differ",
            ],
        ),
        (
            {"vrid": 77, "vrrp_version": 3, "advert_interval": 0.1},
            [
                MEANWHILE,
                TABLE,
                "  VRID                 51 -> 77                 at most   460 ms   splits while members differ",
                "  VRRP version         2 -> 3                   at most     0 ms   splits while members differ",
            ],
        ),
        (
            {"vips": [{"address": "192.0.2.10", "first": "lb2"}], "preempt": False},
            [
                TABLE,
                "  priority             254 -> 253               at most    60 ms   moves the VIP, on lb1",
                "  preemption           yes -> no                at most     0 ms   harmless",
                "  priority             253 -> 254               at most    60 ms   moves the VIP, on lb2",
            ],
        ),
        (
            {"engine": "agent"},
            [
                TABLE,
                "  engine               native -> agent          at most    72 ms   moves the VIP",
            ],
        ),
    ],
)
def test_the_plan_says_what_happens_on_the_way(changes, lines):
    assert change(holder="lb1", **changes).warnings == lines


def test_the_sole_router_takes_what_others_hold_after_its_skew_time():
    vips = [{"address": "192.0.2.10", "vrid": 51}, {"address": "192.0.2.11", "vrid": 52}]
    members = living(count=3, before={"vips": vips}, vips=vips, auth_pass="an0ther1")
    members[1]["host"]["addresses"].append({"interface": "eth0", "address": "192.0.2.11", "prefix": 32, "mac": "02::2"})
    plan = _pair.plan(members)
    assert plan.sole_router == "lb1"
    assert {each["addresses"][0]: each["priority"] for each in plan.members["lb1"].router.instances} == {
        "192.0.2.10": 254,
        "192.0.2.11": 228,
    }
    # RFC 9568 6.1: (256 - 228) / 256 s = 109 ms, and what is no matter of the protocol.
    assert [line.split("at most")[1].split("  splits")[0].strip() for line in plan.warnings if "password" in line] == [
        "0 ms",
        "169 ms",
    ]


def test_to_the_agent_a_router_of_another_version_is_another_router():
    members = living(engine="agent", vrrp_version=3)
    assert _pair.plan(members).warnings[2].endswith("at most  4060 ms   splits while members differ")


def test_members_of_several_pairs_each_have_their_own_table():
    vips = [{"address": "192.0.2.10", "vrid": 51}, {"address": "192.0.2.11", "vrid": 52}]
    members = living(before={"vips": vips}, vips=vips, auth_pass="an0ther1")
    assert _pair.plan(members).warnings[1] == "192.0.2.10, 192.0.2.11 during the transition to the new settings:", (
        "once for both"
    )


@pytest.mark.parametrize("odd", [{"addresses": []}, {"addresses": ["vip.example"]}, {"advert_interval": 0.0}])
def test_an_odd_instance_that_was_written_by_hand_stops_no_run(odd):
    members = living(holder="lb2", preempt=False)  # what changes nothing is not played
    members[0]["host"]["instances"].append(running("by-hand", vrid=99, addresses=["192.0.2.77"]) | odd)
    assert _pair.plan(members).faults == []


def test_a_pair_that_is_split_already_is_mended():
    """Whatever was done to it: the run that unites it is not refused for what it finds."""
    members = living()
    members[1]["host"]["instances"][0]["auth_pass"] = "an0ther1"
    plan = _pair.plan(members)
    assert (plan.faults, plan.sole_router) == ([], "lb1")


OTHER_LIST = {"vips": ["192.0.2.20"], "vrid": 51}


def test_only_one_router_runs_while_the_addresses_of_a_virtual_router_change():
    """A keepalived before 2.3.3 that has the old ones discards the Advertisements with the new ones."""
    assert change(**OTHER_LIST).sole_router == "lb1"


def test_a_list_that_another_configuration_had_in_one_virtual_router_is_split_up_in_the_same_way():
    members = pair()
    for member in members:
        both = running(addresses=["192.0.2.10/32", "192.0.2.77/32"])
        member["host"].update(instances=[both], own_units=["haproxy.service", "keepalived.service"])
    assert _pair.plan(holding(members, "lb2")).sole_router == "lb2"


@pytest.mark.parametrize("units, sole", [((), ""), (("haproxy.service", "keepalived.service"), "lb1")])
def test_agents_accept_another_list_so_that_all_of_them_go_on_unless_a_member_has_keepalived(units, sole):
    members = pair(**OTHER_LIST, engine="agent")
    for member in members:
        member["host"].update(instances=[running()], own_units=["onprem-lb-proxy.service", "onprem-lb-vrrp.service"])
    members[1]["host"]["own_units"] += units
    assert _pair.plan(holding(members, "lb1")).sole_router == sole


@pytest.mark.parametrize(
    "version, sole", [("2.2.7", "lb1"), ("2.3.2", "lb1"), ("2.3.3", ""), ("2.4.0", ""), ("", "lb1")]
)
def test_keepalived_from_2_3_3_on_accepts_another_list_too(version, sole):
    assert _pair.plan(living(version=version, **OTHER_LIST)).sole_router == sole


@pytest.mark.parametrize("changes", [{}, {"priorities": [200, 199]}, {"vips": ["192.0.2.10", "192.0.2.11"]}])
def test_all_routers_go_on_while_nothing_changes_that_splits(changes):
    assert change(holder="lb1", **changes).sole_router == ""


def test_a_router_that_runs_already_alone_needs_no_care():
    members = pair(vrid=77)
    members[1]["host"]["instances"] = [running()]
    assert _pair.plan(members).sole_router == ""


def test_a_holder_that_also_changes_its_engine_gets_the_new_settings_for_the_old_engine_first():
    """Else the other member, with the new engine and the new settings, would not hear it."""
    plan = change(holder="lb1", auth_pass="an0ther1", engine="agent")
    assert (plan.sole_router, plan.members["lb1"].replaces, plan.members["lb2"].replaced_router) == (
        "lb1",
        "native",
        None,
    )
    (script,) = plan.members["lb1"].replaced_router.scripts
    assert script["command"] == "/usr/bin/killall -0 haproxy"
    assert change(holder="lb1", engine="agent").members["lb1"].replaced_router is None


@pytest.mark.parametrize(
    "outside, end", [(False, "It is started, and takes over what it prefers."), (True, "--limit leaves it so.")]
)
def test_a_run_announces_that_it_ends_a_switchover_or_a_maintenance(outside, end):
    members = pair()
    members[1]["outside_limit"] = outside
    members[1]["host"]["held_back"] = {**RECORD, "to": "lb1"}
    assert _pair.plan(members).warnings == [
        f"lb2: its router is stopped since 2026-01-31 12:00 UTC, when anna handed the VIPs over to lb1. {end}"
    ]


def test_of_one_that_announces_it_says_that_its_vips_are_held_back():
    host = {"held_back": {**RECORD, "during": "switchover"}, "existing_units": [GATE]}
    assert members_let_go([{"name": "lb2", "host": host}]) == [
        "lb2: it is held back since 2026-01-31 12:00 UTC by anna, as long as /run/onprem-lb-switchover.json is there. "
        "It announces its VIPs again."
    ]


MASTERS = ["master-0", "master-1", "master-2"]
API, INGRESS = "10.0.0.200", "10.0.0.201"


@pytest.mark.parametrize("holder", MASTERS)
def test_a_master_that_becomes_a_worker_gives_the_apis_router_up_before_the_others_no_longer_send_to_it(holder):
    nodes = clusters.living(MASTERS, {API: holder, INGRESS: "worker-0"}, masters=["master-0", "master-1"])
    plan = ipi.plan(nodes)
    assert (plan.faults, plan.leaving, plan.joining) == ([], ["master-2"], [])


@pytest.mark.parametrize("holder", ["master-0", "master-1"])
def test_a_worker_that_becomes_a_master_starts_the_apis_router_when_the_others_send_to_it(holder):
    nodes = clusters.living(["master-0", "master-1"], {API: holder, INGRESS: "worker-0"}, masters=MASTERS)
    plan = ipi.plan(nodes)
    assert (plan.faults, plan.leaving, plan.joining) == ([], [], ["master-2"])


def test_a_member_whose_router_a_killed_run_has_removed_starts_before_the_next_one_changes_its_engine():
    """Found by the kill test: nobody would have held the VIPs while the last router was replaced."""
    members = living(engine="agent", to_engine="native")
    members[1]["host"].update(instances=[], own_units=[], active_units=[])
    plan = _pair.plan(members)
    assert (plan.faults, plan.joining, plan.migration_order) == ([], [], ["lb1"])


@pytest.mark.parametrize("is_running, late", [(True, []), (False, ["lb3"])])
def test_a_retired_member_that_comes_back_starts_when_all_others_send_to_it(is_running, late):
    """Found by the kill test: it has its file, so it was taken for one that runs, and took the VIPs."""
    members = living(3)
    for one in members[:2]:
        for instance in one["host"]["instances"]:
            instance["peers"] = [peer for peer in instance["peers"] if peer != "192.0.2.3"]
    members[2]["host"]["active_units"] = members[2]["host"]["active_units"] if is_running else []
    plan = _pair.plan(members)
    assert plan.joining == late
    assert (plan.members["lb3"].proof is None) is not is_running, "it could take over only once it has joined"


def test_a_member_joins_late_if_another_one_has_not_loaded_the_file_that_names_it():
    """Found by the kill test: lb1's file was written, and not loaded, so lb3 heard nobody, and took the VIP."""
    members = living(3)
    members[2]["host"]["active_units"] = []
    assert _pair.plan(members).joining == []
    members[0]["host"]["stale"] = ["keepalived.service has not loaded its configuration since it changed."]
    plan = _pair.plan(members)
    assert (plan.faults, plan.joining) == ([], ["lb3"])


def test_a_member_that_limit_leaves_out_does_not_join():
    members = living(3)
    members[0]["host"]["stale"] = ["keepalived.service has not loaded its configuration since it changed."]
    members[2]["host"]["active_units"] = []
    members[2]["outside_limit"] = True
    plan = _pair.plan(members)
    assert (plan.faults, plan.joining) == ([], [])


def test_a_member_whose_router_was_stopped_starts_in_its_turn_if_all_others_send_to_it():
    members = living(3)
    members[2]["host"]["active_units"] = []
    plan = _pair.plan(members)
    assert (plan.faults, plan.joining) == ([], [])
