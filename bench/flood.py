"""Sends VRRP messages as fast as possible. It is a separate program because it runs in another network namespace.

    python3 bench/flood.py KIND SECONDS MAC SOURCE

Prints the number of messages that it has sent.
"""

from __future__ import annotations

import itertools
import socket
import sys
import time

from ansible_collections.onprem.lb.plugins.module_utils._agent.net import ip
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.arp import mac_bytes
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import packet

LOWER_PRIORITY, OTHER_VRIDS, INVALID, PASSWORD, ALL = KINDS = (
    "valid, with a lower priority",
    "valid, with other VRIDs",
    "invalid",
    "wrong password",
    "all of these",
)
VRID, VRID_WITH_PASSWORD = 1, 2
ADDRESSES = ("192.0.3.1",)
ETHERNET = bytes.fromhex("01005e000012")  # VRRP's multicast group (RFC 1112, 6.4)
BATCH = 64  # frames that are sent before the next look at the clock


def messages(kind: str, source: str) -> list[bytes]:
    """Return the messages of a kind, which are sent in turn."""

    def encoded(version: int, vrid: int, **options) -> bytes:
        advertisement = packet.Advertisement(version, vrid, 100, packet.SECOND, ADDRESSES, **options)
        return packet.encode(advertisement, source, packet.GROUP)

    good = encoded(3, VRID)
    if kind == LOWER_PRIORITY:
        return [good]
    if kind == OTHER_VRIDS:
        return [encoded(3, vrid) for vrid in range(3, 256)]
    if kind == INVALID:
        damaged = [good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :] for at in range(len(good))]
        return [*damaged, good[:3], good[:7], b"", b"\x00" * 20, b"\xff" * 1400]
    if kind == PASSWORD:
        return [
            encoded(2, VRID_WITH_PASSWORD, auth_type=packet.PASSWORD, auth_pass=word)
            for word in (b"wrong", b"a", b"secres")
        ]
    return [message for one in KINDS[:-1] for message in messages(one, source)[:50]]


def frames(kind: str, mac: str, source: str) -> list[bytes]:
    ethernet = ETHERNET + mac_bytes(mac) + ip.IPV4.to_bytes(2, "big")
    return [ethernet + with_checksum(source, message) for message in messages(kind, source)]


def with_checksum(source: str, message: bytes) -> bytes:
    """Return the message as a complete IP packet, because the kernel adds nothing to a frame."""
    header = ip.ipv4_header(source, packet.GROUP, len(message))
    total = -int.from_bytes(header, "big") % 0xFFFF
    return header[:10] + total.to_bytes(2, "big") + header[12:] + message


def main(kind: str, seconds: str, mac: str, source: str) -> None:
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    link.bind(("eth0", 0))
    cycle = itertools.cycle(frames(kind, mac, source))
    end, sent = time.monotonic() + float(seconds), 0
    while time.monotonic() < end:
        for frame in itertools.islice(cycle, BATCH):
            link.send(frame)
        sent += BATCH
    print(sent, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
