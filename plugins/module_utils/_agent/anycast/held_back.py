# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether a switchover or a maintenance holds this host back: its record is in a file, and counts at once."""

from __future__ import annotations

import json
import os
from typing import Callable, Dict, Sequence

from ..checks.files import File
from ..checks.outcome import Outcome, in_words
from ..checks.periodic import PeriodicProbe
from ..runtime.loop import MILLION, Loop
from .gate import Record

AGAIN = 2 * MILLION  # for what inotify does not see: a folder that is created later
ENOUGH = 1 << 20  # bytes


class HeldBack:
    """Reads the files when they change."""

    def __init__(self, loop: Loop, changed: Callable[[], None]) -> None:
        self._loop, self._changed = loop, changed
        self._probes: Dict[str, PeriodicProbe] = {}
        self._found: Dict[str, Outcome] = {}

    def use(self, paths: Sequence[str]) -> None:
        """Read these files from now on. What is known of one that was read before still counts."""
        for path in self._probes.keys() - {*paths}:
            self._probes.pop(path).stop()
        self._found = {path: self._found.get(path) or look(path) for path in paths}
        for path in paths:
            if path not in self._probes:
                self._probes[path] = self._follow(path)

    @property
    def record(self) -> Record:
        found = self._found.values()
        texts = [outcome.detail for outcome in found if not outcome.success]
        return Record("; ".join(texts), known=all(outcome.known for outcome in found))

    def _follow(self, path: str) -> PeriodicProbe:
        def take(outcome: Outcome) -> None:
            before, self._found[path] = self._found[path], outcome
            if (before.detail, before.known) != (outcome.detail, outcome.known):
                self._changed()

        def again() -> None:
            probe.run_now()

        probe = PeriodicProbe(self._loop, AGAIN, File(self._loop, path, again, look), take)
        probe.start()
        return probe


def look(path: str) -> Outcome:
    """Return whether there is no record in a file. As for the others who read it, a damaged one is none."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            record = json.loads(file.read(ENOUGH))
    except (FileNotFoundError, NotADirectoryError):
        return Outcome(True)
    except OSError as error:
        return Outcome(True, f"{path} cannot be read: {in_words(error)}", known=False)
    except (ValueError, RecursionError):
        return Outcome(True)
    if not isinstance(record, dict) or not record:
        return Outcome(True)
    said = [f"{word} {record[key]}" for word, key in (("since", "since"), ("by", "by")) if record.get(key)]
    return Outcome(False, " ".join(["held back", *said]))
