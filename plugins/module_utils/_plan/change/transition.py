# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The way from what the members of a layout run to their plan: in which order, and whether that is safe. Pure.

`changes` classes each setting. Where one changes that splits, only the router of the member that holds most VIPs runs
meanwhile, so that no member with the old settings meets one with the new.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Dict, List, Mapping, NamedTuple, Tuple

from ..._agent.config.schema import Faults
from ..._shared import engines
from ..forecast import cluster, simulator
from ..model.instances import with_password
from ..model.links import VirtualRouter
from . import changes, order, second_run
from . import play as plays
from .changes import AS_IT_RUNS, SPLITS, Change, Instance
from .play import RELOAD, START, STOP, Step
from .turns import Turn, changed, joining, leaving, longest_gaps, starting

IN_PLAY = 4  # more members of one kind tell nothing new; see `plays`


class Way(NamedTuple):
    """How a run takes its members to the plan, or why it must not."""

    faults: Faults
    warnings: List[str] = []
    sole_router: str = ""  # the member whose router alone runs while settings change that all must share
    migrating: List[str] = []  # the members that change their engine, one after the other
    leaving: List[str] = []
    joining: List[str] = []
    order: List[List[str]] = []  # as `order.order` returns it
    routers_together: bool = False


def way(given: List[Turn], migrating: List[str], prefix: str, accepts_split: bool) -> Way:
    """Return the way of a run. One that leaves a member behind, or that does not survive its play, has faults.

    :param migrating: the members that change their engine, in their order
    :param prefix: of the layout's variables
    """
    alone = sole_router(given)
    migrating = sorted(migrating, key=lambda name: name == alone)  # it holds all VIPs by then
    together = order.routers_together(given, alone)
    found = Way([], [], alone, migrating, leaving(given, alone), joining(given), order.order(given), together)
    left = left_behind(given)
    accepting = f"-e {prefix}_accept_split=true"
    if accepts_split:
        return found._replace(warnings=[f"Accepted with {prefix}_accept_split: {what}." for what, _mend in left])
    if left:
        return Way([f"{what}. {mend}, or accept that with {accepting}." for what, mend in left])
    played = unsafe(given, alone, migrating)
    if played:
        mend = _smaller_run(given, migrating, prefix)
        return Way(
            [
                f"There is no safe transition from the running settings to this plan: {mend}, or accept that with "
                f"{accepting}.",
                *played,
            ]
        )
    return found


def _smaller_run(given: List[Turn], migrating: List[str], prefix: str) -> str:
    """Return how to change less at once: the first way that is safe."""
    for mend, turns, order_of_engines in second_run.smaller(given, migrating, prefix):
        if not unsafe(turns, sole_router(turns), order_of_engines):
            return mend
    return "change less at once"


def left_behind(given: List[Turn]) -> List[Tuple[str, str]]:
    """Return each setting with which a member that this run leaves as it is would stay alone, and its mend."""
    found = changed(given)
    return [
        (f"{_why_left(turn)}, and {change}", _mend(turn))
        for turn in given
        if turn.is_left and turn.before
        for change in dict.fromkeys([*_other_list(turn, given), *_other_settings(turn, found[turn.name])])
    ]


def _why_left(turn: Turn) -> str:
    return f"{turn.name} does not answer" if turn.is_silent else f"--limit leaves {turn.name} out"


def _mend(turn: Turn) -> str:
    if turn.is_silent:
        return f"Wait until {turn.name} answers, or switch it off and take it out of the inventory"
    return "Run it for all members"


def _other_list(turn: Turn, given: List[Turn]) -> List[str]:
    """Return how the VIPs of a member will differ from those of the plan.

    What a silent one runs is known from its peers: nothing is known of a VIP that none of these carries.
    """
    known = changes.vips([each for other in given if not other.is_silent for each in (*other.before, *other.after)])
    both = [changes.vips(each) & known if turn.is_silent else changes.vips(each) for each in (turn.before, turn.after)]
    before, after = (", ".join(sorted(vips)) or "none" for vips in both)
    if before == after:
        return []
    return [f"its VIPs would stay {before} instead of {after}: the members would not stand in for each other"]


