# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""State passed to the next version of the proxy during an upgrade, by exec.

It goes through a file in memory, whose descriptor is named in the environment. Versions exchange its keys, so a
released key is never renamed. Keys may be missing from an older version's state, and be unknown in a newer one's.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, MutableMapping, Optional

from .loop import MILLION, Loop

VARIABLE = "ONPREM_LB_HANDOVER"
POLL_INTERVAL = MILLION // 50


def command_line() -> List[str]:
    """Return how this process was started, as a list for execve."""
    with open("/proc/self/cmdline", "rb") as file:
        return [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]


def save(known: Dict[str, Any]) -> int:
    """Return the descriptor of a file in memory that holds what ``load`` will return."""
    descriptor = os.memfd_create("handover")
    with os.fdopen(descriptor, "w", closefd=False, encoding="utf-8") as file:
        json.dump(known, file)
    return descriptor


@contextlib.contextmanager
def passed_on(
    known: Dict[str, Any], descriptors: Iterable[int], environ: Mapping[str, str]
) -> Iterator[Dict[str, str]]:
    """Save state and make descriptors inheritable for as long as the next version is started.

    :return: the environment to start it with
    """
    memory = save(known)
    inherited = [memory, *descriptors]
    for descriptor in inherited:
        os.set_inheritable(descriptor, True)
    try:
        yield {**environ, VARIABLE: str(memory)}
    finally:
        for descriptor in inherited:
            os.set_inheritable(descriptor, False)
        os.close(memory)


def load(environ: MutableMapping[str, str]) -> Optional[Dict[str, Any]]:
    """Return what the previous version has saved, None if this process was not started by one."""
    number = environ.pop(VARIABLE, "")
    if not number:
        return None
    with os.fdopen(int(number), encoding="utf-8") as file:
        file.seek(0)
        return json.load(file)


def socket_of(descriptor: int) -> socket.socket:
    """Return an inherited socket, which programs started from here will not inherit in turn."""
    os.set_inheritable(descriptor, False)
    found = socket.socket(fileno=descriptor)
    found.setblocking(False)
    return found


def reap(loop: Loop, pid: int, done: Callable[[], None] = lambda: None) -> None:
    """Reap a child that ends soon.

    :param done: called when its id may be another process's
    """
    try:
        gone = os.waitpid(pid, os.WNOHANG)[0]
    except ChildProcessError:
        gone = pid
    if gone:
        done()
    else:
        loop.after(POLL_INTERVAL, lambda: reap(loop, pid, done))
