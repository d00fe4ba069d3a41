"""How long no router is Active after a crash, after SIGTERM and after a start: the agent compared with keepalived."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

from stage import KEEPALIVED, KINDS, OWNER, Stage, instance
from tables import heading, row

ROUNDS = int(os.environ.get("ROUNDS", "10"))
INTERVALS = (1, 0.1, 0.01)
# With this interval Skew_Time, which is the same for both, is short and hides little of their own time.
HANDOVER_INTERVAL = 0.1
# The agent's median must not be more than so many times keepalived's.
SILENCE, ANNOUNCEMENT = 1.05, 1.5
LB1, LB2 = "lb1", "lb2"
LIMIT = 5  # seconds for any event, plus so many intervals


def measure() -> None:
    heading(f"milliseconds, median (worst) of {ROUNDS} rounds")
    for interval in INTERVALS:
        gap, announced = in_turn(crash, KINDS, interval)
        row(f"gap after kill -9, adverts every {interval} s", *gap, at_most=SILENCE)
        row("  first advertisement to first gratuitous ARP", *announced, at_most=ANNOUNCEMENT)
    for peer, peers in (("a keepalived", (KEEPALIVED, KEEPALIVED)), ("its own kind", KINDS)):
        signalled, resigned = in_turn(handover, list(zip(KINDS, peers)), HANDOVER_INTERVAL)
        row(f"SIGTERM to the first advertisement of {peer}", *signalled)
        row("  of which after priority 0", *resigned)
    (started,) = in_turn(start, KINDS, 0.1)
    row("start to first advertisement of an owner", *started, "500 ms")


def in_turn(trial, contenders, interval: float):
    """Return a list of milliseconds for each quantity that the trial measures and each contender.

    With long intervals the trials mostly wait, so the contenders run at the same time.
    """
    with contextlib.ExitStack() as stack:
        stages = [stack.enter_context(Stage()) for _each in contenders]
        pool = stack.enter_context(ThreadPoolExecutor(len(stages) if interval >= 1 else 1))
        rounds = [list(pool.map(trial, stages, contenders, [interval] * len(stages))) for _round in range(ROUNDS)]
    return [
        [[times[contender][quantity] * 1000 for times in rounds] for contender in range(len(contenders))]
        for quantity in range(len(rounds[0][0]))
    ]


def crash(stage: Stage, kind: str, interval: float):
    """Kill an Active router, which is always a keepalived. Return the time without advertisements, and the time until
    the new Active router announces its addresses."""
    active, _backup = stage.pair(KEEPALIVED, kind, interval)
    active.kill()
    first = stage.wire.until(lambda: stage.wire.advertisements(LB2), LIMIT + 5 * interval)[0]
    announced = stage.wire.until(lambda: stage.wire.announcements(LB2), LIMIT)[0]
    last = stage.wire.advertisements(LB1)[-1]
    assert last.priority == OWNER, "the killed router has resigned instead"
    stage.clear()
    return first.at - last.at, announced.at - first.at


def handover(stage: Stage, kinds, interval: float):
    """Stop an Active router. Return how long its peer takes to advertise, from the signal and from priority 0."""
    active, _peer = stage.pair(*kinds, interval)
    at = time.time()
    os.kill(active.process.pid, signal.SIGTERM)  # as systemd does: keepalived's unit has KillMode=process
    first = stage.wire.until(lambda: stage.wire.advertisements(LB2), LIMIT + 5 * interval)[0]
    last = stage.wire.advertisements(LB1)[-1]
    assert last.priority == 0, "it has not resigned"
    stage.clear()
    return first.at - at, first.at - last.at


def start(stage: Stage, kind: str, interval: float):
    """Return the time from the start of the process to its first advertisement."""
    owner = stage.router(kind, stage.link.lb1, [instance(1, interval, OWNER)])
    at = time.time()
    owner.launch()
    first = stage.wire.until(lambda: stage.wire.advertisements(LB1), LIMIT)[0]
    stage.clear()
    return (first.at - at,)
