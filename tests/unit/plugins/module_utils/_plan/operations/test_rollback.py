# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""To which state a pair returns, whose router runs alone meanwhile, and what is refused."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import playbooks as model
from ansible_collections.onprem.lb.plugins.module_utils._plan.operations import rollback

UNKNOWN = {"macs": [], "answering": {}, "members": {}, "addresses": []}
FIRST, SECOND, THIRD = "20260129T120000Z", "20260130T120000Z", "20260131T120000Z"


def state(name, present=False, link=False, engine="native", router=True, backup="", to=""):
    """A state that a run has saved, or a rollback to another one."""
    return {
        "id": name,
        "purpose": rollback.PURPOSE.format(to) if to else "setting the pair up",
        "backup": backup,
        "engine": engine,
        "is_present": present,
        "files": [] if present else ["/etc/haproxy/haproxy.cfg"],
        "keeps_names": False,
        "changes_link": link,
        "unicast": {"now": {}, "then": {}},
        "could_serve": router,
        "reach": {"now": "vrrp", "then": "vrrp"},
        "announced": {"now": [], "vips": [], "sessions": [], "units": ["haproxy.service"]},
        "settle": 5,
    }


def member(name, *states, held=(), members=("lb1", "lb2"), engine="native", **seen):
    return {
        "name": name,
        "members": list(members),
        "vips": ["192.0.2.10"],
        "engine": "auto",
        "seen": {**UNKNOWN, "held": [{"address": vip, "seconds": 1} for vip in held], "instances": [], **seen},
        "states": {"states": list(states), "engine": engine},
    }


def pair(*states, **lb2):
    return [member("lb1", *states), member("lb2", *(lb2.pop("states", states)), held=["192.0.2.10"], **lb2)]


def test_a_damaged_state_is_named_and_another_one_is_a_users_choice():
    members = pair(state(FIRST), state(SECOND, present=True))
    members[0]["states"]["damaged"] = {THIRD: "The state is damaged."}
    assert rollback.steps(members, only_list=True).lines[-1] == "lb1: The state is damaged."
    for to in ("", THIRD):
        found = rollback.steps(members, to=to)
        assert found.faults == ["lb1: The state is damaged. Choose another one with -e rollback_to."]
    assert rollback.steps(members, to=FIRST).id == FIRST


def test_in_a_cluster_it_says_which_vips_nobody_holds_meanwhile():
    def carrying(vip, priority):
        return [{"name": f"vip-{vip}", "addresses": [vip], "priority": priority, "preempt": True, "state": ""}]

    own, ingress, link = "192.0.2.10", "192.0.2.20", state(FIRST, link=True)
    found = rollback.steps(
        [
            member("m1", link, held=[own], members=("m1", "w1"), instances=carrying(own, 254)),
            member("w1", link, members=("m1", "w1"), instances=carrying(ingress, 254)),
        ]
    )
    assert (found.first, found.lines[-2]) == ("m1", f"m1 does not carry {ingress}: nobody holds it during that time.")


def test_the_one_that_runs_alone_carries_most_vips_also_where_another_one_holds_more():
    api, ingress = "192.0.2.10", "192.0.2.11"

    def carrying(*vips):
        each = {"priority": 254, "preempt": False, "state": ""}
        return [{"name": f"vip{vip}", "addresses": [vip], **each} for vip in vips]

    link, names = state(FIRST, link=True), ("m1", "m2", "w1")
    found = rollback.steps(
        [
            member("m1", link, members=names, instances=carrying(api, ingress)),
            member("m2", link, held=[api], members=names, instances=carrying(api)),
            member("w1", link, held=[ingress], members=names, instances=carrying(ingress)),
        ]
    )
    assert found.first == "m1" and "nobody holds" not in str(found.lines)


def test_it_returns_to_the_newest_state_of_all_members():
    found = rollback.steps(pair(state(FIRST), state(SECOND)))
    assert (found.faults, found.id, found.members, found.first) == ([], SECOND, ["lb1", "lb2"], "")
    assert found.lines[:2] == [
        f"Back to {SECOND}, what ran before 2026-01-30 12:00:00 UTC (setting the pair up).",
        "lb1: /etc/haproxy/haproxy.cfg",
    ]
    assert rollback.steps(pair(state(FIRST), state(SECOND)), FIRST).id == FIRST


