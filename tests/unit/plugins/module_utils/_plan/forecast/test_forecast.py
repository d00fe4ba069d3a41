"""The forecast of a plan, and the plans that are refused, each with the change that fixes it."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import machine
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import forecast, scenario
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast.cluster import RESIGNS_AFTER, cluster_of
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import answers
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from support.plans.pairs import member, pair

POLLED = {"track_events": False, "track_interval": 1}

RESIGNS_MS = RESIGNS_AFTER / 1000 + forecast.SWITCH_MS


def drafted(members):
    """What the forecast is given for a pair."""
    plan = planner.draft(_pair.LAYOUT, members)
    assert plan.faults == []
    return planner.forecast_input(plan)


def forecast_of(*members, change=None, **settings):
    plan = drafted(list(members) or pair(**settings))
    if change:
        for name, planned in plan["members"].items():
            for instance in planned["instances"]:
                change(name, instance)
    return forecast.forecast(plan)


def lines(**settings):
    found = forecast_of(**settings)
    assert found["faults"] == []
    return {line["event"]: line for line in found["outages"]}


def worst(**settings):
    return {event: line["outage_ms"] for event, line in lines(**settings).items()}


def test_each_event_has_its_own_worst_outage():
    skew, down, switch, settled = 1000 * (256 - 253) / 256, 3000, forecast.SWITCH_MS, 50
    assert worst(track_events=False) == {
        "haproxy_killed": round(2000 + skew + switch),
        "haproxy_stopped": round(2000 + skew + switch),
        "haproxy_hung": round(2500 + settled + skew + switch),
        "conntrack_full": round(2500 + settled + skew + switch),
        "keepalived_stopped": round(skew + switch),
        "host_rebooted": round(skew + switch),
        "keepalived_killed": round(skew + switch),
        "host_cut": round(down + skew + switch),
        "port_down": round(down + skew + switch),
        "link_flapping": round(down + skew + switch),
        "vrrp_lost": switch,
        "haproxy_reloaded": 0,
        "both_reloaded": 0,
        "slow_backend": 6000 + 1000 + 680,
        "disk_full": 0,
        "stranger_with_vip": 60_000 + 1000 + switch,
    }


@pytest.mark.parametrize(
    "settings, shared",
    [
        ({"advert_interval": 0.25}, 1060),
        ({"advert_interval": 1}, 0),
        ({"advert_interval": 0.25, "engine": "agent"}, 0),
        ({"advert_interval": 0.25, "multicast": True}, 0),
        ({"advert_interval": 0.25, "preempt": False}, 0),
    ],
)
def test_a_keepalived_that_takes_over_soon_after_its_link_is_back_may_wait_a_second_for_its_peers_mac(settings, shared):
    assert lines(vrrp_version=3, **settings)["port_down"]["two_holders_ms"] == shared


def test_an_event_beats_a_poll():
    assert worst()["haproxy_killed"] == 72


def test_the_articles_weight_4_moves_the_vip_after_the_check_and_the_whole_silence():
    found = worst(priorities=[100, 98], track_weight=4, **POLLED)
    assert found["haproxy_killed"] == round(1000 + 3000 + 1000 * (256 - 102) / 256 + 60)


def test_a_check_that_must_fail_several_times_counts_several_times():
    alone = {**POLLED, "answer_port": 0}
    assert worst(track_fall=3, **alone)["haproxy_killed"] - worst(**alone)["haproxy_killed"] == 2000


@pytest.mark.parametrize("engine", ["native", "agent"])
def test_a_balancer_that_hangs_is_noticed_within_three_seconds_by_what_asks_it(engine):
    assert worst(engine=engine)["haproxy_hung"] == 2622 < 3000


@pytest.mark.parametrize("event", ["conntrack_full", "host_cut", "port_down", "link_flapping"])
@pytest.mark.parametrize(
    "check, back",
    [
        ({}, 680),  # a check that has just begun fails after 0.28 s, and two are made again, each after 0.2 s
        ({"interval": 1, "rise": 4}, 9000),  # with such a pace of its own the agent's check may take 5 s
    ],
)
def test_the_servers_of_a_member_that_could_not_reach_them_come_back_later_than_it(event, check, back):
    def line(check, **settings):
        servers = [{"name": "one", "address": "192.0.2.31"}]
        service = {"name": "web", "port": 80, "check": check, "servers": servers}
        return lines(services=[service], masters=[], infra_nodes=[], **settings)[event]

    assert line(check)["back_ms"] - line({"type": "none"})["back_ms"] == back
    stays = line(check, preempt=False)
    assert (stays["back_ms"] > 0) == (stays["back"] != stays["after"])


@pytest.mark.parametrize("engine", ["native", "agent"])
@pytest.mark.parametrize("delay, later", [(0, 680), (0.3, 380), (1, 0)])
def test_a_member_that_waits_before_it_preempts_has_its_servers_by_then_unless_it_was_active_all_the_time(
    engine, delay, later
):
    found = lines(engine=engine, preempt_delay=delay)
    for event in ("conntrack_full", "port_down", "link_flapping"):
        assert found[event]["back_later_ms"] == later, event
    assert found["host_cut"]["back_later_ms"] == 680


@pytest.mark.parametrize("unasked", [{"answer_port": 0}, {"track_weight": 4, "priorities": [100, 98]}])
def test_a_balancer_that_nobody_asks_is_not_forecast_to_be_noticed(unasked):
    assert not {"haproxy_hung", "conntrack_full"} & {*worst(**unasked)}


@pytest.mark.parametrize(
    "interval, timeout, fall, seconds",
    [
        (1, 0.5, 2, 2.5),  # the runs begin after 1 and 2 s
        (2, 2, 1, 4),
        (2, 2, 3, 12),  # after 2, 6 and 10 s, because the runs that are due after 4 and 8 s are skipped
        (2, 5, 2, 13),
    ],
)
def test_each_run_that_waits_in_vain_takes_its_timeout(interval, timeout, fall, seconds):
    plan = drafted(pair(engine="agent"))
    script = {"name": answers.NAME, "interval": interval, "timeout": timeout, "fall": fall, "rise": 1}
    plan["track"]["scripts"] = [*plan["track"]["scripts"], script]
    found = {tracker.name: tracker for tracker in cluster_of(plan).trackers[0]}
    assert found[answers.NAME].hang_detection == seconds * machine.SECOND


def test_what_notices_a_death_after_fall_polls_notices_life_after_rise():
    for tracker, _answers in cluster_of(drafted(pair(track_rise=3, track_fall=2, **POLLED))).trackers:
        assert (tracker.down_detection, tracker.up_detection) == (2 * machine.SECOND, 3 * machine.SECOND)


@pytest.mark.parametrize("peer", ["agent", "native"])
def test_a_holder_that_runs_the_agent_serves_on_until_the_next_one_does(peer):
    first, second = pair()
    first["settings"]["engine"], second["settings"]["engine"] = "agent", peer
    found = {line["event"]: line for line in forecast_of(first, second)["outages"]}
    stopped = found["keepalived_stopped"]
    assert (stopped["after"], stopped["outage_ms"], stopped["back"]) == ("lb2", forecast.SWITCH_MS, "lb1")
    assert found["keepalived_killed"]["outage_ms"] == worst()["host_cut"]


def test_the_worst_moment_is_found_also_where_the_poll_is_out_of_step_with_the_advertisements():
    odd = {"priorities": [100, 98], "track_weight": 4, "track_events": False, "track_interval": 1.3}
    assert worst(**odd)["haproxy_killed"] == round(1300 + 3000 + 1000 * (256 - 102) / 256 + 60)


def test_a_member_that_expects_unicast_does_not_hear_multicast():
    def differ(name, instance):
        instance["multicast"] = name == "lb1"

    assert "both hold the VIP before anything fails" in forecast_of(change=differ)["faults"][0]


def test_the_fast_setting_is_fast_in_everything():
    found = worst(vrrp_version=3, advert_interval=0.1)
    assert (found["host_cut"], found["keepalived_stopped"]) == (361, 61)


def two_holders(**settings):
    return {event: line["two_holders_ms"] for event, line in lines(**settings).items()}


def test_a_host_that_was_cut_off_meets_another_holder_until_the_next_advertisement_and_a_stopped_one_does_not():
    expected = {**dict.fromkeys(worst(), 0), "host_cut": 1000 + forecast.SWITCH_MS, "keepalived_killed": RESIGNS_MS}
    for settings in ({}, {"preempt": False}, {"priorities": [100, 98]}):
        assert {**two_holders(**settings), "vrrp_lost": 0, "stranger_with_vip": 0} == expected


@pytest.mark.parametrize("settings", [{}, {"preempt": False}, {"engine": "agent"}])
def test_a_holder_whose_advertisements_are_lost_keeps_the_vip_beside_the_one_that_takes_over(settings):
    """The others wait for two intervals at least; afterwards the next Advertisement may be one away."""
    line = lines(**settings)["vrrp_lost"]
    assert (line["before"], line["after"], line["back"]) == ("lb1", "lb1", "lb1")
    skew = 1000 * (256 - 253) / 256
    assert line["two_holders_ms"] == pytest.approx(line["lasts_ms"] - 2000 - skew + 1000 + forecast.SWITCH_MS, abs=1)


@pytest.mark.parametrize("priorities, holders", [((254, 253), ("lb1", "lb2")), ((253, 254), ("lb2",))])
def test_a_holder_that_is_not_heard_gives_way_to_a_better_one_that_it_hears(priorities, holders):
    plan = drafted(pair(preempt=False))
    for planned, priority in zip(plan["members"].values(), priorities):
        planned["instances"][0]["priority"] = priority
    settled = scenario.settle(cluster_of(plan), "lb1")
    (found,) = scenario.simulate(settled, "lb1", scenario.Failure(scenario.MUTE), settled.sim.now).values()
    assert (found.before, found.after, found.outage) == (("lb1",), holders, 0)


def test_a_killed_router_leaves_its_address_behind_for_longer_than_a_short_interval_waits():
    """After a death just before an Advertisement the next one takes over two intervals and the skew later."""
    restart, skew = scenario.RESTART / 1000, 100 * (256 - 253) / 256
    quick = {"vrrp_version": 3, "advert_interval": 0.1}
    assert two_holders(**quick)["host_cut"] == 160
    without_hook = killed(without_engine(drafted(pair(**quick))))
    assert without_hook["two_holders_ms"] == round(restart - (200 + skew) + forecast.SWITCH_MS)
    slower = two_holders(**quick, engine="agent")["keepalived_killed"] - without_hook["two_holders_ms"]
    assert slower == 100  # until it has heard the other


def without_engine(plan):
    """The plan of a user who runs keepalived without this collection's unit."""
    for planned in plan["members"].values():
        del planned["engine"]
    return plan


