# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reads the two files that keepalived writes on request: its data (SIGUSR1) and its statistics (SIGUSR2). Pure.

The result has the fields of the agent's own report, as far as keepalived tells them. Every build of it
writes these files. Its JSON knows neither checks nor timers, and not every distribution builds it.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, NamedTuple, Optional, Tuple

from ..vrrp.core import machine, packet

Report = Dict[str, Any]
STATES = {
    "INIT": machine.INITIALIZE,
    "BACKUP": machine.BACKUP,
    "MASTER": machine.ACTIVE,
    "FAULT": machine.FAULT,
}
RESULTS = {"GOOD": True, "BAD": False}  # any other is none yet
INSTANCE, SCRIPT, FILE = "VRRP Instance", "VRRP Script", "Track file"
HEAD = re.compile(rf" ({INSTANCE}|{SCRIPT}|{FILE}) = (\S+)")
SECTION = "------<"
# A number that is larger is none of keepalived's.
COUNT = re.compile(r"[0-9]{1,18}")
NUMBER = re.compile(r"(?<![0-9])[0-9]{1,18}(?:\.[0-9]+)?(?![0-9])")
FIELD = re.compile(r"   (\S[^=:]*?) ?[=:] ?(.*)")
ADDRESS = re.compile(r"     (\S+) dev \S+.*?( set)?")
LISTS = re.compile(r"   Virtual IP(?: Excluded)? ?(?:\(\d+\))? ?:")
# What keepalived counts, each by its heading and name, as the reason for which the agent discards such a message.
DISCARDED = {
    ("Packet Errors", "Length"): packet.LENGTH,
    ("Packet Errors", "TTL"): packet.HOP_LIMIT,
    ("Packet Errors", "Invalid Type"): packet.TYPE,
    ("Packet Errors", "Advertisement Interval"): packet.INTERVAL,
    ("Packet Errors", "Address List"): packet.COUNT,
    ("Authentication Errors", "Invalid Type"): packet.AUTHENTICATION,
    ("Authentication Errors", "Type Mismatch"): packet.AUTHENTICATION,
    ("Authentication Errors", "Failure"): packet.AUTHENTICATION,
}
LAST_COUNT = ("Priority Zero", "Sent")  # of an instance's statistics
Counts = Dict[Tuple[str, str], int]


class Block(NamedTuple):
    """An instance, a script or a track file of the data."""

    kind: str
    name: str
    fields: Dict[str, str]
    addresses: Dict[str, bool]  # and whether each is on its interface


def report(data: str, statistics: str) -> Optional[Report]:
    """Return ``{instances, checks}``; None while the statistics are not complete, or are those of other instances."""
    blocks, counts = list(_blocks(data)), _counts(statistics)
    instances = [block for block in blocks if block.kind == INSTANCE]
    if any(LAST_COUNT not in counts.get(block.name, {}) for block in instances):
        return None
    return {
        "instances": [_instance(block, counts[block.name]) for block in instances],
        "checks": [_check(block) for block in blocks if block.kind in (SCRIPT, FILE)],
    }


def states(data: str) -> Dict[str, Tuple[str, float]]:
    """Return the state of each instance, and since when, from data that may not be complete yet."""
    instances = [block for block in _blocks(data) if block.kind == INSTANCE and "Last transition" in block.fields]
    return {
        block.name: (
            STATES.get(block.fields.get("State", ""), machine.INITIALIZE),
            _number(block.fields["Last transition"]),
        )
        for block in instances
    }


def _instance(block: Block, counts: Counts) -> Report:
    fields, received = block.fields, counts.get(("Advertisements", "Received"), 0)
    state = STATES.get(fields.get("State", ""), machine.INITIALIZE)
    return {
        "name": block.name,
        "interface": fields.get("Interface", ""),
        "vrid": int(_number(fields.get("Virtual Router ID"))),
        "state": state,
        "since": _number(fields.get("Last transition")),
        "priority": {
            "configured": int(_number(fields.get("Priority"))),
            "effective": int(_number(fields.get("Effective priority"))),
        },
        "addresses": list(block.addresses),
        "held": [address for address, held in block.addresses.items() if held],
        "last_advertisement": {"at": _last_advertisement(fields)} if state == machine.BACKUP and received else None,
        "sent": counts.get(("Advertisements", "Sent"), 0),
        "received": received,
        "takeovers": counts.get(("", "Became master"), 0),
        "discarded": _discarded(counts),
    }


def _last_advertisement(fields: Dict[str, str]) -> float:
    """Return when a Backup heard one: it waits from then on until its Active_Down_Timer fires."""
    return _number(fields.get("Read timeout")) - _number(fields.get("Master down timer")) / 1_000_000


def _discarded(counts: Counts) -> Dict[str, int]:
    found: Dict[str, int] = {}
    for where, reason in DISCARDED.items():
        if counts.get(where):
            found[reason] = found.get(reason, 0) + counts[where]
    return found


def _check(block: Block) -> Report:
    status = block.fields.get("Status", "")
    if block.kind == SCRIPT:
        return {"name": block.name, "type": "script", "up": RESULTS.get(status)}
    return {"name": block.name, "type": "file", "up": status == "0"}


def _blocks(data: str) -> Iterator[Block]:
    """Yield each block of the data: a head, indented by one, and what is indented below it."""
    block = Block("", "", {}, {})
    in_list = False
    for line in data.splitlines():
        head, field, address = HEAD.fullmatch(line), FIELD.fullmatch(line), ADDRESS.fullmatch(line)
        if head or line.startswith(SECTION):
            yield block
            block = Block(head[1], head[2], {}, {}) if head else Block("", "", {}, {})
        elif in_list and address:
            block.addresses[address[1]] = bool(address[2])
        elif field:
            block.fields.setdefault(field[1], field[2])
        in_list = bool(LISTS.fullmatch(line) or (in_list and address))
    yield block


def _counts(statistics: str) -> Dict[str, Counts]:
    """Return the counts of each instance, by heading and name; those of no heading by ''."""
    found: Dict[str, Counts] = {}
    instance, heading = "", ""
    for line in statistics.splitlines(keepends=True):
        name, colon, value = line.strip().partition(":")
        indent = len(line) - len(line.lstrip())
        if name == INSTANCE:
            instance = value.strip()
            found[instance] = {}
        elif colon and not value:
            heading = name
        elif COUNT.fullmatch(value.strip()) and line.endswith("\n"):
            found.setdefault(instance, {})[heading if indent > 2 else "", name] = int(value)
    return found


def _number(text: Optional[str]) -> float:
    found = NUMBER.search(text or "")
    return float(found[0]) if found else 0.0
