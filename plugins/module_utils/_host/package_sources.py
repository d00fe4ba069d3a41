# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where a host gets its packages from, as its package manager's files say. Pure."""

from __future__ import annotations

import re
from typing import Callable, Iterable, List, NamedTuple, Tuple
from urllib.parse import urlsplit

Place = Tuple[str, int]

PORTS = {"http": 80, "https": 443, "ftp": 21}
LOCAL = ("file", "copy")
NO = ("no", "false", "0")


class Sources(NamedTuple):
    """``proxy`` stands for all of them where there is one."""

    addresses: List[str]
    proxy: str = ""


def apt(lists: Iterable[str], settings: Iterable[str] = ()) -> Sources:
    """Read /etc/apt: sources.list and *.list, *.sources, and apt.conf."""
    found: List[str] = []
    for text in lists:
        found += re.findall(r"^[ \t]*deb[ \t]+(?:\[[^\]]*\][ \t]*)?(\S+)", text, re.M)
        for paragraph in re.split(r"\n[ \t]*\n", text):
            fields = dict(re.findall(r"^([\w-]+):[ \t]*(.*(?:\n[ \t]+.*)*)", paragraph, re.M))
            if "deb" in fields.get("Types", "").split() and fields.get("Enabled", "yes").strip().lower() not in NO:
                found += fields.get("URIs", "").split()
    proxies = [match for text in settings for match in re.findall(r'^[^/#\n]*Proxy\s+"(\w+://[^"]+)"', text, re.M)]
    return Sources(found, next(iter(proxies), ""))


def yum(repositories: Iterable[str], settings: Iterable[str] = ()) -> Sources:
    """Read /etc/yum.repos.d/*.repo, and dnf.conf."""
    found: List[str] = []
    for text in repositories:
        for section in re.split(r"^(?=\[)", text, flags=re.M):
            fields = dict(re.findall(r"^(\w+)[ \t]*=[ \t]*(.*(?:\n[ \t]+.*)*)", section, re.M))
            if fields.get("enabled", "1").strip().lower() not in NO:
                found += [each for key in ("baseurl", "mirrorlist", "metalink") for each in fields.get(key, "").split()]
    proxies = [match for text in settings for match in re.findall(r"^proxy[ \t]*=[ \t]*(\w+://\S+)", text, re.M)]
    return Sources(found, next(iter(proxies), ""))


def unobtainable(sources: Sources, reached: Callable[[List[Place]], bool]) -> str:
    """Return why nothing can be installed from these sources, '' where something can.

    :param reached: whether one of some places can be connected to
    """
    if not sources.addresses:
        return "the host has no package sources"
    if any(_scheme(address) in LOCAL for address in sources.addresses):
        return ""
    places = [place for place in map(_place, [sources.proxy] if sources.proxy else sources.addresses) if place[0]]
    if not places:
        return "the host has no package sources but removable media"
    if reached(sorted(set(places))):
        return ""
    names = ", ".join(sorted({name for name, _port in places}))
    return f"none of its package sources can be reached ({names})"


def _scheme(address: str) -> str:
    # mirror+file, tor+http and the like: what comes last is how it is fetched
    return urlsplit(address).scheme.rpartition("+")[2]


def _place(address: str) -> Place:
    parts = urlsplit(address)
    port = parts.port or PORTS.get(_scheme(address), 0)
    return (parts.hostname or "", port) if port else ("", 0)
