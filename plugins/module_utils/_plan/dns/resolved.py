# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""systemd-resolved: the name servers that its configuration names, and the drop-in that has it ask the host's. Pure.

It asks one of all servers that its configuration names, whichever answers, so that the host's own has to be the only
one there. What the configuration named before, dnsmasq is told; the servers of links are in a file of its own.
"""

from __future__ import annotations

import ipaddress
import re
from typing import List, Sequence

FILE = re.compile(r"^# (/\S+\.conf)$")  # the heading of each file that `systemd-analyze cat-config` prints
SETTING = re.compile(r"^\s*DNS\s*=(.*)$")
SERVER = re.compile(r"(?:\[(?P<bracketed>[^\]]+)\]|(?P<v4>[0-9.]+)|(?P<bare>[^#%]+))(?::(?P<port>\d+))?(?:[%#].*)?")


def servers(config: str, own_file: str) -> List[str]:
    """Return the name servers in the configuration as dnsmasq writes them, without those of this collection.

    :param config: what `systemd-analyze cat-config systemd/resolved.conf` prints
    """
    found: List[str] = []
    file = ""
    for line in config.splitlines():
        heading, setting = FILE.match(line), SETTING.match(line)
        file = heading[1] if heading else file
        if setting and file != own_file:
            words = setting[1].split()
            found = [*found, *words] if words else []  # an empty one forgets those before
    return list(dict.fromkeys(each for each in map(_server, found) if each))


def _server(text: str) -> str:
    """Return ADDRESS or ADDRESS#PORT; '' where it is neither."""
    match = SERVER.fullmatch(text)
    if not match:
        return ""
    address, port = match["bracketed"] or match["v4"] or match["bare"], match["port"]
    try:
        return f"{ipaddress.ip_address(address)}{f'#{port}' if port else ''}"
    except ValueError:
        return ""


def drop_in(mark: str, own: str, domains: Sequence[str]) -> str:
    return f"{mark}\n[Resolve]\nDNS=\nDNS={own}\nDomains={' '.join(f'~{domain}' for domain in domains)}\n"
