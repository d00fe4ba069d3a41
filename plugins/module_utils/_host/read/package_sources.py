# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where a host gets its packages from, according to its package manager's files. Pure."""

from __future__ import annotations

import re
from typing import Callable, Iterable, List, NamedTuple, Tuple
from urllib.parse import urlsplit

Endpoint = Tuple[str, int]

PORTS = {"http": 80, "https": 443, "ftp": 21}
LOCAL = ("file", "copy")
NO = ("no", "false", "0")


class Sources(NamedTuple):
    """The addresses of the sources, and the proxy through which all of them are reached, if there is one."""

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


def names(sources: Sources) -> List[str]:
    """Return the DNS names of the sources, which a host resolves wherever it installs packages."""
    hosts = (_endpoint(address)[0] for address in ([sources.proxy] if sources.proxy else sources.addresses))
    return [host for host in dict.fromkeys(hosts) if re.search(r"\.[a-z][a-z0-9-]*$", host)]


def unobtainable(sources: Sources, reached: Callable[[List[Endpoint]], bool]) -> str:
    """Return why nothing can be installed from these sources, '' if something can.

    :param reached: whether one of some ``(host, port)`` accepts a connection
    """
    if not sources.addresses:
        return "the host has no package sources"
    if any(_scheme(address) in LOCAL for address in sources.addresses):
        return ""
    addresses = [sources.proxy] if sources.proxy else sources.addresses
    endpoints = [endpoint for endpoint in map(_endpoint, addresses) if endpoint[0]]
    if not endpoints:
        return "the host has no package sources but removable media"
    if reached(sorted(set(endpoints))):
        return ""
    names = ", ".join(sorted({name for name, _port in endpoints}))
    return f"none of its package sources can be reached ({names})"


def _scheme(address: str) -> str:
    # In mirror+file, tor+http and the like the last part is the transport.
    return urlsplit(address).scheme.rpartition("+")[2]


def _endpoint(address: str) -> Endpoint:
    parts = urlsplit(address)
    port = parts.port or PORTS.get(_scheme(address), 0)
    return (parts.hostname or "", port) if port else ("", 0)
