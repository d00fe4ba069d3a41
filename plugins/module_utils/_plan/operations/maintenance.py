# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The maintenance of members, one after the other: which comes when, and whether it may take part again. Pure.

A member is drained: its router stops, is disabled, and so stays stopped after a reboot. Once the member is proved, its
router starts again. Until then another member must be able to hold each VIP. One that announces its VIPs by BGP leaves,
and announces them again, as `draining` has it.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from ..._shared.held_back import MAINTENANCE, PATHS
from . import draining, steps
from .firewalls import hearing
from .members import BGP, Layout, Member, layouts, member_of
from .status import vip_faults, words
from .steps import Steps

WHAT = "A maintenance"
TAKES_PART = ("Active", "Backup")  # the states of an instance whose router is ready


class Plan(NamedTuple):
    """The order of the members. With faults the rest is empty."""

    faults: List[str]
    lines: List[str] = []  # what it does, in words
    order: List[str] = []
    done: List[str] = []  # the members that a run which stopped had finished


def plan(given: List[Dict[str, Any]], wanted: List[str], work: str) -> Plan:
    """Return what a maintenance is to do.

    :param given: the hosts of the play, as `members` describes them
    :param wanted: the members that are asked for; [] for all
    :param work: what is done to each of them, in words
    """
    every = [layout for layout in hearing(given) if not wanted or set(wanted) & set(layout.names)]
    faults = [fault for layout in every for fault in _faults(layout, wanted, work)]
    if faults:
        return Plan(faults)
    plans = [_plan(layout, wanted, work) for layout in every]
    return Plan(
        [],
        lines=[line for each in plans for line in each.lines],
        order=[name for each in plans for name in each.order],
        done=[name for each in plans for name in each.done],
    )


def _faults(layout: Layout, wanted: List[str], work: str) -> List[str]:
    faults = _unfit(layout) or vip_faults(layout)
    if faults:
        return faults
    others = [member for member in layout.members if wanted and member.name not in wanted]
    left_out = [member for member in others if draining.is_away(member)]
    if left_out:
        away = [words(layout).member_fault(layout, member) for member in left_out]
        return [f"{fault} Do that first, or add it to maintenance_members." for fault in away]
    chosen, proved = _chosen(layout, wanted, work), _proved_first(layout)
    return [fault for member in chosen for fault in _last_one(layout, member, proved)]


def _unfit(layout: Layout) -> List[str]:
    return draining.unfit(layout, WHAT) if layout.reach == BGP else steps.unfit(layout, WHAT)


def _last_one(layout: Layout, member: Member, proved: Sequence[str]) -> List[str]:
    last_one = draining.last_one if layout.reach == BGP else _irreplaceable
    return last_one(layout, member, proved)


def _chosen(layout: Layout, wanted: List[str], work: str) -> List[Member]:
    """Return the members that are maintained, in their order."""
    done = _done(layout, work)
    asked = [member for member in layout.members if not wanted or member.name in wanted]
    return sorted((each for each in asked if each.name not in done), key=lambda each: _place(layout, each))


def _proved_first(layout: Layout) -> List[str]:
    """Return the members that are held back: they come first, and the others only once these are proved."""
    return [member.name for member in layout.members if draining.is_away(member)]


def _irreplaceable(layout: Layout, member: Member, proved: Sequence[str] = ()) -> List[str]:
    """Say which VIPs nobody could hold without this member.

    :param proved: the members that will have been proved before it is drained
    """
    others = [other for other in layout.members if other is not member]
    lacking = [vip for vip in layout.configured if not _takers(layout, member, vip, proved)]
    if not lacking:
        return []
    known = [reason for other in others for reason in ([other.fault] if other.fault else other.unloaded)]
    reasons = " ".join(known) or "the configurations of the others lack it."
    return [f"Without {member.name} nobody could hold {', '.join(lacking)}, so it stays as it is: {reasons} Fix that."]


