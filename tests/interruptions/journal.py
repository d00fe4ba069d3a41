# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal of a run, and the moments at which killing the run leaves the hosts in different states. Pure."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

HAS_A_MIDDLE_S = 1.0
REPAIRED = re.compile(r"\| (?P<operation>.+?) \| \d+ (?P<name>.+?)(?P<delay> \+ \d+\.\d s)? \| repaired \|")
Kind = Tuple[str, str, bool]  # an operation, a task in it, and whether that is interrupted in its middle


class Moment(NamedTuple):
    """When to kill a run: so many seconds after the start of a task.

    :ivar task: its number in the run that was not killed; another run of the same may have tasks more, or less
    :ivar time: which of the tasks of this name it is, from 1 on
    """

    task: int
    delay: float
    name: str
    time: int = 1

    def kind(self, operation: str) -> Kind:
        return operation, self.name, bool(self.delay)

    def __str__(self) -> str:
        return f"{self.task} {self.name}" + (f" + {self.delay:.1f} s" if self.delay else "")


@dataclass(frozen=True)
class Task:
    """A task of a run, or a handler."""

    number: int
    name: str
    length: float  # seconds
    changed: Tuple[str, ...]  # hosts


@dataclass(frozen=True)
class Journal:
    """A run.

    :ivar changes: how many results were changes; None if the run was killed
    :ivar failed: the hosts that have failed
    :ivar failure: the first failure: host, task and message
    """

    tasks: Tuple[Task, ...]
    changes: Optional[int]
    failed: Tuple[str, ...]
    failure: str = ""

    @property
    def end(self) -> str:
        """Where the run ended: its first failure, or its last task."""
        return self.failure or (self.tasks[-1].name if self.tasks else "the start")


def read(text: str) -> Journal:
    """Read what the callback has written. A last line may be incomplete."""
    events = [json.loads(line) for line in text.splitlines() if line.endswith("}")]
    starts = [event for event in events if "name" in event]
    end = next((event for event in events if "ended" in event), None)
    changed: Dict[int, List[str]] = {}
    for event in events:
        if "changed" in event:
            changed.setdefault(event["task"], []).append(event["changed"])
    ends = [event["at"] for event in starts[1:]] + [end["ended"] if end else starts[-1]["at"]] if starts else []
    tasks = [
        Task(event["task"], event["name"], stop - event["at"], tuple(changed.get(event["task"], ())))
        for event, stop in zip(starts, ends)
    ]
    failure = next((_failure(event, tasks) for event in events if "fails" in event), "")
    return Journal(tuple(tasks), end["changes"] if end else None, tuple(end["failed"]) if end else (), failure)


def _failure(event: Dict[str, Any], tasks: Sequence[Task]) -> str:
    name = next((task.name for task in tasks if task.number == event["task"]), "")
    return f"{name} on {event['fails']}: {' '.join(event['why'].split())}"


def moments(journal: Journal) -> List[Moment]:
    """Return the moments that differ.

    Between two tasks that change something the hosts stay as they are, so one moment stands for all tasks between them.
    A task that changes something is also interrupted in its middle, when some hosts may be done, if it takes long
    enough to have one.
    """
    found: List[Moment] = []
    times: Counter[str] = Counter()
    after_change = False
    for task in journal.tasks:
        times[task.name] += 1
        moment = Moment(task.number, 0.0, task.name, times[task.name])
        if task.changed or after_change:
            found.append(moment)
        if task.changed and task.length >= HAS_A_MIDDLE_S:
            found.append(moment._replace(delay=task.length / 2))
        after_change = bool(task.changed)
    return found


def each_once(every: Sequence[Moment], journal: Journal) -> List[Moment]:
    """Return one moment of those that differ in the member alone, another member for each.

    A run does the same for one member after the other: tasks of one name, after changes of one name.
    """
    alike: Dict[Tuple[str, str, bool], List[Moment]] = {}
    for moment in every:
        alike.setdefault((moment.name, _last_change(journal, moment.task), bool(moment.delay)), []).append(moment)
    return sorted(group[number % len(group)] for number, group in enumerate(alike.values()))


def _last_change(journal: Journal, before: int) -> str:
    """Return the name of the last task before this one that has changed something; '' if there is none."""
    return next((task.name for task in reversed(journal.tasks) if task.changed and task.number < before), "")


def repaired(tables: str) -> Counter[Kind]:
    """Count the moments of each kind that are `repaired` in tables that earlier kill tests have printed."""
    rows = (REPAIRED.fullmatch(line.replace("\\|", "|")) for line in tables.splitlines())
    return Counter((row["operation"], row["name"], bool(row["delay"])) for row in rows if row)


def left(every: Sequence[Moment], operation: str, done: Counter[Kind]) -> List[Moment]:
    """Return an operation's moments but for those that are done. Of several of one kind the first ones are."""
    undone = Counter(done)
    undone.subtract(moment.kind(operation) for moment in reversed(every))
    found: List[Moment] = []
    for moment in reversed(every):
        if undone[moment.kind(operation)] < 0:
            undone[moment.kind(operation)] += 1
            found.insert(0, moment)
    return found


def starts(every: Sequence[Moment]) -> List[Moment]:
    """Return the moments at which a task starts."""
    return [moment for moment in every if not moment.delay]


def part(every: Sequence[Moment], which: Tuple[int, int]) -> List[Moment]:
    """Return one of several parts, so that several machines can share the moments.

    A task is in the same part everywhere, also where it takes long enough to be interrupted in its middle.

    :param which: the part's number, from 1 on, and how many parts there are
    """
    number, parts = which
    tasks = list(dict.fromkeys(moment.task for moment in every))
    return [moment for moment in every if tasks.index(moment.task) % parts == number - 1]


def sample(every: Sequence[Moment], count: Optional[int]) -> List[Moment]:
    """Return so many moments, evenly spread; all of them for None."""
    if count is None or count >= len(every):
        return list(every)
    return [every[(2 * at + 1) * len(every) // (2 * count)] for at in range(count)]
