# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""New before old: whatever asks a balancer finds it before and after each step, until nothing asks there any more."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi.presets import PRESETS
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent, haproxy
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data, member_of
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair
from ansible_collections.onprem.lb.plugins.module_utils._plan.pods import configurations
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import UNITS
from ansible_collections.onprem.lb.plugins.plugin_utils import templates
from support.plans import askers
from support.plans.asking import asked
from support.plans.clusters import ADDRESSES, SETTINGS, cluster
from support.plans.pairs import pair as members_of_pair

ENGINES = ("native", "agent")
PORTS = {"lb_port": 9545, "ready_port": 9544, "monitor_port": 9554, "machine_config_port": 9546, "stats_port": 9999}
OWN = {"lb_port": 9645, "ready_port": 9644, "monitor_port": 9654}
BOOTSTRAP = {"bootstrap": "bootstrap-0"}
# What runs, and what is wanted.
CHANGES = [
    *(({"preset": old}, {"preset": new}) for old, new in itertools.permutations(PRESETS, 2)),
    *(({"preset": preset}, {"preset": preset, name: port}) for preset in PRESETS for name, port in PORTS.items()),
    *(({"preset": old, **OWN}, {"preset": new, **PORTS}) for old, new in itertools.product(PRESETS, repeat=2)),
    ({}, {"router_port": 1937}),
    ({}, {"api_port": 6444}),
    ({}, {"api_port": 6444, "lb_port": 9545}),
    (BOOTSTRAP, {**BOOTSTRAP, "machine_config_port": 9546}),
    (BOOTSTRAP, {}),
]
PAIRS = [
    ({}, {"answer_port": 9555}),
    ({}, {"answer_port": 0}),
    ({"answer_port": 0}, {}),
    ({}, {"track_weight": -60}),
    ({}, {"answer_port": 9555, "auth_pass": "an0ther1", "vrrp_version": 3}),
]
# The path of a haproxy's runtime socket is none.
ASKED_BY = {
    "default": [("chk_api", 9454, "/haproxy_monitor"), ("chk_haproxy", 9444, "/haproxy_ready")],
    "upstream": [("chk_ocp_lb", 9444, "/haproxy_ready"), ("chk_ocp_both", 9444, "/haproxy_ready")],
    "ocp45": [("chk_ocp", 50936, "/readyz")],
}


def nodes(**settings):
    """The nodes of a cluster, and the bootstrap host where it is one of them."""
    more = [settings["bootstrap"]] if "bootstrap" in settings else []
    return cluster(*ADDRESSES, *more, masters=[*SETTINGS["masters"], *more], **settings)


@pytest.mark.parametrize("delivery", ["unit", "pod"])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("preset", PRESETS)
def test_the_checks_of_every_preset_are_read_and_its_redirect(preset, engine, delivery):
    of_pods = {"delivery": delivery, "pods": {"agent_image": "registry.example/agent:1"}} if delivery == "pod" else {}
    plan = planner.draft(ipi.LAYOUT, cluster(preset=preset, engine=engine, **of_pods)).members["master-0"]
    found = asked(getattr(askers, f"{delivery}s")("master-0", plan))
    checks = {(each["name"], each["port"], each["path"]) for each in found["checks"]}
    assert {each for each in checks if each[1] not in (1936, 6443, 22623)} == {*ASKED_BY[preset]}
    assert found["redirects"] == [{"port": 6443, "to": 9445}]


@pytest.mark.parametrize("engine, path", [("native", ""), ("agent", "/")])
def test_what_asks_whether_a_balancer_hangs_is_read(engine, path):
    plan = planner.draft(pair.LAYOUT, members_of_pair(engine=engine, answer_port=9555)).members["lb1"]
    found = asked(askers.units("lb1", plan))
    assert ("haproxy_answers", 9555, path) in {(each["name"], each["port"], each["path"]) for each in found["checks"]}


def drafted(layout, members):
    plan = planner.draft(layout, members)
    assert plan.faults == []
    return plan.members


def changed(layout, made, before, after, found=None, serving=None):
    """Return the first member's plan, and that of a run that changes it.

    :param found: what is asked there; by default what the plan of before has written
    :param serving: what its balancer answers; by default that of the plan of before
    """
    old = drafted(layout, made(**before))
    members = made(**after)
    for member in members:
        one = old[member["name"]]
        member["host"]["asking"] = found or asked(askers.units(member["name"], one))
        member["host"]["listeners"] = askers.serving(serving or one.balancer, one.engine)
    name = members[0]["name"]
    return old[name], drafted(layout, members)[name]


