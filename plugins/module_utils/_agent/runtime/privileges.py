# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Giving up the rights that a process does not need, and the limit of open files."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import struct
from typing import Optional

PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 38, 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
_CAPABILITY_VERSION_3 = 0x20080522
NOBODY = 65534  # the user and the group on every platform; to look the name up might block

_libc = ctypes.CDLL(None, use_errno=True)


def drop_all() -> None:
    """Become nobody, if this process is root's, and drop all capabilities. Raises OSError."""
    if os.geteuid() == 0:
        with contextlib.suppress(PermissionError):  # root in a sandbox without CAP_SETUID is that anyway
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
    drop_capabilities()


def drop_capabilities() -> None:
    """Drop all capabilities. Raises OSError."""
    _control(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    # Neither effective, permitted nor inheritable (capset(2)).
    if _libc.capset(struct.pack("Ii", _CAPABILITY_VERSION_3, 0), bytes(24)) != 0:
        raise _fault()
    _control(PR_SET_NO_NEW_PRIVS, 1)


def raise_nofile(needed: int, desired: int) -> Optional[str]:
    """Raise the limit of open files to ``desired`` if possible; return a sentence if it stays below ``needed``."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limits in ((desired, max(desired, hard)), (hard, hard)):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        except (OSError, ValueError):  # only root may raise the hard limit
            continue
        break
    may = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return None if may >= needed else f"{needed} open files, for its maxconn: the limit is {may} (ulimit -n)"


def _control(option: int, *arguments: int) -> None:
    padded = [ctypes.c_ulong(each) for each in (*arguments, 0, 0, 0, 0)[:4]]
    if _libc.prctl(option, *padded) != 0:
        raise _fault()


def _fault() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
