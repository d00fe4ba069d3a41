# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A record with each of its parts left out, or in place of it something else."""

from __future__ import annotations

import copy
import json
from typing import Any, Iterator, List, Tuple

INSTEAD = (None, True, -1, 0.5, 10**30, "", "x", "a\nb", "\ud800", "0640", [], [None], {}, {"x": [1]})
Path = List[Any]


def paths(record: Any, above: Path = ()) -> Iterator[Path]:  # type: ignore[assignment]
    """Yield the way to each part."""
    yield [*above]
    items = record.items() if isinstance(record, dict) else enumerate(record) if isinstance(record, list) else ()
    for key, value in items:
        yield from paths(value, [*above, key])


def damaged(record: Any) -> Iterator[Tuple[str, Any]]:
    """Yield each damaged record with what was done to it."""
    for path in paths(record):
        for instead in INSTEAD:
            yield f"{path} is {instead!r}", _with(record, path, lambda part, key, it=instead: part.__setitem__(key, it))
        if path:
            yield f"{path} is left out", _with(record, path, lambda part, key: part.__delitem__(key))


def _with(record: Any, path: Path, change: Any) -> Any:
    whole = [copy.deepcopy(record)]
    part: Any = whole
    for key in [0, *path][:-1]:
        part = part[key]
    change(part, [0, *path][-1])
    return whole[0]


def deep(levels: int = 100_000) -> str:
    """Return JSON that is nested too deeply."""
    return "[" * levels + "]" * levels


def through_a_file(record: Any) -> Any:
    return json.loads(json.dumps(record))