def _takers(layout: Layout, member: Member, vip: str, proved: Sequence[str] = ()) -> List[str]:
    """Return the members that could hold a VIP without this one, the preferred one first."""
    others = [other for other in layout.members if other is not member]
    fit = [other.name for other in others if other.name in proved or not (other.reasons or other.unloaded)]
    return [name for name in layout.by_priority(vip) if name in fit]


def _next(layout: Layout, member: Member, vip: str, proved: Sequence[str] = ()) -> List[str]:
    """Return who holds a VIP next without this one: several if their priorities are equal."""
    return layout.first(vip, _takers(layout, member, vip, proved))


def _plan(layout: Layout, wanted: List[str], work: str) -> Plan:
    done, chosen = _done(layout, work), _chosen(layout, wanted, work)
    alone = [member.name for member in layout.members if member not in chosen]
    return Plan(
        [],
        lines=[_line(layout, member, work) for member in chosen]
        + [f"{name} is left alone{_because(name in done)}." for name in alone],
        order=[member.name for member in chosen],
        done=done,
    )


def _because(is_done: bool) -> str:
    return ": the run that stopped had finished it" if is_done else ""


def _done(layout: Layout, work: str) -> List[str]:
    """Return the members that the same maintenance had finished when it stopped."""
    records = [member.held_back for member in layout.members if member.held_back.get("work") == work]
    return [name for record in records for name in record["done"].split(",") if name in layout.names]


def _place(layout: Layout, member: Member) -> Tuple[bool, bool, int]:
    """Return where a member comes: first one that is held back, then Backups from the last on, then the holder."""
    if layout.reach == BGP:
        return draining.place(layout, member)
    orders = [order for order in map(layout.by_priority, layout.configured) if member.name in order]
    rank = max((order.index(member.name) for order in orders), default=0)
    return not member.held_back, bool(_will_hold(layout, member)), -rank


def _will_hold(layout: Layout, member: Member) -> List[str]:
    """Return the VIPs that a member holds once those that are held back take part again."""
    returning = {vip: each.name for each in layout.members if each.held_back for vip in steps.returning(layout, each)}
    now = {vip: name for vip in layout.configured for name in layout.holders(vip)}
    return [vip for vip, name in {**now, **returning}.items() if name == member.name]


def _line(layout: Layout, member: Member, work: str) -> str:
    if layout.reach == BGP:
        begin = "announces no VIP already" if member.held_back else f"leaves, and {_others(layout, member)}"
        return f"{member.name}: {begin}; {work}; once verified, it announces its VIPs again."
    held = [] if member.held_back else _will_hold(layout, member)
    proved = _proved_first(layout)
    moves = [f"{vip} moves to {' or '.join(_next(layout, member, vip, proved))}" for vip in held]
    begin = "its router is stopped already" if member.held_back else "its router stops"
    return f"{member.name}: {', '.join([begin, *moves])}; {work}; once verified, it returns to service."


def _others(layout: Layout, member: Member) -> str:
    names = [other.name for other in layout.members if other is not member]
    return f"{' and '.join(names)} {'serve' if names[1:] else 'serves'}"


def drain(
    given: List[Dict[str, Any]], name: str, work: str, done: List[str], proved: Sequence[str] = (), wait: int = 0
) -> Steps:
    """Return the steps that drain a member, or why it must not be drained now.

    :param done: the members that this maintenance has finished
    :param proved: those that a dry run takes for proved, because it has not changed them
    :param wait: for how many seconds at most the connections of a member that leaves by BGP are waited for
    """
    layout, member = member_of(hearing(given), name)
    if layout.reach == BGP:
        found = draining.leave(layout, member, WHAT, wait, proved)
        return found._replace(**draining.record(MAINTENANCE, layout, member, work=work, done=",".join(done)))
    faults = steps.unfit(layout, WHAT) or vip_faults(layout) or _irreplaceable(layout, member, proved)
    if faults:
        return Steps(faults)
    takers = {vip: _next(layout, member, vip, proved) for vip in member.held}
    able = {vip: _takers(layout, member, vip, proved) for vip in takers}
    expected = steps.inverted(takers)
    lines = [f"{vip} moves from {name} to {' or '.join(names)}." for vip, names in takers.items()]
    holders = [other for vip in layout.configured for other in layout.holders(vip) if other != name]
    to = list(dict.fromkeys([*expected, *holders]))
    return Steps(
        [],
        lines=[f"{name} is drained: its router stops, and stays stopped until {name} is verified.", *lines],
        stop=[name],
        hold=[name],
        expected=expected,
        others=steps.inverted({vip: [each for each in able[vip] if each not in takers[vip]] for vip in able}),
        probe=steps.probe(layout, member.held[0], to[0]) if len(expected) == 1 else {},
        path=PATHS[MAINTENANCE],
        record={"to": " and ".join(to), "work": work, "done": ",".join(done)},
        lasts=True,
    )


