# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Floods of VRRP messages to an agent with three Virtual Routers."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._agent.net.ip import ipv4_header
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import packet

from support.netns.stages import instance
from support.waiting import until

OWN, PEER, STRANGER, CLIENT = "192.0.2.1", "192.0.2.2", "192.0.2.77", "192.0.2.3"
# VRIDs: one whose advertisements are measured, one that gets valid messages, and one that gets guesses at its password.
STEADY, ANSWERING, SECRET = 53, 54, 55
STATES = {"steady": "Active", "answering": "Active", "secret": "Active"}
# Sends the packets in a file, one a line in hexadecimal digits, so many times; then prints how many it has sent.
SEND = """
import socket, sys
with open(sys.argv[1]) as file:
    packets = [bytes.fromhex(line) for line in file]
out = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
print("ready", flush=True)
times = int(sys.argv[2])
for _time in range(times):
    for each in packets:
        out.sendto(each, (sys.argv[3], 0))
print(times * len(packets), flush=True)
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


def strangers():
    """Return IP packets for all VRIDs but ours, and of other versions with ours."""
    lower = packet.Advertisement(3, ANSWERING, 1, 100_000, ("192.0.2.102",))
    valid = packet.encode(lower, PEER, OWN)
    others = [valid[:1] + bytes([vrid]) + valid[2:] for vrid in range(60, 256)]
    messages = [*others, *[bytes([first]) + valid[1:] for first in (0x01, 0x11, 0x41, 0xF1)]]
    return [ipv4_header(PEER, OWN, len(message)) + message for message in messages]


def sending(node, folder, packets, times):
    """Have a node send packets to the agent so many times; return the process, which prints how many it has sent."""
    path = folder / "packets"
    path.write_text("".join(each.hex() + "\n" for each in packets))
    sender = node.python(SEND, path, times, OWN)
    assert sender.stdout.readline() == "ready\n"
    return sender


def flooded_agent(stage):
    """Start the agent on the first member; return it when it is Active in all three."""
    agent = stage.agent(stage.link.lb1, *settings(stage.link.lb1))
    until(lambda: states(agent) == STATES, "they are not all Active")
    return agent
