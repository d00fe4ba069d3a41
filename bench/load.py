"""The daemons beside busy processes, and in a flood of messages: the agent compared with keepalived."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import flood
import stalls
from stage import KINDS, OWNER, Stage, instance
from tables import heading, row

SECONDS = float(os.environ.get("SECONDS", "20"))
FLOOD_SECONDS = float(os.environ.get("FLOOD_SECONDS", "3"))
BUSY, SENDERS = 6, 2
SHORT, FLOODED = 0.01, 0.1  # seconds between Advertisements
LB1, LB2 = "lb1", "lb2"
# A busy process. It ends by itself if this program cannot end it.
SPIN = "import sys, time\nend = time.time() + float(sys.argv[1])\nwhile time.time() < end: pass"


def measure() -> None:
    heading(f"beside {BUSY} busy processes on {os.cpu_count()} cores")
    stalled, results = beside_busy_processes()
    largest, moments = zip(*results)
    excused = [sum(is_excused(at, stalled) for at in each) for each in moments]
    false = [len(each) - count for each, count in zip(moments, excused)]
    row(f"false takeovers in {SECONDS:.0f} s, adverts every {SHORT} s", *false, "0", "{:.0f}")
    row("  and while a processor itself was stalled", *excused, "", "{:.0f}")
    row("  largest spacing of advertisements, ms", *largest)
    longest = max((length for _at, length in stalled), default=0.0)
    print(f"  the longest stall of a processor took {longest * 1000:.0f} ms; {len(stalled)} took more than 5 ms")
    heading(f"a flood for {FLOOD_SECONDS:.0f} s, adverts every {FLOODED} s")
    for kind in flood.KINDS:
        largest, lost, rates = zip(*(flooded(daemon, kind) for daemon in KINDS))
        row(f"{kind}: largest spacing, ms", *largest)
        row("  missing advertisements", *lost, "0", "{:.0f}")
        row("  messages sent in a second", *rates, "", "{:.0f}")


def beside_busy_processes():
    """Return the stalls of the processors, and for each kind the largest spacing of the Active router's Advertisements
    and when the Backup began to advertise.

    Both kinds run at the same time, each on its own link.
    """
    with contextlib.ExitStack() as stack:
        stages = [stack.enter_context(Stage()) for _kind in KINDS]
        for stage, kind in zip(stages, KINDS):
            stage.pair(kind, kind, SHORT)
        detectors = [
            stack.enter_context(program(stalls.__file__, processor, SECONDS)) for processor in os.sched_getaffinity(0)
        ]
        for _each in range(BUSY):
            stack.enter_context(program("-c", SPIN, SECONDS + 60))
        begin = time.time()
        stalled = [tuple(map(float, line.split())) for process in detectors for line in process.stdout]
        end = time.time()
        for stage in stages:
            stage.wire.read_up_to(end)
        return stalled, [(largest_ms(spacings(stage, begin, end)), takeovers(stage, begin)) for stage in stages]


@contextlib.contextmanager
def program(*arguments):
    """Run a Python program until the context ends."""
    command = [sys.executable, *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def takeovers(stage: Stage, begin: float) -> list[float]:
    """Return when the Backup began to advertise, although the Active router was alive."""
    messages = [message for message in sorted(stage.wire.messages) if message.is_advertisement and message.at >= begin]
    return [after.at for before, after in zip(messages, messages[1:]) if after.member == LB2 != before.member]


def is_excused(at: float, stalled) -> bool:
    """Return whether a processor had just stalled for long enough to miss three Advertisements."""
    return any(length > 2 * SHORT and begin <= at <= begin + length + 5 * SHORT for begin, length in stalled)


def spacings(stage: Stage, begin: float, end: float) -> list[float]:
    """Return the seconds between the first member's Advertisements, and to both ends of the measurement."""
    sent = stage.wire.advertisements(LB1, begin)
    times = [message.at for message in sent if message.priority == OWNER and message.at < end]
    moments = [begin, *times, end]
    return [after - before for before, after in zip(moments, moments[1:])]


def largest_ms(gaps: list[float]) -> float:
    return max(gaps) * 1000


def flooded(daemon: str, kind: str):
    """Return the largest spacing of an Active router's Advertisements, how many were missing, and the flood's rate."""
    with Stage(captured=1) as stage:
        lb1, lb2 = stage.link.members
        with_password = {"version": 2, "auth_pass": "secret"}
        second = instance(flood.VRID_WITH_PASSWORD, 1, OWNER - 1, **with_password)
        stage.router(daemon, lb1, [instance(flood.VRID, FLOODED, OWNER), second]).start()
        stage.await_advertisements(LB1, 2, FLOODED)
        program = Path(flood.__file__).read_text()
        begin = time.time()
        senders = [lb2.python(program, kind, FLOOD_SECONDS, lb2.mac, "192.0.2.2") for _each in range(SENDERS)]
        sent = sum(int(sender.stdout.readline()) for sender in senders)
        end = time.time()
        stage.wire.read_up_to(end)
        gaps = spacings(stage, begin, end)
        lost = sum(round(gap / FLOODED) - 1 for gap in gaps if gap > 1.5 * FLOODED)
        return largest_ms(gaps), lost, sent / FLOOD_SECONDS
