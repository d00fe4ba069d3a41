# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fails a run that leaves a process, a network namespace or a file in /run behind.

Every process that the tests start has the run's mark in a variable of its environment. As root it is also in the run's
own UTS namespace, which identifies it even if it clears its environment or never executes a program. A network
namespace has the run's mark in its name. As root the run has a /run of its own, so that no other program's file is
there. With pytest-xdist each worker is a run.
"""

from __future__ import annotations

import contextlib
import ctypes
import fnmatch
import os
import signal
import stat
import time
import uuid
from pathlib import Path
from typing import Callable, Iterator, List, Optional, Set

import pytest

VARIABLE = "ONPREM_LB_TEST_RUNS"  # the marks of the runs to which a process belongs, the outermost first
LIMIT_S = 5  # for processes that are just ending
NAMESPACES = Path("/run/netns")
RUN = Path("/run")
FILE_PATTERNS = ("onprem*", "haproxy*", "keepalived*", "vrrp*")  # the names of the tested programs' files
CLONE_NEWNS, CLONE_NEWUTS = 0x00020000, 0x04000000
MS_REC, MS_SLAVE = 0x00004000, 0x00080000
_libc = ctypes.CDLL(None, use_errno=True)


def prefix() -> str:
    """Return the prefix of the names of this run's network namespaces."""
    return "-".join(["onpremlb", *os.environ.get(VARIABLE, "").split()[-1:]])


class Run:
    """Everything that the tests start from its creation on."""

    def __init__(self) -> None:
        self.mark = uuid.uuid4().hex[:12]
        os.environ[VARIABLE] = f"{os.environ.get(VARIABLE, '')} {self.mark}".strip()
        self.namespace = own_namespaces()
        self.files = files() if self.namespace else None

    def left(self) -> List[str]:
        """Describe each process, namespace and file that still exists."""
        processes = [f"process {pid} ({command(pid)})" for pid in sorted(self.processes())]
        namespaces = [f"network namespace {name}" for name in named(NAMESPACES, f"onpremlb-{self.mark}*")]
        new = files() - self.files if self.files is not None else set()
        return processes + namespaces + [f"file {path}" for path in sorted(new)]

    def processes(self) -> List[int]:
        return [pid for pid in map(int, named(Path("/proc"), "[0-9]*")) if pid != os.getpid() and self.owns(pid)]

    def owns(self, pid: int) -> bool:
        """Return whether a process belongs to the run. A zombie does not: it has no namespace and no environment."""
        with contextlib.suppress(OSError):
            if self.namespace and os.readlink(f"/proc/{pid}/ns/uts") == self.namespace:
                return True
        return has(pid, self.mark)


def has(pid: int, mark: str) -> bool:
    """Return whether a process has a mark in its environment."""
    with contextlib.suppress(OSError):
        return mark.encode() in Path(f"/proc/{pid}/environ").read_bytes()
    return False


def marked(mark: str) -> List[int]:
    return [pid for pid in map(int, named(Path("/proc"), "[0-9]*")) if has(pid, mark)]


def end_marked(mark: str) -> None:
    """Kill every process that has a mark in its environment: what a program has started, and has outlived it."""

    def kill() -> List[str]:
        found = marked(mark)
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return [command(pid) for pid in found]

    assert not leftovers(kill), f"they cannot be killed: {marked(mark)}"


def own_namespaces() -> Optional[str]:
    """Enter a new UTS namespace, with the same host name, and a mount namespace with an empty /run.

    :return: the UTS namespace, or None without the right to enter one
    """
    folders = [(folder, os.stat(folder)) for folder, _folders, _files in os.walk(RUN) if Path(folder) != NAMESPACES]
    if _libc.unshare(CLONE_NEWUTS | CLONE_NEWNS) != 0:
        return None
    _mount(b"none", b"/", None, MS_REC | MS_SLAVE)  # no mount of this run reaches the rest of the machine
    _mount(b"tmpfs", os.fsencode(RUN), b"tmpfs", 0)
    for folder, status in folders:
        os.makedirs(folder, exist_ok=True)
        os.chown(folder, status.st_uid, status.st_gid)
        os.chmod(folder, stat.S_IMODE(status.st_mode))
    return os.readlink("/proc/thread-self/ns/uts")


def _mount(source: bytes, target: bytes, kind: Optional[bytes], flags: int) -> None:
    if _libc.mount(source, target, kind, flags, None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), os.fsdecode(target))


def named(folder: Path, pattern: str) -> List[str]:
    return fnmatch.filter(os.listdir(folder), pattern) if folder.is_dir() else []


def files() -> Set[str]:
    ours = [path for pattern in FILE_PATTERNS for path in RUN.glob(pattern)]
    return {str(path) for each in ours for path in (each, *each.rglob("*"))}


def command(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    return "it has just ended"


def leftovers(left: Callable[[], List[str]]) -> List[str]:
    """Wait until nothing is left; return what is left after the limit.

    A program that the kernel is just starting has no environment yet, so two checks in a row must find nothing.
    """
    deadline = time.monotonic() + LIMIT_S
    clean = 0
    while clean < 2 and time.monotonic() < deadline:
        clean = 0 if left() else clean + 1
        time.sleep(0.05)
    return left()


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left() -> Iterator[None]:
    run = Run()
    yield
    left = leftovers(run.left)
    assert not left, "the tests have left behind: " + "; ".join(left)
