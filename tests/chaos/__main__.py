# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python3 tests/chaos --rounds 1000`: random failures and changes of running layouts, under load.

Real haproxy, keepalived and agents run in network namespaces with the files of the roles. After each round every VIP
must have one holder, which serves it, and every member must be able to take over. Meanwhile nobody may be without an
answer for longer than the forecast says, and no question may be lost while the VIP stays where it is. `--seed 17`
repeats one play, with its history.
"""

from __future__ import annotations

import argparse
import collections
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Counter, Iterator, List, NamedTuple, Optional, Tuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # this folder is run as a script, not as a package

from support import collection, leaks  # noqa: E402

collection.make_importable()

from support.netns.links import skip_reason  # noqa: E402

from chaos import judge, plays  # noqa: E402
from chaos.cluster import Cluster  # noqa: E402
from chaos.plays import Fault, Play, Round  # noqa: E402

SETTLES_S = 30.0  # what a round may take to be as before
ANSWERS = 5  # in a row, from each VIP, before the next round
AT_ONCE = os.cpu_count() or 1  # a play takes half a processor; with more of them units would start late
FORK = multiprocessing.get_context("fork")


class Outcome(NamedTuple):
    """What was seen in a play. It ends with the first round that has a fault."""

    seed: int
    rounds: int
    questions: int
    excused: int  # questions that failed while a VIP moved, or a member had failed
    seen: Counter[str]  # how often each event and change
    faults: List[str]
    history: str = ""


def perform(play: Play, folder: Path) -> Outcome:
    """Play all rounds of a play."""
    seen: Counter[str] = collections.Counter()
    done, faults, history = 0, [], ""
    with Cluster(play, folder) as cluster:
        turn: Optional[Round] = None
        for turn in (Round(0), *play.rounds):
            begin, end, settled = _perform_round(cluster, turn)
            faults = _judge(cluster, turn, begin, end, settled)
            done += turn.number > 0
            seen.update([turn.change] if turn.change else [fault.event for fault in turn.faults])
            if faults:
                history = "\n".join(_history(cluster, turn, begin))
                break
        answers = cluster.load.since(0)
    return Outcome(play.seed, done, len(answers), sum(bool(each.fault) for each in answers), seen, faults, history)


def _perform_round(cluster: Cluster, turn: Round) -> Tuple[float, float, bool]:
    begin = time.time()
    if turn.change:
        cluster.change(turn.change)
    for at, act, fault in sorted(_actions(cluster, turn.faults), key=lambda action: action[0]):
        cluster.pause(begin + at - time.time())
        act(fault)
    settled = cluster.settle(SETTLES_S)
    if settled:
        cluster.load.wait_for_answers(cluster.vips, ANSWERS, SETTLES_S)
    return begin, time.time(), settled


def _actions(cluster: Cluster, faults: Tuple[Fault, ...]) -> Iterator[Tuple]:
    for fault in faults:
        yield fault.at, cluster.fail, fault
        yield fault.at + fault.lasts, cluster.revert, fault


def _judge(cluster: Cluster, turn: Round, begin: float, end: float, settled: bool) -> List[str]:
    if not settled:
        held = [f"{vip} is held by {cluster.holders(vip) or 'nobody'} after {SETTLES_S:g} s" for vip in cluster.vips]
        return held + cluster.hindrances()
    if not turn.number:  # the start
        return []
    answers = cluster.load.since(begin)
    return [
        fault
        for vip in cluster.vips
        for fault in judge.faults(
            turn,
            vip,
            cluster.plan.outages,
            cluster.recorder.views(vip),
            (begin, end),
            [answer for answer in answers if answer.vip == vip],
            cluster.handovers_ms(turn, vip),
        )
    ]


def _history(cluster: Cluster, turn: Round, begin: float) -> Iterator[str]:
    """Yield what happened in a round, in the order of time, and the ends of the logs."""
    yield str(turn)
    for event in sorted(cluster.recorder.events):
        if event.at >= begin:
            yield f"  {event.at - begin:7.3f} s  {event.member} {event.kind} {event.address}"
    for answer in cluster.load.since(begin):
        if answer.fault:
            yield f"  {answer.begin - begin:7.3f} s  {answer.vip}: {answer.fault}"
    for member in cluster.members.values():
        yield member.tail()


def perform_seed(drawn: Tuple[int, int]) -> Outcome:
    """Run in a process of its own, so that no recorder waits for another one.

    :param drawn: the seed, and the number of rounds
    """
    play = plays.draw(*drawn)
    with tempfile.TemporaryDirectory(prefix="onpremlb-chaos-") as folder:
        Path(folder).chmod(0o755)
        return perform(play, Path(folder) / "play")


def perform_all(first: int, rounds: int) -> Iterator[Outcome]:
    """Yield the outcome of each play as it ends, until one has a fault. What still runs then is ended."""
    counts = [min(plays.ROUNDS, rounds - done) for done in range(0, rounds, plays.ROUNDS)]
    with FORK.Pool(AT_ONCE, initializer=_leave_on_sigterm) as pool:
        for outcome in pool.imap_unordered(perform_seed, enumerate(counts, first)):
            yield outcome
            if outcome.faults:
                return


def _leave_on_sigterm() -> None:
    """Have SIGTERM leave every context, so that the namespaces and the programs of a play are removed."""
    signal.signal(signal.SIGTERM, lambda *_received: sys.exit(128 + signal.SIGTERM))


def report(outcomes: List[Outcome]) -> List[str]:
    """Return the closing table."""
    seen: Counter[str] = sum((outcome.seen for outcome in outcomes), collections.Counter())
    questions, excused = (sum(getattr(each, key) for each in outcomes) for key in ("questions", "excused"))
    return [
        *(f"{name:<22}{count:>7}" for name, count in sorted(seen.items())),
        f"{sum(outcome.rounds for outcome in outcomes)} rounds, {questions} questions, of which {excused} failed while "
        "a VIP moved or its holder had failed",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=0, help="by default one play")
    parser.add_argument("--seed", type=int, default=None, help="of the first play; by default a new one")
    chosen = parser.parse_args()
    refusal = skip_reason("haproxy", "keepalived", "pkill")
    if refusal:
        sys.exit(refusal)
    first = int(time.time()) if chosen.seed is None else chosen.seed
    _leave_on_sigterm()
    run, outcomes, rounds = leaks.Run(), [], chosen.rounds or plays.ROUNDS
    print(f"{rounds} rounds, the first seed is {first}", flush=True)
    for outcome in perform_all(first, rounds):
        outcomes.append(outcome)
        print(f"seed {outcome.seed}: {outcome.rounds} rounds, {len(outcome.faults)} faults", flush=True)
    faults = [f"{plays.draw(each.seed)}\n{each.history}\n" + "\n".join(each.faults) for each in outcomes if each.faults]
    faults += leaks.leftovers(run.left)
    print("\n".join(report(outcomes)))
    if faults:
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
