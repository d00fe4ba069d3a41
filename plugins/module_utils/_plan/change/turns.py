# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What each member of a layout runs and will run, and the class of each change on the way. Pure."""

from __future__ import annotations

import ipaddress
from typing import Any, Dict, FrozenSet, List, Mapping, NamedTuple, Set, Tuple

from ..._shared.engines import KEEPALIVED, NATIVE, POD, ROUTERS, UNIT
from ..members.hosts import held_vips
from ..model.instances import with_password
from ..model.links import VirtualRouter, of_members, subnets, virtual_router
from ..model.plan import MemberPlan, Vip
from . import changes
from .changes import MOVES, SPLITS, Change, Instance

RESTART = 1.5  # seconds that a restart of keepalived takes: it needs one of them to stop


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
    own: FrozenSet[str] = frozenset()  # the addresses of its host
    in_group: bool = False  # whether all its VIPs are in one sync group
    links: Mapping[str, int] = {}  # by interface: the number of the link
    restarts: bool = False  # its keepalived was started by others, and must not be reloaded into the new file

    def is_heard(self, instance: Instance) -> bool:
        """Whether its host has the address that an instance sends from; assumed of one that does not answer."""
        return self.is_silent or instance["source"] in self.own

    def routers(self, instances: List[Instance]) -> Dict[VirtualRouter, Instance]:
        return {virtual_router(instance, self.links): instance for instance in instances}

    @property
    def takes_part(self) -> bool:
        """Whether its router runs, and the others hear it."""
        return self.runs and all(map(self.is_heard, self.before))

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
    links = of_members(
        {member["name"]: subnets(member["host"]["addresses"]) for member in members},
        {
            member["name"]: [*member["host"].get("instances", []), *planned[member["name"]].router.instances]
            for member in members
        },
    )
    return [
        Turn(
            name=member["name"],
            before=[_with_source(instance, member["host"]) for instance in member["host"].get("instances", [])],
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
            own=frozenset(info["address"] for info in member["host"]["addresses"]),
            links=links[member["name"]],
            in_group=bool(planned[member["name"]].router.sync_groups),
            restarts=planned[member["name"]].engine == NATIVE
            and bool(member["host"].get("takeover", {}).get(KEEPALIVED, {}).get("restart")),
        )
        for member in members
    ]


def _with_source(instance: Instance, host: Mapping[str, Any]) -> Instance:
    """Return an instance that runs with the address that it sends from, which its configuration need not name.

    By default that is the first one of its interface, for IPv6 a link-local one.
    """
    if instance["source"]:
        return instance
    over_ipv6, virtual = changes.key(instance)[2], changes.vips(host["instances"])
    on_link = [info["address"] for info in host["addresses"] if info["interface"] == instance["interface"]]
    usable = [each for each in on_link if (":" in each) == over_ipv6 and each not in virtual]
    usable.sort(key=lambda each: not ipaddress.ip_address(each).is_link_local)
    return {**instance, "source": usable[0] if usable else ("::" if over_ipv6 else "0.0.0.0")}


def changed(given: List[Turn]) -> Dict[str, List[Change]]:
    """Return what changes on each member that runs a router."""
    compares = any(turn.compares_lists for turn in given if turn.before)
    return {
        turn.name: list(changes.between(turn.before, turn.after, turn.running_engine, compares, turn.own))
        for turn in given
        if turn.before
    }


def leaving(given: List[Turn], alone: str) -> List[str]:
    """Return the members that give a Virtual Router up which others keep: they do before those stop sending to them.

    :param alone: the sole router, beside which no other one runs; or nothing
    """
    kept = _kept(given)
    gives_up = [
        turn.name
        for turn in given
        if turn.is_changed and kept & turn.routers(turn.before).keys() - turn.routers(turn.after).keys()
    ]
    return [] if alone else gives_up


