# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that leaves a process, a network namespace or a file in /run behind fails.

Every process that the tests start carries two marks of the run. One is a variable in its environment. As root it is
also in a UTS namespace of the run's own, which whoever clears its environment, or never executes another program, is in
as well. A network namespace carries the run's mark in its name. With pytest-xdist each worker is a run.
"""

from __future__ import annotations

import contextlib
import ctypes
import fnmatch
import os
import time
import uuid
from pathlib import Path
from typing import Callable, Iterator, List, Optional, Set

import pytest

VARIABLE = "ONPREM_LB_TEST_RUNS"  # those that a process belongs to, from the outermost on
LIMIT_S = 5  # for what is just ending
NAMESPACES = Path("/run/netns")
RUN = Path("/run")
PROGRAMS = ("onprem*", "haproxy*", "keepalived*", "vrrp*")  # how the files are called that what is tested makes
CLONE_NEWUTS = 0x04000000
_libc = ctypes.CDLL(None, use_errno=True)


def prefix() -> str:
    """What the names of this run's network namespaces begin with."""
    return "-".join(["onpremlb", *os.environ.get(VARIABLE, "").split()[-1:]])


class Run:
    """What the tests start from now on."""

    def __init__(self) -> None:
        self.mark = uuid.uuid4().hex[:12]
        os.environ[VARIABLE] = f"{os.environ.get(VARIABLE, '')} {self.mark}".strip()
        self.namespace = own_namespace()
        self.files = files()

    def left(self) -> List[str]:
        """What there still is, each in a sentence of its own."""
        processes = [f"process {pid} ({command(pid)})" for pid in sorted(self.processes())]
        namespaces = [f"network namespace {name}" for name in named(NAMESPACES, f"onpremlb-{self.mark}*")]
        return processes + namespaces + [f"file {path}" for path in sorted(files() - self.files)]

    def processes(self) -> List[int]:
        return [pid for pid in map(int, named(Path("/proc"), "[0-9]*")) if pid != os.getpid() and self.owns(pid)]

    def owns(self, pid: int) -> bool:
        """Whoever has ended, and was not waited for, has neither a namespace nor an environment."""
        with contextlib.suppress(OSError):
            if self.namespace and os.readlink(f"/proc/{pid}/ns/uts") == self.namespace:
                return True
            return self.mark.encode() in Path(f"/proc/{pid}/environ").read_bytes()
        return False


def own_namespace() -> Optional[str]:
    """Enter a new UTS namespace, in which all is called as before; None without the right to."""
    if _libc.unshare(CLONE_NEWUTS) != 0:
        return None
    return os.readlink("/proc/thread-self/ns/uts")


def named(folder: Path, pattern: str) -> List[str]:
    return fnmatch.filter(os.listdir(folder), pattern) if folder.is_dir() else []


def files() -> Set[str]:
    ours = [path for pattern in PROGRAMS for path in RUN.glob(pattern)]
    return {str(path) for each in ours for path in (each, *each.rglob("*"))}


def command(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    return "it has just ended"


def after(left: Callable[[], List[str]]) -> List[str]:
    """Return what is left when the limit has passed, if there is anything.

    A program that the kernel is just starting has no environment yet, so nothing must be seen twice.
    """
    late = time.monotonic() + LIMIT_S
    clean = 0
    while clean < 2 and time.monotonic() < late:
        clean = 0 if left() else clean + 1
        time.sleep(0.05)
    return left()


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left() -> Iterator[None]:
    run = Run()
    yield
    left = after(run.left)
    assert not left, "the tests have left behind: " + "; ".join(left)
