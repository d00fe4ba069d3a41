# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Checks for ``schema.Field`` of what a program has written as JSON: a value of another type stands for nothing else.

Another version may have written it. So `judge` takes keys that are not known, which `schema.read` refuses to users.
What somebody else's program says is not refused: `fitting` reads of it what is as it has to be.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

from .schema import Faults, Field, shown_of

Checked = Tuple[Any, Optional[str]]
Check = Callable[[Any], Checked]
LARGEST = 1 << 24  # characters


def exactly(wanted: type, what: str, fits: Callable[[Any], bool] = lambda _value: True) -> Check:
    """A value of one type as JSON has it: what stands for another one would be restored as something else."""

    def check(value: Any) -> Checked:
        is_one = isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))  # a bool is an int, too
        return (value, None) if is_one and fits(value) else (None, f"{what} is required.")

    return check


def whole(low: int, high: int) -> Check:
    return exactly(int, f"a whole number from {low} to {high}", lambda value: low <= value <= high)


def each(check: Check, what: str) -> Check:
    return exactly(list, f"a list of {what}", lambda value: not any(check(item)[1] for item in value))


def by_name(check: Check, what: str) -> Check:
    return exactly(dict, f"a mapping of {what}", lambda value: not any(check(item)[1] for item in value.values()))


def maybe(check: Check) -> Check:
    """Null, where nothing is known, or what passes a check."""
    return lambda value: (value, None) if value is None else check(value)


def record(schema: Mapping[str, Field]) -> Check:
    """A mapping that fits a schema."""

    def check(value: Any) -> Checked:
        faults = judge(schema, value, "it")
        return (None, f"{faults[0]}") if faults else (value, None)

    return check


def records(schema: Mapping[str, Field]) -> Check:
    """A list of mappings that fit a schema."""

    def check(value: Any) -> Checked:
        if not isinstance(value, list):
            return None, "a list is required."
        faults = [fault for at, item in enumerate(value) for fault in judge(schema, item, f"[{at}]")]
        return (None, f"in it {faults[0]}") if faults else (value, None)

    return check


def judge(schema: Mapping[str, Field], data: Any, place: str) -> Faults:
    """Return what in a record does not fit. It may have keys of another version, and may lack those of this one."""
    if not isinstance(data, dict):
        return [f"{place} is no mapping."]
    lacking = [f"{place} lacks '{key}'." for key, field in schema.items() if field.required and key not in data]
    found = {key: schema[key].check(data[key])[1] for key in schema if key in data}
    return lacking + [f"{place}.{key} is {shown_of(key, data[key])}: {wrong}" for key, wrong in found.items() if wrong]


def fitting(schema: Mapping[str, Field], data: Any) -> Dict[str, Any]:
    """Return the values that fit, and the default of each other one."""
    given = data if isinstance(data, dict) else {}
    known = {key: given[key] for key, field in schema.items() if key in given and not field.check(given[key])[1]}
    return {key: known.get(key, field.default) for key, field in schema.items()}


def printed(text: str) -> Any:
    """Return what a program has printed as JSON; None where it is none, or longer or deeper than can be read."""
    try:
        return json.loads(text) if len(text) <= LARGEST else None
    except (ValueError, RecursionError):
        return None


def _number(value: Any) -> Checked:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return (value, None) if is_number else (None, "a number is required.")


text = exactly(str, "a text")
flag = exactly(bool, "true or false")
number = _number
texts = each(text, "texts")
