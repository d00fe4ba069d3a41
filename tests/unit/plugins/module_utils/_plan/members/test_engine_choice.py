# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Native where it can be had, the agent where it cannot, and never both."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import verification
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi.presets import PRESETS
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._plan.members.engine_choice import (
    Choice,
    choose,
    migration_order,
    will_have_hook,
)
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import HOOK
from support.plans.living import living
from support.plans.pairs import member, pair
from support.plans.variables import LAYOUTS, draft, members

FRESH = {"os_family": "Debian", "missing_packages": ["haproxy", "keepalived"], "unobtainable": "", "active_units": []}
NATIVES = ["haproxy.service", "keepalived.service"]
AGENTS = ["onprem-lb-proxy.service", "onprem-lb-vrrp.service"]
CLOSED = "none of its package sources can be reached (deb.debian.org)"


@pytest.mark.parametrize(
    "wanted, host, engine, reason",
    [
        ("auto", {}, "native", "haproxy, keepalived can be installed"),
        ("auto", {"missing_packages": []}, "native", "its packages are installed"),
        ("auto", {"assumed": True}, "native", "if its packages are installed or can be"),
        ("auto", {"unobtainable": CLOSED}, "agent", f"haproxy, keepalived cannot be installed: {CLOSED}"),
        ("auto", {"os_family": "arch"}, "agent", "this is arch, whose packages the roles do not know"),
        ("auto", {"missing_packages": [], "unobtainable": CLOSED}, "native", "its packages are installed"),
        # What runs stays: a source that is back is no reason to change, and neither are packages that came since.
        ("auto", {"active_units": AGENTS}, "agent", "it runs here already"),
        ("auto", {"missing_packages": [], "active_units": [*AGENTS, *NATIVES]}, "agent", "it runs here already"),
        ("agent", {"missing_packages": []}, "agent", "pair_engine names it"),
        ("native", {"unobtainable": CLOSED}, "native", "pair_engine names it"),
    ],
)
def test_the_choice_has_a_reason(wanted, host, engine, reason):
    choice = choose(wanted, {**FRESH, **host}, "pair")
    assert choice.engine == engine and reason in choice.reason


@pytest.mark.parametrize(
    "host, reason",
    [
        ({"active_units": NATIVES, "enabled_units": NATIVES}, "it runs here already"),
        ({"active_units": NATIVES[1:]}, "it runs here already"),
        ({"enabled_units": NATIVES}, "it is enabled here already"),
        ({}, "its units are here already"),
    ],
)
def test_a_native_member_stays_native_even_without_packages_or_a_source(host, reason):
    host = {**FRESH, "unobtainable": CLOSED, "own_units": NATIVES, **host}
    assert choose("auto", host, "pair") == Choice("native", reason)


def test_a_native_engine_that_this_collection_has_not_set_up_is_no_reason_to_stay():
    host = {**FRESH, "unobtainable": CLOSED, "active_units": NATIVES, "enabled_units": NATIVES}
    assert choose("auto", host, "pair").engine == "agent"


@pytest.mark.parametrize(
    "active, enabled, engine, replaces",
    [
        # To the agent: enabled, then haproxy and keepalived stop, then it starts, and then their files go.
        (NATIVES, [*NATIVES, *AGENTS], "native", "agent"),
        (NATIVES[:1], [NATIVES[0], *AGENTS], "native", "agent"),
        ([], AGENTS, "agent", "native"),
        (AGENTS, AGENTS, "agent", "native"),
        # To native: it stops before the others get their files.
        ([], [], "native", "agent"),
    ],
)
def test_an_interrupted_migration_ends_with_one_engine_the_one_that_runs_or_else_starts_at_boot(
    active, enabled, engine, replaces
):
    both = {"own_units": [*NATIVES, *AGENTS], "active_units": active, "enabled_units": enabled}
    for packages in ({"missing_packages": []}, {"unobtainable": CLOSED}):
        choice = choose("auto", {**FRESH, **packages, **both}, "pair")
        assert (choice.engine, choice.replaces) == (engine, replaces)


def faults_of(*engines, **host):
    """The faults of a pair whose members have these engines, and the same host."""
    members = [member(number, engine=engine) for number, engine in enumerate(engines, 1)]
    for each in members:
        each["host"].update(host)
    return _pair.plan(members).faults


def test_a_native_member_whose_packages_cannot_be_fetched_is_refused_and_not_moved():
    """A user who names an engine wants it tried."""
    host = {"own_units": NATIVES, "active_units": NATIVES, "missing_packages": ["keepalived"], "unobtainable": CLOSED}
    assert faults_of("auto", "native", **host) == [
        "lb1: the native engine stays (it runs here already), but it lacks keepalived, and none of its package sources "
        "can be reached (deb.debian.org): mend that, or name an engine in pair_engine."
    ]


