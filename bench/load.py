"""What the daemons stand: busy neighbours, and a flood of messages; the agent beside keepalived."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import flood
import standstill
from shown import heading, row
from stage import KINDS, OWNER, Stage, instance

SECONDS = float(os.environ.get("SECONDS", "20"))
FLOOD_SECONDS = float(os.environ.get("FLOOD_SECONDS", "3"))
BUSY, SENDERS = 6, 2
SHORT, FLOODED = 0.01, 0.1  # seconds between Advertisements
LB1, LB2 = "lb1", "lb2"
# They end by themselves if nobody is left to end them.
SPIN = "import sys, time\nend = time.time() + float(sys.argv[1])\nwhile time.time() < end: pass"


def measure() -> None:
    heading(f"beside {BUSY} busy processes on {os.cpu_count()} cores")
    stands, found = beside_busy_ones()
    largest, moments = zip(*found)
    excused = [sum(is_excused(at, stands) for at in each) for each in moments]
    false = [len(each) - count for each, count in zip(moments, excused)]
    row(f"false takeovers in {SECONDS:.0f} s, adverts every {SHORT} s", *false, "0", "{:.0f}")
    row("  and when a processor itself stood still", *excused, "", "{:.0f}")
    row("  largest spacing of advertisements, ms", *largest)
    longest = max((length for _at, length in stands), default=0.0)
    print(f"  a processor stood still for {longest * 1000:.0f} ms at most, {len(stands)} times for more than 5 ms")
    heading(f"a flood for {FLOOD_SECONDS:.0f} s, adverts every {FLOODED} s")
    for kind in flood.KINDS:
        largest, lost, rates = zip(*(flooded(who, kind) for who in KINDS))
        row(f"{kind}: largest spacing, ms", *largest)
        row("  advertisements that did not come", *lost, "0", "{:.0f}")
        row("  messages sent in a second", *rates, "", "{:.0f}")


def beside_busy_ones():
    """Return the processors' standstills, and for each kind the largest spacing of the Active router's Advertisements
    and when the Backup began to speak.

    Both kinds are there at the same time, each on a link of its own.
    """
    with contextlib.ExitStack() as stack:
        stages = [stack.enter_context(Stage()) for _kind in KINDS]
        for stage, kind in zip(stages, KINDS):
            stage.pair(kind, kind, SHORT)
        watching = [
            stack.enter_context(program(standstill.__file__, processor, SECONDS))
            for processor in os.sched_getaffinity(0)
        ]
        for _each in range(BUSY):
            stack.enter_context(program("-c", SPIN, SECONDS + 60))
        begin = time.time()
        stands = [tuple(map(float, line.split())) for process in watching for line in process.stdout]
        end = time.time()
        for stage in stages:
            stage.wire.read_up_to(end)
        return stands, [(largest_ms(spacings(stage, begin, end)), takeovers(stage, begin)) for stage in stages]


@contextlib.contextmanager
def program(*arguments):
    """Python, running something until it is not wanted any more."""
    command = [sys.executable, *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def takeovers(stage: Stage, begin: float) -> list[float]:
    """Return when the Backup began to speak, where nobody was to be silent."""
    words = [word for word in sorted(stage.wire.words) if word.is_advertisement and word.at >= begin]
    return [after.at for before, after in zip(words, words[1:]) if after.member == LB2 != before.member]


def is_excused(at: float, stands) -> bool:
    """Whether a processor had just stood still for so long that three Advertisements could be missed."""
    return any(length > 2 * SHORT and begin <= at <= begin + length + 5 * SHORT for begin, length in stands)


def spacings(stage: Stage, begin: float, end: float) -> list[float]:
    """Return the seconds between the first one's Advertisements, and to both ends of the time."""
    said = [word.at for word in stage.wire.advertisements(LB1, begin) if word.priority == OWNER and word.at < end]
    moments = [begin, *said, end]
    return [after - before for before, after in zip(moments, moments[1:])]


def largest_ms(found: list[float]) -> float:
    return max(found) * 1000


def flooded(who: str, kind: str):
    """Return the largest spacing of an Active router's Advertisements, how many did not come, and the flood's rate."""
    with Stage(speakers=1) as stage:
        lb1, lb2 = stage.link.members
        with_password = {"version": 2, "auth_pass": "secret"}
        second = instance(flood.VRID_WITH_PASSWORD, 1, OWNER - 1, **with_password)
        stage.router(who, lb1, [instance(flood.VRID, FLOODED, OWNER), second]).starts()
        stage.hear(LB1, 2, FLOODED)
        program = Path(flood.__file__).read_text()
        begin = time.time()
        senders = [lb2.python(program, kind, FLOOD_SECONDS, lb2.mac, "192.0.2.2") for _each in range(SENDERS)]
        sent = sum(int(sender.stdout.readline()) for sender in senders)
        end = time.time()
        stage.wire.read_up_to(end)
        found = spacings(stage, begin, end)
        lost = sum(round(each / FLOODED) - 1 for each in found if each > 1.5 * FLOODED)
        return largest_ms(found), lost, sent / FLOOD_SECONDS
