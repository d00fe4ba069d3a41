# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a running program leaves to the next version of itself, whether that takes its process or starts beside it.

It goes through a file in memory, whose descriptor is named in the environment. A newer version may find things missing
in it, or some that it does not know.
"""

from __future__ import annotations

import json
import os
import socket
from typing import Any, Dict, List, MutableMapping, Optional

from .loop import MILLION, Loop

VARIABLE = "ONPREM_LB_HANDOVER"
LOOK = MILLION // 50


def command_line() -> List[str]:
    """Return how this process was started, as a list to be given to execve."""
    with open("/proc/self/cmdline", "rb") as file:
        return [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]


def save(known: Dict[str, Any]) -> int:
    """Return the descriptor of a file in memory: what ``taken`` will return."""
    descriptor = os.memfd_create("handover")
    with os.fdopen(descriptor, "w", closefd=False, encoding="utf-8") as file:
        json.dump(known, file)
    return descriptor


def load(environ: MutableMapping[str, str]) -> Optional[Dict[str, Any]]:
    """Return what a predecessor has left, None where there was none."""
    number = environ.pop(VARIABLE, "")
    if not number:
        return None
    with os.fdopen(int(number), encoding="utf-8") as file:
        file.seek(0)
        return json.load(file)


def socket_of(descriptor: int) -> socket.socket:
    """Return a socket that was handed over, and is not to be inherited by accident any more."""
    os.set_inheritable(descriptor, False)
    found = socket.socket(fileno=descriptor)
    found.setblocking(False)
    return found


def reap(loop: Loop, pid: int) -> None:
    """See a child off that ends soon."""
    try:
        gone = os.waitpid(pid, os.WNOHANG)[0]
    except ChildProcessError:
        return
    if not gone:
        loop.after(LOOK, lambda: reap(loop, pid))
