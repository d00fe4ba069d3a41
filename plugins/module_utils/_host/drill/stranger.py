# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stranger with the VIP: a host that has the same address, as by a mistake, on the link of the holder.

It announces the address from a MAC that nobody has, and answers whoever asks for it. Whoever believes it sends to
nobody until the holder announces the address again. VRRP goes on.

This module runs twice: a drill imports it, and the host runs its text as a program. It needs nothing but the standard
library.
"""

from __future__ import annotations

import base64
import inspect
import ipaddress
import select
import socket
import struct
import sys
import time
from typing import Tuple

MAC = bytes.fromhex("02006f6c6221")  # of the locally administered ones, which no vendor has
BROADCAST = b"\xff" * 6
ARP, IPV6 = 0x0806, 0x86DD
REQUEST, REPLY = 1, 2
SOLICITATION, ADVERTISEMENT = 135, 136
OVERRIDE = 0x20000000
ANNOUNCEMENTS, APART = 3, 0.2  # s


def arrives(interface: str, vip: str, injection: str) -> Tuple[str, str]:
    """Return the command of a stranger that stays until it is reverted, and the one that reverts it.

    :param injection: the unit that runs the first one
    """
    text = base64.b64encode(inspect.getsource(sys.modules[__name__]).encode()).decode()
    program = f'import base64; exec(base64.b64decode("{text}"))'
    return f"exec {sys.executable} -I -c '{program}' {interface} {vip}", f"systemctl stop {injection}"


def arp(operation: int, to: bytes, address: bytes, target_mac: bytes, target: bytes) -> bytes:
    """Return the frame of an ARP packet that says that the stranger has an address (RFC 826)."""
    head = to + MAC + struct.pack("!HHHBBH", ARP, 1, 0x0800, 6, 4, operation)
    return head + MAC + address + target_mac + target


def advertisement(to_mac: bytes, to: bytes, address: bytes) -> bytes:
    """Return the frame of a Neighbour Advertisement that says that the stranger has an address (RFC 4861, 4.4)."""
    body = struct.pack("!BBHI16sBB6s", ADVERTISEMENT, 0, 0, OVERRIDE, address, 2, 1, MAC)
    pseudo = address + to + struct.pack("!II", len(body), socket.IPPROTO_ICMPV6)
    body = body[:2] + struct.pack("!H", checksum(pseudo + body)) + body[4:]
    header = struct.pack("!IHBB16s16s", 6 << 28, len(body), socket.IPPROTO_ICMPV6, 255, address, to)
    return to_mac + MAC + struct.pack("!H", IPV6) + header + body


def checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071) of an even number of bytes."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def announcement(address: bytes) -> bytes:
    """Return the frame that tells everybody on the link of an address."""
    if len(address) == 4:
        return arp(REQUEST, BROADCAST, address, bytes(6), address)
    everybody = ipaddress.ip_address("ff02::1").packed
    return advertisement(b"\x33\x33" + everybody[-4:], everybody, address)


def answer(frame: bytes, address: bytes) -> bytes:
    """Return the answer to a frame that asks for an address; nothing to any other."""
    asker_mac, kind = frame[6:12], int.from_bytes(frame[12:14], "big")
    if kind == ARP and frame[20:22] == struct.pack("!H", REQUEST) and frame[38:42] == address:
        return arp(REPLY, asker_mac, address, asker_mac, frame[28:32])
    asks = kind == IPV6 and frame[20:21] == bytes([socket.IPPROTO_ICMPV6]) and frame[54:55] == bytes([SOLICITATION])
    if asks and frame[62:78] == address and any(frame[22:38]):
        return advertisement(asker_mac, frame[22:38], address)
    return b""


def main(interface: str, vip: str) -> None:
    """Be the stranger until the process is ended."""
    address = ipaddress.ip_address(vip).packed
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as link:  # ETH_P_ALL
        link.bind((interface, 3))
        due = [time.monotonic() + turn * APART for turn in range(ANNOUNCEMENTS)]
        while True:
            while due and due[0] <= time.monotonic():
                link.send(announcement(address))
                due.pop(0)
            if select.select([link], [], [], max(0.0, due[0] - time.monotonic()) if due else None)[0]:
                found = answer(link.recv(2048), address)
                if found:
                    link.send(found)


if __name__ == "__main__":
    main(*sys.argv[1:])
