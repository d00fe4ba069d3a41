# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes new connections fail as they do while the kernel's table of connections (conntrack) is full.

The kernel then drops the packets of connections that are not in the table, and passes those of the others. So the first
SYN of each connection is dropped, coming and going, on the loopback interface too. Open connections and VRRP go on.
The table itself is left alone: it would have to be filled, and hosts without a stateful firewall have none.
"""

from __future__ import annotations

from .backend import DELETE_TABLE, TABLE
from .script import Script

NEEDS = "the inet family of nftables"


def full() -> Script:
    """Return the failure of a table of connections that is full until it is reverted."""
    text = rules()
    return Script((), f"nft '{text}'", f"nft '{DELETE_TABLE}'", text, needs=NEEDS)


def rules() -> str:
    """Return the rules that drop the SYN of every new TCP connection of this host."""
    lines = [f"add table {TABLE}"]
    for hook in ("input", "output"):
        lines += [
            f"add chain {TABLE} {hook} {{ type filter hook {hook} priority -500; }}",
            f"add rule {TABLE} {hook} tcp flags & (syn | ack) == syn drop",
        ]
    return "; ".join(lines)
