"""What the members of a link say, each word with the moment at which the kernel got it: this program may be late."""

from __future__ import annotations

import selectors
import socket
import struct
import threading
from typing import Iterator, NamedTuple

from ansible_collections.onprem.lb.plugins.module_utils._agent.net import ip
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.arp import arp_claim
from support.netns.recorder import frames_at, stamped

# Python has no names for them.
SO_RCVBUFFORCE, SOL_PACKET, PACKET_STATISTICS, PACKET_IGNORE_OUTGOING = 33, 263, 6, 23
ROOM = 1 << 29  # bytes for what is not read yet: a flood may call forth as many answers
BROADCAST = b"\xff" * 6
ANNOUNCEMENT = -1  # where an Advertisement has its priority


class Word(NamedTuple):
    """An Advertisement, or a gratuitous ARP."""

    at: float  # seconds since 1970
    member: str
    priority: int  # of an Advertisement; or ANNOUNCEMENT

    @property
    def is_advertisement(self) -> bool:
        return self.priority != ANNOUNCEMENT


class Wire:
    """Listens at the bridge's ends of the members' cables, in a thread of its own."""

    def __init__(self, link, members) -> None:
        self.words: list[Word] = []
        self._changed = threading.Condition()
        self._selector = selectors.DefaultSelector()
        self._wake, woken = socket.socketpair()
        self._selector.register(woken, selectors.EVENT_READ)
        for node in members:
            heard = frames_at(link.bridge, node.port)
            heard.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
            heard.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM)
            self._selector.register(heard, selectors.EVENT_READ, node.name)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            for key, _mask in self._selector.select():
                if key.data is None:
                    return
                self._hear(key.fileobj, key.data)

    def _hear(self, heard, member: str) -> None:
        at, frame = stamped(heard)
        priority = meaning(frame)
        if priority is not None:
            with self._changed:
                self.words.append(Word(at, member, priority))
                self._changed.notify_all()

    def close(self) -> None:
        self._wake.close()
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()
        self._selector.close()

    def said(self, member: str, since: float = 0.0) -> Iterator[Word]:
        return (word for word in list(self.words) if word.member == member and word.at >= since)

    def advertisements(self, member: str, since: float = 0.0) -> list[Word]:
        return [word for word in self.said(member, since) if word.is_advertisement]

    def announcements(self, member: str, since: float = 0.0) -> list[Word]:
        return [word for word in self.said(member, since) if not word.is_advertisement]

    def read_up_to(self, moment: float) -> None:
        """Wait until everything is known that was said before, where somebody goes on speaking."""
        self.until(lambda: self.words and self.words[-1].at >= moment, 60)
        self._refuse_loss()

    def _refuse_loss(self) -> None:
        """Who has missed anything must not speak of silence."""
        for key in self._selector.get_map().values():
            if key.data:
                statistics = key.fileobj.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8)
                _frames, dropped = struct.unpack("@II", statistics)
                assert not dropped, f"{dropped} frames of {key.data} could not be kept"

    def until(self, condition, limit: float):
        """Return what the condition is met with; it is looked at again whenever something is said.

        :param limit: seconds, after which it is a TimeoutError
        """
        with self._changed:
            met = self._changed.wait_for(condition, limit)
        if not met:
            raise TimeoutError("somebody was expected to speak, and has not")
        return met


def meaning(frame: bytes):
    """Return the priority of an Advertisement, ANNOUNCEMENT for a gratuitous ARP, None for all else."""
    if arp_claim(frame):
        return ANNOUNCEMENT if frame[:6] == BROADCAST else None
    datagram = ip.read(frame[14:], int.from_bytes(frame[12:14], "big"))
    return datagram.message[2] if datagram and len(datagram.message) > 2 else None
