# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What was written last: the list in the state file, or the servers in a balancer's file.

Each of them may be the older one, because the disk of the other was full, or was put back from a copy.
"""

from __future__ import annotations

import ipaddress
import json
import math
import os
from typing import Any, Dict, Iterator, List, Mapping, Tuple

from . import files, groups, haproxy_file, proxy
from .changes import Refused
from .membership import Known
from .settings import Server, Settings

Record = Tuple[float, Tuple[Server, ...]]  # when it was written, and its servers


def newest(settings: Settings, known: Mapping[str, Known]) -> Dict[str, Known]:
    """Return what is known of each label, with the servers that were written last."""
    return {label: _newest(groups.of_label(settings, label), each) for label, each in known.items()}


def _newest(settings: Settings, known: Known) -> Known:
    """Return what is known with the servers that were written last. Nothing known stays so: the files stay, too."""
    if not known.servers:
        return known
    names = {server.address: server.name for server in known.servers}
    _at, servers = max([(_written(settings.state_file), known.servers), *_of_balancers(settings)], key=_moment)
    if {server.address for server in servers} == set(names):
        return known
    return known._replace(servers=tuple(Server(names.get(each.address, each.name), each.address) for each in servers))


def _moment(record: Record) -> float:
    return record[0]


def _of_balancers(settings: Settings) -> Iterator[Record]:
    """Yield what the balancers' files have; a file that is of no use has nothing."""
    found = [(settings.haproxy, _of_haproxy), (settings.proxy, _of_proxy)]
    for about, servers_of in found:
        try:
            servers = servers_of(about, files.load(about.config)) if about else []
            for each in servers:
                ipaddress.ip_address(each.address)
        except (Refused, ValueError, RecursionError):
            continue
        if about and servers:
            yield _written(about.config), tuple(servers)


def _of_haproxy(about: Any, text: str) -> List[Server]:
    return haproxy_file.read(text, about.backends[0]).servers


def _of_proxy(about: Any, text: str) -> List[Server]:
    return proxy.servers(json.loads(text), about.services[0])


def _written(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return -math.inf
