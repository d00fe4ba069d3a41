# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The forecast: simulates every single failure of a plan, before any host is touched.

A plan in which some failure leaves a VIP without a holder, with a dead service or with two holders is refused, with the
one change that fixes it. That change has been simulated as well.
"""

from __future__ import annotations

import copy
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

from ..._shared import events
from ..model.instances import GARP_REFRESH, read_instances
from ..model.links import of_members
from .cluster import SECOND, Cluster, cluster_of
from .fixes import fixes
from .plays import Progress, play_all
from .scenario import (
    CRASH,
    CUT,
    FLAP,
    MUTE,
    PORT,
    SERVICE,
    STOP,
    Failure,
    Outcome,
    Watched,
)

# What takes time outside the protocol: systemd's reaction, the kernel adding the address, one gratuitous ARP.
SWITCH_MS = 60.0

Plan = Dict[str, Any]


class Scenario(NamedTuple):
    """A failure, the events of a drill that inject it, and its description.

    :ivar back_later: by event, for how long after its return a member's balancer may have no server, in milliseconds
    """

    failure: Failure
    events: List[str]
    description: str
    back_later: Dict[str, int] = {}


HOST_FAILURES = (
    # A host that reboots stops keepalived before anything that it depends on.
    Scenario(Failure(STOP), [events.KEEPALIVED_STOPPED, events.HOST_REBOOTED], "keepalived is stopped on {}"),
    Scenario(Failure(CRASH), [events.KEEPALIVED_KILLED], "keepalived is killed on {}"),
    Scenario(Failure(CUT), [events.HOST_CUT], "{} is lost"),
    Scenario(Failure(PORT), [events.PORT_DOWN], "the switch port of {} is down"),
    Scenario(Failure(FLAP), [events.LINK_FLAPPING], "the link of {} flaps"),
    Scenario(Failure(MUTE), [events.VRRP_LOST], "the Advertisements of {} are lost"),
)
SLOW = events.SLOW_FOR_MS + events.SLOW_CONNECT_MS
# Failures that the VIP does not leave, and how long a drill lets them last.
LASTING = {events.SLOW_BACKEND: events.SLOW_FOR_MS, events.DISK_FULL: events.FULL_FOR_MS}
RELOADS = {events.HAPROXY_RELOADED: 0, events.BOTH_RELOADED: 0}
HAPROXY = {"fatal": [events.HAPROXY_KILLED, events.HAPROXY_STOPPED], "harmless": RELOADS}
# Its process is there, and answers nobody.
HANGING: Dict[str, Any] = {"fatal": [events.HAPROXY_HUNG], "harmless": {}, "hangs": True, "failure": "haproxy hangs"}


class Result(NamedTuple):
    """The outcome for one VIP of one scenario, from one initial state and at one time."""

    initial: int
    scenario: Scenario
    member: str
    vip: str
    outcome: Outcome


def unseen(_done: int, _steps: int) -> None:
    """Show no progress."""


def forecast(plan: Plan, progress: Progress = unseen) -> Dict[str, Any]:
    """Return ``{faults, outages}`` of a plan.

    :param plan: as `cluster_of` takes it; with ``watched`` unless all VIPs follow haproxy:
        ``{SERVICE: {instances, fatal, harmless, blind_trackers, hangs, serves, failure, back_later}}``: the events
        that move the VIP, those that do not and the milliseconds that they may cost nevertheless, the trackers that
        notice none of them, whether a script that asks the service waits in vain, whether something else serves
        meanwhile, what happens, in words, and as `Scenario` has it; by default the service dies
    :param progress: called before each step with the number of steps that are done, and that of all
    :returns: a sentence for each fault; and a line for each VIP and event at its first holder, at worst:
        ``{event, vip, member, before, after, tied, outage_ms, back, back_ms, back_later_ms, two_holders_ms}``; ``tied``
        are those that may win instead of ``after``, because their priority is the same; ``back`` is the holder after
        the failure, and ``back_later_ms`` the part of ``back_ms`` for which it may have no server.
        A line with ``lasts_ms`` is of a failure that lasts that long, and whose holder keeps the VIP, beside another
        one or with answers that are late, or serves until the VIP has moved
    """
    cluster, refresh = cluster_of(plan), _refresh_ms(plan)
    watched = plan.get("watched") or {"haproxy": {**HAPROXY, "instances": list(cluster.vips), **_blind_links(plan)}}
    scenarios = _scenarios(watched)
    results = list(_simulate_all(cluster, scenarios, progress))
    lines = []
    for vip in cluster.vips:
        own = _lines(cluster, vip, scenarios, [result for result in results if result.vip == vip], watched)
        lines += [*own, *_stranger_lines(own, refresh)]
    return {"faults": _faults(plan, cluster, scenarios, results, progress), "outages": lines}


def _scenarios(watched: Watched) -> List[Scenario]:
    later = {event: ms for spec in watched.values() for event, ms in spec.get("back_later", {}).items()}
    services = [
        Scenario(
            Failure(
                SERVICE,
                frozenset(spec["instances"]),
                frozenset(spec.get("blind_trackers", [])),
                spec.get("hangs", False),
                spec.get("serves", False),
            ),
            spec["fatal"],
            f"{spec.get('failure', f'{service} dies')} on {{}}",
        )
        for service, spec in watched.items()
    ]
    return [scenario._replace(back_later=later) for scenario in (*services, *HOST_FAILURES)]


def _blind_links(plan: Plan) -> Dict[str, List[str]]:
    """Return the interfaces that are tracked: they say nothing of haproxy."""
    instances = [instance for member in plan["members"].values() for instance in member["instances"]]
    return {"blind_trackers": [item["name"] for instance in instances for item in instance["track_interfaces"]]}


def _simulate_all(cluster: Cluster, scenarios: List[Scenario], progress: Progress) -> Iterator[Result]:
    for played in play_all(cluster, [scenario.failure for scenario in scenarios], progress):
        yield Result(played.initial, scenarios[played.failure], played.member, played.vip, played.outcome)


def _lines(
    cluster: Cluster, vip: str, scenarios: List[Scenario], results: List[Result], watched: Watched
) -> List[Dict[str, Any]]:
    """Return a line for each event that happens to the first holder of a VIP."""
    first = [result for result in results if not result.initial]
    holder = first[0].outcome.before[0] if first and first[0].outcome.before else None
    if holder is None:
        return []
    lines = []
    for scenario in scenarios:
        if _concerns(scenario, vip) and _is_proved(scenario, cluster):
            outcomes = [r.outcome for r in first if r.scenario is scenario and r.member == holder]
            # Without preemption another member may hold the VIP when it fails.
            shared = max(r.outcome.shared for r in results if r.scenario is scenario and r.member in r.outcome.before)
            for event in scenario.events:
                line = _line(event, cluster.addresses[vip], holder, outcomes, shared, scenario.back_later.get(event, 0))
                line = _lasting(line, cluster) if _shows_late(scenario.failure) else line
                lines.append({**line, "tied": _tied(cluster, vip, line)})
    for spec in watched.values():
        if vip in spec["instances"]:
            lines += [
                _harmless_line(event, cluster.addresses[vip], holder, ms) for event, ms in spec["harmless"].items()
            ]
    return lines


def _concerns(scenario: Scenario, vip: str) -> bool:
    return scenario.failure.kind != SERVICE or vip in scenario.failure.vips


def _is_proved(scenario: Scenario, cluster: Cluster) -> bool:
    """Whether measurements have confirmed the forecast: of a link that flaps faster than every second they have not."""
    return scenario.failure.kind != FLAP or all(at.router.interval >= SECOND for at in cluster.instances)


def _line(
    event: str, vip: str, holder: Optional[str], outcomes: List[Outcome], shared: int, back_later: int
) -> Dict[str, Any]:
    worst = max(outcomes, key=lambda outcome: outcome.outage)
    back = max(outcomes, key=lambda outcome: outcome.back_outage)
    after = worst.after[0] if len(worst.after) == 1 else None
    returned = back.back[0] if len(back.back) == 1 else None
    return {
        "event": event,
        "vip": vip,
        "member": holder,
        "before": holder,
        "after": after,
        "outage_ms": round(worst.outage / 1000 + SWITCH_MS),
        "back": returned,
        "back_ms": round(back.back_outage / 1000 + SWITCH_MS + back_later) if returned != after else 0,
        "back_later_ms": back_later if returned != after else 0,
        "two_holders_ms": _shared_ms(shared),
    }


def _tied(cluster: Cluster, vip: str, line: Dict[str, Any]) -> List[str]:
    """Return the members that may win instead of the one that a line names."""
    moves = line["after"] and line["after"] != line["before"]
    return [name for name in cluster.tied(vip, line["after"]) if name != line["before"]] if moves else []


def _shows_late(failure: Failure) -> bool:
    """Return whether what a failure does shows late: two hold the VIP, or one serves until it moves."""
    return failure.kind == MUTE or failure.serves


def _lasting(line: Dict[str, Any], cluster: Cluster) -> Dict[str, Any]:
    """Return the line of a failure that has to last until its effects have shown."""
    return {**line, "after": line["after"] or line["before"], "lasts_ms": round(cluster.settling_time / 1000)}


def _refresh_ms(plan: Plan) -> float:
    """Return how often the holders announce their addresses, in milliseconds; 0 where one never does."""
    every = [instance for member in plan["members"].values() for instance in member["instances"]]
    seconds = [(each.get("garp_refresh", GARP_REFRESH), each["advert_interval"]) for each in every]
    if not all(refresh for refresh, _interval in seconds):
        return 0
    return 1000 * max((refresh + interval for refresh, interval in seconds), default=0)


def _stranger_lines(own: List[Dict[str, Any]], refresh_ms: float) -> List[Dict[str, Any]]:
    """Return the line of a stranger that announces a VIP of its own accord: clients believe it until the holder does.

    :param own: the other lines of the VIP
    """
    if not own or not refresh_ms:
        return []
    line = _harmless_line(events.STRANGER_WITH_VIP, own[0]["vip"], own[0]["before"], round(refresh_ms + SWITCH_MS))
    shared = round(events.STRANGER_FOR_MS + SWITCH_MS)
    return [{**line, "two_holders_ms": shared, "lasts_ms": events.STRANGER_FOR_MS}]


def _shared_ms(shared: int) -> int:
    """Return for how long two holders are to be expected, in milliseconds.

    In a handover they overlap for no longer than an Advertisement travels, here for microseconds: that counts as none.
    """
    return round(shared / 1000 + SWITCH_MS) if shared >= 1000 else 0


def _harmless_line(event: str, vip: str, holder: str, outage_ms: int) -> Dict[str, Any]:
    line = {**dict.fromkeys(("member", "before", "after", "back"), holder), "tied": []}
    lasts = {"lasts_ms": LASTING[event]} if event in LASTING else {}
    return {"event": event, "vip": vip, **line, "outage_ms": outage_ms, "back_ms": 0, "two_holders_ms": 0, **lasts}


def _faults(
    plan: Plan, cluster: Cluster, scenarios: List[Scenario], results: List[Result], progress: Progress
) -> List[str]:
    """Return one sentence for each VIP and each kind of failure that goes wrong, in its first such case."""
    found: Dict[Any, str] = {}
    for result in sorted(results, key=lambda result: result.initial):
        if len(result.outcome.before) > 1:
            holders = " and ".join(result.outcome.before)
            sentence = f"{cluster.addresses[result.vip]}: {holders} both hold the VIP before anything fails"
            found.setdefault((result.vip, None), sentence)
            continue
        wrong = _wrong(result)
        if wrong and (result.vip, result.scenario.description) not in found:
            when = result.scenario.description.format(result.member)
            found[result.vip, result.scenario.description] = f"{cluster.addresses[result.vip]}: when {when}, {wrong}"
    if not found:
        return []
    fix = _fix(plan, cluster, scenarios, progress)
    return [f"{sentence}: {fix}." for sentence in found.values()]


def _wrong(result: Result) -> str:
    """Return what is wrong with an outcome, or nothing."""
    outcome = result.outcome
    for when, holders in (("", outcome.after), (" afterwards", outcome.back)):
        if not holders:
            return f"nobody holds the VIP{when}"
        if len(holders) > 1 and (when or result.scenario.failure.kind != MUTE):
            return f"{' and '.join(holders)} both hold the VIP{when}"
    if outcome.served:
        return ""
    others = {name: priority for name, priority in outcome.priorities.items() if name != result.member}
    if not others:
        return "nobody else can take the VIP"
    own, best = outcome.priorities[result.member], max(others, key=lambda name: others[name])
    if own < others[best]:
        return f"{result.member} keeps the VIP, because {best} does not preempt a holder that only lowers its priority"
    verb = "ties with" if own == others[best] else "stays above"
    return f"its {own} {verb} {best}'s {others[best]}, so the VIP would never move"


def _fix(plan: Plan, cluster: Cluster, scenarios: List[Scenario], progress: Progress) -> str:
    """Return the first change that fixes the plan, as the simulation confirms."""
    for fix in fixes(cluster):
        changed = copy.deepcopy(plan)
        for member in changed["members"].values():
            for instance in member["instances"]:
                fix.change(instance)
        fixed = cluster_of(changed)
        if not any(_wrong(result) for result in _simulate_all(fixed, scenarios, progress)):
            return fix.advice
    return "no single change fixes this: compare the members' settings"


def vrrp_forecast(given: Any) -> Dict[str, Any]:
    """Return `{faults, outages, table}` of a user's own plan, whose instances may omit what has a default.

    :param given: ``{members: {NAME: {instances: [...]}}, track: {scripts, files}}``
    """
    if not isinstance(given, dict) or not isinstance(given.get("members"), dict) or len(given["members"]) < 2:
        return _nothing(["members is to be a mapping of two or more names, each with its instances."])
    faults: List[str] = []
    members = {}
    for name, member in given["members"].items():
        instances, wrong = read_instances((member or {}).get("instances", []), f"members.{name}.instances")
        members[name] = {"instances": instances}
        faults += wrong
        faults += [
            f"members.{name}.instances ({instance['name']}).source is missing: give the member's own address."
            for instance in instances
            if not instance["source"]
        ]
    if faults:
        return _nothing(faults)
    links = of_members({}, {name: member["instances"] for name, member in members.items()})
    linked = {name: {**member, "links": links[name]} for name, member in members.items()}
    plan = {"members": linked, "track": given.get("track") or {}, "vips": given.get("vips") or _vips(members)}
    found = forecast(plan)
    return {**found, "table": table(plan, found["outages"])}


def _nothing(faults: List[str]) -> Dict[str, Any]:
    return {"faults": faults, "outages": [], "table": []}


def _vips(members: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Return the VIPs: the instances of one name are one VIP, with its members in the order of their priorities."""
    found: Dict[str, Dict[str, Any]] = {}
    for name, member in members.items():
        for instance in member["instances"]:
            address = instance["addresses"][0].partition("/")[0]
            vip = {"name": instance["name"], "address": address, "vrid": instance["vrid"], "order": []}
            found.setdefault(instance["name"], vip)["order"].append((-instance["priority"], name))
    return [{**vip, "order": [name for _priority, name in sorted(vip["order"])]} for vip in found.values()]