def test_a_state_of_a_backup_is_called_so():
    found = rollback.steps(pair(state(SECOND, backup=FIRST)))
    assert found.lines[0] == f"Back to {SECOND}, the backup of 2026-01-29 12:00:00 UTC."
    assert found.what == "the backup of 2026-01-29 12:00:00 UTC"
    present = rollback.steps(pair(state(SECOND, present=True, backup=FIRST)), SECOND)
    assert present.lines == ["The members already run the backup of 2026-01-29 12:00:00 UTC: nothing to do."]


def test_settings_of_the_link_change_while_the_holder_runs_alone():
    found = rollback.steps(pair(state(FIRST, link=True)))
    assert (found.first, found.settle) == ("lb2", 5)
    assert any("only lb2's router runs" in line for line in found.lines)


def test_it_says_for_how_long_a_vip_may_have_no_holder():
    """A router whose settings of the link change may wait as any router does before it takes VIPs that nobody holds."""
    slow = {**state(FIRST, link=True), "settle": 9}
    found = rollback.steps(pair(slow, states=[state(FIRST)]))
    assert (
        "A VIP may have no holder for up to 9 s, if that router has to take it again with its new settings."
        in found.lines
    )
    assert not any("no holder" in line for line in rollback.steps(pair(state(FIRST))).lines)


def test_a_second_time_nothing_is_to_do_but_another_state_can_be_chosen():
    given = pair(state(FIRST), state(SECOND, present=True), state(THIRD, to=SECOND))
    found = rollback.steps(given)
    assert found.members == [] and found.lines[0].startswith(
        f"The members already run the state {SECOND}: nothing to do."
    )
    assert f"{FIRST}, {SECOND}, {THIRD}" in found.lines[0]
    assert rollback.steps(given, SECOND).members == []
    assert rollback.steps(given, THIRD).members == ["lb1", "lb2"]


@pytest.mark.parametrize("present", list(itertools.product([False, True], repeat=2)))
def test_it_returns_to_what_ran_before_the_last_run_whatever_ran_before_that(present):
    """A, B, A: the last run has brought back what ran two runs ago, and that is its outage."""
    earlier = [state(name, present=each) for name, each in zip([FIRST, SECOND], present)]
    assert rollback.steps(pair(*earlier, state(THIRD))).id == THIRD


def test_a_rollback_that_was_taken_back_is_no_run():
    """Nor is a backup, which a restore brings here before it returns to it."""
    given = pair(state(FIRST), state(SECOND, to=FIRST))
    assert rollback.steps(given).id == FIRST
    assert rollback.steps(pair(state(FIRST), state(SECOND, backup=FIRST))).id == FIRST


def test_a_rollback_to_a_state_that_is_gone_is_followed_by_the_last_run():
    assert rollback.steps(pair(state(SECOND), state(THIRD, to=FIRST))).id == SECOND


def test_without_a_state_there_is_nothing_to_do():
    assert rollback.steps(pair()).lines == ["There is no earlier state of lb1, lb2: nothing to do."]


def test_a_member_that_was_left_out_of_that_run_stays_as_it_is():
    found = rollback.steps(pair(state(FIRST), states=()))
    assert found.members == ["lb1"] and f"lb2 has no state {FIRST} and stays as it is." in found.lines


def test_whose_names_stay_behind_the_vips_is_said():
    found = rollback.steps(pair({**state(FIRST), "keeps_names": True}, states=[state(FIRST)]))
    assert [line for line in found.lines if "names" in line] == [f"lb1 {rollback.NAMES_STAY}"]


