"""The forecast leaves out only plays and members that change nothing: held against plays with all of them."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import forecast, plays, scenario
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast.cluster import cluster_of
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import presets
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support import scope
from support.plans import clusters, full_play, pairs

EXAMPLES, MEMBERS = (300, 7) if scope.FULL else (3, 5)  # one more than the BEST, so that one takes no part
WEIGHTS = (0, 0, 0, 2, 40, -40, -200)


def instances(count, priorities, vips, turn=1, **values):
    """Return the instances of each member, VIP by VIP.

    :param turn: by how many members the priorities go round from VIP to VIP
    """
    sources = [f"192.0.2.{(at * 7) % count + 11}" for at in range(count)]  # not in the order of the members
    return [
        [
            {
                "name": f"vip-{vip}",
                "interface": "eth0",
                "vrid": 50 + vip,
                "addresses": [f"192.0.2.{200 + vip}"],
                "priority": priorities[(at + vip * turn) % count],
                "source": source,
                "peers": [other for other in sources if other != source],
                **values,
            }
            for vip in range(vips)
        ]
        for at, source in enumerate(sources)
    ]


@st.composite
def layouts(draw):
    """A plan of members that are alike, or of which one differs."""
    count = draw(st.integers(2, MEMBERS))
    spread = draw(st.sampled_from([(100, 100), (100, 102), (1, 20), (1, 254), (240, 254)]))
    priorities = draw(st.lists(st.integers(*spread), min_size=count, max_size=count))
    version = draw(st.sampled_from([2, 3]))
    weight = draw(st.sampled_from(WEIGHTS))
    members = instances(
        count,
        priorities,
        draw(st.integers(1, 3)),
        draw(st.integers(0, 1)),
        version=version,
        advert_interval=draw(st.sampled_from([1, 3] if version == 2 else [0.1, 1, 2.5])),
        preempt=draw(st.booleans()),
        preempt_delay=draw(st.sampled_from([0, 0, 0, 1, 5])),
        track_scripts=[{"name": "alive", "weight": weight}] * draw(st.integers(0, 1)),
        track_files=[{"name": "down", "weight": 0}] * draw(st.integers(0, 1)),
        multicast=draw(st.booleans()),
    )
    agents = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    odd = draw(st.sampled_from([{}, {}, {}, {"preempt": False}, {"priority": 255}, {"peers": []}, {"auth_pass": "x"}]))
    for instance in members[-1]:
        instance.update(odd)
    named = {
        f"lb{at}": {"instances": own, "engine": "agent" if agents[at] else "native"} for at, own in enumerate(members)
    }
    return completed(named, draw(st.sampled_from([0.5, 1.3, 2])), draw(st.integers(1, 3)))


def completed(members, interval, fall):
    plan = {"members": {}, "track": {"scripts": [{"name": "alive", "interval": interval, "fall": fall, "rise": 1}]}}
    for name, member in members.items():
        plan["members"][name] = {**member, "instances": forecast.read_instances(member["instances"], name)[0]}
    plan["vips"] = forecast._vips(plan["members"])
    names = [vip["name"] for vip in plan["vips"]]
    blind = {"instances": names[:1], **forecast.HAPROXY, "blind_trackers": ["alive"]}
    plan["watched"] = {"haproxy": blind, "router": {"instances": names[1:], "fatal": ["dies"], "harmless": {}}}
    return plan


def in_full(monkeypatch, plan, play_all=full_play.play_all):
    with monkeypatch.context() as patch:
        patch.setattr(forecast, "play_all", play_all)
        return forecast.forecast(plan)


def natives(members):
    return completed({f"lb{at}": {"instances": own, "engine": "native"} for at, own in enumerate(members)}, 0.5, 1)


def one_agent():
    """Six equals, any of which keeps the VIP: one of them with the agent, which ends in another way."""
    members = instances(6, [100] * 6, 1, preempt=False)
    plan = natives(members)
    plan["members"]["lb1"]["engine"] = "agent"
    return plan


def alike():
    """Three VIPs with the same routers, of which haproxy moves the first, and another program the others."""
    return natives(instances(3, [110, 105, 100], 3, turn=0))


@settings(max_examples=EXAMPLES)
@given(plan=layouts())
@example(plan=alike())
@example(plan=one_agent())
def test_a_reduced_forecast_is_that_of_all_plays_and_none_that_is_left_out_has_another_outcome(plan):
    """What `forecast` does not show is compared too: every outcome at a VIP's own moments, to the microsecond."""
    cluster = cluster_of(plan)
    failures = [case.failure for case in forecast._scenarios(plan["watched"])]
    full = list(full_play.plays(cluster, failures))
    reduced = plays.play_all(cluster, failures, forecast.unseen)
    assert set(map(shape, reduced)) == {shape(played) for played, is_own in full if is_own}

    def again(*asked):
        """Play what is another plan: the forecast tries mends, too."""
        return [played for played, _is_own in full] if asked[:2] == (cluster, failures) else full_play.play_all(*asked)

    with pytest.MonkeyPatch.context() as monkeypatch:
        found, expected = forecast.forecast(plan), in_full(monkeypatch, plan, again)
    assert found["outages"] == expected["outages"]
    assert sorted(found["faults"]) == sorted(expected["faults"])