def test_a_broken_source_is_nothing_to_a_member_that_lacks_no_package():
    assert faults_of("auto", "auto", own_units=NATIVES, active_units=NATIVES, missing_packages=[]) == []


def test_packages_that_cannot_be_removed_prevent_a_migration_to_the_agent_and_nothing_else():
    host = {"own_units": NATIVES, "active_units": NATIVES, "unremovable": {"haproxy": "unhold it.", "psmisc": "x."}}
    assert faults_of("auto", "agent", **host) == ["lb2: unhold it."]
    assert faults_of("agent", "agent", **{**host, "own_units": []}) == []


def test_a_host_that_was_not_asked_is_taken_for_an_ordinary_one():
    assert choose("auto", {"addresses": []}, "pair").engine == "native"


@pytest.mark.parametrize(
    "wanted, own, replaces",
    [
        ("agent", ["haproxy.service", "keepalived.service"], "native"),
        ("agent", ["haproxy.service"], "native"),  # a change that was cut off
        ("agent", AGENTS, ""),
        ("agent", [], ""),
        ("native", AGENTS, "agent"),
        ("native", ["haproxy.service", "keepalived.service"], ""),
    ],
)
def test_the_other_engine_is_replaced_where_this_collection_has_set_it_up(wanted, own, replaces):
    assert choose(wanted, {"own_units": own}, "pair").replaces == replaces


def test_who_carries_a_vip_changes_last():
    choices = {name: Choice("agent", "named", "native") for name in ("lb1", "lb2", "lb3")}
    assert migration_order(choices, {"lb1": 1, "lb2": 0, "lb3": 0}) == ["lb2", "lb3", "lb1"]
    choices["lb3"] = Choice("agent", "named")
    assert migration_order(choices, {"lb1": 0, "lb2": 2, "lb3": 0}) == ["lb1", "lb2"]


def mixed(**host):
    members = pair()
    members[1] = member(2, engine="agent")
    members[1]["host"].update(host)
    return members


def test_each_member_is_watched_and_verified_as_what_it_runs():
    plan = _pair.plan(mixed())
    assert plan.faults == []
    first, second = plan.members["lb1"], plan.members["lb2"]
    assert (first.engine, second.engine) == ("native", "agent")
    assert first.router.scripts[0]["command"] == "/usr/bin/killall -0 haproxy"
    assert second.router.scripts[0]["command"] == "/usr/bin/killall -0 onprem-lb-proxy"
    assert first.router.track_files[:1] == second.router.track_files != []
    assert first.expected.units == ["haproxy.service", "keepalived.service"]
    assert second.expected.units == AGENTS and "onprem-lb-proxy" in second.expected.programs
    assert plan.engines == ["lb1: native, its packages are installed", "lb2: agent, pair_engine names it"]


ASKED = {"track_scripts": [], "track_files": []}  # the agent asks its balancer itself, keepalived learns it from a file


def test_instances_and_forecast_are_the_same_whatever_runs_them():
    native, other = _pair.plan(pair()), _pair.plan(mixed())
    kept = [[line for line in plan.outages if line["event"] != "host_cut"] for plan in (native, other)]
    assert kept[0] == kept[1] and len(native.outages) - len(kept[0]) == 1  # that one depends on who yields
    for name in ("lb1", "lb2"):
        found = [plan.members[name].router.instances for plan in (native, other)]
        assert [[{**each, **ASKED} for each in some] for some in found][0] == [{**each, **ASKED} for each in found[1]]


def test_an_engine_that_there_is_not_is_refused():
    members = pair()
    members[1] = member(2, engine="nginx")
    (sentence,) = _pair.plan(members).faults
    assert sentence == "lb2: pair_engine is 'nginx': one of auto, native, agent is required."


def test_a_living_pair_changes_its_engine_member_by_member():
    native = {"own_units": ["haproxy.service", "keepalived.service"]}
    haproxy = {"listeners": [{"address": "0.0.0.0", "port": 443, "program": "haproxy", "pid": 9}]}
    members = [member(1, engine="agent"), member(2, engine="agent")]
    for each in members:
        each["host"].update(native, **haproxy)
    members[0]["host"]["addresses"].append({**members[0]["host"]["addresses"][0], "address": "192.0.2.10"})
    plan = _pair.plan(members)
    assert plan.faults == []
    assert plan.migration_order == ["lb2", "lb1"]
    assert plan.members["lb1"].replaced_programs == ["keepalived", "haproxy"]
    assert plan.engines[0] == "lb1: agent, pair_engine names it; in place of native, as number 2 of 2"


