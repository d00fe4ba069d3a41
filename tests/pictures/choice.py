# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which layout, which reach, which engine: three questions, each with its answers. Pure."""

from __future__ import annotations

from typing import Iterator, NamedTuple, Sequence

from .svg import MARGIN, NORMAL, SMALL, WIDTH, Box, arrow, heading, label, note, panel, picture

TITLE = "Which layout, which reach, which engine"
ABOUT = "Layout and reach are yours to choose. The engine is chosen for each host, unless you set it."
QUESTION = (MARGIN, 196)  # the left edge and the width of each column
CONDITION = (266, 276)
ANSWER = (590, WIDTH - MARGIN - 590)
TOP, HEIGHT, GAP, SPACE = 88, 84, 16, 40


class Answer(NamedTuple):
    """What to take, and when."""

    conditions: Sequence[str]
    name: str
    tone: str
    details: Sequence[str]


class Question(NamedTuple):
    """What to ask, and between which answers it decides."""

    name: str
    asked: Sequence[str]
    answers: Sequence[Answer]


LAYOUT = Question(
    "Layout",
    ("Which hosts will", "carry the VIPs?"),
    (
        Answer(
            ("Two hosts or more, on which the", "ports of the services are free"),
            "pair",
            "vip",
            ("kubeadm, RKE2, k3s, OpenShift UPI,", "any TCP service"),
        ),
        Answer(
            ("The cluster's own nodes, whose API", "server has port 6443 already"),
            "ipi",
            "vip",
            ("masters carry the API's VIP,", "nodes with routers the ingress VIPs"),
        ),
    ),
)
REACH = Question(
    "Reach",
    ("Where are these hosts,", "and their clients?"),
    (
        Answer(
            ("All of them are on one link, or", "you cannot change the routers"),
            "vrrp",
            "router",
            ("one member holds each VIP", "at a time"),
        ),
        Answer(
            ("They are in several subnets,", "or one cannot take all connections"),
            "bgp",
            "router",
            ("each member announces the VIPs to", "its routers, which share the clients"),
        ),
        Answer(
            ("Some clients are on their link, and", "others behind routers you can change"),
            "both",
            "router",
            ("VRRP for the link,", "BGP for all others"),
        ),
    ),
)
ENGINE = Question(
    "Engine",
    ("What can be installed", "on this host?"),
    (
        Answer(
            ("HAProxy and keepalived are installed,", "or a package source has them"),
            "native",
            "balancer",
            ("HAProxy and keepalived",),
        ),
        Answer(
            ("No package source answers, or", "the distribution is unknown"),
            "agent",
            "balancer",
            ("its own VRRP router and TCP balancer;", "needs systemd and Python 3.8"),
        ),
    ),
)


def draw(questions: Sequence[Question] = (LAYOUT, REACH, ENGINE)) -> str:
    shapes, y = [heading(TITLE, ABOUT)], float(TOP)
    for question in questions:
        shapes += _question(question, y)
        y += len(question.answers) * (HEIGHT + GAP) - GAP + SPACE
    told = [
        f"{question.name}: {' or '.join(f'{each.name} ({_sentence(each.conditions)})' for each in question.answers)}."
        for question in questions
    ]
    return picture(round(y - SPACE + MARGIN), TITLE, " ".join([ABOUT, *told]), shapes)


def _question(question: Question, y: float) -> Iterator[str]:
    height = len(question.answers) * (HEIGHT + GAP) - GAP
    asks = Box(QUESTION[0], y + height / 2 - 44, QUESTION[1], 88)
    yield panel(asks, "border", "quiet")
    yield label((asks.x + 16, asks.y + 20), question.name.upper(), "quiet", 11, "strong")
    for row, words in enumerate(question.asked):
        yield label((asks.x + 16, asks.y + 44 + row * 20), words, style="strong")
    bend = (asks.right + CONDITION[0]) / 2
    for row, answer in enumerate(question.answers):
        when = Box(CONDITION[0], y + row * (HEIGHT + GAP), CONDITION[1], HEIGHT)
        take = Box(ANSWER[0], when.y, ANSWER[1], HEIGHT)
        level = when.centre[1]
        yield arrow([(asks.right, asks.centre[1]), (bend, asks.centre[1]), (bend, level), (when.x - 3, level)])
        yield panel(when, "border", "plain")
        yield note((when.x + 16, level - 9), answer.conditions, "plain", NORMAL)
        yield arrow([(when.right, level), (take.x - 3, level)], answer.tone)
        yield from _answer(answer, take)


def _answer(answer: Answer, box: Box) -> Iterator[str]:
    lines = len(answer.details)
    top = box.centre[1] - (lines * SMALL * 1.4) / 2 - 2
    yield panel(box, answer.tone)
    yield label((box.x + 16, top), answer.name, answer.tone, 15, "code strong")
    yield note((box.x + 16, top + 23), answer.details, answer.tone)


def _sentence(words: Sequence[str]) -> str:
    joined = " ".join(words)
    return joined[0].lower() + joined[1:]
