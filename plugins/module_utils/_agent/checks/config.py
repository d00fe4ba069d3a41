# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The checks in a configuration of the agent, read into ``checks.settings``. In the file times are seconds."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from ..config import fields
from ..config.schema import Faults, Field, integer, number, one_of, place_of, placed, port, read, same_names, word
from . import settings

EVERY_CHECK = {
    "name": Field(word, required=True),
    "type": Field(one_of(*settings.CHECK_TYPES), required=True),
    "interval": Field(number(0.01, 86400, " seconds"), 2),
    "timeout": Field(number(0.01, 86400, " seconds"), 2),
    "rise": Field(integer(1, 1000), 1),
    "fall": Field(integer(1, 1000), 1),
}
TCP = {
    "address": Field(fields.address, required=True),
    "port": Field(port, required=True),
}
HTTP = {
    **TCP,
    "path": Field(fields.url_path, "/"),
    "host": Field(word, ""),
}
TYPE_KEYS: Dict[str, Dict[str, Field]] = {
    settings.PROCESS: {"process": Field(fields.process, required=True)},
    settings.TCP: TCP,
    settings.HTTP: HTTP,
    settings.HTTPS: HTTP,
    settings.HAPROXY: TCP,
    settings.SCRIPT: {"command": Field(fields.program, required=True), "user": Field(word, "")},
    settings.FILE: {"file": Field(fields.path, required=True)},
    settings.INTERFACE: {"interface": Field(fields.interface, required=True)},
}

ALL_TYPE_KEYS = {key for own in TYPE_KEYS.values() for key in own}


def read_checks(data: List[Any], faults: Faults) -> List[Dict[str, Any]]:
    """Return the checks with their defaults, and append what is wrong with them."""
    checks = [_check(item, place_of("checks", at, item), faults) for at, item in enumerate(data)]
    faults.extend(same_names(checks, "checks"))
    return checks


def _check(item: Any, place: str, faults: Faults) -> Dict[str, Any]:
    kind = item.get("type") if isinstance(item, dict) else None
    if not isinstance(kind, str) or kind not in TYPE_KEYS:  # its other keys are not known
        rest = {key: item[key] for key in item if key not in ALL_TYPE_KEYS} if isinstance(item, dict) else item
        return read(EVERY_CHECK, rest, place, faults)
    schema = {**EVERY_CHECK, **TYPE_KEYS[kind]}
    misplaced = [key for key in item if key in ALL_TYPE_KEYS and key not in schema]
    for key in misplaced:
        types = ", ".join(name for name, own in TYPE_KEYS.items() if key in own)
        faults.append(f"{place}.{key} is for a check of type {types}, and this one is {kind}: leave it out.")
    return read(schema, {key: item[key] for key in item if key not in misplaced}, place, faults)


def programs(checks: List[Dict[str, Any]], runner: str, host: Any) -> List[Tuple[str, str, Optional[str]]]:
    """Check the programs of scripts on this host; return place, program and what is wrong with it.

    :param runner: the user who runs those that name no other
    """
    return [
        (f"{place}.command", check["command"][0], host.program(check["command"][0], check["user"] or runner))
        for place, check in placed("checks", checks)
        if check.get("command")
    ]


def check_of(item: Dict[str, Any]) -> settings.Check:
    times = {key: fields.microseconds(item[key]) for key in ("interval", "timeout")}
    return settings.Check(**{**item, **times})