def killed(plan):
    return next(line for line in forecast.forecast(plan)["outages"] if line["event"] == "keepalived_killed")


def test_a_keepalived_with_the_hook_is_gone_for_no_longer_than_one_that_is_stopped():
    for settings in ({}, {"preempt": False}, {"priorities": [100, 98]}, {"vrrp_version": 3, "advert_interval": 0.1}):
        found = lines(**settings)
        gone, stopped = found["keepalived_killed"], found["keepalived_stopped"]
        assert {**gone, "event": "", "two_holders_ms": 0} == {**stopped, "event": ""}
    assert killed(without_engine(drafted(pair())))["outage_ms"] == worst()["host_cut"] == 3072


def test_of_members_with_different_engines_only_those_with_keepalived_have_the_hook():
    """The agent is back before the others miss it; should it not be, they wait."""
    first, second = pair(preempt=False)
    second["settings"]["engine"] = "agent"
    assert killed(drafted([first, second]))["outage_ms"] == 72
    first["settings"]["engine"], second["settings"]["engine"] = "agent", "native"
    assert killed(drafted([first, second]))["outage_ms"] == 3072


def test_a_failure_is_simulated_until_a_resignation_was_heard_even_if_all_else_is_faster():
    plan = drafted(pair(vrrp_version=3, advert_interval=0.01))
    for planned in plan["members"].values():
        planned["instances"][0].update(track_scripts=[], track_files=[])
    assert cluster_of(plan).settling_time > RESIGNS_AFTER


