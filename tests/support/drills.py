# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drill as the role records it, made of transcripts as the probe would write them: `tests/golden/drill.json`."""

from __future__ import annotations

import copy
import functools
import json
import random
from typing import Any, NamedTuple

from ansible_collections.onprem.lb.plugins.module_utils._host.drill import measurement
from ansible_collections.onprem.lb.plugins.module_utils._shared import series

from support.paths import GOLDEN

FILE = GOLDEN / "drill.json"
MACS = {"lb1": "02:00:00:00:00:01", "lb2": "02:00:00:00:00:02"}
NAMES = {mac: name for name, mac in MACS.items()}
VIP = "192.0.2.10"
STARTED = 1769860800.25  # 2026-01-31T12:00:00.250Z
STEP_MS = 5.0
# What a round has of the probe's question, and of the members.
ASKED = {
    "question": {"port": 8443, "lasting_port": 8443, "words": "TLS at 8443"},
    "measured": True,
    "targets": {name: {"engine": "native", "interface": "eth0"} for name in MACS},
}


class Shape(NamedTuple):
    """What a round looks like to the probe, in milliseconds.

    :ivar gone: when the VIP was not served, and how
    :ivar held: who held it when
    """

    event: str
    limit: int
    length: int
    begin: int
    lasts: int
    gone: list[tuple[int, int, str]]
    held: list[tuple[str, int, int]]
    back: int = 60


def _moves(event: str, limit: int, outage: int, outcome: str = "refused", lasts: int = 1572) -> Shape:
    """The VIP goes from lb1 to lb2 and back."""
    begin, back = 2740, 2740 + lasts + 900
    gone = [(begin, begin + outage, outcome), (back, back + 5, "timeout")]
    held = [("lb1", 0, begin + 5), ("lb2", begin + outage, back), ("lb1", back, back + 3000)]
    return Shape(event, limit, back + 2000, begin, lasts, gone, held)


SHAPES = [
    _moves("haproxy_killed", 72, 15),
    _moves("haproxy_killed", 72, 20),
    _moves("haproxy_killed", 72, 15),
    _moves("keepalived_stopped", 72, 10, "timeout"),
    _moves("host_cut", 3072, 3045, "timeout", 4572),
    Shape("haproxy_reloaded", 0, 15000, 2740, 11500, [], [("lb1", 0, 15000)]),
]


def simulated() -> list[dict[str, Any]]:
    """Return the results of a drill, always the same ones. The caller may change them."""
    return copy.deepcopy(_simulated())


@functools.cache
def _simulated() -> list[dict[str, Any]]:
    chance = random.Random(18)
    return [_result(shape, chance) for shape in SHAPES]


def _result(shape: Shape, chance: random.Random) -> dict[str, Any]:
    transcript = _transcript(shape, chance)
    moves = len(shape.held) > 1
    return {
        "vip": VIP,
        "event": shape.event,
        **ASKED,
        "members": [{"name": name, "macs": [mac]} for name, mac in MACS.items()],
        "forecast": {
            "before": "lb1",
            "after": "lb2" if moves else "lb1",
            "back": "lb1",
            "outage_ms": shape.limit,
            "back_ms": shape.back,
            "two_holders_ms": 0,
        },
        "holder": "lb1",
        "revert_after": shape.lasts / 1000,
        "member": "lb1",
        "interval_ms": STEP_MS,
        "injected_at": "2026-01-31T12:00:02.990+00:00",
        "seen": {
            **measurement.report(transcript, NAMES, True),
            "started_at": STARTED,
            "series": series.encode(transcript.attempts, STEP_MS),
            "lasting": {"held": 20, "lost": 20 if moves else 0},
        },
    }


def _transcript(shape: Shape, chance: random.Random) -> measurement.Transcript:
    found = measurement.Transcript(length_ms=float(shape.length))
    at = 0.0
    while at < shape.length:
        start = at + chance.random() * 0.4
        outcome = next((outcome for begin, end, outcome in shape.gone if begin <= at < end), "ok")
        found.attempts.append(measurement.Attempt(start, start + _latency(outcome, chance), outcome))
        found.probes.append(start)
        found.sightings += [(start + 0.3, MACS[name]) for name, begin, end in shape.held if begin <= at < end]
        at += STEP_MS
    return found


def _latency(outcome: str, chance: random.Random) -> float:
    if outcome != "ok":
        return 300.0 if outcome == "timeout" else 0.3
    slow = chance.random()
    return (
        0.5
        + 0.6 * chance.random()
        + (40 * chance.random() if slow < 0.004 else 2 * chance.random() if slow < 0.1 else 0)
    )


def recorded() -> list[dict[str, Any]]:
    return json.loads(FILE.read_text())


def write() -> None:
    FILE.write_text(json.dumps(simulated(), indent=1) + "\n")
