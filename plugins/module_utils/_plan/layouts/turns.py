# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What each member of a layout runs and will run, and the class of each change on the way. Pure."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Set, Tuple

from ..._shared.engines import POD, ROUTERS, UNIT
from ..model.instances import with_password
from ..model.plan import MemberPlan, Vip
from . import changes
from .changes import MOVES, SPLITS, Change, Instance
from .members import held_vips


class Turn(NamedTuple):
    """What one member runs now and will run."""

    name: str
    before: List[Instance]  # of its file, as `host_info` returns them; it runs them, or would after a boot
    runs: bool  # whether its router runs; of one that does not answer that is assumed
    has_loaded: bool  # whether a router that runs has loaded this file as it is
    after: List[Instance]  # in the plan, with their passwords
    engine: str
    replaces: str  # the engine that goes, or nothing
    moves_from: str  # the delivery that goes, or nothing
    is_left: bool  # this run leaves it as it is
    is_silent: bool  # it does not answer
    keepalived: str  # its version, or nothing
    holds: List[str]  # the VIPs that it holds, those of the plan and those that go with it

    @property
    def held(self) -> int:
        return len(self.holds)

    @property
    def running_engine(self) -> str:
        return self.replaces or self.engine

    @property
    def replacement(self) -> Tuple[str, str, str]:
        """What it replaces: what that is, from what, and to what."""
        if self.moves_from:
            return "delivery", self.moves_from, POD if self.moves_from == UNIT else UNIT
        return "engine", self.replaces, self.engine

    @property
    def is_changed(self) -> bool:
        """Whether this run takes its router from one configuration to another."""
        return bool(self.before) and not self.is_left

    @property
    def compares_lists(self) -> bool:
        """Whether its router, the one that runs or the one that is planned, discards another list of addresses."""
        return any(changes.compares_lists(engine, self.keepalived) for engine in (self.engine, self.replaces))

    @property
    def priority(self) -> int:
        return max((instance["priority"] for instance in self.after), default=0)


def turns(
    members: List[Dict[str, Any]], planned: Mapping[str, MemberPlan], password: str, vips: List[Vip]
) -> List[Turn]:
    """Return the turn of each member.

    :param members: as in `planner`
    :param planned: the plan of each member
    :param password: the plan's; '' if it makes a new one, or none
    :param vips: the plan's
    """
    held = held_vips(members, vips)
    return [
        Turn(
            name=member["name"],
            before=member["host"].get("instances", []),
            runs=bool(member.get("silent") or {*ROUTERS} & {*member["host"].get("active_units", [])}),
            has_loaded=not member["host"].get("stale"),
            after=with_password(planned[member["name"]].router.instances, password),
            engine=planned[member["name"]].engine,
            replaces=planned[member["name"]].replaces,
            moves_from=planned[member["name"]].moves_from,
            is_left=bool(member.get("outside_limit")),
            is_silent=bool(member.get("silent")),
            keepalived=member["host"].get("keepalived_version", ""),
            holds=held[member["name"]],
        )
        for member in members
    ]


def changed(given: List[Turn]) -> Dict[str, List[Change]]:
    """Return what changes on each member that runs a router."""
    compares = any(turn.compares_lists for turn in given if turn.before)
    return {
        turn.name: list(changes.between(turn.before, turn.after, turn.running_engine, compares))
        for turn in given
        if turn.before
    }


def leaving(given: List[Turn], alone: str) -> List[str]:
    """Return the members that give a Virtual Router up which others keep: they do before those stop sending to them.

    :param alone: the sole router, beside which no other one runs; or nothing
    """
    kept = _kept(given)
    gives_up = [turn.name for turn in given if turn.is_changed and kept & _routers(turn.before) - _routers(turn.after)]
    return [] if alone else gives_up


def joining(given: List[Turn]) -> List[str]:
    """Return the members that have to run a Virtual Router which others run: they start it when all send to them."""
    kept = _kept(given)
    return [
        turn.name
        for turn in given
        if turn.after and not turn.is_left
        if not turn.runs or kept & _routers(turn.after) - _routers(turn.before)
        if not all(_sends_to(other, turn) for other in given if other.runs and other.name != turn.name)
    ]


def starting(given: List[Turn]) -> List[str]:
    """Return the members whose router does not run, and to which all others send already: they start in their turn."""
    late = joining(given)
    here = [turn for turn in given if turn.after and not turn.is_left and not turn.runs]
    return [turn.name for turn in here if turn.name not in late] if any(turn.runs for turn in given) else []


def _sends_to(other: Turn, turn: Turn) -> bool:
    """Whether a router that runs is known to send its Advertisements to each Virtual Router that a member will have."""
    if not other.has_loaded:
        return False
    running = {changes.key(instance)[1:]: instance["peers"] for instance in other.before}
    peers = [(running.get(changes.key(instance)[1:]), instance["source"]) for instance in turn.after]
    return all(found is not None and (not found or source in found) for found, source in peers)


