# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes servers slow for the balancer of this host, and for nobody else, as servers are that accept more than they can.

The first SYN of each connection to a server is dropped, and the kernel sends it again a second later. Connections that
are open already are left alone. The balancer is known by the users that its unit runs as.
"""

from __future__ import annotations

from typing import Collection

from ..read import processes
from .script import Refused, Script

TABLE = "inet onprem_lb_drill"
# To delete a table that may be missing, without an error: add it first, in the same transaction.
DELETE_TABLE = f"add table {TABLE}; delete table {TABLE}"
NEEDS = "the sets of nftables"
REMEMBERED = "3s"  # longer than it takes until the same SYN comes again
ROOT = 0


def users(unit: str) -> Collection[int]:
    """Return the users that a balancer connects as.

    :raises Refused: it connects as root, as much else does
    """
    found = processes.users(unit) - {ROOT}
    if not found:
        raise Refused(f"{unit} runs as root, so its connections cannot be told from others: give it a user of its own.")
    return sorted(found)


def slow(unit: str, uids: Collection[int]) -> Script:
    """Return the failure of servers that are slow until it is reverted."""
    text = rules(uids)
    return Script((unit,), f"nft '{text}'", f"nft '{DELETE_TABLE}'", text, needs=NEEDS)


def rules(uids: Collection[int]) -> str:
    """Return the rules that drop the first SYN of every connection that these users open to another host."""
    of_users = f"meta skuid {{ {', '.join(map(str, uids))} }}"
    lines = [f"add table {TABLE}", f"add chain {TABLE} output {{ type filter hook output priority -500; }}"]
    for family, kind in (("ip", "ipv4_addr"), ("ip6", "ipv6_addr")):
        seen, connection = f"seen_{family}", f"{family} daddr . tcp sport . tcp dport"
        keys = f"type {kind} . inet_service . inet_service; flags dynamic, timeout; timeout {REMEMBERED}; size 65535;"
        first = f"tcp flags & (syn | ack) == syn {connection} != @{seen} add @{seen} {{ {connection} }}"
        lines += [
            f"add set {TABLE} {seen} {{ {keys} }}",
            f'add rule {TABLE} output oifname != "lo" {of_users} {first} drop',
        ]
    return "; ".join(lines)
