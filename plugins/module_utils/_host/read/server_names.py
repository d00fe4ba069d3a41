# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The addresses that the names of servers have now, for the plan, which refuses a balancer that would reach itself."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any, Dict, Iterator, List

from . import in_time

TIMEOUT = 2.0  # seconds, for all of them


def resolved(given: Any) -> Dict[str, List[str]]:
    """Return the addresses of each name, of those that are resolved in time.

    :param given: services and servers, as the user wrote them
    """
    names = [text for text in dict.fromkeys(_texts(given)) if not _is_address(text)]
    return {name: found for name, found in in_time.answers(_addresses, names, TIMEOUT).items() if found}


def _texts(given: Any) -> Iterator[str]:
    """Yield what stands in the place of a server's address."""
    if isinstance(given, str):
        yield given
    for each in given if isinstance(given, list) else []:
        yield from _texts(each)
    for key in ("address", "servers", "routes") if isinstance(given, dict) else ():
        yield from _texts(given.get(key))


def _is_address(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return False


def _addresses(name: str) -> List[str]:
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, ValueError):  # UnicodeError among them
        return []
    return list(dict.fromkeys(str(address[0]) for *_kind, address in found))
