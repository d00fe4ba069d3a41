# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""In which order a run changes its members: the Backups first, and once they are proved each holder of a VIP. Pure.

A change that fails then does so where no client notices, and the holder goes on serving as before.
"""

from __future__ import annotations

import collections
import itertools
from typing import Any, Collection, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Set, Tuple

from ..._shared.engines import AGENT, NATIVE, UNITS
from ..._shared.pods import MANIFESTS
from ..members.hosts import carried
from ..model.plan import Expected, MemberPlan
from ..model.services import ANY
from . import changes
from .turns import Turn


class Wave(NamedTuple):
    """The members that a run changes at one time, and what it does before."""

    members: List[str]
    proves: List[str] = []  # the members of the wave before: each must be able to take over
    hands_over: List[str] = []  # those of this wave whose routers stop, so that one that is proved takes over


def order(given: List[Turn]) -> List[List[str]]:
    """Return the members of a run in the order in which they change; [] if all of them change at once.

    They do where nobody serves who could be interrupted. A VIP without a holder, or with several, makes nobody wait:
    what mends it must reach all of them.
    """
    here = [turn for turn in given if not turn.is_left]
    vips = served(given)
    serving = sorted((turn for turn in here if not vips.isdisjoint(turn.holds)), key=lambda turn: turn.held)
    backups = [turn.name for turn in here if turn not in serving]
    found = [*([backups] if backups else []), *([turn.name] for turn in serving)]
    return found if serving and len(found) > 1 else []


def served(given: List[Turn]) -> Set[str]:
    """Return the VIPs that one member holds, whether the plan keeps them or drops them."""
    holders = collections.Counter(vip for turn in given for vip in turn.holds)
    return {vip for vip, count in holders.items() if count == 1}


def routers_together(given: List[Turn], alone: str) -> bool:
    """Return whether the routers change at one time, after the balancers.

    A member that runs a Virtual Router before the others do would hear nobody, and take its VIPs.

    :param alone: the sole router, or nothing
    """
    return bool(alone) or any(_routers(turn.before) != _routers(turn.after) for turn in given if turn.is_changed)


def _routers(instances: List[changes.Instance]) -> Set[Tuple[Any, ...]]:
    return {(changes.key(instance), frozenset(changes.vips([instance]))) for instance in instances}


def proof(
    expected: Expected, turn: Turn, given: List[Turn], listeners: Sequence[Mapping[str, Any]], together: bool
) -> Expected:
    """Return what must be so on a member that has changed, before the next ones do: it could take over.

    Its services answer at its own addresses; those of the VIPs are on a member that has not changed. Where the routers
    change together, after the balancers, there is no split yet that would have to show.

    :param expected: of it at the end of the run
    :param given: all members; a VIP that none of them holds so far, or several, proves nothing about this one
    :param listeners: where its balancer listens then
    :param together: as `routers_together` returns it
    """
    sources = dict.fromkeys(instance["source"] for instance in turn.after)
    wildcards = {source: "::" if ":" in source else ANY for source in sources}
    targets = [
        [source, listener["port"]]
        for source, wildcard in wildcards.items()
        for listener in listeners
        if not {source, wildcard}.isdisjoint(listener["bind"])
    ]
    # What a keepalived of others has loaded is not known; it is restarted after the proof.
    unknown = [UNITS[NATIVE].router] if together and turn.restarts else []
    vips = served(given)
    return expected._replace(
        services=[{"name": each["name"], "port": each["port"]} for each in listeners],
        units=[unit for unit in expected.units if unit not in unknown],
        vips=[vip for vip in expected.vips if vip.address in vips],
        excused=_unserved([*turn.before, *turn.after], vips),
        targets=targets,
        settle=0.0 if together else expected.settle,
        judged=0.0 if together else expected.judged,
    )


def _unserved(instances: List[changes.Instance], vips: Set[str]) -> List[str]:
    """Return the names of the instances that carry none of these VIPs, neither before the run nor after it."""
    found: Dict[str, Set[str]] = {}
    for each in instances:
        found.setdefault(each["name"], set()).update(carried(each))
    return sorted(name for name, own in found.items() if vips.isdisjoint(own))


def in_order(
    member: MemberPlan,
    turn: Turn,
    given: List[Turn],
    host: Mapping[str, Any],
    listening: Sequence[Mapping[str, Any]],
    joins: bool,
    together: bool,
) -> MemberPlan:
    """Return a member's plan with how it is proved before the next ones change, and what its change stops.

    :param listening: where its balancer listens then
    """
    provable = is_provable(turn, host, together, joins, bool(member.pods))
    return member._replace(
        proof=proof(member.expected, turn, given, listening, together) if provable else None,
        interrupted=interruption(host, member) if turn.holds and not together else "",
    )


def is_provable(turn: Turn, host: Mapping[str, Any], together: bool, joins: bool, in_pods: bool = False) -> bool:
    """Return whether a member could take over as soon as it has changed.

    One that joins, or that changes its engine, does so later. Where the routers change together, after the balancers,
    an agent changes both of its daemons then, and pods change together. A router that an interrupted run has stopped
    starts then.

    :param host: as `host_info` returns it
    :param together: as `routers_together` returns it
    :param joins: whether its router starts last
    :param in_pods: whether its programs are in static pods
    """
    changes_here = turn.is_changed and bool(turn.after) and not turn.replaces and not joins
    runs = UNITS[turn.engine].router in host.get("active_units", [])
    return changes_here and not (together and (turn.engine == AGENT or in_pods or not runs))


def interruption(host: Mapping[str, Any], member: MemberPlan) -> str:
    """Return the program that the change of a member stops for some seconds; '' if all of them go on.

    A reload stops none. A unit of others that starts its program in another way goes only with a restart.

    :param host: as `host_info` returns it
    """
    takeover: Mapping[str, Any] = host.get("takeover", {}) if member.engine == NATIVE and not member.replaces else {}
    return next((program for program, found in takeover.items() if found.get("stop")), "")


def waves(
    plans: Sequence[Mapping[str, Any]], changing: Collection[str], restarting: Collection[str] = ()
) -> List[Wave]:
    """Return the waves of a run with several plans. Those of different plans come at one time.

    A member that does not change belongs to the first wave, whose tasks find nothing to do. There is no second one
    unless a holder changes.

    :param plans: each as data
    :param changing: the members that change
    :param restarting: those of them whose programs stop on the way, beside what the plan knows
    """
    every = [_of_plan(plan, changing, restarting) for plan in plans]
    merged = itertools.zip_longest(*every, fillvalue=Wave([]))
    return [Wave(*([*itertools.chain(*parts)] for parts in zip(*some))) for some in merged]


def _of_plan(plan: Mapping[str, Any], changing: Collection[str], restarting: Collection[str]) -> List[Wave]:
    members: Dict[str, Any] = plan["members"]
    restarting = [name for name in restarting if name in members and not members[name]["replaces"]]
    later = [wave for wave in plan["order"][1:] if not set(changing).isdisjoint(wave)]
    moved = {name for wave in later for name in wave}
    at_first = [name for name in members if name not in moved]
    found = []
    for before, wave in zip([[], at_first, *later], [at_first, *later]):
        proves = [name for name in before if members[name]["proof"]]
        stopping = [name for name in wave if members[name]["interrupted"] or name in restarting]
        found.append(Wave(wave, proves, stopping if plan["order"] and proves else []))
    return found


def has_changes(found: Mapping[str, Any]) -> bool:
    """Return whether the check of a member's files has found something to do.

    :param found: what `config_files` or `agent` returned in check mode; nothing if it was not called
    """
    return any(found.get(key) for key in ("paths", "stale", "steps"))


def pending(every: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether checks of a member's files have found some to write, or the agent's steps to take.

    A run in which none has saves no state: what has only not been loaded is loaded.
    """
    return any(found.get(key) for found in every for key in ("paths", "steps"))


def starts_pods_anew(found: Mapping[str, Any]) -> bool:
    """Return whether the check of a member's files has found a manifest that changes: the kubelet then ends its pod.

    :param found: as `has_changes` takes it
    """
    return any(path.startswith(MANIFESTS) for path in found.get("paths", []))


def unproved(wave: Mapping[str, Any], proofs: Iterable[Sequence[Any]]) -> List[str]:
    """Return a sentence for each member that has changed and could not take over: the next ones must not change.

    :param wave: the next one, as data
    :param proofs: ``[name, what `layout_info` returned]`` of each host
    """
    left = " and ".join(wave["members"])
    known: Dict[str, Any] = {each[0]: each[1] for each in proofs}
    found = [(name, known.get(name, {})) for name in wave["proves"]]
    return [
        f"{name} has changed and could not take over, so {left} is not changed and keeps serving: "
        f"{' '.join(proof.get('faults') or [proof.get('msg', 'no answer')])} Fix that, and repeat the run."
        for name, proof in found
        if not proof.get("skipped") and proof.get("faults") != []
    ]
