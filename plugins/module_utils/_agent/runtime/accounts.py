# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The user that runs a program, and its environment.

The look-up of a user may ask a directory on the network, and wait for it.
"""

from __future__ import annotations

import os
import pwd
from functools import lru_cache
from typing import Dict, NamedTuple, Tuple

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Account(NamedTuple):
    """A user. ``groups`` is empty if this process runs as that user already."""

    name: str
    uid: int
    gid: int
    home: str
    groups: Tuple[int, ...] = ()

    def assume(self) -> None:
        """Switch to this user for good; the groups first, which is not permitted afterwards."""
        if self.groups:
            os.setgroups(self.groups)
            os.setresgid(self.gid, self.gid, self.gid)
            os.setresuid(self.uid, self.uid, self.uid)

    def environment(self) -> Dict[str, str]:
        """Return a clean environment: a program must not depend on how the agent was started."""
        return {"PATH": PATH, "HOME": self.home, "USER": self.name, "LOGNAME": self.name, "LANG": "C.UTF-8"}


def named(name: str) -> Account:
    """Return a user; without root, this process's own. Raises LookupError for a user that does not exist."""
    if not may_change():
        return own()
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise LookupError(f"there is no user {name}") from None
    account = _account(entry)
    if entry.pw_uid == os.geteuid():
        return account
    return account._replace(groups=tuple(os.getgrouplist(entry.pw_name, entry.pw_gid)))


@lru_cache(maxsize=1)
def own() -> Account:
    """Return this process's user. It is looked up once: then a child process knows it, too."""
    try:
        return _account(pwd.getpwuid(os.geteuid()))
    except KeyError:
        return Account(str(os.geteuid()), os.geteuid(), os.getegid(), "/")


def _account(entry: pwd.struct_passwd) -> Account:
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, entry.pw_dir)


def may_change() -> bool:
    """Whether this process may switch to another user: only root may."""
    return os.geteuid() == 0