def answered(balancer):
    """What a balancer answers: monitors by path, services by the name that the plan has for them, whether it hangs."""
    answering = [*([balancer.answer_port] if balancer.answer_port else []), *balancer.also_answers]
    return {
        *((each["port"], each["path"]) for each in balancer.monitors),
        *((each["port"], each["name"].replace(f"-{each['port']}", "")) for each in balancer.services),
        *((port, "hangs?") for port in answering),
    }


def still_wanted(old):
    """What of that is asked: there are monitors that no check of a preset uses."""
    found = asked(askers.units("master-0", old))
    ports = {*(each["port"] for each in found["checks"]), *(each["to"] for each in found["redirects"])}
    return {each for each in answered(old.balancer) if each[0] in ports}


def judge(old, new):
    during = new.meanwhile.balancer if new.meanwhile else new.balancer
    assert answered(new.balancer) <= answered(during)
    assert still_wanted(old) <= answered(during), "somebody asks there, and nobody answers"
    assert answered(during) <= answered(new.balancer) | answered(old.balancer), "nobody has asked for this"
    ports = [each["port"] for each in [*during.services, *during.monitors]]
    assert len(ports) == len({*ports})
    return during


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("before, after", CHANGES)
def test_a_cluster_that_changes_answers_who_asks_before_and_who_asks_afterwards(engine, before, after):
    old, new = changed(ipi.LAYOUT, nodes, {"engine": engine, **before}, {"engine": engine, **after})
    during = judge(old, new)
    settings = {"services": during.services, "monitors": during.monitors, "stats": {}, "tuning": {}}
    if engine == "native":
        assert haproxy.model(settings, [], "m")["faults"] == []
    else:
        assert agent.translate({key: settings[key] for key in ("services", "monitors")})["faults"] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("before, after", PAIRS)
def test_a_pair_that_changes_answers_who_asks_before_and_who_asks_afterwards(engine, before, after):
    old, new = changed(pair.LAYOUT, members_of_pair, {"engine": engine, **before}, {"engine": engine, **after})
    judge(old, new)


def test_haproxy_is_asked_at_both_ports_as_at_its_runtime_socket():
    _old, new = changed(pair.LAYOUT, members_of_pair, {}, {"answer_port": 9555})
    during = new.meanwhile.balancer
    settings = {"services": during.services, "stats": {}, "tuning": {"answer_port": during.answer_port}}
    model = haproxy.model(settings, [], "lb1", also_answers=during.also_answers)
    text = templates.render(
        "haproxy/haproxy.cfg.j2",
        {"model": {**model, "services": "[]"}, "family": configurations.FAMILY},
    )
    for port in (9444, 9555):
        assert f"    stats socket 127.0.0.1:{port} level user\n" in text


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("before, after", CHANGES)
def test_the_second_run_has_nothing_more_to_drop(engine, before, after):
    once, then = {"engine": engine, **before}, {"engine": engine, **after}
    _old, new = changed(ipi.LAYOUT, nodes, once, then)
    during = new.meanwhile.balancer if new.meanwhile else new.balancer
    _same, second = changed(ipi.LAYOUT, nodes, then, then, serving=during)
    assert second.meanwhile is None


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_that_was_cut_off_before_its_readers_changed_goes_on_with_both(engine):
    before, after = {"engine": engine}, {"engine": engine, **PORTS}
    old, new = changed(ipi.LAYOUT, nodes, before, after)
    _old, again = changed(ipi.LAYOUT, nodes, before, after, serving=new.meanwhile.balancer)
    assert again.meanwhile == new.meanwhile
    judge(old, again)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_port_that_another_program_has_is_not_taken_from_it(engine):
    settings = {"engine": engine, **PORTS}
    old = drafted(ipi.LAYOUT, nodes(engine=engine))
    members = nodes(**settings)
    for member in members:
        one = old[member["name"]]
        member["host"]["asking"] = asked(askers.units(member["name"], one))
        member["host"]["listeners"] = [{**each, "program": "nginx"} for each in askers.serving(one.balancer, engine)]
    assert drafted(ipi.LAYOUT, members)["master-0"].meanwhile is None


