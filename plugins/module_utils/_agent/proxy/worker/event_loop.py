# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The event loop that moves bytes, with as little Python as possible between two system calls.

Descriptors are registered edge-triggered, once, for all events: so a message costs no call of epoll except the one that
reports it. An event is reported only when something has changed. So there is one rule: after an event, a descriptor is
used until the kernel says that there is no more (EAGAIN, or less than was asked for: epoll(7)), unless it is blocked;
and once it is not blocked any more, it is used again without an event.

A descriptor is closed only after the round in which its session ended. Otherwise its number might be given to a new
socket, and pending events of the old one would be taken for the new one's.
"""

from __future__ import annotations

import select
import socket
from typing import Any, Callable, Dict, List

from .splice import Pipes

IN, OUT, ERR, HUP, RDHUP = select.EPOLLIN, select.EPOLLOUT, select.EPOLLERR, select.EPOLLHUP, select.EPOLLRDHUP
PRI = select.EPOLLPRI  # TCP's urgent data, where a read stops short although there is more
INWARDS = IN | RDHUP | PRI | select.EPOLLET
BOTH_WAYS = INWARDS | OUT
NOT_FAST = ~(IN | OUT)  # anything but that bytes have arrived, or can be sent

SIZE = 1 << 16  # bytes of one read
LARGE_READ = 1 << 14  # bytes in one read from which on the endpoint handles it
BATCH = 256  # events in one round


class Handler:
    """Handler of epoll events."""

    __slots__ = ()
    forward: Any = None  # see ``endpoint``; set only where the loop itself moves the bytes
    session: Any = None

    def ready(self, events: int) -> None:
        """Called when something has changed. It is a hint: the event may be outdated."""


CLOSED = Handler()


class EventLoop:
    """Everything that one worker watches."""

    def __init__(self) -> None:
        self.pipes = Pipes()
        # To be called after the events of the next round.
        self.deferred: List[Callable[[], None]] = []
        self.handlers: Dict[int, Any] = {}  # by descriptor; CLOSED for closed ones
        self._epoll = select.epoll()
        self._closing: List[socket.SocketType] = []
        self._running = False
        self.watch_more = self._epoll.modify  # (descriptor, events)

    def watch(self, descriptor: int, handler: Handler, events: int) -> None:
        """Raises OSError if the kernel has no room for it."""
        self.handlers[descriptor] = handler
        self._epoll.register(descriptor, events)

    def ignore(self, descriptor: int) -> None:
        self._epoll.unregister(descriptor)
        self.handlers[descriptor] = CLOSED

    def watch_errors(self, descriptor: int) -> None:
        """Report only that the connection is broken, until ``ignore_errors``."""
        self._epoll.register(descriptor, 0)  # epoll reports ERR and HUP in any case

    def ignore_errors(self, descriptor: int) -> None:
        self._epoll.unregister(descriptor)

    def close_later(self, *ends: Any) -> None:
        """Close endpoints of a session after this round; their events are ignored from now on."""
        for end in ends:
            self.handlers[end.descriptor] = CLOSED
            self._closing.append(end.socket)
            if end.pipe:
                self.pipes.give(end.pipe)

    def run(self, on_tick: Callable[[], float]) -> None:
        """Run until ``stop``.

        :param on_tick: called after each round; returns how many seconds the next one may wait

        The inner loop is the cost of a message, and all that most messages need: two system calls, some attribute
        loads, no object created but the bytes, no Python function called. Everything else is left to the endpoint:
        ``ready``, ``slow_path`` and the like.
        """
        handlers, poll = self.handlers, self._epoll.poll
        timeout, self._running = 0.0, True
        while self._running:
            deferred, self.deferred = self.deferred, []
            for descriptor, events in poll(0 if deferred else timeout, BATCH):
                end = handlers[descriptor]
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
