# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a user may set for a drill."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

from ..._agent.config.schema import Faults, Field, boolean, integer, list_of, number, one_of, read, shown, text, word
from ..._shared.events import EVENTS, ON_REQUEST
from . import values

LONGEST_MS = 60_000
MILLISECONDS = number(0, LONGEST_MS, " ms")


def _lines(value: Any) -> Tuple[Any, Optional[str]]:
    """A text of any number of lines: a shell command, or what a client sends."""
    return (value, None) if isinstance(value, str) and "\0" not in value else (None, "a string is required.")


def _by_event(what: str) -> Callable[[Any], Tuple[Any, Optional[str]]]:
    """A mapping of events."""

    def check(value: Any) -> Tuple[Any, Optional[str]]:
        return (value, None) if isinstance(value, dict) else (None, f"a mapping of events to their {what} is required.")

    return check


COMMANDS = {"inject": Field(_lines, required=True), "revert": Field(_lines, "")}
SETTINGS = {
    "layout": Field(one_of("pair", "ipi"), "pair"),
    "events": Field(list_of(word), [event for event in EVENTS if event not in ON_REQUEST]),
    "folders": Field(list_of(values.plain_path, at_least=1), ["/run"]),
    "commands": Field(_by_event("commands"), {}),
    "repeats": Field(integer(1, 1000), 1),
    "send": Field(_lines, ""),
    "interval_ms": Field(number(1, LONGEST_MS, " ms"), 5),
    "timeout_ms": Field(number(1, LONGEST_MS, " ms"), 300),
    "lasting": Field(integer(0, 512), 20),
    "budget": Field(MILLISECONDS, 0),
    "budgets": Field(_by_event("budgets in milliseconds"), {}),
    "report": Field(text, ""),
    "html": Field(text, ""),
    "history": Field(text, "drills"),
    "break_lock": Field(boolean, False),
}


def model(given: Dict[str, Any]) -> Faults:
    """Return what is wrong with the commands and the budgets, and which events are neither known nor have commands."""
    faults: Faults = []
    settings = read(SETTINGS, given, "drill", [])
    for event, commands in settings["commands"].items():
        read(COMMANDS, commands, f"drill_commands.{event}", faults)
    read({event: Field(MILLISECONDS) for event in settings["budgets"]}, settings["budgets"], "drill_budgets", faults)
    known = [*EVENTS, *settings["commands"]]
    return faults + [
        f"{name} has {shown(event)}: there are {', '.join(known)}, and others need their commands in drill_commands."
        for name, events in (("drill_events", settings["events"]), ("drill_budgets", settings["budgets"]))
        for event in events
        if event not in known
    ]
