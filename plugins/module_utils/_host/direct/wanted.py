# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The configuration that a role's variables are for a host, and everything that is wrong with it."""

from __future__ import annotations

import json
from typing import Any, List, Mapping, NamedTuple, Optional, Tuple

from ..._agent.config.schema import Faults
from ..._agent.direct import config
from ..._agent.direct.server import command
from ..._agent.direct.settings import Settings
from .host import Host
from .server import obstacles

NO_NFT = "This host has no nft(8): install the package nftables."
NO_ROUTE = "interface is empty, and this host has no default route whose interface could be meant: name one."
NEEDS = "The table needs `socket wildcard`, of Linux 5.9 and nftables 0.9.7, or later ones."


class Found(NamedTuple):
    """What a host is to have.

    :ivar config: the text of the file; '' if there are faults
    :ivar differences: a sentence for each part that is not in force
    """

    faults: Faults
    config: str = ""
    differences: List[str] = []


def of_server(given: Mapping[str, Any], host: Host) -> Found:
    """Return what a server is to have, and what of that it lacks."""
    text, settings, faults = read(given, host)
    faults = obstacles(settings, host) if settings else faults
    if faults or not settings:
        return Found([config.as_variable(fault, "direct_server") for fault in faults])
    try:
        command.check(settings)
        return Found([], text, command.differences(settings))
    except command.Refused as refused:
        return Found([f"{refused} {NEEDS}"])


def read(given: Mapping[str, Any], host: Host) -> Tuple[str, Optional[Settings], Faults]:
    """Return the text of a configuration, and its settings or its faults.

    :param given: its keys; the interface may be empty
    """
    interface = given.get("interface") or host.interface
    missing = [sentence for sentence, there in ((NO_NFT, host.nft), (NO_ROUTE, interface)) if not there]
    text = json.dumps({**given, "interface": interface, "nft": host.nft}, indent=2) + "\n"
    settings, faults = (None, missing) if missing else config.parse(text)
    return text, settings, faults
