# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which texts of a model may be secret: its passwords, and what `schema.ARGUMENTS` has behind the first word. Pure.

Everything that reads one or writes one asks here, so that the journal, a diff and a sentence hide the same.
"""

from __future__ import annotations

from typing import Any, Iterator, List, Tuple

from ..._agent.config.schema import ARGUMENTS, parted
from ..._shared.harmless import is_harmless

PASSWORDS = ("auth_pass", "password", "stats_password")
PLAIN, ARGUMENT, PASSWORD = range(3)  # what a text is


def texts(*models: Any) -> List[str]:
    """Return the texts that nobody may see. An argument that is also a name in the models is none of them."""
    found = [each for model in models for each in _texts(model, "") if each[1]]
    names = {word for kind, text in found if kind == PLAIN for word in (text, *text.split())}
    return sorted({text for kind, text in found if kind == PASSWORD or (kind == ARGUMENT and text not in names)})


def _texts(value: Any, key: str) -> Iterator[Tuple[int, str]]:
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _texts(each, key if key in ARGUMENTS else str(name))
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _texts(each, key)
    elif isinstance(value, str) and key in ARGUMENTS:
        for line in value.splitlines():
            begin, rest = parted(key, line)
            yield PLAIN, begin
            yield PLAIN if all(map(is_harmless, rest.split())) else ARGUMENT, rest
    elif isinstance(value, str):
        yield PASSWORD if key in PASSWORDS else PLAIN, value
