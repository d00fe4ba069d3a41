# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The nftables guard of the machine config server: port 22623 serves secrets, for the cluster's machines only."""

from __future__ import annotations

import ipaddress
from typing import Any, List, Mapping, Sequence

from ..._agent.config.schema import Faults, shown

PORT = 22623
TABLE = "inet onprem_lb_machine_config"

RULESET = """\
# Managed by Ansible, onprem.lb: only the cluster's machine networks reach the machine config server.
add table {table}
delete table {table}
table {table} {{
    chain input {{
        type filter hook input priority -5; policy accept;
        tcp dport {port} jump machine_config
    }}
    chain machine_config {{
        iif lo accept
{rules}
        drop
    }}
}}
"""


def ruleset(networks: Sequence[Any]) -> str:
    """Return an nft file that admits only these networks, which must be valid.

    The rules are written as nft lists them, so that a run can compare the file with what is loaded.
    """
    rules = []
    for network in _parsed(networks):
        family = "ip6" if network.version == 6 else "ip"
        is_host = network.prefixlen == network.max_prefixlen
        rules.append(f"        {family} saddr {network.network_address if is_host else network} accept")
    return RULESET.format(table=TABLE, port=PORT, rules="\n".join(rules))


def faults(networks: Sequence[Any], place: str) -> Faults:
    found = []
    for at, network in enumerate(networks):
        try:
            # A zone, as in fe80::%eth0/64, may contain anything.
            if not ipaddress.ip_network(str(network).replace("%", " ")).prefixlen:
                found.append(f"{place}[{at}] is {network}, which is everybody: name the networks of the machines.")
        except ValueError:
            found.append(f"{place}[{at}] is {shown(network)}: a network such as 192.0.2.0/24 is required.")
    return found


def outside(networks: Sequence[Any], machines: Mapping[str, str], place: str) -> Faults:
    """Return a sentence for the first machine that the guard would shut out.

    :param networks: valid ones
    :param machines: by address, which machine has it
    """
    known = _parsed(networks)
    for address, name in machines.items():
        ip = ipaddress.ip_address(address)
        if known and not ip.is_link_local and not any(ip in network for network in known):
            return [f"{place} does not have {address} of {name}, so that no machine there could join: add its network."]
    return []


def _parsed(networks: Sequence[Any]) -> List[Any]:
    return [ipaddress.ip_network(str(network)) for network in networks]
