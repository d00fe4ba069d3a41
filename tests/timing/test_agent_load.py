# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A flood of messages delays no Advertisement, and those of strangers cost the agent next to nothing."""

from __future__ import annotations

import contextlib
import os
import select
import time

import pytest
from support.netns.floods import STATES, STEADY, flooded_agent, hostile, sending, states, strangers
from support.netns.links import temporary_link
from support.netns.recorder import carries_vrrp, open_capture, receive_frame
from support.netns.stages import INTERVAL, temporary_stage
from support.netns.stalls import StallDetector
from support.rounds import ROUNDS, percentile

FLOOD_S = 3
STRANGERS = 20_000  # messages, of which the agent must be able to ignore so many in a tenth of a second
FOREVER = 10**9


@pytest.fixture
def stage(tmp_path):
    with temporary_link() as link, temporary_stage(link, tmp_path) as made:
        yield made


@contextlib.contextmanager
def flood(stage, packets):
    """Send for some seconds; yield nothing while the flood goes on."""
    sender = sending(stage.link.lb2, stage.folder, packets, FOREVER)
    try:
        yield
    finally:
        sender.kill()


def arrivals(frames, seconds, vrid):
    """Return when the advertisements of a VRID arrived, within a number of seconds."""
    times, end = [], time.monotonic() + seconds
    while select.select([frames], [], [], max(0.0, end - time.monotonic()))[0]:
        at, frame = receive_frame(frames)
        if carries_vrrp(frame) and frame[14 + 20 + 1] == vrid:
            times.append(at)
    return times


def longest_gap(stage, detector):
    """Return the longest time in seconds without an Advertisement in a flood, but for stalls of the machine."""
    with contextlib.closing(open_capture(stage.link.client.namespace)) as frames, flood(stage, hostile()):
        times = arrivals(frames, FLOOD_S, STEADY)
    return max(last - first - detector.stalled(first, last) for first, last in zip(times, times[1:]))


def test_a_flood_of_hostile_messages_delays_no_advertisement(stage):
    agent = flooded_agent(stage)
    stage.stop_recording()
    with contextlib.closing(StallDetector()) as detector:
        longest = [longest_gap(stage, detector) for _round in range(ROUNDS)]
    print(longest)
    assert percentile(longest) < 1.5 * INTERVAL
    assert states(agent) == STATES


def test_20_000_messages_of_strangers_take_less_than_a_tenth_of_a_second(stage):
    """It is the agent's processor time, less what it takes when nothing arrives."""
    agent, packets, costs = flooded_agent(stage), strangers(), []
    times = STRANGERS // len(packets)
    idle = -processor_time(agent)
    time.sleep(FLOOD_S)
    idle = (idle + processor_time(agent)) / FLOOD_S
    for _round in range(ROUNDS):
        begin, before = time.monotonic(), processor_time(agent)
        assert int(sending(stage.link.lb2, stage.folder, packets, times).stdout.readline()) == STRANGERS
        costs.append(processor_time(agent) - before - idle * (time.monotonic() - begin))
    print(costs, idle)
    assert percentile(costs) < 0.1


def processor_time(agent):
    """Return the seconds that the agent has computed."""
    with open(f"/proc/{agent.process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