@pytest.mark.parametrize(
    "given, to, sentence",
    [
        (pair(state(FIRST)), SECOND, f"rollback_to is {SECOND}, which no member has: there are {FIRST}."),
        (pair(), SECOND, f"rollback_to is {SECOND}, which no member has: there is none."),
        (
            pair(state(FIRST, link=True), states=()),
            "",
            f"lb2 is not in the state {FIRST}, and its settings would then differ from the others': it would hold "
            "the VIPs as well. Take it out of the inventory, run onprem.lb.site, which stops its router, and then roll "
            f"back with -e rollback_to={FIRST}.",
        ),
        (
            pair(state(SECOND, link=True, backup=FIRST), states=()),
            SECOND,
            "lb2 is not in the backup of 2026-01-29 12:00:00 UTC, and its settings would then differ from "
            "the others': it would hold the VIPs as well. Take it out of the inventory, run onprem.lb.site, which "
            "stops its router, and then restore it.",
        ),
        (
            pair(state(FIRST), engine="agent"),
            "",
            f"lb2 ran native in the state {FIRST}, and runs agent now: change the engine in the inventory and run "
            "onprem.lb.site.",
        ),
        (
            pair(state(FIRST), engine=""),
            "",
            f"lb2 ran native in the state {FIRST}, and runs nothing of this collection now: run onprem.lb.site first.",
        ),
        (
            pair(state(FIRST))[:1],
            "",
            "lb2 is outside --limit, and a rollback needs all members: run it without --limit.",
        ),
        (
            pair(state(FIRST), unreachable=True, msg="no route"),
            "",
            "A rollback needs all members. lb2 cannot be reached: no route.",
        ),
        (
            [*pair(state(FIRST)), member("lb3", members=("lb3",))],
            "",
            "There are several pairs or clusters (lb1, lb2 and lb3): choose one of them with --limit.",
        ),
    ],
)
def test_what_cannot_be_done_is_refused(given, to, sentence):
    found = rollback.steps(given, to)
    assert found.faults == [sentence] and found.members == []


OWN = {"lb1": "192.0.2.1", "lb2": "192.0.2.2"}
GONE = "192.0.2.3"  # a member of before, or of now


def in_touch(name, now, then, own=None):
    """A state of a member that sends to some addresses now, and to others then.

    :param own: its own address then; that of now by default
    """

    def routers(source, peers):
        return {"51 IPv4": {"source": source, "peers": sorted(peers)}}

    return {**state(FIRST), "unicast": {"now": routers(OWN[name], now), "then": routers(own or OWN[name], then)}}


@pytest.mark.parametrize(
    "lb1, lb2, first",
    [
        (([OWN["lb2"]], [OWN["lb2"], GONE]), ([OWN["lb1"]], [OWN["lb1"], GONE]), ""),  # one that has left
        (([OWN["lb2"], GONE], [OWN["lb2"]]), ([OWN["lb1"], GONE], [OWN["lb1"]]), ""),  # one that has left since
        (([OWN["lb2"]], [OWN["lb2"]]), ([OWN["lb1"]], [OWN["lb1"]]), ""),
        (([OWN["lb2"]], [GONE]), ([OWN["lb1"]], [OWN["lb1"]]), "lb2"),  # does not send to lb2 then
        (([GONE], [OWN["lb2"]]), ([OWN["lb1"]], [OWN["lb1"]]), "lb2"),  # nor now
        (([OWN["lb2"]], [OWN["lb2"], GONE]), ([OWN["lb1"]], [OWN["lb1"]], GONE), "lb2"),  # lb2 has had that address
        (([OWN["lb2"], GONE], [OWN["lb2"], GONE]), ([OWN["lb1"]], [OWN["lb1"], "192.0.2.4"], GONE), ""),
    ],
)
def test_where_only_peers_differ_routers_stop_only_if_members_would_lose_touch(lb1, lb2, first):
    states = {"lb1": in_touch("lb1", *lb1), "lb2": in_touch("lb2", *lb2)}
    found = rollback.steps([member("lb1", states["lb1"]), member("lb2", states["lb2"], held=["192.0.2.10"])])
    assert (found.faults, found.members, found.first) == ([], ["lb1", "lb2"], first)
    assert bool(found.settle) is bool(first)


def test_a_member_without_the_state_has_to_leave_before_others_send_to_other_peers():
    one = in_touch("lb1", [OWN["lb2"]], [GONE])
    found = rollback.steps([member("lb1", one), member("lb2", held=["192.0.2.10"])])
    assert len(found.faults) == 1 and found.faults[0].startswith(f"lb2 is not in the state {FIRST}")