def _other_settings(turn: Turn, found: List[Change]) -> List[str]:
    return [
        f"{change.vip} would keep {change.kept} there{_instead(change)}: both sides would hold the VIP"
        for change in found
        if change.kind == SPLITS
    ]


def _instead(change: Change) -> str:
    return "" if change.before == change.after else f" instead of {change.after}"


def sole_router(given: List[Turn]) -> str:
    """Return the member whose router alone runs while a setting changes that all must share; '' if none changes.

    The routers of the others are stopped meanwhile. So it is one that may hold the most VIPs, and of these the one that
    holds most: those do not move.
    """
    runs = [turn for turn in given if turn.is_changed]
    found = changed(given)
    splits = any(change.kind == SPLITS for turn in runs for change in found[turn.name])
    able = {turn.name: len(changes.vips(turn.after)) for turn in runs}
    return max(runs, key=lambda turn: (able[turn.name], turn.held)).name if splits and len(runs) > 1 else ""


def waves(given: List[Turn], alone: str, migrating: List[str], in_order: List[List[str]]) -> List[List[Step]]:
    """Return the steps of a run as `roles/layout` takes them. Those of one wave come in any order.

    :param alone: the sole router, or nothing
    :param migrating: the members that change their engine, in their order
    :param in_order: the members whose routers change one wave after the other; nothing if all change at one time
    """
    starts, late = starting(given), joining(given)
    runs = [turn.name for turn in given if turn.is_changed and turn.runs]
    verbs = {**dict.fromkeys([*starts, *late], START), **dict.fromkeys(runs, START if alone else RELOAD)}
    changing = [name for name in verbs if name not in (alone, *migrating)]
    found = [[Step(STOP, name) for name in runs if alone and name != alone], [Step(RELOAD, alone, 1)] if alone else []]
    found.append([Step(STOP, name) for name in leaving(given, alone)])
    for names in in_order or [list(verbs)]:
        # A keepalived that is restarted resigns. The others know its settings, and one of them takes over.
        found.append([Step(STOP, turn.name) for turn in given if in_order and turn.restarts and turn.name in names])
        found.append([Step(verbs[name], name, 1) for name in names if name in changing and name not in late])
    for name in migrating:
        found += [[Step(STOP, name)] if name in runs else [], [Step(START, name, 2)] if name in verbs else []]
    return [*found, [Step(verbs[name], name, 1) for name in late if name in changing]]


def unsafe(given: List[Turn], alone: str, migrating: List[str]) -> Faults:
    """Return a play of the run in which two members hold a VIP, or nobody for longer than said; [] if it is safe."""
    restarts = any(turn.restarts and not turn.is_left for turn in given)
    nothing_changes = not (any(changed(given).values()) or migrating or joining(given) or starting(given) or restarts)
    return [] if nothing_changes else plays.counterexample(to_play(given, alone, migrating))


def to_play(given: List[Turn], alone: str, migrating: List[str]) -> plays.Way:
    """Return the way of a run as the play takes it.

    :param alone: the sole router, or nothing
    :param migrating: the members that change their engine, in their order
    """
    found = changed(given)
    seen = _in_play(given, found, alone)
    names = [turn.name for turn in seen]
    in_order = [] if order.routers_together(given, alone) else order.order(given)
    return plays.Way(
        configurations={turn.name: _configurations(turn) for turn in seen},
        waves=waves(seen, alone, [name for name in migrating if name in names], in_order),
        gone={vip: round(seconds * cluster.SECOND) for vip, seconds in longest_gaps(given, alone, in_order).items()},
        holders=_holders(seen),
        starts_anew=frozenset(router for turn in seen for router in _starting_anew(turn, found.get(turn.name, []))),
    )