def shape(played):
    """Return an outcome without the names of members."""
    outcome = played.outcome
    holders = (outcome.before, outcome.after, outcome.back)
    roles = [[name == played.member for name in names] for names in holders]
    times = (outcome.outage, outcome.back_outage, outcome.shared, outcome.served)
    return played.vip, played.failure, tuple(map(tuple, roles)), times, holders[0] == holders[1] == holders[2]


def simulations(monkeypatch, vips, turn):
    """Return how many failures are simulated for three members."""
    done = []
    plan = natives(instances(3, [110, 105, 100], vips, turn))
    failures = [case.failure for case in forecast._scenarios(plan["watched"])]
    with monkeypatch.context() as patch:
        patch.setattr(plays, "simulate", lambda *given: done.append(given) or scenario.simulate(*given))
        list(plays.play_all(cluster_of(plan), failures, forecast.unseen))
    return len(done)


def test_vips_that_are_alike_are_played_once(monkeypatch):
    """`completed` has the first VIP follow one program and all others another one."""
    assert simulations(monkeypatch, 30, turn=0) == simulations(monkeypatch, 2, turn=0)


def test_a_vip_is_not_played_at_the_moments_of_others(monkeypatch):
    assert simulations(monkeypatch, 2, turn=1) == 2 * simulations(monkeypatch, 1, turn=0)


LAYOUTS = {
    "pair": (_pair.LAYOUT, pairs.pair()),
    "three members, two VIPs": (
        _pair.LAYOUT,
        [pairs.member(at, vips=["192.0.2.10", "192.0.2.11"]) for at in (1, 2, 3)],
    ),
    "no preemption": (_pair.LAYOUT, [pairs.member(at, preempt=False) for at in range(1, 8)]),
    **{preset: (ipi.LAYOUT, clusters.cluster(preset=preset)) for preset in presets.PRESETS},
}
DUAL = {"api_vips": ["10.0.0.200", "2001:db8::200"], "ingress_vips": ["10.0.0.201", "2001:db8::201"]}
if scope.FULL:  # to the forecast a VIP of IPv6 is one more
    LAYOUTS["dual stack"] = (ipi.LAYOUT, clusters.cluster(**DUAL))


@pytest.mark.parametrize("layout, members", LAYOUTS.values(), ids=LAYOUTS)
def test_a_layouts_forecast_is_that_of_all_plays(monkeypatch, layout, members):
    plan = planner.forecast_input(planner.draft(layout, members))
    assert plan["vips"]
    assert forecast.forecast(plan) == in_full(monkeypatch, plan)