@pytest.mark.parametrize("fast", [{}, {"vrrp_version": 3, "advert_interval": 0.01}])
def test_until_the_resignation_two_may_hold_the_vip(fast):
    """The VRRP process may resign as its parent dies, or a short interval ends before."""
    found = killed(drafted(pair(**fast)))
    assert found["two_holders_ms"] == RESIGNS_MS
    assert (found["after"], found["back"]) == ("lb2", "lb1")


def test_a_killed_keepalived_without_a_successor_has_none_beside_it():
    plan = drafted(pair())
    del plan["members"]["lb2"]
    assert killed(plan)["two_holders_ms"] == 0


def test_an_agent_that_stops_serves_on_beside_its_successor():
    grace = machine.LINGER_AFTER_SUCCESSOR / 1000 + forecast.SWITCH_MS
    assert two_holders(engine="agent")["keepalived_stopped"] == round(grace)
    assert two_holders(engine="agent", vrrp_version=3, advert_interval=0.1)["keepalived_stopped"] == round(grace)


def test_two_holders_are_forecast_for_each_member_that_may_hold_the_vip():
    first, second = pair(preempt=False)
    second["settings"]["engine"] = "agent"
    found = {line["event"]: line["two_holders_ms"] for line in forecast_of(first, second)["outages"]}
    assert found["keepalived_stopped"] == 110


