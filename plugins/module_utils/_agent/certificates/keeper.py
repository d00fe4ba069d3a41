# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The service that has haproxy load certificates that have been renewed: a look every few seconds.

systemd's path units do not see a link that leads elsewhere, and lose events where several paths are watched, one of
which does not exist; inotify sees nothing that another host writes.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import re
import time
from typing import Callable, Iterator, NamedTuple, NoReturn, Optional, Sequence

from ..runtime import commands
from ..runtime.log import Log
from .watch import Files, Host, Loaded, Watch

PAUSE = 5.0  # seconds between two looks
RECORDED = re.compile(r"^([0-9a-f]{64})  (.+)$", re.MULTILINE)  # as sha256sum writes it


class Settings(NamedTuple):
    """What its command line says.

    :ivar config: of haproxy
    :ivar record: the file in which haproxy's unit records what it has loaded
    :ivar unit: haproxy's
    :ivar paths: of the certificates' files, and of folders of them
    """

    config: str
    record: str
    unit: str
    paths: Sequence[str]


class ThisHost(Host):
    """The host that this runs on."""

    def __init__(self, settings: Settings, log: Log) -> None:
        self._settings, self._log = settings, log
        self._paths = [path.rstrip("/") for path in settings.paths]

    def files(self) -> Files:
        found = {path: _checksum(path) for path in self._present()}
        return {path: checksum for path, checksum in found.items() if checksum}

    def _present(self) -> Iterator[str]:
        for path in self._paths:
            for name in [path, *sorted(glob.glob(f"{glob.escape(path)}.*"))]:
                with contextlib.suppress(OSError):
                    yield from [entry.path for entry in os.scandir(name) if entry.is_file()]
                    continue
                if os.path.isfile(name):
                    yield name

    def loaded(self) -> Optional[Loaded]:
        try:
            with open(self._settings.record, encoding="utf-8", errors="surrogateescape") as record:
                (config, path), *others = RECORDED.findall(record.read()) or [("", "")]
        except OSError:
            return None
        files = {path: checksum for checksum, path in others if self._is_own(path)}
        return Loaded(config, files) if path == self._settings.config else None

    def _is_own(self, path: str) -> bool:
        return any(path == own or path.startswith((f"{own}.", f"{own}/")) for own in self._paths)

    def config(self) -> str:
        return _checksum(self._settings.config)

    def serves(self) -> bool:
        return not commands.run("systemctl", "--quiet", "is-active", self._settings.unit)

    def refusal(self) -> str:
        return commands.run("haproxy", "-c", "-f", self._settings.config)

    def reload(self) -> str:
        return commands.run("systemctl", "reload", self._settings.unit)

    def says(self, sentence: str) -> None:
        self._log.info(sentence)

    def warns(self, sentence: str) -> None:
        self._log.warning(sentence)


def _checksum(path: str) -> str:
    """Return the SHA-256 of a file; '' if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return ""


def main(settings: Settings, log: Log, pause: Callable[[float], None] = time.sleep) -> NoReturn:
    watch = Watch(ThisHost(settings, log))
    while True:
        watch.look()
        pause(PAUSE)
