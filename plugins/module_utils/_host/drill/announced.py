# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What fails on a host that announces its VIPs by BGP. All of it concerns this host alone, and no router is changed."""

from __future__ import annotations

import ipaddress
import json
import os
import re
from typing import Any, NamedTuple, Sequence

from ..._shared.engines import BFD_ECHO_PORT, BFD_MULTIHOP_PORT, BFD_PORT, BGPD_PID, FRR_UNIT
from ..._shared.events import BFD_LOST, BGP_KILLED, PATH_BACK, PATH_WITHDRAWN, ROUTER_GONE
from ..._shared.paths import GATE
from ..read.reader import Run
from . import backend
from .script import Refused, Script

MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
FOR_BGP = (FRR_UNIT, GATE)  # what a host has to start at boot, beside its balancer


class Router(NamedTuple):
    """A router on a link of this host."""

    address: str
    interface: str
    mac: str


def neighbour(address: str, run: Run) -> Router:
    """Return a router as the kernel knows it.

    :raises Refused: it is on no link, or has not been heard
    """
    _rc, out, _err = run(["ip", "-json", "neighbour", "show", "to", str(ipaddress.ip_address(address))])
    try:
        known: Any = json.loads(out or "[]")
    except ValueError:
        known = []
    for each in known:
        mac, device = str(each.get("lladdr", "")).lower(), str(each.get("dev", ""))
        if MAC.fullmatch(mac) and device:
            return Router(address, device, mac)
    raise Refused(f"{ROUTER_GONE} needs a router on a link of this host, and the kernel has no neighbour {address}.")


def withdrawn() -> Script:
    """Return the failure of a path that is withdrawn while the balancer goes on, and back when it is reverted."""
    return Script((GATE, FRR_UNIT), f"systemctl stop {GATE}", f"systemctl reset-failed {GATE}; systemctl start {GATE}")


def refuse_without_bgpd(path: str = BGPD_PID) -> None:
    if not os.path.exists(path):
        raise Refused(f"There is no {path}, so {BGP_KILLED} does not know which process is this host's bgpd.")


def killed() -> Script:
    """Return the failure of bgpd. FRR's watchdog starts it again, but waits after several kills."""
    again = f"xargs kill -0 < {BGPD_PID} || systemctl restart {FRR_UNIT}"
    return Script((FRR_UNIT,), f"xargs kill -KILL < {BGPD_PID}", again)


def bfd_lost() -> Script:
    """Return the failure of BFD alone: routers take the path out of a host that serves."""
    lines = [f"add table {backend.TABLE}"]
    ports = ", ".join(map(str, (BFD_PORT, BFD_ECHO_PORT, BFD_MULTIHOP_PORT)))
    for hook in ("input", "output"):
        lines += [
            f"add chain {backend.TABLE} {hook} {{ type filter hook {hook} priority -500; }}",
            f"add rule {backend.TABLE} {hook} udp dport {{ {ports} }} drop",
        ]
    return _of_rules((FRR_UNIT,), lines, backend.DELETE_TABLE, "the inet family of nftables")


def router_gone(router: Router, vip: str, table: str, delete: str) -> Script:
    """Return the failure of one router for this host: they do not hear each other, and it does not reach the VIP here.

    What else comes by that router still does, as the answers of servers.

    :param table: of the family netdev, and how it is deleted
    """
    family = "ip6" if ":" in vip else "ip"
    own = "ip6" if ":" in router.address else "ip"
    sessions = "meta l4proto { tcp, udp } drop"  # not ICMPv6, by which neighbours know each other
    where = f'device "{router.interface}" priority -500; policy accept;'
    lines = [
        f"add table {table}",
        *(f"add chain {table} {hook} {{ type filter hook {hook} {where} }}" for hook in ("ingress", "egress")),
        f"add rule {table} ingress ether saddr {router.mac} {family} daddr {vip} drop",
        f"add rule {table} ingress {own} saddr {router.address} {sessions}",
        f"add rule {table} egress {own} daddr {router.address} {sessions}",
    ]
    return _of_rules((FRR_UNIT,), lines, delete)


def _of_rules(units: Sequence[str], lines: Sequence[str], delete: str, needs: str = "") -> Script:
    text = "; ".join(lines)
    found = Script(units, f"nft '{text}'", f"nft '{delete}'", text)
    return found._replace(needs=needs) if needs else found


SIMPLE = {PATH_WITHDRAWN: withdrawn, PATH_BACK: withdrawn, BGP_KILLED: killed, BFD_LOST: bfd_lost}