def test_slow_servers_move_no_vip_and_are_up_again_after_their_checks():
    def slow(**check):
        services = [{"name": "web", "port": 80, "servers": ["192.0.2.31"], "check": {"type": "tcp", **check}}]
        return lines(services=services)["slow_backend"]

    usual = slow()
    assert (usual["before"], usual["after"], usual["two_holders_ms"]) == ("lb1", "lb1", 0)
    assert slow(rise=3, interval=5)["outage_ms"] - usual["outage_ms"] == 20000 - 680


@pytest.mark.parametrize("event", ["port_down", "link_flapping"])
@pytest.mark.parametrize("settings", [{}, {"engine": "agent"}, {"vrrp_version": 3, "advert_interval": 2}])
def test_a_member_whose_link_goes_gives_its_vip_up_and_takes_it_back_when_the_link_stays(event, settings):
    """It is in FAULT, which nobody hears; while it flaps, it is never Backup for long enough to become Active."""
    line, cut = lines(**settings)[event], lines(**settings)["host_cut"]
    other = {"event": "", "two_holders_ms": 0, "back_ms": 740}
    assert {**line, **other} == {**cut, **other}
    assert (line["two_holders_ms"], line["back_ms"]) == (0, 740)


@pytest.mark.parametrize("event", ["port_down", "link_flapping"])
def test_without_preemption_a_link_that_returns_brings_no_vip_back(event):
    assert lines(preempt=False)[event]["back"] == "lb2"


def test_a_link_that_flaps_faster_than_every_second_is_not_forecast():
    assert {"port_down", "link_flapping"} - set(lines(vrrp_version=3, advert_interval=0.1)) == {"link_flapping"}


def test_a_router_that_does_not_track_its_interface_keeps_its_address_without_a_link():
    def blind(_name, instance):
        instance["dont_track_primary"] = True

    (down,) = (line for line in forecast_of(change=blind)["outages"] if line["event"] == "port_down")
    assert down == {**lines()["host_cut"], "event": "port_down"} and down["two_holders_ms"] == 1060


def test_the_first_member_comes_back_and_the_change_costs_one_switch():
    line = lines()["keepalived_stopped"]
    assert (line["before"], line["after"], line["back"], line["back_ms"]) == ("lb1", "lb2", "lb1", 60)


@pytest.mark.parametrize(
    "settings, back",
    [
        ({}, 300),
        ({"engine": "agent"}, 0),
        ({"multicast": True}, 0),
        ({"preempt": False}, 300),
    ],
)
def test_after_a_split_clients_may_go_on_to_a_keepalived_until_its_hook_has_told_the_winner(settings, back):
    assert lines(**settings)["host_cut"]["back_ms"] == 740 + back


def test_without_preemption_the_vip_stays_but_for_two_holders_of_which_the_better_wins():
    found = lines(preempt=False)
    assert {line["back"] for event, line in found.items() if "stopped" in event or event == "haproxy_killed"} == {"lb2"}
    assert found["host_cut"]["back"] == "lb1"


def test_of_equal_members_the_greater_address_wins_without_preemption():
    found = lines(priorities=[100, 100])
    assert (found["haproxy_killed"]["before"], found["haproxy_killed"]["after"]) == ("lb2", "lb1")
    assert found["haproxy_killed"]["back"] == "lb1"


def test_those_of_equal_priority_are_named_because_the_first_to_advertise_wins():
    plan = drafted([member(number, priorities=[101, 100, 100]) for number in (1, 2, 3)])
    found = forecast.forecast(plan)
    moved = {line["event"]: (line["after"], line["tied"]) for line in found["outages"]}
    assert moved["host_cut"] == moved["haproxy_killed"] == ("lb3", ["lb2"])
    assert moved["haproxy_reloaded"] == ("lb1", [])
    assert "equal priority" not in forecast.table(plan, found["outages"])[0]
    equal = drafted([member(number, priorities=[100, 100, 100]) for number in (1, 2, 3)])
    head = forecast.table(equal, forecast.forecast(equal)["outages"])[0]
    assert head.endswith("held by lb3, then lb1, lb2; of equal priority, so the first to advertise wins")


