# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Enters a network namespace without starting a process there."""

from __future__ import annotations

import contextlib
import ctypes

CLONE_NEWNET, CLONE_NEWNS = 0x40000000, 0x00020000
_libc = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def inside(namespace):
    """Enter a namespace with this thread only. Sockets that are created meanwhile belong to it for good."""
    with open("/proc/thread-self/ns/net") as home, open(f"/run/netns/{namespace}") as there:
        _enter(there)
        try:
            yield
        finally:
            _enter(home)


def leave():
    """Give this process a network and mounts of its own; it has one thread only."""
    if _libc.unshare(CLONE_NEWNET | CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")


def _enter(namespace):
    if _libc.setns(namespace.fileno(), CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")
