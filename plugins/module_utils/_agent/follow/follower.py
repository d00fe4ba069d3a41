# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Watches the API server in a thread, and passes what is new to the loop of the main thread."""

from __future__ import annotations

import collections
import contextlib
import socket
import threading
from typing import Any, Callable, Deque, List, Optional

from ..runtime.loop import Loop
from .api import Client
from .settings import Settings
from .watching import News, PageRequest, Wait, Waited, Watching, WatchRequest

MOST = 10_000  # news that wait for the main thread; then the API server has to wait


class Follower:
    """One thread, from ``start`` to ``stop``."""

    def __init__(self, loop: Loop, settings: Settings, take: Callable[[List[News]], None]) -> None:
        """:param take: is called in the loop with what is new, in its order"""
        self._loop, self._take = loop, take
        # All nodes: a watch of those with a label does not tell a node that has lost it from one that is gone.
        self._client = Client(settings.api)
        self._watching = Watching(len(settings.api.servers))
        self._stopped = threading.Event()
        self._news: Deque[News] = collections.deque()
        self._room = threading.Semaphore(MOST)
        self._reader, self._writer = socket.socketpair()
        for end in (self._reader, self._writer):
            end.setblocking(False)
        self._fault: Optional[BaseException] = None  # that has ended the thread
        self._thread = threading.Thread(target=self._run, name="follow", daemon=True)

    def start(self) -> None:
        self._loop.watch(self._reader.fileno(), self._wake_up)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, soon. Nothing more is taken."""
        self._loop.forget(self._reader.fileno())
        self._stopped.set()  # from here on the thread may close the descriptor
        self._client.close()
        self._room.release()

    def _run(self) -> None:
        """The watchdog does not see this thread: what ends it ends the process, and systemd starts that again."""
        try:
            self._follow()
        except BaseException as fault:
            self._fault = fault
            self._call()
        if self._stopped.is_set():
            self._reader.close()
            self._writer.close()

    def _follow(self) -> None:
        while not self._stopped.is_set():
            request = self._watching.request
            if isinstance(request, Wait):
                self._stopped.wait(request.seconds)
                self._pass_on(self._watching.after(Waited()))
            elif isinstance(request, PageRequest):
                self._pass_on(self._watching.after(self._client.page(request)))
            else:
                self._pass_on(self._watching.after(self._watch(request)))

    def _watch(self, request: WatchRequest) -> Any:
        return self._client.watch(
            request,
            lambda: self._pass_on(self._watching.opened()),
            lambda line: self._pass_on(self._watching.line(line)),
        )

    def _pass_on(self, news: List[News]) -> None:
        for each in news:
            self._room.acquire()
            if self._stopped.is_set():
                return
            self._news.append(each)
        if news:
            self._call()

    def _call(self) -> None:
        """Wake up the loop of the main thread."""
        with contextlib.suppress(BlockingIOError):  # it has not read earlier calls yet
            self._writer.send(b"\0")

    def _wake_up(self, _events: int) -> None:
        self._reader.recv(4096)
        news = [self._news.popleft() for _number in range(len(self._news))]
        for _each in news:
            self._room.release()
        self._take(news)
        if self._fault:
            raise self._fault
