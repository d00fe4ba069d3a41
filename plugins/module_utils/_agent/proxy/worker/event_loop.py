# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The loop that moves bytes: as little Python as can be between one system call and the next.

Descriptors are registered edge-triggered, and for everything that they will ever be waited for: so a message costs no
call to epoll but the one that tells of it. An end tells of itself when something about it has changed, and only then.
So there is one rule: what has told of itself is used until the kernel says that there is no more (EAGAIN, or less than
was asked for: epoll(7)), unless something is in the way; and when that has gone, it is used again without being told.

A descriptor is closed only after the round in which its session ended: before, its number might be given to a new
socket, and events of the old one that are still to be handled would be taken for the new one's.
"""

from __future__ import annotations

import select
import socket
from typing import Any, Callable, Dict, List

from .splice import Pipes

IN, OUT, ERR, HUP, RDHUP = select.EPOLLIN, select.EPOLLOUT, select.EPOLLERR, select.EPOLLHUP, select.EPOLLRDHUP
PRI = select.EPOLLPRI  # TCP's urgent data, at which a read stops short although there is more
INWARDS = IN | RDHUP | PRI | select.EPOLLET
BOTH_WAYS = INWARDS | OUT
NOT_FAST = ~(IN | OUT)  # whatever is not just that bytes have come, or may be sent

SIZE = 1 << 16  # bytes of one read
LARGE_READ = 1 << 14  # bytes in one read from which on it may be worth more than this loop does
BATCH = 256  # events in one round


class Handler:
    """Somebody who is told of what happens to a descriptor."""

    __slots__ = ()
    forward: Any = None  # see ``end``; of nobody else does the loop itself move bytes
    session: Any = None

    def ready(self, events: int) -> None:
        """Called when something has changed. It is a hint: what is said may be over."""


CLOSED = Handler()


class EventLoop:
    """Everything that one worker watches."""

    def __init__(self) -> None:
        self.pipes = Pipes()
        self.deferred: List[
            Callable[[], None]
        ] = []  # what is to be done after those of the next round have had their turn
        self.handlers: Dict[int, Any] = {}  # by descriptor, and those of descriptors that are closed are NOBODY
        self._epoll = select.epoll()
        self._closing: List[socket.SocketType] = []
        self._running = False
        self.watch_more = self._epoll.modify  # (descriptor, events)

    def watch(self, descriptor: int, handler: Handler, events: int) -> None:
        """Raises OSError when the kernel has no room for it."""
        self.handlers[descriptor] = handler
        self._epoll.register(descriptor, events)

    def ignore(self, descriptor: int) -> None:
        self._epoll.unregister(descriptor)
        self.handlers[descriptor] = CLOSED

    def bury(self, *ends: Any) -> None:
        """Close ends of a session after this round; nobody hears of them any more."""
        for end in ends:
            self.handlers[end.descriptor] = CLOSED
            self._closing.append(end.socket)
            if end.pipe:
                self.pipes.give(end.pipe)

    def run(self, on_tick: Callable[[], float]) -> None:
        """Run until ``stop``.

        :param on_tick: called after each round, returns how many seconds the next one may wait for something

        The body of the inner loop is what a message costs, and is all that most messages ever see: two system calls,
        some loads of attributes, nothing made but the bytes themselves, no function of ours called. Whatever is not
        quite usual is somebody else's: ``ready``, ``unusual`` and the like.
        """
        parties, poll = self.handlers, self._epoll.poll
        timeout, self._running = 0.0, True
        while self._running:
            deferred, self.deferred = self.deferred, []
            for descriptor, events in poll(0 if deferred else timeout, BATCH):
                end = parties[descriptor]
                forward = end.forward
                if forward is None or events & NOT_FAST:
                    end.ready(events)
                    continue
                try:
                    data = end.receive(SIZE)
                except OSError as fault:
                    end.unreadable(fault)
                    continue
                size = len(data)
                try:
                    sent = forward(data)
                except OSError as fault:
                    end.unwritable(fault, data)
                    continue
                end.count += size
                if sent != size or not 0 < size < LARGE_READ:
                    end.slow_path(data, sent)
            for call in deferred:
                call()
            timeout = on_tick()
            for connection in self._closing:
                connection.close()
            self._closing.clear()

    def stop(self) -> None:
        self._running = False

    def close(self) -> None:
        self.pipes.close()
        self._epoll.close()
