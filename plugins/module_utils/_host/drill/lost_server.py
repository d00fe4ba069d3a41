# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes one server away from the balancer of this host, and from nobody else.

The server itself is left alone. The rules concern its address and port only: what else the two hosts say to each other,
VRRP among it, goes on. It is never the last server of a service that is up.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Iterable, List, Mapping, Sequence

from ..._shared.events import SERVER_BACK, SERVER_CUT, SERVER_ENDED, SERVER_HUNG
from ..read.balancer import SERVING, Server
from .backend import DELETE_TABLE, TABLE
from .script import Refused, Script

NEEDS = "the inet family of nftables, and its reject"
# Longer than any packet without data: 40 bytes of IPv6, and 60 of TCP with all its options.
WITHOUT_DATA = 100
CUT = ("output {to} drop", "input {back} drop")
# What is dropped or refused: on the way to the server (output), or from it (input).
RULES: Mapping[str, Sequence[str]] = {
    SERVER_CUT: CUT,
    SERVER_BACK: CUT,  # until it is reverted
    SERVER_ENDED: ("output {to} reject with tcp reset",),
    # Its kernel accepts and acknowledges; no answer of its process arrives. The last packet of an answer has PSH.
    SERVER_HUNG: (
        "input {back} tcp flags & (psh | rst) == psh drop",
        f"input {{back}} tcp flags & (syn | rst) == 0 meta length > {WITHOUT_DATA} drop",
    ),
}


def lost(event: str, unit: str, server: Mapping[str, Any], known: Iterable[Server]) -> Script:
    """Return the failure of a server that is lost until it is reverted.

    :param unit: of the balancer
    :param server: ``{address, port, services}``, the services that have it, each with its names there
    :param known: the servers of the balancer
    :raises Refused: it serves nobody, or one of its services would be left without a server
    """
    states = list(known)
    for service, names in server["services"].items():
        _require_another(event, service, names, states)
    text = rules(event, server["address"], server["port"])
    return Script((unit,), f"nft '{text}'", f"nft '{DELETE_TABLE}'", text, needs=NEEDS)


def _require_another(event: str, service: str, names: Sequence[str], known: Sequence[Server]) -> None:
    states = {name: state for of, name, state in known if of == service}
    own, shown = [states[name] for name in names if name in states], " and ".join(names)
    if not own or len(own) < len(names):
        raise Refused(f"{event} needs to know which servers of {service} are up, and the balancer does not say it.")
    if not SERVING.intersection(own):
        raise Refused(f"{shown} of {service} is not up ({', '.join(own)}): it cannot be lost.")
    if not any(state in SERVING for name, state in states.items() if name not in names):
        raise Refused(f"No server of {service} is up besides {shown}: a drill never takes the last one away.")


def rules(event: str, address: str, port: int) -> str:
    """Return the rules that take a server away from this host.

    :raises Refused: it has no address
    """
    try:
        family = "ip6" if ipaddress.ip_address(address).version == 6 else "ip"
    except ValueError:
        raise Refused(f"{event} needs the address of a server, and {address!r} is none.") from None
    ways = {
        "to": f"{family} daddr {address} tcp dport {port}",
        "back": f"{family} saddr {address} tcp sport {port}",
    }
    lines: List[str] = [f"add table {TABLE}"]
    for rule in (rule.format(**ways) for rule in RULES[event]):
        hook = rule.split()[0]
        lines += [f"add chain {TABLE} {hook} {{ type filter hook {hook} priority -500; }}", f"add rule {TABLE} {rule}"]
    return "; ".join(lines)