def table(plan: Plan, outages: List[Dict[str, Any]]) -> List[str]:
    """Return the forecast in lines: each VIP's holder in every failure, the longest outage, and the holder after it.

    With ``drilled`` a line also says what drills have measured, and with `lasting` a VIP what becomes of the
    connections that are open then.
    """
    lines, cluster = [], cluster_of(plan)
    for vip in plan["vips"]:
        own = [line for line in outages if line["vip"] == vip["address"]]
        if not own:
            continue  # it has no holder, as the faults say
        first = own[0]["before"]
        others = [name for name in vip["order"] if name != first]
        ties = "; of equal priority, so the first to advertise wins" if cluster.tied(vip["name"], first) else ""
        more = sum(each["name"] == vip["name"] for each in plan["vips"]) - 1
        shown = f"{vip['address']} and {more} more" if more else vip["address"]
        lines.append(f"{shown} (VRID {vip['vrid']}): held by {first}, then {', '.join(others)}{ties}")
        lines += map(_text, own)
        lines += [f"  lasting connections  {vip['lasting']}"] if vip.get("lasting") else []
    return lines


def _text(line: Dict[str, Any]) -> str:
    return f"{_forecast_text(line)}; {line['drilled']}" if "drilled" in line else _forecast_text(line)


def _forecast_text(line: Dict[str, Any]) -> str:
    moves = f"{line['before']} -> {line['after']}" if line["before"] != line["after"] else line["before"]
    text = f"  {line['event'].replace('_', ' '):<20} {moves:<24} at most {line['outage_ms']:>5} ms"
    length = "while it lasts" if "lasts_ms" in line else f"for {line['two_holders_ms']} ms"
    shared = f"; two holders {length}" if line["two_holders_ms"] else ""
    if line["before"] == line["after"]:
        late = "; answers are late, or missing, while it lasts" if line["event"] == events.SLOW_BACKEND else ""
        return f"{text}{shared}{late}"
    back = (
        f"back to {line['back']}, {line['back_ms']} ms" if line["back"] != line["after"] else f"stays on {line['back']}"
    )
    return f"{text}   then {back}{shared}"
