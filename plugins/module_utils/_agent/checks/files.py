# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reads a file, as a rule the number in it, at once when it changes."""

from __future__ import annotations

import os
import re
from typing import Callable, Optional, Tuple

from ..runtime.loop import Loop
from .kernel import Inotify
from .outcome import Done, Outcome, Probe, in_words

NUMBER = re.compile(rb"\s*([+-]?[0-9]{1,9})\s*")
MAX_NUMBER_TEXT = 64  # bytes; what is longer is no number


class File(Probe):
    """Its folder is watched too, because a file is often replaced by a new one.

    The periodic runs cover what inotify does not see: a folder that is created later, a file on another host.
    """

    def __init__(
        self, loop: Loop, path: str, changed: Callable[[], None], look: Optional[Callable[[str], Outcome]] = None
    ) -> None:
        """
        :param look: returns what a path says, if that is not a number
        """
        self._loop, self._path, self._changed, self._look = loop, path, changed, look or number
        self._folder, self._name = os.path.split(path)
        self._inotify: Optional[Inotify] = None

    def start(self, done: Done) -> None:
        began = self._loop.now()
        self._watch()  # before reading, so that no change in between is missed
        done(self._look(self._path)._replace(duration=self._loop.now() - began))

    def stop(self) -> None:
        if self._inotify:
            self._loop.forget(self._inotify.fileno())
            self._inotify.close()
            self._inotify = None

    def _watch(self) -> None:
        """Watch what is at the paths now: it may be another file or folder than before."""
        if not self._inotify:
            try:
                self._inotify = Inotify()
            except OSError:
                return  # the limit of this host is reached: the periodic runs remain
            self._loop.watch(self._inotify.fileno(), self._notice)
        self._inotify.add(self._folder or ".")
        self._inotify.add(self._path)

    def _notice(self, _ready: int) -> None:
        if self._inotify and {"", self._name}.intersection(list(self._inotify.names())):
            self._changed()


def number(path: str) -> Outcome:
    value, detail = read(path)
    return Outcome(not value, detail, value=value, known=not detail)


def read(path: str) -> Tuple[int, str]:
    """Return the number in a file, and what is wrong with it; an unreadable file counts as 0, as in keepalived."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            text = os.read(descriptor, MAX_NUMBER_TEXT)
        finally:
            os.close(descriptor)
    except OSError as fault:
        return 0, in_words(fault)
    match = NUMBER.fullmatch(text)
    if not match:
        return 0, f"no number: {text[:20]!r}" if text else "empty"
    return int(match.group(1)), ""
