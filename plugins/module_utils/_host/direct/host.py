# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What direct return needs to know about a host."""

from __future__ import annotations

import glob
import json
import os
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence

from ..._agent.direct.server import command
from ..._agent.keepalived import conf as keepalived_conf
from ..._shared import load_records
from ..._shared.engines import AGENT, CONFIGS, KEEPALIVED, NATIVE, UNITS
from ..firewall.ruleset import Ruleset
from ..read import facts, let_in
from ..read.reader import Reader

RP_FILTERS = "/proc/sys/net/ipv4/conf/*/rp_filter"


class Host(NamedTuple):
    """A host.

    :ivar addresses: as ``host_info`` returns them
    :ivar listeners: likewise
    :ivar defaults: its default routes, each with ``gateway`` and ``dev``; IPv4 first
    :ivar rp_filters: how each interface, and ``all``, filters reverse paths: 1 is strict
    :ivar routed: the addresses of the VRRP routers that are configured here
    :ivar nft: the path of the program, '' without
    :ivar is_server: whether it is a server of direct return already
    :ivar rules: of its firewall, as far as they are known
    """

    addresses: Sequence[Mapping[str, Any]] = ()
    listeners: Sequence[Mapping[str, Any]] = ()
    defaults: Sequence[Mapping[str, str]] = ()
    rp_filters: Mapping[str, str] = {}
    routed: Sequence[str] = ()
    nft: str = ""
    is_server: bool = False
    rules: Ruleset = {}

    @property
    def interface(self) -> str:
        """The one of the default route, '' without."""
        return next((route["dev"] for route in self.defaults), "")


def read(reader: Reader) -> Host:
    return Host(
        addresses=reader.addresses() or [],
        listeners=facts.listeners(),
        defaults=[route for family in ("-4", "-6") for route in _defaults(reader, family)],
        rp_filters={path.split(os.sep)[-2]: reader.text(path).strip() for path in glob.glob(RP_FILTERS)},
        routed=_routed(reader),
        nft=reader.find("nft") or "",
        is_server=bool(command.read(command.RECORD).checksum),
        rules=let_in.ruleset_of(reader)[0],
    )


def _defaults(reader: Reader, family: str) -> List[Dict[str, str]]:
    ip = reader.find("ip")
    found = json.loads(reader.run([ip, family, "-json", "route", "show", "default"])[1] or "[]") if ip else []
    hops = [hop for route in found for hop in route.get("nexthops", [route])]
    return [{"gateway": str(hop.get("gateway", "")), "dev": str(hop["dev"])} for hop in hops if hop.get("dev")]


def _routed(reader: Reader) -> List[str]:
    loaded = load_records.read_record(reader.text(load_records.record_of(KEEPALIVED))).config
    native = keepalived_conf.instances(reader.text(loaded or CONFIGS[UNITS[NATIVE].router]))
    agents = facts.agent_instances(reader.text(CONFIGS[UNITS[AGENT].router]))
    return facts.vip_addresses(address for instance in native + agents for address in instance["addresses"])
