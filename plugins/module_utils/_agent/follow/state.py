# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The last good list in a file: it counts after a restart, until an API server has been asked."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Mapping, Optional, Tuple

from ..checks.outcome import in_words
from ..config import fields, file
from ..config.schema import Faults, Field, anything, list_of, read, read_list, word
from . import files
from .changes import Refused
from .membership import Known
from .settings import Server

SERVER = {"name": Field(word, required=True), "address": Field(fields.address, required=True)}
LEFT = {"name": Field(word, required=True), "address": Field(fields.optional(fields.address), "")}
STATE = {
    "label": Field(anything, "", required=True),
    "servers": Field(anything, [], required=True),
    "unready": Field(anything, []),
}
WHOLE = {**STATE, "others": Field(list_of(anything), [])}  # the first label and those that follow


def load(path: str) -> Tuple[Dict[str, Known], Optional[str]]:
    """Return what was known of each label, and why a file is of no use."""
    if not os.path.exists(path):
        return {}, None
    text, faults = file.load(path)
    data, faults = (None, faults) if faults else file.parse(text, path)
    known = {} if faults else _known(data, faults)
    if faults:
        return {}, f"The state_file cannot be used, and is rewritten: {' '.join(faults)}"
    return known, None


def save(path: str, known: Mapping[str, Known]) -> None:
    """Write what is known. Raises Refused."""
    first, *others = [_written(label, each) for label, each in known.items()]
    text = json.dumps({**first, **({"others": others} if others else {})}, indent=2) + "\n"
    try:
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    except OSError as fault:
        raise Refused(f"{path} cannot be written: {in_words(fault)}.") from fault
    files.replace(path, text, lambda _path: None)


def _written(label: str, known: Known) -> Dict[str, Any]:
    unready = [each._asdict() if each.address else each.name for each in known.unready]
    return {"label": label, "servers": [each._asdict() for each in known.servers], "unready": unready}


def _known(data: Any, faults: Faults) -> Dict[str, Known]:
    whole = read(WHOLE, data, "state", faults)
    others = [read(STATE, each, f"others[{at}]", faults) for at, each in enumerate(whole["others"])]
    parts = [{key: whole[key] for key in STATE}, *others]
    return {each["label"]: _of_label(each, faults) for each in parts if isinstance(each["label"], str)}


def _of_label(part: Dict[str, Any], faults: Faults) -> Known:
    servers = read_list(SERVER, part["servers"], "servers", faults)
    written = part["unready"]
    named = [{"name": each} if isinstance(each, str) else each for each in written] if isinstance(written, list) else 7
    unready = read_list(LEFT, named, "unready", faults)
    return Known(*(tuple(Server(each["name"], each["address"]) for each in found) for found in (servers, unready)))
