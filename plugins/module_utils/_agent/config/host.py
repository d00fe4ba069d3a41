# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Checks the programs, files and users that a configuration names on this host: each returns what is wrong, or None."""

from __future__ import annotations

import os
import pwd
import socket
import stat
from typing import Iterator, List, Optional, Set, Tuple

from .certificates import BESIDE

ROOT = 0


def has_interface(name: str) -> bool:
    try:
        return socket.if_nametoindex(name) > 0
    except OSError:
        return False


def certificate_files(path: str) -> List[str]:
    """Return the files of which haproxy shows the certificates for a name behind `crt`; of a folder in their order."""
    if not os.path.isdir(path):
        return [path]
    try:
        there = sorted(entry.path for entry in os.scandir(path) if not entry.name.startswith("."))
    except OSError:
        return []
    # A link that leads nowhere is one of them: with it haproxy takes nothing of the folder, and would not start.
    return [each for each in there if not each.endswith(BESIDE) and (os.path.isfile(each) or not os.path.exists(each))]


def authorities(path: str) -> Optional[str]:
    """Check a file of trusted certificates."""
    import ssl  # large, and rarely needed

    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # a FIFO would have no end
            return "it is not a regular file."
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
        if not stat.S_ISREG(mode) or not mode & 0o111:
            return "it cannot be run: it is not an executable file."
        return _exposed(path, runner, trusted)
    except OSError as error:
        return f"it cannot be run: {error.strerror}."


def configuration(path: str) -> Optional[str]:
    """Refuse the file of a configuration with programs, if an untrusted user could name others in it."""
    try:
        wrong = exposed(os.path.abspath(path), "root")
    except OSError as error:
        return f"it cannot be read: {error.strerror}."
    return f"it has programs for the agent to run, and {wrong}" if wrong else None


def exposed(path: str, runner: str) -> Optional[str]:
    """Return which part of a path users other than root and the agent's may change, as a sentence.

    :param runner: the user who is named in it
    """
    return _exposed(path, runner, {ROOT, os.geteuid()})


def _exposed(path: str, runner: str, trusted: Set[int]) -> Optional[str]:
    """Return which part of a path an untrusted user may change, as a sentence."""
    for place, found in _components(path):
        if _open_to_others(place, found, trusted):
            others = f"others than {' and '.join(dict.fromkeys(('root', runner)))} may change"
            if stat.S_ISLNK(found.st_mode):
                return f"{others} the link {place}: chown -h it to root."
            return f"{others} {place}: chown it to root, chmod go-w."
    return None


def _components(path: str) -> Iterator[Tuple[str, os.stat_result]]:
    """Yield all that the kernel meets when it follows a path: each folder, each link and the file.

    The path is executed as it is written, so the folder that contains a link matters as much as the one that contains
    the file. Nothing is read from a link before it has been yielded: the caller may refuse to follow it.
    """
    here, names = "/", path.split("/")
    yield here, os.lstat(here)
    while names:
        name = names.pop(0)
        if name in ("", "."):
            continue
        place = os.path.normpath(os.path.join(here, name))  # `here` is resolved, so that .. is its parent
        found = os.lstat(place)
        yield place, found
        if stat.S_ISLNK(found.st_mode):
            target = os.readlink(place)
            here, names = "/" if target.startswith("/") else here, target.split("/") + names
        else:
            here = place


def _open_to_others(place: str, found: os.stat_result, trusted: Set[int]) -> bool:
    if found.st_uid not in trusted:
        return True
    if stat.S_ISLNK(found.st_mode):  # its mode grants nothing: a link is replaced, never written
        return False
    if stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX:
        return False  # as /tmp: only the owner may replace a file in it
    if found.st_mode & stat.S_IWOTH:
        return True
    return bool(found.st_mode & stat.S_IWGRP) and (found.st_gid != ROOT or _has_acl(place))


def _has_acl(place: str) -> bool:
    """Whether users and groups are named besides the owner: the group's bits of the mode are their limit then."""
    try:
        return bool(os.getxattr(place, "system.posix_acl_access"))
    except OSError:
        return False
