# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Drops root. The master keeps CAP_NET_BIND_SERVICE so that a reload can bind ports below 1024."""

from __future__ import annotations

import contextlib
import ctypes
import grp
import os
import resource
import socket
import struct
from typing import Iterable, List, Optional

from ...runtime import accounts
from ...runtime.accounts import Account

CAP_NET_BIND_SERVICE = 10
PR_SET_DUMPABLE, PR_SET_KEEPCAPS, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 4, 8, 38, 47
PR_CAP_AMBIENT_RAISE, PR_CAP_AMBIENT_CLEAR_ALL = 2, 4
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def switch_user(user: str, group: str, listening: Iterable[socket.socket]) -> List[str]:
    """Switch to another user for good, with CAP_NET_BIND_SERVICE alone, which survives the exec of an upgrade.

    :param group: the user's own if empty
    :param listening: sockets to give to that user: only sockets of one user may share a port, see ``listeners``
    :return: a sentence if that is not permitted, and nothing is changed
    :raises OSError: if root may not do it
    :raises LookupError: if there is no such user or group
    """
    account = _account(user, group)
    if not account.groups:
        missing = f"the user {user}: only root can become another one than {account.name}"
        return [] if account.name == user else [missing]
    for each in listening:
        with contextlib.suppress(PermissionError):  # without CAP_CHOWN, sharing a port needs a restart
            os.fchown(each.fileno(), account.uid, -1)
    _control(PR_SET_KEEPCAPS, 1)
    account.assume()
    _keep(1 << CAP_NET_BIND_SERVICE)
    _control(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_BIND_SERVICE)
    _control(PR_SET_NO_NEW_PRIVS, 1)
    _control(PR_SET_DUMPABLE, 1)  # otherwise this process's folder in /proc would be root's
    return []


def _account(user: str, group: str) -> Account:
    found = accounts.named(user)
    if not group or not found.groups:
        return found
    try:
        return found._replace(gid=grp.getgrnam(group).gr_gid)
    except KeyError:
        raise LookupError(f"there is no group {group}") from None


def drop_capabilities() -> None:
    """Drop all capabilities. Raises OSError."""
    _control(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    _keep(0)
    _control(PR_SET_NO_NEW_PRIVS, 1)


def raise_nofile(needed: int, liked: int) -> Optional[str]:
    """Raise the limit of open files to ``liked`` if possible; return a sentence if it stays below ``needed``."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limits in ((liked, max(liked, hard)), (hard, hard)):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        except (OSError, ValueError):  # only root may raise the hard limit
            continue
        break
    may = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return None if may >= needed else f"{needed} open files, for its maxconn: the limit is {may} (ulimit -n)"


def _keep(capabilities: int) -> None:
    """Set the effective, permitted and inheritable capabilities (capset(2))."""
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    if _libc.capset(header, struct.pack("6I", *[capabilities] * 3, 0, 0, 0)) != 0:
        raise _fault()


def _control(option: int, *arguments: int) -> None:
    padded = [ctypes.c_ulong(each) for each in (*arguments, 0, 0, 0, 0)[:4]]
    if _libc.prctl(option, *padded) != 0:
        raise _fault()


def _fault() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