@pytest.mark.parametrize("backup", ["", SECOND])
@pytest.mark.parametrize("link", [False, True])
def test_a_state_in_which_no_router_ran_takes_no_vip_away(link, backup):
    """It was saved while the routers were stopped or failed, and one of them serves now."""
    carries = [{"name": "vip", "addresses": ["192.0.2.10"], "priority": 254, "preempt": True, "state": ""}]
    stopped = state(FIRST, link=link, router=False, backup=backup)
    found = rollback.steps(pair(stopped, instances=carries))
    assert found.members == [] and found.faults == [
        f"In the state {FIRST} no router ran that could hold 192.0.2.10, so nobody would: choose another one, or "
        "change the inventory and run onprem.lb.site."
    ]
    assert rollback.steps(pair(stopped, instances=carries, states=[state(FIRST, link=link)])).faults == []
    mine = {"instances": carries, "unable": ["haproxy.service does not run."], "held_back": {}}
    assert rollback.steps([member("lb1", **mine), pair(stopped, instances=carries)[1]]).faults[-1:] == found.faults


def test_one_that_serves_and_would_not_start_again_keeps_the_others_from_no_return():
    """A rollback does not start it again."""
    carries = [{"name": "vip", "addresses": ["192.0.2.10"], "priority": 254, "preempt": True, "state": ""}]
    serves = {"instances": carries, "unable": [], "would_not_start": ["haproxy.service would not start again: no."]}
    given = [member("lb1", held=["192.0.2.10"], **serves), member("lb2", state(FIRST, router=False), instances=carries)]
    assert (rollback.steps(given).faults, rollback.steps(given).members) == ([], ["lb2"])


def test_the_states_are_listed_with_their_dates():
    given = pair(state(FIRST), state(SECOND, present=True), states=(state(SECOND, present=True),))
    assert rollback.steps(given, only_list=True).lines == [
        f"{FIRST}: what ran before 2026-01-29 12:00:00 UTC (setting the pair up), native, on lb1",
        f"{SECOND}: what ran before 2026-01-30 12:00:00 UTC (setting the pair up), native, as now",
    ]
    assert rollback.steps(pair(), only_list=True).lines == [
        "lb1, lb2 have no saved state: a run that changes them saves one."
    ]


@pytest.mark.parametrize(
    "result, why",
    [
        ({"msg": "no room"}, "no room"),
        ({"msg": "", "module_stderr": "no ssh\n"}, "no ssh"),
        ({}, "Ansible gives no reason, and more with -vvv"),
    ],
)
def test_a_list_of_states_that_nobody_could_read_is_no_list(result, why):
    given = pair(state(FIRST))
    some = rollback.steps([given[0], {**given[1], "states": {"failed": True, **result}}], only_list=True)
    assert (some.faults, some.lines[0][:17], some.lines[-1]) == ([], f"{FIRST}:", f"lb2: {why}")
    none = rollback.steps([{**each, "states": {"failed": True, **result}} for each in given], only_list=True)
    assert none.faults == [f"lb1: {why}", f"lb2: {why}"]


@pytest.mark.parametrize(
    "given, sentence",
    [
        (
            {"to": "yesterday"},
            "rollback_to is 'yesterday': the ID of a state is required, such as 20260131T120000Z; -e "
            "rollback_list=true "
            "lists them.",
        ),
        ({"list": "perhaps"}, "rollback_list is 'perhaps': true or false is required."),
        ({"undo_after": -1}, "rollback_undo_after is -1: a number from 0 to 3600 seconds is required."),
    ],
)
def test_a_wrong_variable_is_named_as_the_user_wrote_it(given, sentence):
    assert model.faults(given, "rollback") == [sentence]
    if {*given} <= {*model.PLAYBOOKS["restore"]}:
        assert model.faults(given, "restore") == [sentence.replace("rollback_", "restore_", 1)]


def test_good_variables_are_no_faults():
    assert model.faults({"to": FIRST, "list": "true", "undo_after": "60", "break_lock": False}, "rollback") == []
