# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which files a program reads beside its configuration, as they are now, and which of them it has not read so.

The agent's daemons read theirs each time that they need one.
"""

from __future__ import annotations

import glob
import hashlib
import os
import posixpath
import re
from typing import Iterator, List, Mapping

from ..._agent.config import host
from ..._agent.config.certificates import BESIDE
from ..._shared.engines import HAPROXY
from ..._shared.load_records import NAMED
from ..._shared.loaded_files import CERTIFICATE, KEYS, LIST, PATTERN, Named

OF_LIST = re.compile(r"^\s*([^\s#]+)", re.MULTILINE)
NAME = re.compile(r"/[^\s'\"():,;\[\]]+")  # of a file, in what a program says
SHOWN = 3  # of the files that have changed


def changed(program: str, config: str, loaded: Mapping[str, str]) -> List[str]:
    """Return the files that a program has not read as they are now, also those that are gone.

    :param loaded: what is recorded of it: the checksum of each file by its path
    """
    there = dict.fromkeys(paths(program, config))
    differing = [path for path in there if checksum(path) != loaded.get(path, "")]
    return differing + [path for path in loaded if path not in there and not os.path.exists(path)]


def paths(program: str, config: str) -> Iterator[str]:
    """Yield the path of each file that a configuration names now, as far as it is there."""
    for named in NAMED[program](text(config), config) if program in NAMED else ():
        for path in _paths(named):
            if os.path.isfile(path):
                yield path


def certificates(given: str, config: str) -> Iterator[str]:
    """Yield the files with certificates that haproxy would show, or its servers, with a configuration of this text."""
    for named in NAMED[HAPROXY](given, config):
        for path in _shown(named) if named.kind in (CERTIFICATE, LIST) else ():
            if not path.endswith(BESIDE) and os.path.isfile(path):
                yield path


def _shown(named: Named) -> List[str]:
    return host.certificate_files(named.path) if os.path.isdir(named.path) else _paths(named)


def _paths(named: Named) -> List[str]:
    if named.kind == PATTERN:
        return sorted(glob.glob(named.path))
    if os.path.isdir(named.path):
        return sorted(entry.path for entry in os.scandir(named.path))
    if named.kind == CERTIFICATE:
        return _certificate(named.path)
    if named.kind == LIST:
        names = OF_LIST.findall(text(named.path))
        return [named.path, *(path for name in names for path in _certificate(posixpath.join(named.base, name)))]
    return [named.path]


def _certificate(path: str) -> List[str]:
    every = [path, *(path + key for key in KEYS)]
    return [*every, *(each + beside for each in every for beside in BESIDE)]


def named_in(said: str, config: str) -> Iterator[str]:
    """Yield the text of each file that a program names in what it says of a configuration: it may quote them."""
    for path in dict.fromkeys(NAME.findall(said)):
        if path != config and os.path.isfile(path):
            yield text(path)


def in_words(paths: List[str]) -> str:
    more = len(paths) - SHOWN
    return ", ".join([*paths[:SHOWN], *([f"{more} more"] if more > 0 else [])])


def checksum(path: str) -> str:
    """Return the SHA-256 of a file, '' if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return ""


def text(path: str) -> str:
    """Return a file's text, with whatever bytes it has; '' if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""
