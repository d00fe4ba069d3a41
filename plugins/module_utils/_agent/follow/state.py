# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The last good list in a file: it counts after a restart, until an API server has been asked."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Optional, Tuple

from ..checks.outcome import in_words
from ..config import fields, file
from ..config.schema import Faults, Field, anything, list_of, read, read_list, word
from . import files
from .changes import Refused
from .membership import Known
from .settings import Server

SERVER = {"name": Field(word, required=True), "address": Field(fields.address, required=True)}
STATE = {
    "label": Field(anything, "", required=True),
    "servers": Field(anything, [], required=True),
    "unready": Field(list_of(word), []),
}


def load(path: str, label: Optional[str] = None) -> Tuple[Known, Optional[str]]:
    """Return what was known, and why a file is of no use. One of another label counts as none, if a label is given."""
    if not os.path.exists(path):
        return Known(), None
    text, faults = file.load(path)
    data, faults = (None, faults) if faults else file.parse(text, path)
    known = Known() if faults else _known(data, label, faults)
    if faults:
        return Known(), f"The state_file cannot be used, and is rewritten: {' '.join(faults)}"
    return known, None


def save(path: str, known: Known, label: str) -> None:
    """Write what is known. Raises Refused."""
    servers: List[Dict[str, Any]] = [server._asdict() for server in known.servers]
    text = json.dumps({"label": label, "servers": servers, "unready": list(known.unready)}, indent=2) + "\n"
    try:
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    except OSError as fault:
        raise Refused(f"{path} cannot be written: {in_words(fault)}.") from fault
    files.replace(path, text, lambda _path: None)


def _known(data: Any, label: Optional[str], faults: Faults) -> Known:
    whole = read(STATE, data, "state", faults)
    servers = read_list(SERVER, whole["servers"], "servers", faults)
    if faults or label not in (None, whole["label"]):
        return Known()
    return Known(tuple(Server(each["name"], each["address"]) for each in servers), tuple(whole["unready"]))
