# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a run could leave for a second one, where all at once has no safe way. Pure."""

from __future__ import annotations

import functools
import itertools
from typing import Callable, Dict, Iterator, List, Mapping, NamedTuple, Set

from . import changes
from .changes import AS_IT_RUNS, SPLITS, Instance
from .turns import Turn, changed, starting

# What all members of a Virtual Router share, and a run can leave as it is: the keys of an instance by the labels of
# `changes.SETTINGS`.
SHARED = {
    "VRID": "vrid",
    "VRRP version": "version",
    "interval": "advert_interval",
    "password": "auth_pass",
    "multicast": "multicast",
}


class Smaller(NamedTuple):
    """A run that changes less."""

    mend: str  # what the user does for it
    turns: List[Turn]
    migrating: List[str]


class Part(NamedTuple):
    """What a run changes, and could leave as it is."""

    words: str
    left: Callable[[List[Turn]], List[Turn]]  # returns the turns without it


def smaller(given: List[Turn], migrating: List[str], prefix: str) -> Iterator[Smaller]:
    """Yield the runs that change less: those that leave whole parts, most of the change first, then those of one group.

    :param migrating: the members that change their engine, in their order
    :param prefix: of the layout's variables
    """
    if any(turn.is_left and not turn.is_silent for turn in given):
        yield Smaller("run it without --limit", [turn._replace(is_left=turn.is_silent) for turn in given], migrating)
    parts = _parts(given, prefix)
    most = len(parts) - (not starting(given))  # a run that only starts routers does something, too
    for count in range(1, most + 1):
        for some in itertools.combinations(parts, count):
            turns = functools.reduce(lambda turns, part: part.left(turns), some, given)
            mend = f"leave the change of {' and of '.join(part.words for part in some)} for a second run"
            yield Smaller(mend, turns, [turn.name for turn in turns if turn.replaces and turn.name in migrating])
    groups = _groups(given)
    for group in groups if len(groups) > 1 else []:
        mend = f"leave the change of {_members_of(group)} for a second run"
        yield Smaller(mend, _with_these_vips(given, group), migrating)


def _parts(given: List[Turn], prefix: str) -> List[Part]:
    """Return what the run changes of the routers, besides what harms nobody."""
    carried = _carried(given)
    found = changed(given).values()
    labels = dict.fromkeys(change.label for some in found for change in some if change.kind == SPLITS)
    shared = [label for label in labels if label in SHARED]
    every = [
        (carried, Part(_members_of(carried), _with_what_is_carried)),
        (any(turn.replaces for turn in given), Part(f"{prefix}_engine", _with_their_engines)),
        (shared, Part(", ".join(shared), _with_what_is_shared)),
    ]
    return [part for changes_it, part in every if changes_it]


def _carried(given: List[Turn]) -> Set[str]:
    """Return the VIPs that a member gets or gives up."""
    return {vip for turn in given for vip in changes.vips(turn.before) ^ changes.vips(turn.after)}


def _members_of(vips: Set[str]) -> str:
    return f"the members that carry {', '.join(sorted(vips))}"


def _groups(given: List[Turn]) -> List[Set[str]]:
    """Return the VIPs that members get or give up, one Virtual Router's together: its address changes."""
    found: List[Set[str]] = []
    carried = _carried(given)
    every = [turn.routers(some) for turn in given for some in (turn.before, turn.after)]
    for router in dict.fromkeys(router for routers in every for router in routers):
        vips = {vip for routers in every if router in routers for vip in _vips(routers[router])} & carried
        joined = [group for group in found if group & vips]
        found = [group for group in found if group not in joined] + [vips.union(*joined)]
    return [group for group in found if group]


def _with_their_engines(given: List[Turn]) -> List[Turn]:
    return [turn._replace(engine=turn.running_engine, replaces="") for turn in given]


def _with_what_is_carried(given: List[Turn]) -> List[Turn]:
    """Return the turns in which each member carries what it does now, with what its routers will share."""
    planned = _shared([turn.after for turn in given])
    after = []
    for turn in given:
        stays = {vip: each for each in turn.after for vip in _vips(each)}
        own = [_of(each, stays) or {**AS_IT_RUNS, **each} for each in turn.before]
        after.append([{**each, **_of(each, planned)} for each in own])
    return _among_themselves(given, after)


def _with_these_vips(given: List[Turn], group: Set[str]) -> List[Turn]:
    """Return the turns in which these VIPs have the members, and the addresses, that they have now."""
    after = []
    for turn, now in zip(given, _with_what_is_carried(given)):
        stays = [each for each in now.after if group & changes.vips([each])]
        taken = group | changes.vips(stays)
        after.append([*stays, *(each for each in turn.after if not taken & changes.vips([each]))])
    return _among_themselves(given, after)


def _with_what_is_shared(given: List[Turn]) -> List[Turn]:
    """Return the turns in which the routers of each VIP keep what they share now."""
    now = _shared([turn.before for turn in given])
    return _among_themselves(given, [[{**each, **_of(each, now)} for each in turn.after] for turn in given])


def _shared(every: List[List[Instance]]) -> Dict[str, Instance]:
    """Return what the routers of each VIP share."""
    return {vip: {key: each[key] for key in SHARED.values()} for own in every for each in own for vip in _vips(each)}


def _of(instance: Instance, shared: Mapping[str, Instance]) -> Instance:
    return next((shared[vip] for vip in _vips(instance) if vip in shared), {})


def _among_themselves(given: List[Turn], after: List[List[Instance]]) -> List[Turn]:
    """Return the turns with these instances, each of which has the others of its VIPs as peers."""
    sources: Dict[str, Set[str]] = {}
    for each in (each for own in after for each in own):
        for vip in _vips(each):
            sources.setdefault(vip, set()).add(each["source"])
    return [turn._replace(after=[_with_peers(each, sources) for each in own]) for turn, own in zip(given, after)]


def _with_peers(instance: Instance, sources: Mapping[str, Set[str]]) -> Instance:
    others = {source for vip in _vips(instance) for source in sources[vip]} - {instance["source"]}
    return {**instance, "peers": [] if instance["multicast"] else sorted(others)}


def _vips(instance: Instance) -> List[str]:
    return sorted(changes.vips([instance]))
