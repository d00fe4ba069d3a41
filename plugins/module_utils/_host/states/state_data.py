# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A snapshot as JSON has it, and back: whole, exactly as it was, or not at all.

What is read may have been damaged, or be somebody else's. No fault repeats a content or a password.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import os
from typing import Any, Dict, Mapping

from ..._agent.config.records import Checked, by_name, each, exactly, flag, number, text, whole
from ..._agent.config.schema import Faults, Field, read, repeated
from .snapshot import OPENING, File, Snapshot, Unit

LARGEST_ID = 2**32 - 2  # of a user or a group
ANYWHERE = "anywhere"


def as_data(snapshot: Snapshot) -> Dict[str, Any]:
    """Return a snapshot as JSON has it."""
    files = [
        {**file._asdict(), "content": _encoded(file.content), "label": _encoded(file.label)} for file in snapshot.files
    ]
    units = {name: unit._asdict() for name, unit in snapshot.units.items()}
    return {**snapshot._asdict(), "files": files, "units": units}


def of_data(data: Any) -> Snapshot:
    """Return the snapshot that JSON has.

    :raises ValueError: with what is wrong
    """
    faults: Faults = []
    found = _part(SNAPSHOT, data, "state", faults)
    files = [_part(FILE, each, f"files[{at}]", faults) for at, each in enumerate(found["files"])]
    units = {name: _part(UNIT, each, f"units.{name}", faults) for name, each in found["units"].items()}
    routers = [_part(INSTANCE, each, f"instances[{at}]", faults) for at, each in enumerate(found["instances"])]
    faults += [f"files has {path} twice." for path in repeated([file["path"] for file in files if file["path"]])]
    if faults:
        raise ValueError(faults[0].rstrip("."))
    instances = [{key: value for key, value in each.items() if value is not None} for each in routers]
    own = {"files": [File(**each) for each in files], "units": {name: Unit(**each) for name, each in units.items()}}
    return Snapshot(**{**found, **own, "instances": instances})


def _part(schema: Mapping[str, Field], data: Any, place: str, faults: Faults) -> Dict[str, Any]:
    """Read a mapping; what is null is not what has a default."""
    given = data.items() if isinstance(data, dict) else ()
    faults += [f"{place}.{key} is null: leave it out." for key, value in given if value is None]
    return read(schema, data, place, faults)


def _is_path(value: str) -> bool:
    try:
        return b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        return False


def _is_opening(value: str) -> bool:
    found = OPENING.fullmatch(value)
    if not found or int(found["port"] or 1) not in range(1, 65536):
        return False
    try:
        return found["source"] == ANYWHERE or bool(ipaddress.ip_network(found["source"], strict=False))
    except ValueError:
        return False


def _decoded(value: Any) -> Checked:
    try:
        return base64.b64decode(value.encode(), validate=True), None
    except (AttributeError, binascii.Error, UnicodeError):
        return None, "base64 is required."


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


_path = exactly(str, "a path", _is_path)
_words = each(exactly(str, "a word", lambda value: value.split() == [value]), "words")
_number = exactly(int, "a whole number")  # of any size, as others may have written it
SNAPSHOT: Mapping[str, Field] = {
    "configs": Field(by_name(_path, "paths"), {}, required=True),
    "files": Field(exactly(list, "a list"), [], required=True),
    "units": Field(exactly(dict, "a mapping"), {}, required=True),
    "instances": Field(exactly(list, "a list"), [], required=True),
    "openings": Field(each(exactly(str, "an opening", _is_opening), "openings"), []),
    "interfaces": Field(_words, []),
    "served": Field(_words, []),
}
FILE: Mapping[str, Field] = {
    "mode": Field(whole(0, 0o7777), required=True),
    **dict.fromkeys(("uid", "gid"), Field(whole(0, LARGEST_ID), required=True)),
    **dict.fromkeys(("path", "target"), Field(_path, required=True)),
    **dict.fromkeys(("content", "label"), Field(_decoded, required=True, secret=True)),
}
UNIT: Mapping[str, Field] = dict.fromkeys(("active", "enabled"), Field(flag, required=True))
# As `facts.INSTANCE`, of any numbers: a configuration of others may have them. One of before lacks some.
INSTANCE: Mapping[str, Field] = {
    **dict.fromkeys(("name", "interface", "source"), Field(text, required=True)),
    **dict.fromkeys(("vrid", "version", "priority"), Field(_number, required=True)),
    "preempt": Field(flag, required=True),
    "advert_interval": Field(number, required=True),
    "auth_pass": Field(text, required=True, secret=True),
    "multicast": Field(flag),
    **dict.fromkeys(("addresses", "peers"), Field(each(text, "addresses"), required=True)),
    "excluded_addresses": Field(each(text, "addresses")),
}