def test_each_vip_has_its_own_holder_and_successor():
    found = forecast_of(*(member(number, vips=["192.0.2.10", "192.0.2.11"]) for number in (1, 2, 3)))
    moves = {(line["vip"], line["before"], line["after"]) for line in found["outages"] if line["event"] == "host_cut"}
    assert moves == {("192.0.2.10", "lb1", "lb2"), ("192.0.2.11", "lb2", "lb3")}


REFUSED = {
    "the_articles_tie": (
        {"priorities": [100, 98], "track_weight": 2, **POLLED},
        "192.0.2.10: when haproxy dies on lb1, its 100 ties with lb2's 100, so the VIP would never move: "
        "make the weight larger than 2, the distance of the priorities, or 0 (FAULT).",
    ),
    "weight_too_small": (
        {"priorities": [110, 98], "track_weight": 2},
        "192.0.2.10: when haproxy dies on lb1, its 110 stays above lb2's 100, so the VIP would never move: "
        "make the weight larger than 12, the distance of the priorities, or 0 (FAULT).",
    ),
    "negative_weight_too_small": (
        {"priorities": [110, 98], "track_weight": -12},
        "192.0.2.10: when haproxy dies on lb1, its 98 ties with lb2's 98, so the VIP would never move: "
        "make the weight larger than 12, the distance of the priorities, or 0 (FAULT).",
    ),
    "weight_beyond_the_limit": (
        {"track_weight": 4},
        "192.0.2.10: when haproxy dies on lb1, its 254 ties with lb2's 254, so the VIP would never move: "
        "set the weight to 0 (FAULT).",
    ),
    "weight_without_preemption": (
        {"priorities": [100, 98], "track_weight": 4, "preempt": False},
        "192.0.2.10: when haproxy dies on lb1, lb1 keeps the VIP, because lb2 does not preempt a holder that only "
        "lowers its priority: set the weight to 0 (FAULT).",
    ),
}


@pytest.mark.parametrize("settings, sentence", REFUSED.values(), ids=REFUSED)
def test_a_plan_that_does_not_fail_over_is_refused_with_the_change_that_mends_it(settings, sentence):
    assert forecast_of(**settings)["faults"] == [sentence]


def test_the_mend_of_a_weight_is_true():
    assert forecast_of(priorities=[110, 98], track_weight=12)["faults"] != []
    assert forecast_of(priorities=[110, 98], track_weight=13)["faults"] == []


def test_members_that_do_not_send_to_each_other_both_hold_the_vip():
    def forget(name, instance):
        instance["peers"] = ["192.0.2.99"]

    sentences = forecast_of(change=forget)["faults"]
    assert sentences == [
        "192.0.2.10: lb1 and lb2 both hold the VIP before anything fails: name all the other members as peers of each."
    ]


def test_one_way_silence_is_found_too():
    def forget(name, instance):
        if name == "lb1":
            instance["peers"] = []

    assert any("both hold the VIP" in sentence for sentence in forecast_of(change=forget)["faults"])


def test_different_passwords_are_two_holders_that_no_weight_mends():
    def differ(name, instance):
        instance.update(auth_pass=name)

    sentences = forecast_of(change=differ)["faults"]
    assert len(sentences) == 1 and "both hold the VIP" in sentences[0]
    assert sentences[0].endswith("no single change fixes this: compare the members' settings.")


def test_a_service_without_a_tracker_is_refused():
    def blind(name, instance):
        instance.update(track_scripts=[], track_files=[])

    assert forecast_of(change=blind)["faults"] == [
        f"192.0.2.10: when haproxy {fails} on lb1, its 254 stays above lb2's 253, so the VIP would never move: "
        "track the service on every member, without a weight (FAULT)."
        for fails in ("dies", "hangs")
    ]


