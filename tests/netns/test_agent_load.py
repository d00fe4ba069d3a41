# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The agent under load: a flood of hostile messages, and every VRID on one link."""

from __future__ import annotations

import contextlib
import os
import select
import statistics
import time

from ansible_collections.onprem.lb.plugins.module_utils._agent.net.ip import ipv4_header
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import packet
from support.netns.recorder import carries_vrrp, open_capture, receive_frame
from support.netns.stages import INTERVAL, instance
from support.waiting import until

FLOOD_S, FLOODS = 3, 3
OWN, PEER, STRANGER, CLIENT = "192.0.2.1", "192.0.2.2", "192.0.2.77", "192.0.2.3"
# VRIDs: one whose advertisements are measured, one that gets valid messages, and one that gets guesses at its password.
STEADY, ANSWERING, SECRET = 53, 54, 55
STATES = {"steady": "Active", "answering": "Active", "secret": "Active"}

STRANGERS = 20_000  # messages, of which the agent must be able to ignore so many in a tenth of a second
# Sends the packets in a file, one a line in hexadecimal digits, again and again; prints how many at the end.
SEND = """
import itertools, socket, sys, time
with open(sys.argv[1]) as file:
    packets = [bytes.fromhex(line) for line in file]
out = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
print("ready", flush=True)
end, count = time.monotonic() + float(sys.argv[2]), 0
while time.monotonic() < end:
    for each in packets:
        out.sendto(each, (sys.argv[3], 0))
    count += len(packets)
print(count, flush=True)
"""


def hostile():
    """Return IP packets: valid messages, messages for other VRIDs, broken ones, and guesses at a password."""
    lower = packet.Advertisement(3, ANSWERING, 1, 100_000, ("192.0.2.102",))
    guess = packet.Advertisement(2, SECRET, 255, packet.SECOND, ("192.0.2.103",), packet.PASSWORD, b"guess")
    valid = packet.encode(lower, PEER, OWN)
    steady = packet.encode(lower._replace(vrid=STEADY, priority=255), STRANGER, OWN)
    messages = [
        (PEER, valid),
        (STRANGER, steady),
        *[(PEER, packet.encode(guess._replace(auth_pass=bytes([letter] * 8)), PEER, OWN)) for letter in b"abcdefgh"],
        *[(PEER, packet.encode(lower._replace(vrid=vrid), PEER, OWN)) for vrid in range(60, 68)],
        *[(PEER, valid[:-1] + bytes([number])) for number in range(8)],
        *[(PEER, valid[:size]) for size in range(8)],
        *[(PEER, bytes([first, STEADY]) + b"\xff" * 1400) for first in (0x00, 0x21, 0x31, 0x32, 0x41, 0xFF)],
    ]
    return [ipv4_header(source, OWN, len(message)) + message for source, message in messages]


def settings(node):
    return [
        instance(node, vrid=STEADY, name="steady", peers=[CLIENT]),
        instance(node, vrid=ANSWERING, name="answering", vip="192.0.2.102"),
        instance(
            node, vrid=SECRET, name="secret", vip="192.0.2.103", version=2, advert_interval=1, auth_pass="geheim12"
        ),
    ]


def states(agent):
    return {each["name"]: each["state"] for each in agent.report()["instances"]}


def arrivals(frames, seconds, vrid):
    """Return when the advertisements of a VRID arrived, within a number of seconds."""
    times, end = [], time.monotonic() + seconds
    while select.select([frames], [], [], max(0.0, end - time.monotonic()))[0]:
        at, frame = receive_frame(frames)
        if carries_vrrp(frame) and frame[14 + 20 + 1] == vrid:
            times.append(at)
    return times


def flood(stage, path):
    """Send a flood; return the number of its packets, and the longest time in seconds without an advertisement."""
    with contextlib.closing(open_capture(stage.link.client.namespace)) as frames:
        sender = stage.link.lb2.python(SEND, path, FLOOD_S, OWN)
        assert sender.stdout.readline() == "ready\n"
        times = arrivals(frames, FLOOD_S, STEADY)
        count = int(sender.stdout.readline())
    return count, max(later - earlier for earlier, later in zip(times, times[1:]))