def give_back(given: List[Dict[str, Any]], name: str) -> Steps:
    """Return the steps after which a member takes part again; it is proved after them, wherever the VIPs are then."""
    layout, member = member_of(hearing(given), name)
    if layout.reach == BGP:
        return draining.back([member])
    return steps.give_back(layout, [member])._replace(expected={})


def unproved(given: List[Dict[str, Any]], name: str, now: Dict[str, Any], takes_part: bool) -> List[str]:
    """Say why a member must not take part again, or must not go on doing so.

    :param given: as it was before
    :param now: what `member_info` returns on it now
    :param takes_part: whether its router is to run
    """
    layout, before = member_of(hearing(given), name)
    seen = now.get("unable") is not None
    if not seen:
        return [f"{name} cannot be read: {now.get('msg', 'no answer')}."]
    found = [*now["unable"], *now["stale"]]
    silent = [str(port) for port in _ports(layout, before) if port not in now["ports"]]
    if silent:
        found.append(f"Its balancer does not answer at port {', '.join(silent)}.")
    if before.seen["servers"]["up"] and not now["servers"]["up"]:
        found.append("Its balancer finds none of its servers up.")
    found += _missing_as_server(name, before, now)
    if takes_part and layout.reach == BGP:
        return [*found, *draining.not_announcing(before._replace(seen=now))]
    return [*found, *_not_ready(now)] if takes_part else found


def _missing_as_server(name: str, before: Member, now: Dict[str, Any]) -> List[str]:
    """Say where a member that is a server itself, as in a cluster, is not up again: the next one must wait for it."""
    were_down = [(each["service"], each["name"]) for each in before.seen["servers"]["others"]]
    return [
        f"Its balancer finds {each['service']}/{name} {each['state']}, which is this host."
        for each in now["servers"]["others"]
        if each["name"] == name and (each["service"], name) not in were_down
    ]


def _ports(layout: Layout, member: Member) -> List[int]:
    """Return the ports at which a member must answer: its own of before, or those of all others with a balancer."""
    if not member.seen["balancer"]:
        return []
    if member.seen["ports"] and not member.seen["unable"]:
        return list(member.seen["ports"])
    others = [set(other.seen["ports"]) for other in layout.read if other is not member and other.seen["balancer"]]
    return sorted(set.intersection(*others)) if others else []


def _not_ready(now: Dict[str, Any]) -> List[str]:
    if now["held_back"]:
        return [f"{now['router']} does not run."]
    return [
        f"{instance['name']} has not begun to take part in the election."
        for instance in now["instances"]
        if instance["state"] not in TAKES_PART
    ]


def stopped(given: List[Dict[str, Any]], name: str, fault: str, done: List[str]) -> str:
    """Say that a maintenance has stopped at a member, what is held back, and how to go on."""
    layout = next(layout for layout in layouts(given) if name in layout.names)
    others = [each for each in layout.names if each != name]
    how = "it announces no VIP" if layout.reach == BGP else "its router stays stopped"
    finished = f" and leaves {' and '.join(done)} alone, which it has finished" if done else ""
    return (
        f"The maintenance stops at {name}. {fault} {name} is held back: {how}, and "
        f"{' and '.join(others)} {'serve' if others[1:] else 'serves'} without it. Fix that and repeat the run, "
        f"which continues with {name}{finished}. onprem.lb.site brings it back at once."
    )