def _kept(given: List[Turn]) -> Set[Tuple[int, bool]]:
    """Return the Virtual Routers that a member runs and will run."""
    return {router for turn in given for router in _routers(turn.before) & _routers(turn.after)}


def _routers(instances: List[Instance]) -> Set[Tuple[int, bool]]:
    """Return what identifies Virtual Routers on a link: the VRID, and whether it is of IPv6."""
    return {changes.key(instance)[1:] for instance in instances}


class Row(NamedTuple):
    """A setting that changes in the same way on some members."""

    label: str
    before: str
    after: str
    kind: str
    gone: float
    members: Tuple[str, ...]


def rows(given: List[Turn], alone: str = "") -> Dict[str, List[Row]]:
    """Return the rows of each VIP: what changes on which members, in which class, and how long it is gone at most.

    :param alone: the sole router, which takes over what others hold; or nothing
    """
    members: Dict[Change, List[str]] = {}
    for name, found in changed(given).items():
        for change in found:
            members.setdefault(change, []).append(name)
    left = {turn.name for turn in given if turn.is_left}
    result: Dict[str, List[Row]] = {}
    for change, names in members.items():
        here = tuple(name for name in names if name not in left)
        moves = change.label == "priority" and _best_changes(given, change.vip)
        if here:
            kind = MOVES if moves else change.kind
            gone = max(change.gone, _taken_over(given, change.vip, alone) if kind == SPLITS else 0)
            result.setdefault(change.vip, []).append(Row(change.label, change.before, change.after, kind, gone, here))
    for vip, row in [*_replaced(given), *_handed_over(given, alone)]:
        result.setdefault(vip, []).append(row)
    return result


def _replaced(given: List[Turn]) -> List[Tuple[str, Row]]:
    """Return a row for each VIP of members that change their engine or delivery."""
    found: Dict[Tuple[str, Tuple[str, str, str]], List[Turn]] = {}
    for turn in given:
        if turn.replaces and turn.is_changed:
            for vip in sorted(changes.vips(turn.before) & changes.vips(turn.after)):
                found.setdefault((vip, turn.replacement), []).append(turn)
    return [
        (vip, Row(*replacement, MOVES, _handover(given, vip), tuple(turn.name for turn in each)))
        for (vip, replacement), each in found.items()
    ]


def _handed_over(given: List[Turn], alone: str) -> List[Tuple[str, Row]]:
    """Return a row for each VIP of a member whose router stops because it gives a Virtual Router up."""
    stopped = [turn for turn in given if turn.name in leaving(given, alone)]
    return [
        (vip, Row("member", turn.name, "another", MOVES, _handover(given, vip), (turn.name,)))
        for turn in stopped
        for vip in turn.holds
        if any(vip in changes.vips(other.after) for other in given)
    ]


def _handover(given: List[Turn], vip: str) -> float:
    """Return the longest Skew_Time of a member that takes a VIP over from one that stops, in seconds."""
    every = [[each for each in (*turn.before, *turn.after) if vip in changes.vips([each])] for turn in given]
    lowest = sorted((min(each["priority"] for each in own) for own in every if own), reverse=True)
    longest = max(changes.longest_skew(each) for own in every for each in own)
    return (256 - lowest[min(1, len(lowest) - 1)]) / 256 * longest


def _taken_over(given: List[Turn], vip: str, alone: str) -> float:
    """Return the Skew_Time of the sole router in seconds, where another member holds the VIP.

    It is the last one to take the VIP over: the others stop, and those with a higher priority may have it on the way.
    """
    holder = next((turn.name for turn in given if vip in turn.holds), alone)
    own = [each for turn in given if turn.name == alone for each in turn.before if vip in changes.vips([each])]
    if holder == alone or not own:
        return 0
    return (256 - own[0]["priority"]) / 256 * changes.longest_skew(own[0])


def _best_changes(given: List[Turn], vip: str) -> bool:
    """Return whether another member has the highest priority afterwards."""
    best = []
    for some in (_before, _after):
        known = {turn.name: each["priority"] for turn in given for each in some(turn) if vip in changes.vips([each])}
        best.append(max(known, key=lambda name: known[name]) if known else "")
    return best[0] != best[1]


def longest_gaps(given: List[Turn], alone: str) -> Dict[str, float]:
    """Return for how many seconds each VIP that runs and will run is gone at most.

    :param alone: as `rows` takes it
    """
    found = rows(given, alone)
    before, after = (changes.vips([each for turn in given for each in some(turn)]) for some in (_before, _after))
    return {vip: max((row.gone for row in found.get(vip, [])), default=0) for vip in sorted(before & after)}


def _before(turn: Turn) -> List[Instance]:
    return turn.before


def _after(turn: Turn) -> List[Instance]:
    return turn.before if turn.is_left else turn.after
