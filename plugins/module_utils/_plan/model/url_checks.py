# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A check that asks URLs, as a curl command line for keepalived and as a check of the agent. Pure.

It is written ``[[URL, URL], [URL]]``. It succeeds if every URL of at least one of the lists answers.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Dict, List, Optional, Set, Tuple
from urllib.parse import urlsplit

AnyOf = List[List[str]]

# Characters that need no quotes in keepalived.conf, in a shell and in systemd.
URL = re.compile(r"https?://[\w.:\[\]-]+(/[\w./~:@,=?%+-]*)?", re.ASCII)
PORTS = {"http": 80, "https": 443}
LOOPBACK = "127.0.0.1"


def url(value: Any) -> Tuple[Any, Optional[str]]:
    """One URL: a check for ``schema.Field``."""
    try:
        if isinstance(value, str) and URL.fullmatch(value) and urlsplit(value).hostname and urlsplit(value).port != 0:
            return value, None
    except ValueError:
        pass
    return None, "a URL such as http://localhost:1936/healthz is required."


def any_of(value: Any) -> Tuple[Any, Optional[str]]:
    """The whole list: a check for ``schema.Field``. A bare URL is a list of one."""
    found = [[item] if isinstance(item, str) else item for item in value] if isinstance(value, list) else [value]
    for urls in found:
        if not isinstance(urls, list) or not urls or any(url(each)[1] for each in urls):
            return None, "a list of URLs such as http://localhost:1936/healthz, or of lists of them, is required."
    return found, None


def ports(alternatives: AnyOf) -> Set[int]:
    """Return the ports that are asked."""
    asked = [urlsplit(each) for urls in alternatives for each in urls]
    return {each.port or PORTS[each.scheme] for each in asked}


def command(alternatives: AnyOf, limit: float) -> str:
    """Return the command line that asks the URLs, each within ``limit`` seconds."""
    lists = [_curl(urls, limit) for urls in alternatives]
    # Not /bin/sh: where /bin is a symbolic link, keepalived 2.3 considers that path insecure.
    return lists[0] if len(lists) == 1 else f"/usr/bin/sh -c '{' || '.join(lists)}'"


def _curl(urls: List[str], limit: float) -> str:
    """Without --fail-early, curl's exit code is that of the last URL only."""
    early = "--fail-early " if len(urls) > 1 else ""
    return f"/usr/bin/curl {early}--max-time {limit:g} -kLfs " + " ".join(f"-o /dev/null {each}" for each in urls)


def agent_check(alternatives: AnyOf) -> Optional[Dict[str, Any]]:
    """Return the keys of a check of the agent, ``{type, address, port, path, host}``.

    None if it takes curl: for several URLs, and for a host name, which the agent does not resolve.
    """
    if len(alternatives) != 1 or len(alternatives[0]) != 1:
        return None
    parts = urlsplit(alternatives[0][0])
    name = parts.hostname or ""
    address = LOOPBACK if name == "localhost" else _address(name)
    if not address:
        return None
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    found = {"type": parts.scheme, "address": address, "port": parts.port or PORTS[parts.scheme], "path": path}
    return found if address == name else {**found, "host": name}


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return ""
