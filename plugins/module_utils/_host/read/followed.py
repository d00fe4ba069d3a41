# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The servers that ``agent follow`` has written into the balancer of this host."""

from __future__ import annotations

import json
from typing import Dict, List, Optional

from ..._agent.follow import config, groups, haproxy_file, proxy, state
from ..._agent.follow.changes import Refused
from ..._agent.follow.settings import Server, Settings, Target
from ..._shared.engines import FOLLOW, HAPROXY, PROXY
from .pod_programs import config_of
from .reader import Reader

CONFIG = "/etc/onprem-lb-follow/follow.json"
Servers = Dict[str, List[Dict[str, str]]]  # ``{service: [{name, address}]}``


def read(reader: Reader, path: str = CONFIG) -> Servers:
    """Return the servers of each service that is followed; nothing until an API server has answered for once.

    Before that the balancer has the servers of the inventory, which may be mended there. An answer for a label that has
    been changed since then counts, too.

    :param path: of the unit's configuration; without it there may be that of a static pod
    """
    found = config.parse(reader.text(path))[0] or _of_pod(reader)
    if found is None:
        return {}
    answered = {label for label, known in state.load(found.state_file)[0].items() if known.servers}
    is_changed = bool(answered.difference(groups.labels(found)))
    return {
        target.name: [server._asdict() for server in servers]
        for target, servers in ((target, _servers(reader, found, target)) for target in _targets(found))
        if servers and (is_changed or (target.label or found.nodes.label) in answered)
    }


def _of_pod(reader: Reader) -> Optional[Settings]:
    """Return the settings of a static pod, with the paths that its files have on this host."""
    found, _faults = config.parse(reader.text(config_of(FOLLOW)))
    if found is None:
        return None
    return found._replace(
        haproxy=found.haproxy and found.haproxy._replace(config=config_of(HAPROXY)),
        proxy=found.proxy and found.proxy._replace(config=config_of(PROXY)),
    )


def _targets(found: Settings) -> List[Target]:
    return [*(found.haproxy.backends if found.haproxy else ()), *(found.proxy.services if found.proxy else ())]


def _servers(reader: Reader, found: Settings, target: Target) -> List[Server]:
    """Return the servers in the balancer's file; none where it is no such file any more."""
    try:
        if found.haproxy:
            return haproxy_file.read(reader.text(found.haproxy.config), target).servers
        return proxy.servers(json.loads(reader.text(found.proxy.config)), target) if found.proxy else []
    except (Refused, ValueError, RecursionError):
        return []
