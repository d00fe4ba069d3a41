# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Checks the programs, files and users that a configuration names on this host: each returns what is wrong, or None."""

from __future__ import annotations

import os
import pwd
import stat
from typing import Iterator, Optional, Set

ROOT = 0


def authorities(path: str) -> Optional[str]:
    """Check a file of trusted certificates."""
    import ssl  # large, and rarely needed

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except ssl.SSLError:
        return "there is no certificate in it (PEM)."
    except OSError as error:
        return f"it cannot be read: {error.strerror}."
    return None


def program(path: str, runner: str) -> Optional[str]:
    """Refuse a program that is missing, or that an untrusted user could replace.

    As keepalived's script security: a user who may change a program has the rights of the user that runs it. Root, that
    user and the user of the agent are trusted.

    :param runner: the user that it runs as
    """
    try:
        trusted = {ROOT, os.geteuid(), pwd.getpwnam(runner).pw_uid}
    except KeyError:
        return f"it cannot be run: this host has no user {runner}."
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        return f"it cannot be run: {error.strerror}."
    if not stat.S_ISREG(mode) or not mode & 0o111:
        return "it cannot be run: it is no executable file."
    for place in _up_to_the_root(os.path.realpath(path)):
        if _open_to_others(os.stat(place), trusted):
            return f"others than root and {runner} may change {place}: chown it to root, chmod go-w."
    return None


def _up_to_the_root(path: str) -> Iterator[str]:
    yield path
    while path != "/":
        path = os.path.dirname(path)
        yield path


def _open_to_others(found: os.stat_result, trusted: Set[int]) -> bool:
    if found.st_uid not in trusted:
        return True
    if stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX:
        return False  # as /tmp: only the owner may replace a file in it
    group_writes = found.st_mode & stat.S_IWGRP and found.st_gid != 0
    return bool(group_writes or found.st_mode & stat.S_IWOTH)
