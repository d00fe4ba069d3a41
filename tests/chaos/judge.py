# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was wrong with a round. Pure: the records in, sentences out."""

from __future__ import annotations

from typing import Dict, Iterator, List, NamedTuple, Tuple

from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast.forecast import SWITCH_MS
from support.netns.recorder import View

from chaos.load import Answer
from chaos.plays import Round

BLUR_S = 0.02  # what the recorder knows of an address it knows so much later than it happened
Views = List[Tuple[float, View]]  # the time from which each was true, the oldest first


class Bounds(NamedTuple):
    """The longest times that the forecast allows in a round, in milliseconds, for one VIP."""

    unserved: float
    two_holders: float


class Found(NamedTuple):
    """The longest times that were seen, in the same way."""

    unserved: float
    two_holders: float


def bounds(turn: Round, outages: List[Dict], vip: str, handovers_ms: float = 0) -> Bounds:
    """Return what a round may cost a VIP.

    :param outages: the lines of the forecast
    :param handovers_ms: what a change costs a VIP that moves from member to member meanwhile
    """
    if turn.is_harmless:
        return Bounds(0, 0)
    if turn.change:
        return Bounds(SWITCH_MS + handovers_ms, SWITCH_MS)
    unserved = two_holders = 0.0
    for fault in turn.faults:
        lines = [line for line in outages if (line["event"], line["vip"]) == (fault.event, vip)]
        for line in lines:
            unserved += line["outage_ms"] + line["back_ms"]
            two_holders += line["two_holders_ms"] + SWITCH_MS
    return Bounds(unserved, two_holders)


def found(views: Views, begin: float, end: float) -> Found:
    """Return for how long the VIP was not served in all, and for how long it had two holders."""
    return Found(
        sum(until - since for since, until in _periods(views, begin, end, lambda view: not view.served)) * 1000,
        sum(until - since for since, until in _periods(views, begin, end, lambda view: len(view.holders) > 1)) * 1000,
    )


def _periods(views: Views, begin: float, end: float, wrong) -> Iterator[Tuple[float, float]]:
    ends = [at for at, _view in views[1:]] + [end]
    for (since, view), until in zip(views, ends):
        since, until = max(since, begin), min(until, end)
        if since < until and wrong(view):
            yield since, until


def losses(answers: List[Answer], views: Views) -> List[Answer]:
    """Return the questions that failed although one member held the VIP throughout, and served it."""
    return [answer for answer in answers if answer.fault and not _excused(answer, views)]


def _excused(answer: Answer, views: Views) -> bool:
    """Return whether the VIP moved, or was not served, while the question was under way."""
    begin, end = answer.begin - BLUR_S, answer.end + BLUR_S
    during = [view for at, view in views if begin <= at <= end]
    before = [view for at, view in views if at < begin][-1:]
    return any(not view.served for view in before + during) or len({view.announcer for view in before + during}) > 1


def faults(
    turn: Round,
    vip: str,
    outages: List[Dict],
    views: Views,
    period: Tuple[float, float],
    answers: List[Answer],
    handovers_ms: float = 0,
) -> List[str]:
    """Return a sentence for everything that was wrong for one VIP.

    :param period: the begin and the end of the round
    :param answers: to the questions through this VIP
    :param handovers_ms: as `bounds` takes it
    """
    allowed, seen = bounds(turn, outages, vip, handovers_ms), found(views, *period)
    lost = [answer for answer in losses(answers, views) if period[0] <= answer.begin <= period[1]]
    wrong = [f"lost: {answer}" for answer in lost]
    if seen.unserved > allowed.unserved:
        wrong.append(f"{vip} was not served for {seen.unserved:.0f} ms, {allowed.unserved:.0f} ms are forecast")
    if seen.two_holders > allowed.two_holders:
        wrong.append(f"{vip} had two holders for {seen.two_holders:.0f} ms, {allowed.two_holders:.0f} ms are forecast")
    return wrong
