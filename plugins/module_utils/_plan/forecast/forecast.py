# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The forecast: every single failure of a plan played through the election, before any host is touched.

A plan in which some failure leaves a VIP with nobody, with a dead service or with two holders is refused, with the one
change that mends it; that change has been played as well.
"""

from __future__ import annotations

import copy
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import scenario
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast.scenario import (
    CRASH,
    CUT,
    SERVICE,
    STOP,
    Cast,
    Failure,
    Outcome,
)
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.instances import read_instances
from ansible_collections.onprem.lb.plugins.module_utils._shared import events

# What passes outside the protocol: systemd's reaction, the kernel adding the address, one gratuitous ARP.
SWITCH_MS = 60.0

Plan = Dict[str, Any]


class Act(NamedTuple):
    """A failure, the events of a drill that play it, and how to say it."""

    failure: Failure
    events: List[str]
    words: str


WHOLE = (
    Act(Failure(STOP), [events.KEEPALIVED_STOPPED], "keepalived is stopped on {}"),
    Act(Failure(CRASH), [events.KEEPALIVED_KILLED], "keepalived is killed on {}"),
    Act(Failure(CUT), [events.HOST_CUT], "{} is lost"),
)
HAPROXY = {"fatal": [events.HAPROXY_KILLED, events.HAPROXY_STOPPED], "harmless": {events.HAPROXY_RELOADED: 0}}


class Scene(NamedTuple):
    """One VIP in one act, at one moment."""

    opening: int
    act: Act
    member: str
    vip: str
    outcome: Outcome


def forecast(plan: Plan) -> Dict[str, Any]:
    """Return ``{faults, outages}`` of a plan.

    :param plan: as `scenario.cast` takes it; with ``watched`` if not all VIPs live and die with haproxy:
        ``{SERVICE: {instances, fatal, harmless, blind_trackers}}``: the events that move the VIP, those that do not with the
        milliseconds that they may cost all the same, and the trackers that notice none of them
    :returns: a sentence for each fault; and a line for each VIP and event at its first holder, at worst:
        ``{event, vip, member, before, after, outage_ms, back, back_ms, two_holders_ms}``; ``back`` is the holder after
        the failure
    """
    who = scenario.cast(plan)
    watched = plan.get("watched") or {"haproxy": {"instances": list(who.vips), **HAPROXY}}
    acts = _acts(watched)
    scenes = list(_scenes(who, acts))
    lines = []
    for vip in who.vips:
        lines += _lines(who, vip, acts, [scene for scene in scenes if scene.vip == vip], watched)
    return {"faults": _faults(plan, who, acts, scenes), "outages": lines}


def _acts(watched: scenario.Watched) -> List[Act]:
    services = [
        Act(
            Failure(SERVICE, frozenset(its["instances"]), frozenset(its.get("blind_trackers", []))),
            its["fatal"],
            f"{service} dies on {{}}",
        )
        for service, its in watched.items()
    ]
    return [*services, *WHOLE]


def _scenes(who: Cast, acts: List[Act]) -> Iterator[Scene]:
    for number, opening in enumerate(scenario.openings(who)):
        for act in acts:
            for member in who.members:
                for at in scenario.moments(who, opening, member, act.failure):
                    for vip, outcome in scenario.play(who, opening, member, act.failure, at).items():
                        yield Scene(number, act, member, vip, outcome)


def _lines(
    who: Cast, vip: str, acts: List[Act], scenes: List[Scene], watched: scenario.Watched
) -> List[Dict[str, Any]]:
    """Return what happens to one VIP when its first holder fails."""
    first = [scene for scene in scenes if not scene.opening]
    holder = first[0].outcome.before[0] if first and first[0].outcome.before else None
    if holder is None:
        return []
    lines = []
    for act in acts:
        if _concerns(act, vip):
            played = [s.outcome for s in first if s.act is act and s.member == holder]
            # Where nobody preempts another member may hold the VIP when it fails.
            shared = max(s.outcome.shared for s in scenes if s.act is act and s.member in s.outcome.before)
            lines += [_line(event, who.addresses[vip], holder, played, shared) for event in act.events]
    for its in watched.values():
        if vip in its["instances"]:
            lines += [_still(event, who.addresses[vip], holder, ms) for event, ms in its["harmless"].items()]
    return lines


def _concerns(act: Act, vip: str) -> bool:
    return act.failure.kind != SERVICE or vip in act.failure.vips


def _line(event: str, vip: str, holder: Optional[str], played: List[Outcome], shared: int) -> Dict[str, Any]:
    worst = max(played, key=lambda outcome: outcome.outage)
    back = max(played, key=lambda outcome: outcome.back_outage)
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
        "back_ms": round(back.back_outage / 1000 + SWITCH_MS) if returned != after else 0,
        "two_holders_ms": _shared_ms(shared),
    }


def _shared_ms(shared: int) -> int:
    """Return for how long two holders are to be expected: none where the VIP is handed over from one to the other.

    Then they overlap for no longer than the Advertisement is under way, here for microseconds.
    """
    return round(shared / 1000 + SWITCH_MS) if shared >= 1000 else 0


def _still(event: str, vip: str, holder: str, outage_ms: int) -> Dict[str, Any]:
    line = dict.fromkeys(("member", "before", "after", "back"), holder)
    return {"event": event, "vip": vip, **line, "outage_ms": outage_ms, "back_ms": 0, "two_holders_ms": 0}


def _faults(plan: Plan, who: Cast, acts: List[Act], scenes: List[Scene]) -> List[str]:
    """Return one sentence for each VIP and each kind of failure that goes wrong: the first time it does."""
    found: Dict[Any, str] = {}
    for scene in scenes:
        if len(scene.outcome.before) > 1:
            holders = " and ".join(scene.outcome.before)
            found[scene.vip, None] = f"{who.addresses[scene.vip]}: {holders} both hold the VIP before anything fails"
            continue
        wrong = _wrong(scene)
        if wrong and (scene.vip, scene.act.words) not in found:
            when = scene.act.words.format(scene.member)
            found[scene.vip, scene.act.words] = f"{who.addresses[scene.vip]}: when {when}, {wrong}"
    if not found:
        return []
    mend = _mend(plan, who, acts)
    return [f"{sentence}: {mend}." for sentence in found.values()]


def _wrong(scene: Scene) -> str:
    """Say what is wrong with an outcome, or nothing."""
    outcome = scene.outcome
    for when, holders in (("", outcome.after), (" afterwards", outcome.back)):
        if not holders:
            return f"nobody holds the VIP{when}"
        if len(holders) > 1:
            return f"{' and '.join(holders)} both hold the VIP{when}"
    if outcome.served:
        return ""
    others = {name: priority for name, priority in outcome.priorities.items() if name != scene.member}
    if not others:
        return "nobody else can take the VIP"
    own, best = outcome.priorities[scene.member], max(others, key=lambda name: others[name])
    if own < others[best]:
        return f"{scene.member} keeps the VIP, because {best} does not preempt a holder that only lowers its priority"
    verb = "ties with" if own == others[best] else "stays above"
    return f"its {own} {verb} {best}'s {others[best]}, so the VIP would never move"


class Mend(NamedTuple):
    """A change of every instance, and how to ask for it."""

    words: str
    change: Callable[[Dict[str, Any]], None]


def _mend(plan: Plan, who: Cast, acts: List[Act]) -> str:
    """Return the first change that mends the plan: played, not guessed."""
    for mend in _mends(plan, who):
        changed = copy.deepcopy(plan)
        for member in changed["members"].values():
            for instance in member["instances"]:
                mend.change(instance)
        cast = scenario.cast(changed)
        if not any(_wrong(scene) for scene in _scenes(cast, acts)):
            return mend.words
    return "no single change mends this, compare the members' settings"


def _mends(plan: Plan, who: Cast) -> List[Mend]:
    priorities = sorted({seat.router.priority for seat in who.seats}, reverse=True)
    apart = max((high - low for high, low in zip(priorities, priorities[1:])), default=0)
    sources: Dict[str, List[str]] = {seat.name: [] for seat in who.seats}
    for seat in who.seats:
        sources[seat.name].append(seat.router.source)
    return [
        Mend(
            f"make the weight larger than {apart}, the distance of the priorities, or 0 (FAULT)",
            lambda instance: _weigh(instance, apart + 1),
        ),
        Mend("set the weight to 0 (FAULT)", lambda instance: _weigh(instance, 0)),
        Mend("let the members preempt", lambda instance: instance.update(preempt=True)),
        Mend(
            "track the service on every member, without a weight (FAULT)",
            lambda instance: instance.update(track_files=[{"name": "service", "weight": 0}]),
        ),
        Mend(
            "name all the other members as peers of each",
            lambda instance: instance.update(
                peers=[source for source in sources[instance["name"]] if source != instance["source"]]
            ),
        ),
    ]


def _weigh(instance: Dict[str, Any], weight: int) -> None:
    for kind in ("track_scripts", "track_files"):
        for item in instance[kind]:
            item["weight"] = -weight if item["weight"] < 0 else weight


def foresee(given: Any) -> Dict[str, Any]:
    """Return `{faults, outages, table}` of what a user wrote down as a plan: instances may leave their defaults out.

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
    plan = {"members": members, "track": given.get("track") or {}, "vips": given.get("vips") or _vips(members)}
    foreseen = forecast(plan)
    return {**foreseen, "table": table(plan, foreseen["outages"])}


