# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What became of each connection of a probe, as a short text. Pure.

There is a word for each interval: the tenths of a millisecond until the answer, or a letter for what came in its place.
"""

from __future__ import annotations

from typing import Dict, Iterable, List, NamedTuple, Optional, Tuple

OK, SKIPPED = "ok", "skipped"
LETTERS = {
    SKIPPED: "-",
    "timeout": "t",
    "refused": "r",
    "reset": "x",
    "closed": "c",
    "unavailable": "u",
    "slow": "s",
    "error": "e",
}
OUTCOMES = {letter: outcome for outcome, letter in LETTERS.items()}


class Answer(NamedTuple):
    """One connection, or an interval in which the probing host was too busy for one."""

    at_ms: float
    outcome: str  # ok, or one of LETTERS
    latency_ms: Optional[float] = None  # of one that is ok


def encode(attempts: Iterable[Tuple[float, float, str]], interval_ms: float) -> str:
    """Return the text of connections, each ``(start_ms, end_ms, outcome)``.

    One starts within its interval. An outcome that has no letter is an error.
    """
    words: Dict[int, str] = {}
    for start_ms, end_ms, outcome in attempts:
        answered = str(round((end_ms - start_ms) * 10))
        words[int(start_ms / interval_ms + 1e-6)] = answered if outcome == OK else LETTERS.get(outcome, "e")
    return " ".join(words.get(at, LETTERS[SKIPPED]) for at in range(max(words, default=-1) + 1))


def decode(text: str, interval_ms: float) -> List[Answer]:
    """Return the connections of a text. Each is dated to the start of its interval."""
    return [
        Answer(at * interval_ms, OUTCOMES[word]) if word in OUTCOMES else Answer(at * interval_ms, OK, int(word) / 10)
        for at, word in enumerate(text.split())
    ]
