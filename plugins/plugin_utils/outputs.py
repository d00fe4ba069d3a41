# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tries what a playbook is to write on the controller before its work begins. Nothing is lost, and nothing is left."""

from __future__ import annotations

import json
import os
import re
import stat
import tempfile
from typing import Any, Callable, Dict, List, Mapping

from ansible_collections.onprem.lb.plugins.module_utils._shared import own_text

# The lines of zone files, which a user may have spaced, of dnsmasq's configuration and of nsupdate's input.
RECORD = re.compile(
    r"\s*|[;$].*|# \S+|\S+ +\d+ IN +(A|AAAA|PTR|SRV) .*|(local|address|host-record|ptr-record|srv-host)=.*"
    r"|update (add|delete) .*|send|answer"
)
COREFILE = ".:53 {"


def _has(*keys: str) -> Callable[[str], bool]:
    def is_own(text: str) -> bool:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return False
        return isinstance(found, dict) and {*keys} <= {*found}

    return is_own


def _is_page(text: str) -> bool:
    return '<p class="verdict ' in text


def _are_records(text: str) -> bool:
    lines = text.splitlines()
    return lines[0] == COREFILE or all(map(RECORD.fullmatch, lines))


# By the variable, how a file of an earlier run is known.
FILES: Dict[str, Callable[[str], bool]] = {
    "drill_report": _has("rows", "table", "faults"),
    "drill_html": _is_page,
    "status_output": _has("layouts", "faults"),
    "dns_output": _are_records,
    "import_output": own_text.is_unchanged,
}
FOLDERS = {"drill_history": "", "backup_folder": "backups", "pods_output": ""}  # with what they are by default


def faults(given: Mapping[str, Any], dry: bool = False) -> List[str]:
    """Return a sentence for each output that cannot be written, or that would replace what is not ours.

    :param given: the values of variables, some of FILES and FOLDERS
    :param dry: whether this run writes none of them, and the next one may be another user's, or find its folder
    """
    found: List[str] = []
    files: Dict[str, str] = {}
    for name, value in given.items():
        value = value or FOLDERS.get(name, "")
        if value and not isinstance(value, str):
            found.append(f"{name} is {value!r}: a path is required.")
        elif value:
            wrong = _wrong(name, value, files, dry)
            found += [f"{name} is {value}: {wrong}"] if wrong else []
    return found


def _wrong(name: str, value: str, files: Dict[str, str], dry: bool) -> str:
    """Return what is wrong with an output.

    :param files: the variables of those before it, by path
    """
    try:
        given = os.path.expanduser(value)
        path = os.path.realpath(given)
        if name in FILES and files.setdefault(path, name) != name:
            return f"{files[path]} is the same file: name another one."
        # The target of a link in /proc, such as /dev/stdout, may have no path.
        wrong = _replaced(path if os.path.exists(path) else given, FILES[name]) if name in FILES else ""
        if not (wrong or dry):
            _try(_nearest(path) if name in FOLDERS else os.path.dirname(path))
        return wrong
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        return f"it cannot be written ({why}): name a path that can."


def _replaced(path: str, is_own: Callable[[str], bool]) -> str:
    """Return what is wrong with replacing what a path has, if there is something."""
    if not os.path.exists(path):
        return ""
    if os.path.isdir(path):
        return "it is a folder: name a file."
    if not os.path.isfile(path):
        return "it is no ordinary file, and one would replace it: name another path."
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    if text.strip() and not is_own(text):
        return "another file is there already: name one that is not there yet."
    return "it belongs to another user, whose files this folder keeps: name another path." if _is_kept(path) else ""


def _is_kept(path: str) -> bool:
    """Whether a folder such as /tmp, with the sticky bit, lets nobody but its owner and the file's replace a file."""
    folder = os.stat(os.path.dirname(os.path.realpath(path)))
    return bool(folder.st_mode & stat.S_ISVTX) and os.geteuid() not in (0, folder.st_uid, os.stat(path).st_uid)


def _nearest(folder: str) -> str:
    """Return the folder, or that below which it will be made."""
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    return folder


def _try(folder: str) -> None:
    """Create a file in a folder that has no name there.

    :raises OSError: if there is no folder, or no file can be created
    """
    with tempfile.TemporaryFile(dir=folder):
        pass
