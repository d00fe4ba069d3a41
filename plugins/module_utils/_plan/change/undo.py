# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which members return to their settings of before unless the run is proved, and which of them first. Pure.

What each member then does by itself is decided by `_host/states/undoing`.
"""

from __future__ import annotations

from typing import Any, Collection, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Sequence

from ..._shared.engines import NATIVE, ROUTERS
from ..model.plan import MemberPlan, Undo
from .transition import Way

ALONE, FIRST, OTHER = "alone", "first", "other"  # as `_host/states/undoing` has them
MOST_LATE = 8  # heartbeats


class Run(NamedTuple):
    """What a run knows of itself and of a member when it arms the undo.

    :ivar here: the hosts of the play
    :ivar changing: those of them that change
    :ivar interrupted: the members whose undo an interrupted run has armed
    :ivar interrupted_as: the role of this member in that undo, if it has one
    :ivar silence: for how many seconds the run may be silent
    :ivar configs: the configuration files of haproxy and keepalived, by program
    """

    here: Collection[str]
    prefix: str
    undo_after: float
    dry: bool
    changing: Collection[str]
    interrupted: Collection[str]
    interrupted_as: str
    id: str
    silence: float
    configs: Mapping[str, str]


def part(plan: Mapping[str, Any], name: str, run: Run) -> Dict[str, Any]:
    """Return a member's part in the undo of a run: what `member_state` is given, and who returns.

    Without a ``run`` nobody returns; ``unarmed`` says why, if something changes.

    :param plan: as data
    """
    found = plan["undo"]
    is_armed = name in found["members"] and run.undo_after > 0 and not run.dry
    is_armed = is_armed and not {*found["members"]}.isdisjoint([*run.changing, *run.interrupted])
    role = (FIRST if name == found["first"] else OTHER) if found["first"] else ALONE
    why = found["reason"] or ("" if run.undo_after > 0 else f"{run.prefix}_undo_after is 0.")
    return {
        "run": run.id if is_armed else "",
        "role": role if is_armed else run.interrupted_as or ALONE,
        "after": run.silence + found["settle"] + found["judged"],
        "settle": found["settle"],
        "setting": f"{run.prefix}_undo_after",
        "members": [each for each in plan["members"] if each in run.here],
        "purpose": "onprem.lb.site",
        "first": found["first_addresses"],
        "configs": run.configs,
        "interfaces": plan["members"][name]["firewall"]["interfaces"],
        "unarmed": why if run.changing and not is_armed else "",
    }


def is_late(answers: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether a heartbeat took too long for a member.

    :param answers: what `member_state` returned; its task is skipped for the first one, and hosts without an undo have
        nothing
    """
    return not all(each.get("postponed", False) for each in answers if each and "skipped" not in each)


def late(count: int, setting: str) -> List[str]:
    """Return why a run must not go on, once so many heartbeats took too long.

    With many members it may be another one each time, and then the time of none would ever come.

    :param setting: the variable that sets for how long a run may be silent
    """
    if count <= MOST_LATE:
        return []
    mend = f"They return to their settings of before. Repeat the run; where hosts are slow, with a larger {setting}."
    return [f"Heartbeats of this run take too long to reach its members. {mend}"]


def undo(
    members: Sequence[Dict[str, Any]], planned: Mapping[str, MemberPlan], way: Way, held: Mapping[str, int]
) -> Undo:
    """Return the undo of a run; one without members, and with the reason, where none can be.

    That is a first deployment, which the next run completes. A change of the engine, an adoption and static pods are
    left to the next run as well: packages go with the first, files of others are set aside in the second, and nothing
    but the kubelet ends the last.

    :param members: as in `planner`
    :param planned: the plan of each
    :param held: how many VIPs each member holds
    """
    here = [member for member in members if not member.get("outside_limit")]
    serving = [member["name"] for member in here if _runs_ours(member["host"])]
    names = [member["name"] for member in here]
    hindrances = list(_hindrances(here, planned, serving, way))
    if hindrances:
        return Undo(reason=hindrances[0])
    settle = max(planned[name].expected.settle for name in names)
    first = way.sole_router or max(serving, key=lambda name: held[name])
    judged = max(planned[name].expected.judged for name in names)
    if not settle:
        return Undo(names, judged=judged)
    return Undo(names, first, settle, judged, first_addresses=_addresses(members, first))


def _addresses(members: Sequence[Dict[str, Any]], name: str) -> List[str]:
    """Return the addresses from which a member may advertise."""
    known = next(member["host"].get("addresses", []) for member in members if member["name"] == name)
    return [info["address"] for info in known if info["interface"] != "lo"]


def _hindrances(
    here: Sequence[Dict[str, Any]], planned: Mapping[str, MemberPlan], serving: Sequence[str], way: Way
) -> Iterator[str]:
    """Say why members cannot return by themselves."""
    if not serving:
        yield "no router of this collection runs here yet. The next run completes what this one has begun."
    yield from taken_over(here, planned, way)


def taken_over(members: Sequence[Dict[str, Any]], planned: Mapping[str, MemberPlan], way: Way) -> Iterator[str]:
    """Say of which members a run takes something away, or over, that no return gives back."""
    if way.migrating:
        yield f"{', '.join(way.migrating)} get another engine, and packages with it. The next run completes that."
    for member in [each for each in members if not each.get("outside_limit")]:
        name, host = member["name"], member["host"]
        if planned[name].pods:
            yield f"{name} has static pods, which only its kubelet ends. The next run completes this one."
        others = _files_of_others(host) if planned[name].engine == NATIVE else []
        if others:
            yield (
                f"{name} has {', '.join(others)}, not written by this collection, which this run takes over. The next "
                "run finds nothing more to take over, and can return."
            )


def _runs_ours(host: Dict[str, Any]) -> bool:
    """Whether a router of this collection runs."""
    return bool({*ROUTERS} & {*host.get("own_units", [])} & {*host.get("active_units", [])})


def _files_of_others(host: Dict[str, Any]) -> Sequence[str]:
    """Return the files of others that a run with haproxy and keepalived keeps beside its own, or sets aside."""
    takeovers = host.get("takeover", {}).values()
    return sorted({path for each in takeovers for path in (*each.get("keep", ()), *each.get("set_aside", ()))})