def test_the_table_says_all_of_it_in_lines():
    plan = _pair.plan(pair())
    of_services = [at for at, line in enumerate(plan.table) if ", check " in line]
    table = plan.table[: of_services[0]]
    assert table[0] == "192.0.2.10 (VRID 51): held by lb1, then lb2"
    assert table[1].split("  ") and "haproxy killed" in table[1] and "at most    72 ms" in table[1]
    assert table[1].endswith("then back to lb1, 60 ms")
    assert "stays on lb2" in _pair.plan(pair(preempt=False)).table[1]
    shared = {line.split("  ")[1]: line.partition("; ")[2] for line in table if ";" in line}
    assert shared == {
        "host cut": "two holders for 1060 ms",
        "keepalived killed": "two holders for 260 ms",
        "vrrp lost": "two holders while it lasts",
        "slow backend": "answers are late, or missing, while it lasts",
        "stranger with vip": "two holders while it lasts",
    }
    assert "host cut" in table[8] and table[8].endswith("then back to lb1, 1040 ms; two holders for 1060 ms")
    assert len(table) == 17
    assert table[-3].endswith("at most  7680 ms; answers are late, or missing, while it lasts")
    assert table[-1].endswith("lb1                      at most 61060 ms; two holders while it lasts")


@pytest.mark.parametrize("refresh, interval, longest", [(60, 1, 61_060), (5, 2, 7_060), (0, 1, None)])
def test_clients_believe_a_stranger_until_the_holder_announces_its_address_again(refresh, interval, longest):
    plan = drafted(pair())
    for planned in plan["members"].values():
        for instance in planned["instances"]:
            instance.update(garp_refresh=refresh, advert_interval=interval)
    found = [line for line in forecast.forecast(plan)["outages"] if line["event"] == "stranger_with_vip"]
    assert [(line["outage_ms"], line["after"], line["lasts_ms"]) for line in found] == (
        [(longest, "lb1", 6000)] if longest else []
    )


def test_a_plan_by_hand_needs_only_what_has_no_default():
    def router(address, peer, priority):
        vip = {"name": "web", "interface": "eth0", "vrid": 240, "addresses": ["192.0.2.10"], "track_files": ["down"]}
        return {"instances": [{**vip, "priority": priority, "source": address, "peers": [peer]}]}

    members = {"b": router("192.0.2.2", "192.0.2.1", 100), "a": router("192.0.2.1", "192.0.2.2", 150)}
    found = forecast.vrrp_forecast({"members": members})
    assert found["faults"] == []
    assert found["table"][0] == "192.0.2.10 (VRID 240): held by a, then b"


@pytest.mark.parametrize("given", [None, [], {}, {"members": {"a": {}}}])
def test_what_is_no_plan_is_refused(given):
    assert forecast.vrrp_forecast(given)["faults"] == [
        "members is to be a mapping of two or more names, each with its instances."
    ]


def test_a_member_without_an_address_of_its_own_is_refused():
    vip = {"name": "web", "interface": "eth0", "vrid": 0, "addresses": ["192.0.2.10"], "multicast": True}
    faults = forecast.vrrp_forecast({"members": {"a": {"instances": [vip]}, "b": {"instances": [vip]}}})["faults"]
    assert "members.a.instances[0] (web).vrid is 0: a VRID from 1 to 255 is required." in faults
    assert "members.b.instances (web).source is missing: give the member's own address." in faults


def test_each_vip_lives_and_dies_with_its_own_service():
    plan = drafted(pair(vips=["192.0.2.10", "192.0.2.11"]))
    plan["watched"] = {
        "haproxy": {"instances": ["vip-192.0.2.10"], **forecast.HAPROXY},
        "router": {"instances": ["vip-192.0.2.11"], "fatal": ["router_stopped"], "harmless": {"router_reloaded": 0}},
    }
    for planned in plan["members"].values():
        planned["instances"][1].update(track_scripts=[{"name": "haproxy_alive", "weight": 0}], track_files=[])
    found = forecast.forecast(plan)
    assert found["faults"] == []
    outages = {(line["vip"], line["event"]): line["outage_ms"] for line in found["outages"]}
    assert outages["192.0.2.10", "haproxy_killed"] == 72
    assert outages["192.0.2.11", "router_stopped"] == 2072
    assert outages["192.0.2.11", "router_reloaded"] == 0
    assert ("192.0.2.11", "haproxy_killed") not in outages and ("192.0.2.10", "router_stopped") not in outages
    assert outages["192.0.2.11", "host_cut"] == outages["192.0.2.10", "host_cut"] == 3072


def test_a_vip_whose_service_has_no_tracker_is_named_with_that_service():
    plan = drafted(pair())
    plan["watched"] = {"router": {"instances": ["vip-192.0.2.10"], "fatal": ["router_stopped"], "harmless": {}}}
    for planned in plan["members"].values():
        planned["instances"][0].update(track_scripts=[], track_files=[])
    assert "192.0.2.10: when router dies on lb1, " in forecast.forecast(plan)["faults"][0]