@pytest.mark.parametrize("engine, other", [ENGINES, ENGINES[::-1]])
def test_a_new_engine_answers_who_asked_the_old_one_until_the_redirect_has_changed(engine, other):
    def migrating(**settings):
        made = nodes(**settings)
        for one in made:
            one["host"].update(own_units=[*UNITS[engine]], active_units=[*UNITS[engine]])
        return made

    old, new = changed(ipi.LAYOUT, migrating, {"engine": engine}, {"engine": other, **PORTS})
    assert new.replaces == engine
    judge(old, new)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_proof_asks_for_the_ports_of_the_plan_and_for_those_that_are_still_asked(engine):
    old = drafted(ipi.LAYOUT, nodes(engine=engine))
    members = nodes(engine=engine, lb_port=9545, ready_port=9544)
    for member in members:
        one = old[member["name"]]
        member["host"].update(
            asking=asked(askers.units(member["name"], one)),
            listeners=askers.serving(one.balancer, engine),
            instances=[{**each, "auth_pass": ""} for each in one.router.instances],
            active_units=[*UNITS[engine]],
        )
    member = drafted(ipi.LAYOUT, members)["master-0"]
    ports = {each["port"] for each in member.proof.services}
    assert ports == {9445, 9545, 9444, 9544, 9454}
    assert {port for _address, port in member.proof.targets} == ports
    assert {each["port"] for each in member.expected.services} == {9545, 9544, 9454}


def test_a_check_of_the_user_is_none_of_the_balancers_monitors():
    mine = {"name": "mine", "address": "127.0.0.1", "port": 9445, "path": "/readyz", "tls": True, "answered": True}
    _old, new = changed(ipi.LAYOUT, nodes, {}, PORTS, found={"checks": [mine], "redirects": []})
    assert new.meanwhile is None


def test_the_firewall_stays_open_for_the_service_that_is_still_redirected_to_and_for_no_more_clients():
    networks = {"machine_networks": ["10.0.0.0/24"]}
    _old, new = changed(ipi.LAYOUT, nodes, {**BOOTSTRAP, **networks}, {**networks, "lb_port": 9545})
    opened = {*new.meanwhile.firewall.ports} - {*new.firewall.ports}
    assert opened == {9445}
    restricted = [each["port"] for each in new.meanwhile.firewall.restricted_ports]
    assert 9446 in restricted and 9446 not in new.meanwhile.firewall.ports


def test_the_service_that_is_still_redirected_to_has_the_servers_of_the_plan():
    _old, new = changed(ipi.LAYOUT, nodes, {}, {"lb_port": 9545})
    kept = {each["name"]: each for each in new.meanwhile.balancer.services}
    assert kept["masters-9445"]["servers"] == kept["masters"]["servers"]


@pytest.mark.parametrize(
    "layout, made, before, after, says",
    [
        (ipi.LAYOUT, nodes, {}, {"lb_port": 9444, "ready_port": 9445}, "port 9445 is haproxy_ready in the plan"),
        (ipi.LAYOUT, nodes, {}, {"ready_port": 9454, "monitor_port": 9444}, "port 9454 is haproxy_ready"),
        (ipi.LAYOUT, nodes, {}, {"stats_port": 9444, "ready_port": 9544}, "port 9444 is the statistics page"),
        (ipi.LAYOUT, nodes, {"ready_port": 50936}, {"preset": "ocp45"}, "port 50936 is haproxy_ready"),
        (
            pair.LAYOUT,
            members_of_pair,
            {},
            {"answer_port": 9555, "services": [{"name": "web", "port": 9444, "servers": ["192.0.2.31"]}]},
            "port 9444 is web in the plan, and in use as answer_port-9444",
        ),
    ],
)
def test_a_port_that_is_still_asked_for_something_else_is_refused_with_its_mend(layout, made, before, after, says):
    old = drafted(layout, made(**before))
    members = made(**after)
    for member in members:
        one = old[member["name"]]
        member["host"]["asking"] = asked(askers.units(member["name"], one))
        member["host"]["listeners"] = askers.serving(one.balancer, one.engine)
    faults = planner.draft(layout, members).faults
    assert any(says in fault for fault in faults), faults
    assert all("choose another port, or change one of the two in a run of its own." in fault for fault in faults)


def test_a_member_that_this_run_leaves_as_it_is_is_refused_for_no_port_and_keeps_none():
    before, after = {}, {"lb_port": 9444, "ready_port": 9445}
    old = drafted(ipi.LAYOUT, nodes(**before))
    members = nodes(**after)
    one = members[0]
    one["outside_limit"] = True
    one["host"]["asking"] = asked(askers.units(one["name"], old[one["name"]]))
    one["host"]["listeners"] = askers.serving(old[one["name"]].balancer, old[one["name"]].engine)
    assert drafted(ipi.LAYOUT, members)[one["name"]].meanwhile is None
    one["outside_limit"] = False
    assert len(planner.draft(ipi.LAYOUT, members).faults) > 0


def test_a_plan_as_data_has_what_is_to_be_had_meanwhile_in_its_place():
    _old, new = changed(ipi.LAYOUT, nodes, {}, PORTS)
    data = as_data(new)
    assert member_of({**data, **data["meanwhile"]}).balancer == new.meanwhile.balancer
    assert member_of(data).balancer == new.balancer
