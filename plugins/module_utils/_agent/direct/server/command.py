# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Makes this host a server of direct return, and takes that back: both may be repeated, and be interrupted."""

from __future__ import annotations

import contextlib
import json
import os
from typing import List

from ..settings import Settings
from .kernel import Kernel, Refused
from .setup import NOTHING, Record, Setup, both, changes, record_of, setup, strangers
from .setup import differences as differences_of

RECORD = "/run/onprem-lb-direct-server/record.json"  # gone at a reboot, as what it records is


def apply(settings: Settings, path: str = RECORD) -> None:
    """Put the settings in force. Raises Refused, and OSError without the privilege."""
    with contextlib.closing(Kernel(settings.nft)) as kernel:
        wanted = _wanted(settings, kernel)
        record = read(path)._replace(nft=settings.nft)
        write(path, _change(kernel, wanted, record, path))


def remove(path: str = RECORD) -> None:
    """Take back what was applied."""
    record = read(path)
    with contextlib.closing(Kernel(record.nft)) as kernel:
        _change(kernel, NOTHING, record, path)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def check(settings: Settings) -> None:
    """Have nft and the kernel check the tables; changes nothing. Raises Refused."""
    with contextlib.closing(Kernel(settings.nft)) as kernel:
        kernel.check(_wanted(settings, kernel).ruleset)


def differences(settings: Settings, path: str = RECORD) -> List[str]:
    """Return a sentence for each part of the settings that is not in force; changes nothing."""
    with contextlib.closing(Kernel(settings.nft)) as kernel:
        wanted, record = _wanted(settings, kernel), read(path)
        return differences_of(wanted, kernel.found([*wanted.kernel, *record.kernel]), record)


def _wanted(settings: Settings, kernel: Kernel) -> Setup:
    own = kernel.own()
    faults = strangers(settings, own)
    if faults:
        raise Refused(" ".join(faults))
    return setup(settings, own)


def _change(kernel: Kernel, wanted: Setup, record: Record, path: str) -> Record:
    """Make the changes, and return what is in force then. What may be half done is recorded before."""
    found = kernel.found([*wanted.kernel, *record.kernel])
    todo = changes(wanted, found, record)
    write(path, both(record, todo.record))
    kernel.delete(todo.dropped)
    kernel.set(todo.kernel)
    kernel.load(wanted.ruleset)
    kernel.add(todo.added)
    kernel.set(todo.given_back)
    return todo.record._replace(checksum=wanted.checksum, tables=kernel.tables())


def read(path: str) -> Record:
    """Return what was recorded; an empty record if there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            return record_of(json.load(file))
    except (OSError, ValueError):
        return Record()


def write(path: str, record: Record) -> None:
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        json.dump(record._asdict(), file)
    os.rename(f"{path}.new", path)
