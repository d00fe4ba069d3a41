"""Runs the lab's other programs.

Every command goes through `run` or `watch`. A failure becomes one readable exception. When the lab itself is killed,
most commands end with it: `setpriv --pdeathsig` sends them SIGTERM. A command that must not be interrupted, such as
podman when it sets up a network, finishes instead. Until then it holds a lock, for which the next lab waits.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable, Dict, Iterator, Optional, Sequence

# Folders of programs that are not in an ordinary user's PATH.
SEARCH_PATH = os.pathsep.join(
    [os.environ.get("PATH", ""), "/usr/sbin", "/sbin", "/usr/lib/podman", "/usr/libexec/podman"]
)
FINISH = "finish.lock"
DIE_WITH_US = ("setpriv", "--pdeathsig", "TERM")


class LabError(Exception):
    """An error for the user: one sentence, without a traceback."""


def run(argv: Sequence[str], finish: Optional[Path] = None) -> str:
    """Run a command and return its output; raise LabError with its last lines if it fails.

    :param finish: the path of a lock; with it the command finishes even if this process is killed
    """
    # With --close the processes that podman leaves running do not hold the lock.
    prefix = ("setsid", "--wait", "flock", "--shared", "--close", str(finish)) if finish else DIE_WITH_US
    done = subprocess.run(
        [*prefix, *argv],
        env=_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise _failure(argv, done.returncode, done.stderr or done.stdout)
    return done.stdout


def watch(argv: Sequence[str], only: str = "") -> None:
    """Run a long command and print its lines that start with `only` as they come."""
    lines = []
    with subprocess.Popen(
        [*DIE_WITH_US, *argv],
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if line.startswith(only):
                say("    " + line.rstrip())
    if process.returncode:
        raise _failure(argv, process.returncode, "".join(lines[-20:]))


def succeeds(argv: Sequence[str]) -> bool:
    """Return whether a command can be run and succeeds."""
    try:
        return subprocess.run(argv, capture_output=True, env=_environment(), check=False).returncode == 0
    except OSError:  # no such program, or none that this user may run
        return False


def wait_until(condition: Callable[[], bool], limit: float, what: str, every: float = 0.1) -> None:
    """Poll until a condition is true; after `limit` seconds raise LabError, which says what did not happen."""
    deadline = time.monotonic() + limit
    while True:
        reason = ""
        try:
            if condition():
                return
        except LabError as error:
            reason = f": {error}"
        if time.monotonic() > deadline:
            raise LabError(f"{what} did not happen within {limit:.0f} s{reason}")
        time.sleep(every)


def say(line: str) -> None:
    """Print a line of progress on stderr. Results, such as the inventory's path, go to stdout."""
    print(line, file=sys.stderr, flush=True)


@contextlib.contextmanager
def step(what: str) -> Iterator[None]:
    """Print a step, and how long it took when it is done."""
    started = time.monotonic()
    say(f"lab: {what} ...")
    yield
    say(f"lab: {what}: done in {time.monotonic() - started:.1f} s")


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Wait for a lock and hold it; the kernel releases it with the process."""
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("lab: another lab command runs in this checkout, waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def locked(cache: Path) -> Iterator[None]:
    """Hold the lock of this checkout's labs, after the programs of an interrupted command have ended."""
    with exclusive(cache / "lock"):
        with exclusive(cache / FINISH):
            pass
        yield


def _environment() -> Dict[str, str]:
    return {**os.environ, "PATH": SEARCH_PATH}


def _failure(argv: Sequence[str], code: int, output: str) -> LabError:
    words = " ".join(shlex.quote(word) for word in argv)
    return LabError(f"`{words}` ended with {code}:\n{output.strip()}")
