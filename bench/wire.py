"""Captures the messages of a link's members, with the kernel's timestamps, because this program itself may be late."""

from __future__ import annotations

import selectors
import socket
import struct
import threading
from typing import Iterator, NamedTuple

from ansible_collections.onprem.lb.plugins.module_utils._agent.net import ip
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.arp import arp_claim
from support.netns.recorder import open_capture, receive_frame

# Python has no names for them.
SO_RCVBUFFORCE, SOL_PACKET, PACKET_STATISTICS, PACKET_IGNORE_OUTGOING = 33, 263, 6, 23
RECEIVE_BUFFER = 1 << 29  # bytes, for the answers to a flood
BROADCAST = b"\xff" * 6
ANNOUNCEMENT = -1  # in place of an Advertisement's priority


class Message(NamedTuple):
    """An Advertisement, or a gratuitous ARP."""

    at: float  # seconds since 1970
    member: str
    priority: int  # ANNOUNCEMENT for a gratuitous ARP

    @property
    def is_advertisement(self) -> bool:
        return self.priority != ANNOUNCEMENT


class Wire:
    """Captures in a thread, at the members' ports of the bridge."""

    def __init__(self, link, members) -> None:
        self.messages: list[Message] = []
        self._changed = threading.Condition()
        self._selector = selectors.DefaultSelector()
        self._wake, woken = socket.socketpair()
        self._selector.register(woken, selectors.EVENT_READ)
        for node in members:
            sock = open_capture(link.bridge, node.port)
            sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
            sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER)
            self._selector.register(sock, selectors.EVENT_READ, node.name)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            for key, _mask in self._selector.select():
                if key.data is None:
                    return
                self._receive(key.fileobj, key.data)

    def _receive(self, sock, member: str) -> None:
        at, frame = receive_frame(sock)
        priority = priority_of(frame)
        if priority is not None:
            with self._changed:
                self.messages.append(Message(at, member, priority))
                self._changed.notify_all()

    def close(self) -> None:
        self._wake.close()
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()
        self._selector.close()

    def sent_by(self, member: str, since: float = 0.0) -> Iterator[Message]:
        return (message for message in list(self.messages) if message.member == member and message.at >= since)

    def advertisements(self, member: str, since: float = 0.0) -> list[Message]:
        return [message for message in self.sent_by(member, since) if message.is_advertisement]

    def announcements(self, member: str, since: float = 0.0) -> list[Message]:
        return [message for message in self.sent_by(member, since) if not message.is_advertisement]

    def read_up_to(self, moment: float) -> None:
        """Wait until all messages up to a moment are captured. The members must go on sending."""
        self.until(lambda: self.messages and self.messages[-1].at >= moment, 60)
        self._assert_no_loss()

    def _assert_no_loss(self) -> None:
        """Fail if frames were dropped, because gaps would then prove nothing."""
        for key in self._selector.get_map().values():
            if key.data:
                statistics = key.fileobj.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8)
                _frames, dropped = struct.unpack("@II", statistics)
                assert not dropped, f"{dropped} frames of {key.data} were dropped"

    def until(self, condition, limit: float):
        """Wait until a condition is true, and check it after each message; return its value.

        :param limit: seconds
        :raises TimeoutError: the condition is still false after the limit
        """
        with self._changed:
            met = self._changed.wait_for(condition, limit)
        if not met:
            raise TimeoutError("the expected messages were not sent")
        return met


def priority_of(frame: bytes):
    """Return the priority of an Advertisement, ANNOUNCEMENT for a gratuitous ARP, or None for other frames."""
    if arp_claim(frame):
        return ANNOUNCEMENT if frame[:6] == BROADCAST else None
    datagram = ip.read(frame[14:], int.from_bytes(frame[12:14], "big"))
    return datagram.message[2] if datagram and len(datagram.message) > 2 else None