def _holders(seen: List[Turn]) -> Dict[str, str]:
    """Return the holder of each VIP. One that nobody is known to hold is played with that of most others."""
    most = max(seen, key=lambda turn: turn.held)
    unknown = dict.fromkeys(changes.vips(most.before), most.name)
    return {**unknown, **{vip: turn.name for turn in seen for vip in turn.holds}}


def _starting_anew(turn: Turn, found: List[Change]) -> List[Tuple[str, VirtualRouter]]:
    """Return the routers that do not go on. One that gets VIPs of others goes on with those that it has."""
    gone, before = {change.vip for change in found if change.gone}, changes.vips(turn.before)
    own = [(each, changes.vips([each]) & before) for each in turn.after]
    anew = [each for each, vips in own if turn.restarts or (vips and vips <= gone)]
    return [(turn.name, router) for router in turn.routers(anew)]


def _in_play(given: List[Turn], found: Mapping[str, List[Change]], alone: str) -> List[Turn]:
    """Return the members that are played: the best, and the best of each kind, which differs in more than rank."""
    seen: Dict[Any, Turn] = {}
    best = sorted(given, key=lambda turn: (turn.name != alone, -turn.held, -turn.priority))
    for rank, turn in enumerate(best):
        kind = (
            turn.is_left,
            turn.runs,
            bool(turn.before),
            turn.engine,
            turn.replaces,
            turn.restarts,
            frozenset(changes.vips(turn.after)),
        )
        labels = frozenset((change.vip, change.label) for change in found.get(turn.name, []))
        seen.setdefault(rank if rank < IN_PLAY else (kind, labels), turn)
    return [turn for turn in given if turn in seen.values()]


def _configurations(turn: Turn) -> List[List[simulator.Instance]]:
    """Return what a member runs on the way: as now, the planned settings with this engine, and with the new one.

    A router whose host has lost the address that it sends from is one that does not run: nobody hears it, nor it them.
    """
    plays = [each for each in turn.before if turn.runs and _can_be_played(each) and turn.is_heard(each)]
    now = [{**instance, **AS_IT_RUNS} for instance in plays]
    on_the_way = (now, turn.running_engine), (turn.after, turn.running_engine), (turn.after, turn.engine)
    return [[_simulated(turn, instance, engine) for instance in instances] for instances, engine in on_the_way]


def _can_be_played(instance: Instance) -> bool:
    """Return whether an instance, which somebody may have written by hand, is one at all."""
    try:
        ipaddress.ip_interface(instance["addresses"][0].partition(" ")[0])
    except (IndexError, ValueError):
        return False
    return bool(instance["advert_interval"] > 0)


def _simulated(turn: Turn, instance: Instance, engine: str) -> simulator.Instance:
    router = cluster.simulated(turn.name, {**instance, "auth_pass": changes.password(instance)}, [], turn.links)
    return router._replace(
        keeps_addresses_on_stop=engine == engines.AGENT,
        compares_addresses=changes.compares_lists(engine, turn.keepalived),
    )


def settle(running: List[Instance], planned: List[Instance], auth_pass: str) -> float:
    """Return for how many seconds a member's verification must last: a split shows after Active_Down_Interval.

    A member that runs what is planned has nothing to wait for.
    """
    after = with_password(planned, auth_pass)
    if not running or sorted(map(_on_the_link, running)) == sorted(map(_on_the_link, after)):
        return 0
    slowest = max(instance["advert_interval"] for instance in [*running, *planned])
    return float((changes.MISSED + 1) * slowest + 1)


def _on_the_link(instance: Instance) -> Tuple[Any, ...]:
    """Return what a router shares with the others on its link; version 3 has no password."""
    numbers = (instance["vrid"], instance["version"], float(instance["advert_interval"]))
    peers = [] if instance["multicast"] else sorted(instance["peers"])
    return (*numbers, changes.password(instance), sorted(changes.vips([instance])), peers)
