# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A return of a pair or a cluster to an earlier state: to which one, and whose router stops meanwhile. Pure.

A state has the same ID on all members whose run saved it. It is the one before that run.
IDs sort by time, which is the order of the runs. Two states may have the same content.
"""

from __future__ import annotations

import itertools
from typing import Any, Dict, List, NamedTuple, Tuple

from ..._shared import resolver_records
from ..._shared.state_ids import PURPOSE, RETURNED, when
from ..model.restarts import at_once
from . import turns
from .members import Layout, Member, cause, layouts
from .steps import incomplete, several

NOTHING = "nothing of this collection"
NAMES_STAY = (
    "has had its resolver added or removed since, so its names stay as they are: the next run of onprem.lb.site mends "
    "that."
)

States = Dict[str, Dict[str, Any]]  # by ID, as `member_state` lists them


class Steps(NamedTuple):
    """What is to be done. With faults, or when there is nothing to do, there are no members."""

    faults: List[str]
    lines: List[str] = []  # in words
    id: str = ""
    what: str = ""  # the state in words
    members: List[str] = []  # that return
    first: str = ""  # the one whose router runs alone meanwhile; '' if nothing on the link changes
    settle: float = 0  # for how many seconds a router waits at most before it takes VIPs that nobody holds
    first_addresses: List[str] = []  # of the first one
    purpose: str = ""  # of the state that it saves
    renames: bool = False  # whether names get other addresses
    names_at_once: int = 0  # on how many members at a time; 0 for all, where no resolver starts anew
    turns: List[Dict[str, List[str]]] = []  # as `turns.of` returns them, where VIPs are announced by BGP
    proofs: Dict[str, Dict[str, Any]] = {}  # what `layout_info` must find then on each that has returned


def steps(given: List[Dict[str, Any]], to: str = "", only_list: bool = False) -> Steps:
    """Return the steps of a rollback.

    :param given: the hosts of the play as `members` describes them, each with what `member_state` listed as ``states``
    :param to: the ID of a state; '' for that of before the last run, unless the members have returned to one since
    """
    every = layouts(given)
    if len(every) > 1 and not only_list:
        return Steps([f"There are {several(every)}: choose one of them with --limit."])
    saved = {host["name"]: {state["id"]: state for state in host["states"].get("states", [])} for host in given}
    unread = [f"{host['name']}: {cause(host['states'])}" for host in given if "engine" not in host["states"]]
    damaged = [
        f"{host['name']}: {wrong}"
        for host in given
        for each, wrong in host["states"].get("damaged", {}).items()
        if to in ("", each)
    ]
    if only_list:
        read = [host for host in given if "engine" in host["states"]]
        lines = [line for layout in layouts(read) for line in _listed(layout, saved)] if read else []
        return Steps([] if read else unread, lines + unread + damaged)
    faults = incomplete(every[0], "A rollback") or unread
    # It may be the state of before the last run: another one is a user's choice.
    faults = faults or [f"{wrong} Choose another one with -e rollback_to." for wrong in damaged]
    return Steps(faults) if faults else _return(every[0], saved, {h["name"]: h["states"]["engine"] for h in given}, to)


def _return(layout: Layout, saved: Dict[str, States], engines: Dict[str, str], to: str) -> Steps:
    known = _ids(layout, saved)
    if to and to not in known:
        return Steps([f"rollback_to is {to}, which no member has: there {_are(known)}."])
    if not known:
        return Steps([], [f"There is no earlier state of {', '.join(layout.names)}: nothing to do."])
    chosen = to or _before_the_last_run(layout, saved, known)
    if _is_present(layout, saved, chosen):
        others = f" Choose another one with -e rollback_to: {', '.join(known)}." if not to else ""
        state = next(iter(_of(layout, saved, chosen).values()))
        name = _described(state) if state["backup"] else f"the state {chosen}"
        return Steps([], [f"The members already run {name}: nothing to do.{others}"])
    found = _of(layout, saved, chosen)
    returning = {name: state for name, state in found.items() if not state["is_present"]}
    faults = [*turns.refusals(chosen, found), *_refusals(layout, chosen, found, engines)]
    if faults:
        return Steps(faults)
    steps_found = _moves(layout, chosen, found, returning)
    return turns.taken(steps_found, returning) if turns.are_announced(found) else steps_found


def _before_the_last_run(layout: Layout, saved: Dict[str, States], known: List[str]) -> str:
    """Return the state of before the last run, or the one that a rollback has returned to since."""
    states = {each: next(iter(_of(layout, saved, each).values())) for each in known}
    returned = RETURNED.fullmatch(states[known[-1]]["purpose"])
    if returned and returned[1] in known and _is_present(layout, saved, returned[1]):
        return returned[1]
    runs = [each for each, state in states.items() if not (state["backup"] or RETURNED.fullmatch(state["purpose"]))]
    return (runs or known)[-1]


def _is_present(layout: Layout, saved: Dict[str, States], wanted: str) -> bool:
    return all(state["is_present"] for state in _of(layout, saved, wanted).values())


def _refusals(layout: Layout, chosen: str, found: States, engines: Dict[str, str]) -> List[str]:
    others = [name for name in layout.names if name not in found]
    faults = [
        f"{name} ran {state['engine'] or NOTHING} in the state {chosen}, and runs {engines[name] or NOTHING} now: "
        + (
            "change the engine in the inventory and run onprem.lb.site."
            if engines[name]
            else "run onprem.lb.site first."
        )
        for name, state in found.items()
        if state["engine"] != engines[name]
    ]
    if others and any(state["changes_link"] or _changes_peers(state) for state in found.values()):
        backup = next(iter(found.values()))["backup"]
        what = f"the backup of {when(backup)}" if backup else f"the state {chosen}"
        again = "restore it" if backup else f"roll back with -e rollback_to={chosen}"
        faults.append(
            f"{', '.join(others)} is not in {what}, and its settings would then differ from the others': it would hold "
            "the VIPs as well. Take it out of the inventory, run onprem.lb.site, which stops its router, and then "
            f"{again}."
        )
    orphans = [vip for vip in layout.configured if layout.holders(vip) and not _could_serve(layout, found, vip)]
    if orphans:
        faults.append(
            f"In the state {chosen} no router ran that could hold {', '.join(orphans)}, so nobody would: choose "
            "another one, or change the inventory and run onprem.lb.site."
        )
    return faults


def _could_serve(layout: Layout, found: States, vip: str) -> bool:
    """Whether a router that carries a VIP could hold it once these states are back."""
    carrying = [member for member in layout.members if member.election(vip)]
    return any(found[member.name]["could_serve"] if member.name in found else not member.unable for member in carrying)


def _moves(layout: Layout, chosen: str, found: States, returning: States) -> Steps:
    link = any(state["changes_link"] for state in found.values()) or _lose_touch([*found.values()])
    routers = [member for member in layout.members if member.name in found and found[member.name]["could_serve"]]
    sole = max(routers, key=lambda member: _most(layout, member)) if link and routers else None
    first = sole.name if sole else ""
    what = _described(next(iter(found.values())))
    lines = [f"Back to {chosen}, {what}."]
    lines += [f"{name}: {', '.join(state['files']) or 'its units'}" for name, state in returning.items()]
    lines += [f"{name} has no state {chosen} and stays as it is." for name in layout.names if name not in found]
    lines += [f"{name} {NAMES_STAY}" for name, state in returning.items() if state["keeps_names"]]
    settle = max(state["settle"] for state in found.values()) if link else 0
    lines += _alone(layout, sole, settle) if sole else []
    lines.append("The inventory stays as it is: the next run of onprem.lb.site applies its settings again.")
    addresses = sole.seen.get("addresses", []) if sole else []
    renames = any({*resolver_records.PATHS} & {*state["files"]} for state in found.values())
    restarts = any(resolver_records.CONFIG in state["files"] for state in found.values())
    naming = (renames, at_once(len(found)) if restarts else 0)
    return Steps([], lines, chosen, what, list(found), first, settle, addresses, PURPOSE.format(chosen), *naming)


def _changes_peers(state: Dict[str, Any]) -> bool:
    return bool(state["unicast"]["now"] != state["unicast"]["then"])


def _lose_touch(states: List[Dict[str, Any]]) -> bool:
    """Whether a member would not send to another one for as long as one of them has returned and the other has not.

    Members of which all send to all others, now and then, may return one by one: others come and go.
    """
    return any(
        _misses(one["unicast"], other["unicast"])
        for one, other in itertools.permutations(states, 2)
        if _changes_peers(one) or _changes_peers(other)
    )


def _misses(one: Dict[str, Any], other: Dict[str, Any]) -> bool:
    """Whether a member lacks a source of another one among its peers; a source that is not known is lacking."""
    sources = [(router, each["source"]) for routers in other.values() for router, each in routers.items()]
    return any(
        source not in routers[router]["peers"]
        for router, source in sources
        for routers in one.values()
        if router in routers
    )


def _most(layout: Layout, member: Member) -> Tuple[int, int]:
    """Return how many VIPs a member may hold, and how many it holds: as many as possible are served meanwhile."""
    return len([vip for vip in layout.configured if member.election(vip)]), len(member.held)


def _alone(layout: Layout, sole: Member, settle: float) -> List[str]:
    """Say what it means that the router of one member runs alone, and that it may have to take its VIPs anew."""
    others = [vip for vip in layout.configured if not sole.election(vip)]
    return [
        f"Settings change that all members share, so for some 10 s only {sole.name}'s router runs. No other member can "
        "take over then.",
        f"A VIP may have no holder for up to {settle:g} s, if that router has to take it again with its new settings.",
        *[f"{sole.name} does not carry {', '.join(others)}: nobody holds it during that time."] * bool(others),
    ]


def _listed(layout: Layout, saved: Dict[str, States]) -> List[str]:
    lines = []
    for each in _ids(layout, saved):
        found = _of(layout, saved, each)
        state = next(iter(found.values()))
        there = "as now" if _is_present(layout, saved, each) else f"on {', '.join(found)}"
        lines.append(f"{each}: {_described(state)}, {state['engine']}, {there}")
    return lines or [f"{', '.join(layout.names)} have no saved state: a run that changes them saves one."]


def _ids(layout: Layout, saved: Dict[str, States]) -> List[str]:
    """Return the IDs of all members' states, oldest first."""
    return sorted({each for name in layout.names for each in saved.get(name, {})})


def _of(layout: Layout, saved: Dict[str, States], wanted: str) -> States:
    """Return a state of each member that has it, by the member's name."""
    return {name: saved[name][wanted] for name in layout.names if wanted in saved.get(name, {})}


def _described(state: Dict[str, Any]) -> str:
    if state["backup"]:
        return f"the backup of {when(state['backup'])}"
    return f"what ran before {when(state['id'])} ({state['purpose']})"


def _are(known: List[str]) -> str:
    return f"are {', '.join(known)}" if known else "is none"