def test_a_flood_of_hostile_messages_delays_no_advertisement(stage, tmp_path):
    agent = stage.agent(stage.link.lb1, *settings(stage.link.lb1))
    until(lambda: states(agent) == STATES, "they are not all Active")
    stage.stop_recording()
    before = agent.report()
    (tmp_path / "packets").write_text("".join(each.hex() + "\n" for each in hostile()))
    floods = [flood(stage, tmp_path / "packets") for _time in range(FLOODS)]
    print(floods)
    assert statistics.median(longest for _count, longest in floods) < 1.5 * INTERVAL
    after = agent.report()
    assert states(agent) == STATES
    assert [each["transitions"] for each in after["instances"]] == [2, 2, 2]
    discarded = {each["name"]: each["discarded"] for each in after["instances"]}
    assert discarded["steady"].keys() >= {"peer", "type", "checksum"}
    assert discarded["secret"].keys() == {"authentication"}
    assert discarded["answering"].keys() >= {"checksum", "length"}
    assert sum(sum(each.values()) for each in discarded.values()) > 1000
    assert before["pid"] == after["pid"]
    assert len(agent.log().splitlines()) < 40, "a flood of messages became a flood of log lines"


def strangers():
    """Return IP packets for all VRIDs but ours, and of other versions with ours."""
    lower = packet.Advertisement(3, ANSWERING, 1, 100_000, ("192.0.2.102",))
    valid = packet.encode(lower, PEER, OWN)
    others = [valid[:1] + bytes([vrid]) + valid[2:] for vrid in range(60, 256)]
    messages = [*others, *[bytes([first]) + valid[1:] for first in (0x01, 0x11, 0x41, 0xF1)]]
    return [ipv4_header(PEER, OWN, len(message)) + message for message in messages]


def test_20_000_messages_of_strangers_in_a_second_take_less_than_a_tenth_of_a_core(stage, tmp_path):
    """The machine may be too slow to send so many in a second, so the time for one is what is measured."""
    agent = stage.agent(stage.link.lb1, *settings(stage.link.lb1))
    until(lambda: states(agent) == STATES, "they are not all Active")
    (tmp_path / "packets").write_text("".join(each.hex() + "\n" for each in strangers()))
    idle = processor_time(agent)
    time.sleep(FLOOD_S)
    idle = (processor_time(agent) - idle) / FLOOD_S
    begin, before, count = time.monotonic(), processor_time(agent), 0
    while count < STRANGERS:
        sender = stage.link.lb2.python(SEND, tmp_path / "packets", FLOOD_S, OWN)
        assert sender.stdout.readline() == "ready\n"
        count += int(sender.stdout.readline())
    used = processor_time(agent) - before - idle * (time.monotonic() - begin)
    print(f"{count} messages took {used:.3f} s; idle it is {idle:.4f} of a core")
    assert used * STRANGERS / count < 0.1
    assert all(not each["discarded"] for each in agent.report()["instances"])


def processor_time(agent):
    """Return the seconds that the agent has computed."""
    with open(f"/proc/{agent.process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def every_vrid(node, priority):
    return [
        instance(node, priority, vrid, f"v{vrid}", f"198.18.0.{vrid}", multicast=True, peers=[], advert_interval=1)
        for vrid in range(1, 256)
    ]


def test_every_vrid_on_one_link_moves_from_one_agent_to_the_other_and_back(stage):
    link = stage.link
    first = stage.agent(link.lb1, *every_vrid(link.lb1, 254))
    until(lambda: set(states(first).values()) == {"Active"}, "the first one does not hold them all")
    second = stage.agent(link.lb2, *every_vrid(link.lb2, 253))
    vips = [f"198.18.0.{vrid}" for vrid in range(1, 256)]

    def wait_for_holder(name):
        stage.wait(lambda: all(stage.view(vip).holders == [name] for vip in vips), f"{name} does not hold them all")
        stage.wait(lambda: all(stage.view(vip).announcer == name for vip in vips), f"{name} has not announced them all")

    wait_for_holder("lb1")
    begin = time.time()
    first.stop()
    wait_for_holder("lb2")
    print("handed over after", time.time() - begin)
    stage.start(first)
    wait_for_holder("lb1")
    assert set(states(second).values()) == {"Backup"}
    assert {sum(each["discarded"].values()) for each in second.report()["instances"]} == {0}
    begin = time.time()
    first.reload()
    until(lambda: "is in force" in first.log(), "it does not reload")
    assert not [one for one in stage.recorder.events if one.at > begin and one.kind in ("added", "removed")]
