# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Who locks which member, and which ones stop a run. Pure."""

from __future__ import annotations

import math
from typing import Any, Collection, Dict, List, Mapping, NamedTuple, Sequence

from ..._shared.held_back import limit

SLOWER = 1.5  # what follows in a run, than what it has done so far
Attempt = Mapping[str, Any]  # what member_lock returned of a member, whose name is its `item`


class Locks(NamedTuple):
    """What came of the locks.

    :ivar loops: the result of the task that locks, of each host of the play
    :ivar attempted: of this host's, the members that answered: each result has its member as ``item``
    :ivar interrupted: all members whose undo an interrupted run has armed
    :ivar interrupted_as: the role of this host in that undo, if it has one
    """

    loops: Sequence[Mapping[str, Any]]
    attempted: List[Attempt]
    interrupted: List[str]
    interrupted_as: str


def read(loops: Sequence[Mapping[str, Any]], own: Mapping[str, Any], host: str) -> Locks:
    """Return what came of the locks, for a host of the play.

    :param loops: as `Locks` has them
    :param own: the one of this host; a run that takes no lock has none
    """
    attempted = [attempt for attempt in own.get("results", []) if "interrupted" in attempt]
    every = [attempt for loop in loops for attempt in loop.get("results", []) if attempt.get("interrupted")]
    here = [attempt["interrupted"] for attempt in attempted if attempt["item"] == host]
    return Locks(loops, attempted, [attempt["item"] for attempt in every], next(iter(here), ""))


def to_lock(members: Sequence[str], here: Sequence[str], host: str) -> List[str]:
    """Return the members that a host of the play locks: itself, and for one host those that are not in the play.

    :param here: the hosts of the play
    """
    absent = [name for name in members if name not in here]
    locking = next((name for name in members if name in here), here[0])
    return [name for name in members if name == host] + (absent if host == locking else [])


def waits(interrupted: Sequence[str], mends: bool) -> List[str]:
    """Return why a run must wait for members that return, unless it mends what an interrupted run has left."""
    if mends or not interrupted:
        return []
    return [
        f"{', '.join(interrupted)}: a run was interrupted, and what it has changed there is taken back within a minute "
        "or two. Wait for that, or repeat that run."
    ]


def refusals(loops: Sequence[Mapping[str, Any]], here: Collection[str], lock: Mapping[str, Any]) -> List[str]:
    """Return why the run must not go on, a sentence for each reason.

    :param loops: the result of the task that locks, of each host of the play
    :param here: the hosts of the play
    :param lock: ``requires_all``, whether the run needs every member, and ``goes_on_without_silent``, whether one that
        names its members by --limit goes on without another one that does not answer
    """
    attempts = [attempt for loop in loops for attempt in loop.get("results", ())]
    failed = [attempt for attempt in attempts if "msg" in attempt]
    if not lock["requires_all"]:
        return _sentences([attempt for attempt in failed if attempt.get("held_by") is not None])
    passes = lock.get("goes_on_without_silent", False)
    needed = [attempt for attempt in failed if not (passes and is_silent(attempt) and attempt["item"] not in here)]
    silent = [attempt["item"] for attempt in needed if is_silent(attempt)]
    return _sentences(needed) + (_way_on(silent, here) if passes else [])


def heartbeat_timeout(attempts: Sequence[Attempt], undo_after: float, now: float) -> float:
    """Return for how many seconds members wait for a heartbeat before they return to their settings of before.

    What follows takes about as long as it took since the locks. On slow hosts that is more than the user's value.
    """
    began = min(attempt["at"] for attempt in attempts if "at" in attempt)
    return float(max(math.ceil(undo_after), math.ceil(SLOWER * (now - began))))


def is_silent(attempt: Attempt) -> bool:
    """Return whether the member did not answer at all."""
    return not attempt.get("answered", True)


def _way_on(silent: Sequence[str], here: Collection[str]) -> List[str]:
    """Say how those that answer can be changed without the others."""
    if not silent or set(here) <= set(silent):
        return []
    return [f"To change the members that answer, repeat the same command with{limit(silent)}."]


def _sentences(attempts: Sequence[Attempt]) -> List[str]:
    found: Dict[str, None] = dict.fromkeys(str(attempt["msg"]) for attempt in attempts)
    return list(found)