def joining(given: List[Turn]) -> List[str]:
    """Return the members that have to run a Virtual Router which others run: they start it when all send to them.

    One whose host no longer has the address that its router sends from hears nobody, as if it did not run.
    """
    kept = _kept(given)
    return [
        turn.name
        for turn in given
        if turn.after and not turn.is_left
        if not turn.takes_part or kept & turn.routers(turn.after).keys() - turn.routers(turn.before).keys()
        if not all(_sends_to(other, turn) for other in given if other.takes_part and other.name != turn.name)
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
    running = other.routers(other.before)
    pairs = [(running.get(router), instance["source"]) for router, instance in turn.routers(turn.after).items()]
    return all(found and (found["multicast"] or source in found["peers"]) for found, source in pairs)


def _kept(given: List[Turn]) -> Set[VirtualRouter]:
    """Return the Virtual Routers that a member runs and will run."""
    return {router for turn in given for router in turn.routers(turn.before).keys() & turn.routers(turn.after).keys()}


class Row(NamedTuple):
    """A setting that changes in the same way on some members."""

    label: str
    before: str
    after: str
    kind: str
    gone: float
    members: Tuple[str, ...]


def rows(given: List[Turn], alone: str, in_order: List[List[str]]) -> Dict[str, List[Row]]:
    """Return the rows of each VIP: what changes on which members, in which class, and how long it is gone at most.

    :param alone: the sole router, which takes over what others hold; or nothing
    :param in_order: the members whose routers change one wave after the other; nothing if all change at one time
    """
    members: Dict[Change, List[str]] = {}
    for name, found in changed(given).items():
        for change in found:
            members.setdefault(change, []).append(name)
    left = {turn.name for turn in given if turn.is_left}
    result: Dict[str, List[Row]] = {}
    for change, names in members.items():
        here = tuple(name for name in names if name not in left)
        moves = change.label == "priority" and _best_changes(given, change.vip, in_order)
        if here:
            kind = MOVES if moves else change.kind
            gone = change.gone + (_taken_over(given, change.vip, alone) if kind == SPLITS else 0)
            result.setdefault(change.vip, []).append(Row(change.label, change.before, change.after, kind, gone, here))
    moving = [*_left_to_the_sole_router(given, alone, result), *_with_their_group(given, result)]
    restarted = _restarted(given, bool(alone) or not in_order)
    for vip, row in [*_replaced(given, alone), *_handed_over(given, alone), *moving, *restarted]:
        result.setdefault(vip, []).append(row)
    return result


def _replaced(given: List[Turn], alone: str) -> List[Tuple[str, Row]]:
    """Return a row for each VIP of members that change their engine or delivery."""
    found: Dict[Tuple[str, Tuple[str, str, str]], List[Turn]] = {}
    for turn in given:
        if turn.replaces and turn.is_changed:
            for vip in sorted(changes.vips(turn.before) & changes.vips(turn.after)):
                found.setdefault((vip, turn.replacement), []).append(turn)
    stopping = 1 + len(leaving(given, alone))
    return [
        (vip, Row(*replacement, MOVES, _handover(given, vip, stopping), tuple(turn.name for turn in each)))
        for (vip, replacement), each in found.items()
    ]


def _handed_over(given: List[Turn], alone: str) -> List[Tuple[str, Row]]:
    """Return a row for each VIP of a member whose router stops because it gives a Virtual Router up."""
    stopped = [turn for turn in given if turn.name in leaving(given, alone)]
    return [
        (vip, Row("member", turn.name, "another", MOVES, _handover(given, vip, len(stopped)), (turn.name,)))
        for turn in stopped
        for vip in turn.holds
        if any(vip in changes.vips(other.after) for other in given)
    ]


def _left_to_the_sole_router(given: List[Turn], alone: str, own: Mapping[str, List[Row]]) -> List[Tuple[str, Row]]:
    """Return a row for each VIP that moves to the sole router although nothing of its own splits.

    :param own: the rows of the settings, by VIP
    """
    splitting = {vip for vip, some in own.items() if any(row.kind == SPLITS for row in some)}
    return [
        (vip, Row("member", turn.name, alone, MOVES, _taken_over(given, vip, alone), (turn.name,)))
        for turn in given
        if alone and turn.is_changed and turn.name != alone
        for vip in turn.holds
        if vip not in splitting and _taken_over(given, vip, alone)
    ]


def _with_their_group(given: List[Turn], own: Mapping[str, List[Row]]) -> List[Tuple[str, Row]]:
    """Return a row for each VIP whose sync group gets another one, or has one whose router starts anew.

    That one begins as Backup, and all of the group with it: they are Active again when nobody was heard.

    :param own: the rows of the settings, by VIP
    """
    found: Dict[Tuple[str, str, float], List[str]] = {}
    for turn in given:
        before, after = changes.vips(turn.before), changes.vips(turn.after)
        anew = {vip for vip in before & after if any(row.gone and turn.name in row.members for row in own.get(vip, []))}
        beginning = sorted(after - before | anew)
        if turn.in_group and turn.is_changed and beginning:
            gone = max(map(changes.active_down, turn.after))
            for vip in sorted(before & after - {*beginning}):
                found.setdefault((vip, f"with {', '.join(beginning)}", gone), []).append(turn.name)
    return [
        (vip, Row("sync group", what, what, MOVES, gone, tuple(names))) for (vip, what, gone), names in found.items()
    ]


def _restarted(given: List[Turn], at_once: bool) -> List[Tuple[str, Row]]:
    """Return a row for each VIP whose holder has a keepalived that is restarted.

    :param at_once: whether no other member can take over meanwhile
    """
    found = [(turn, vip) for turn in given if turn.restarts and turn.is_changed for vip in turn.holds]
    return [
        (
            vip,
            Row("keepalived", "runs", "is restarted", MOVES, _gone_meanwhile(given, turn, vip, at_once), (turn.name,)),
        )
        for turn, vip in found
    ]


def _gone_meanwhile(given: List[Turn], turn: Turn, vip: str, at_once: bool) -> float:
    others = [other for other in given if other is not turn and other.runs and vip in changes.vips(other.before)]
    if others and not at_once:
        return _handover(given, vip, 1)
    own = _of_vip([*turn.before, *turn.after], vip)
    return RESTART + max((changes.active_down(each) for each in own), default=0)


def _handover(given: List[Turn], vip: str, stopping: int) -> float:
    """Return the longest Skew_Time of a member that takes a VIP over when so many others stop, in seconds."""
    here = [turn for turn in given if vip in changes.vips(turn.before)]  # those that join do so later
    every = [_of_vip([*turn.before, *turn.after], vip) for turn in here]
    lowest = sorted((min(each["priority"] for each in own) for own in every if own), reverse=True)
    longest = max(changes.longest_skew(each) for own in every for each in own)
    return (256 - lowest[min(stopping, len(lowest) - 1)]) / 256 * longest


def _taken_over(given: List[Turn], vip: str, alone: str) -> float:
    """Return for how many seconds a VIP that another member holds is gone until the sole router has taken it over.

    It is the last one to do so: the others stop, and those with a higher priority may have it on the way. If its
    Skew_Time is so long that it has its new settings before, it begins to wait anew, for all of its timer.
    """
    holder = next((turn.name for turn in given if vip in turn.holds), alone)
    own = [[_of_vip(some(turn), vip) for some in (_before, _after)] for turn in given if turn.name == alone]
    if holder == alone or not own or not own[0][0]:
        return 0
    before, after = own[0]
    skew = (256 - before[0]["priority"]) / 256 * changes.longest_skew(before[0])
    again = changes.active_down(after[0]) if after and skew > before[0]["advert_interval"] / 2 else 0
    return float(skew + again)


def _of_vip(instances: List[Instance], vip: str) -> List[Instance]:
    return [each for each in instances if vip in changes.vips([each])]


def _best_changes(given: List[Turn], vip: str, in_order: List[List[str]]) -> bool:
    """Return whether another member has the highest priority afterwards, or on the way."""
    before, after = (
        {turn.name: each["priority"] for turn in given for each in _of_vip(some(turn), vip)}
        for some in (_before, _after)
    )
    if not before or not after:
        return bool(before or after)
    best = max(before, key=lambda name: before[name])
    turn = {name: number for number, wave in enumerate(in_order) for name in wave}
    later = {name for name in before if turn.get(name, 0) >= turn.get(best, 0)}  # than the best, or at the same time
    others = [priority for name, priority in after.items() if name != best]
    others += [priority for name, priority in before.items() if name != best and name in later]
    return max(others, default=0) > min(before[best], after.get(best, 0))


def longest_gaps(given: List[Turn], alone: str, in_order: List[List[str]]) -> Dict[str, float]:
    """Return for how many seconds each VIP that runs and will run is gone at most.

    What splits may still go on when the sole router hands over, to change its engine.

    :param alone: as `rows` takes it
    :param in_order: likewise
    """
    found = rows(given, alone, in_order)
    before, after = (changes.vips([each for turn in given for each in some(turn)]) for some in (_before, _after))
    return {vip: sum(_longest(found.get(vip, []))) for vip in sorted(before & after)}


def _longest(own: List[Row]) -> Tuple[float, float]:
    """Return the longest time of a row that splits, and of any other."""
    splits, others = (max((row.gone for row in own if (row.kind == SPLITS) is it), default=0) for it in (True, False))
    return splits, others


def _before(turn: Turn) -> List[Instance]:
    return turn.before


def _after(turn: Turn) -> List[Instance]:
    return turn.before if turn.is_left else turn.after
