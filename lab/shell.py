"""Runs the lab's other programs.

Every command goes through `run` or `watch`, so that a failure is always one readable exception, and so that
it is known what becomes of a command when the lab itself is killed. Most die with it: `setpriv --pdeathsig`
sends them SIGTERM. Those that would leave half a thing behind, such as podman setting up a network, are named
a lock instead: they end in peace and hold the lock until then, and the next lab waits for it.
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

    With `finish`, a lock's path, the command ends in peace even if this process does not.
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
    said = []
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
            said.append(line)
            if line.startswith(only):
                say("    " + line.rstrip())
    if process.returncode:
        raise _failure(argv, process.returncode, "".join(said[-20:]))


def succeeds(argv: Sequence[str]) -> bool:
    """Return whether a command can be run and succeeds."""
    try:
        return subprocess.run(argv, capture_output=True, env=_environment(), check=False).returncode == 0
    except OSError:  # no such program, or none that this user may run
        return False


def wait_until(answered: Callable[[], bool], limit: float, what: str, every: float = 0.1) -> None:
    """Poll until a condition is true; after `limit` seconds raise LabError with what was awaited."""
    deadline = time.monotonic() + limit
    while True:
        trouble = ""
        try:
            if answered():
                return
        except LabError as error:
            trouble = f": {error}"
        if time.monotonic() > deadline:
            raise LabError(f"{what} did not happen within {limit:.0f} s{trouble}")
        time.sleep(every)


def say(line: str) -> None:
    """Print one line of progress on stderr: stdout is for results such as the inventory's path."""
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
            say("lab: another lab command is at work in this checkout, waiting for it")
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