def test_where_nothing_changes_nobody_takes_a_turn():
    plan = _pair.plan(mixed())
    assert plan.migration_order == [] and plan.members["lb1"].replaced_programs == []


def test_an_unknown_distribution_is_no_problem_for_the_agent():
    problem = "this is arch: the roles know the families Debian and RedHat."
    host = {"os_family": "arch", "problems": [problem]}
    assert _pair.plan(mixed(**host)).faults == []
    members = mixed(**host)
    members[1]["settings"]["engine"] = "native"
    assert _pair.plan(members).faults == [f"lb2: {problem}"]


def test_its_own_balancer_is_in_nobodys_way_but_the_others_is():
    def listener(program):
        return {"listeners": [{"address": "0.0.0.0", "port": 443, "program": program, "pid": 9}]}

    assert _pair.plan(mixed(**listener("proxy-worker"))).faults == []
    assert "already taken by haproxy" in str(_pair.plan(mixed(**listener("haproxy"))).faults)


def test_the_verification_asks_for_the_programs_of_the_engine():
    plan = as_data(_pair.plan(mixed()).members["lb2"].expected)
    seen = {
        "addresses": [{"address": "192.0.2.10"}],
        "answering": {},
        "active_units": AGENTS,
        "listeners": [{"port": port, "program": "onprem-lb-proxy"} for port in (80, 443, 8443, 9444)],
        "stale": [],
        "in_fault": {},
        "down_file": "0",
        "reached": [f"192.0.2.10 {port}" for port in (80, 443, 8443)],
    }
    assert verification.faults(plan, seen) == []
    for listener in seen["listeners"]:
        listener["program"] = "haproxy"
    assert "onprem-lb-proxy does not listen on port 80" in str(verification.faults(plan, seen))


@pytest.mark.parametrize(
    "more, sentence",
    [
        ({"servers": ["app1.example.com"]}, ".servers: app1.example.com has the name app1.example.com"),
        ({"servers": [{"address": "192.0.2.31", "options": ["send-proxy"]}]}, ".servers: 192.0.2.31 has the options"),
        ({"tls": {"certificate": "/etc/ssl/web.pem"}}, ".tls is set, and the agent relays TLS as it comes"),
        ({"backend_lines": ["retries 5"]}, ".backend_lines has raw lines for HAProxy"),
    ],
)
def test_a_member_that_must_have_the_agent_refuses_what_only_haproxy_does(more, sentence):
    """Not in silence where nobody has named the agent: its packages cannot be installed."""
    service = {"name": "web", "port": 443, "servers": ["192.0.2.31"], **more}
    host = {"missing_packages": ["haproxy"], "unobtainable": "no source can be reached."}
    members = pair(services=[service], engine="auto")
    assert _pair.plan(members).faults == []
    members[1]["host"].update(host)
    (fault,) = _pair.plan(members).faults
    assert fault.startswith(f"lb2: pair_services (web){sentence}")


@pytest.mark.parametrize("before, after", [*itertools.product(PRESETS, PRESETS)])
def test_a_router_that_runs_alone_before_its_engine_changes_has_what_its_present_engine_can_run(before, after):
    planned = {"engine": "native", "preset": after, "auth_pass": "an0ther1"}
    plan = draft("ipi", living("ipi", {"engine": "agent", "preset": before}, planned).members)
    router = plan.members[plan.sole_router].replaced_router
    given = {key: getattr(router, key) for key in ("instances", "scripts", "track_files", "sync_groups")}
    assert router.instances and agent.translate(given)["faults"] == []


OLD, NEW = {HOOK: {"checksum": ""}}, {HOOK: {"checksum": "9f86d081"}}


def killed(layout, left, files):
    """Return for how long VIPs are gone when keepalived is killed on their first holder, and when that host is cut."""
    given = members(layout, {"engine": "native"})
    for each in given:
        each["host"]["files"] = files
        each.update(left)
    plan = planner.plan(LAYOUTS[layout], given)
    assert plan.faults == []
    of_event = {line["event"]: line["outage_ms"] for line in plan.outages}
    return of_event["keepalived_killed"], of_event["host_cut"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_forecast_has_a_resignation_only_where_the_hook_is_or_this_run_writes_it(layout):
    for left in ({"outside_limit": True}, {"stays": True}):  # with --limit, and in a drill
        will, cut = killed(layout, left, OLD)
        assert will == cut
        will, cut = killed(layout, left, NEW)
        assert will < cut
    will, cut = killed(layout, {}, OLD)
    assert will < cut


def test_a_member_that_does_not_answer_is_not_taken_to_have_the_hook():
    assert not will_have_hook({"outside_limit": True, "host": {"silent": True}})