def _nothing(faults: List[str]) -> Dict[str, Any]:
    return {"faults": faults, "outages": [], "table": []}


def _vips(members: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Instances of one name are one VIP; its members in the order of their priorities."""
    found: Dict[str, Dict[str, Any]] = {}
    for name, member in members.items():
        for instance in member["instances"]:
            address = instance["addresses"][0].partition("/")[0]
            vip = {"name": instance["name"], "address": address, "vrid": instance["vrid"], "order": []}
            found.setdefault(instance["name"], vip)["order"].append((-instance["priority"], name))
    return [{**vip, "order": [name for _priority, name in sorted(vip["order"])]} for vip in found.values()]


def table(plan: Plan, outages: List[Dict[str, Any]]) -> List[str]:
    """Say in lines who holds each VIP in every failure, for how long it is gone at worst, and who has it afterwards."""
    lines = []
    for vip in plan["vips"]:
        told = [line for line in outages if line["vip"] == vip["address"]]
        if not told:
            continue  # it has no holder, which the faults say
        first = told[0]["before"]
        others = [name for name in vip["order"] if name != first]
        lines.append(f"{vip['address']} (VRID {vip['vrid']}): held by {first}, then {', '.join(others)}")
        lines += map(_told, told)
    return lines


def _told(line: Dict[str, Any]) -> str:
    moves = f"{line['before']} -> {line['after']}" if line["before"] != line["after"] else line["before"]
    told = f"  {line['event'].replace('_', ' '):<20} {moves:<24} at most {line['outage_ms']:>5} ms"
    if line["before"] == line["after"]:
        return told
    back = (
        f"back to {line['back']}, {line['back_ms']} ms" if line["back"] != line["after"] else f"stays on {line['back']}"
    )
    shared = f"; two holders for {line['two_holders_ms']} ms" if line["two_holders_ms"] else ""
    return f"{told}   then {back}{shared}"
