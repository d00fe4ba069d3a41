# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Transcripts of the state machine: the events of a Virtual Router, each with its time and its effects.

    0         start                  -> Backup until 3609.375 | Initialize to Backup: start
    3609.375  timeout                -> Active until 4609.375 | send 100, add, announce, Backup to Active: ...

A line has a time in milliseconds and an event. After the arrow it has the state, its deadline and the effects. The test
plays the left sides, and compares the results with the right sides.
"""

from __future__ import annotations

from typing import Any, Sequence

from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import effects, machine, packet, tracking

OTHER = "192.0.2.1"
# By type, because tuples without fields are all equal.
NAMES = {effects.AddAddresses: "add", effects.RemoveAddresses: "remove", effects.Announce: "announce"}


def router(version: int = 2, priority: int = 100, **changes: Any) -> machine.VirtualRouter:
    """A Virtual Router that advertises every second."""
    defaults = {"interval": machine.SECOND, "source": "192.0.2.100"}
    return machine.VirtualRouter(version, priority, **{**defaults, **changes})


def plays(who: machine.VirtualRouter, transcript: str) -> machine.State:
    """Play the left sides, assert the right sides, return the last state."""
    expected, played, state = [], [], machine.State()
    for line in filter(None, map(str.strip, transcript.splitlines())):
        left, right = (" ".join(side.split()) for side in line.split("->"))
        at, words = left.split(maxsplit=1)
        state, done = machine.step(who, state, event(words), us(at))
        expected.append(f"{left} -> {right}")
        played.append(f"{left} -> {outcome(state, done)}")
    assert played == expected
    return state


def event(words: str) -> machine.Event:
    """``hears 100 from 192.0.2.9 every 20``, ``reads haproxy FAULT``, ``start holding``, ``timeout``..."""
    kind, *rest = words.split()
    if kind == "hears":
        options = dict(zip(rest[1::2], rest[2::2]))
        return hears(int(rest[0]), options.get("from", OTHER), us(options.get("every", "1000")))
    if kind == "reads":
        return machine.TrackerUpdate(rest[0], tracking.FAULT if rest[1] == "FAULT" else int(rest[1]))
    if kind == "start":
        return machine.Start(holding=rest == ["holding"])
    if kind == "leave":
        return machine.Stop(keep_until_taken=True)
    kinds = (machine.Stop, machine.Timeout, machine.Promote, machine.Demote)
    return {each.__name__.lower(): each for each in kinds}[kind]()


def hears(priority: int, source: str = OTHER, interval: int = machine.SECOND) -> machine.Received:
    return machine.Received(packet.Advertisement(3, 51, priority, interval, ("192.0.2.200",)), source)


def outcome(state: machine.State, done: Sequence[effects.Effect]) -> str:
    until = "" if state.deadline is None else f" until {state.deadline / 1000:.10g}"
    return f"{state.name}{until}" + (f" | {', '.join(map(name, done))}" if done else "")


def name(effect: effects.Effect) -> str:
    if isinstance(effect, effects.Send):
        return f"send {effect.priority}"
    if isinstance(effect, effects.StateChanged):
        return f"{effect.before} to {effect.after}: {effect.reason}"
    return NAMES[type(effect)]


def us(milliseconds: str) -> int:
    return round(float(milliseconds) * 1000)
