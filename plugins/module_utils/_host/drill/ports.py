# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes the link of an interface away as a switch does whose port goes down, and gives the host back what it had.

The host itself can only set the interface down. The kernel then removes more than at the loss of a carrier: the routes
over gateways, and the IPv6 addresses unless it is told to keep them. Both are put back.
"""

from __future__ import annotations

import re
from typing import List, NamedTuple, Tuple

from ..read.reader import Run, content
from .script import Refused, Script, first_line

FAMILIES = ("-4", "-6")
# Who else makes routes puts them back: the kernel, a router's advertisement, a routing daemon. Routes without a name
# here come from `ip route`.
MAKERS = ("static", "dhcp", "boot")
STATES = re.compile(r" (linkdown|dead|offload|rt_offload|expires \d+sec)\b")
ROUTE = re.compile(r"[\w.:/ -]+")  # what the shell takes as it is
KEEP = "/proc/sys/net/ipv6/conf/{}/keep_addr_on_down"
CARRIER_LIMIT = 15  # seconds for the link to be there again: a switch may negotiate for some


class Port(NamedTuple):
    """An interface, and what would not come back with its link."""

    interface: str
    routes: Tuple[Tuple[str, str], ...] = ()  # each with the option of its family
    keeps: str = ""  # the kernel's setting for its IPv6 addresses; empty without IPv6


def read(interface: str, run: Run) -> Port:
    """Read an interface that is up.

    :raises Refused: it has no link that could be taken away and given back
    """
    rc, out, _err = run(["ip", "-oneline", "link", "show", "dev", interface])
    if rc:
        raise Refused(f"There is no interface {interface} on this host.")
    flags = re.findall(r"\w+", out.partition("<")[2].partition(">")[0])
    if "LOOPBACK" in flags:
        raise Refused(f"{interface} is not a port: no part of it can go down.")
    if "LOWER_UP" not in flags:
        raise Refused(f"{interface} has no link: its port cannot go down.")
    # It is up already: this changes nothing, and shows whether it may be changed.
    rc, _out, err = run(["ip", "link", "set", "dev", interface, "up"])
    if rc:
        raise Refused(f"There is no permission to set {interface} down: {first_line(err)}")
    routes = tuple((family, route) for family in FAMILIES for route in _routes(interface, family, run))
    return Port(interface, routes, content(KEEP.format(interface)).decode().strip())


def _routes(interface: str, family: str, run: Run) -> List[str]:
    _rc, out, _err = run(["ip", family, "-oneline", "route", "show", "table", "all", "dev", interface])
    found = []
    for line in out.splitlines():
        words = line.split()
        maker = words[words.index("proto") + 1] if "proto" in words else "boot"
        if maker in MAKERS:
            found.append(_restorable(interface, STATES.sub("", " ".join(words))))
    return found


def _restorable(interface: str, route: str) -> str:
    if "nexthop" in route or not ROUTE.fullmatch(route):
        raise Refused(f"{interface} has a route that a drill cannot put back: {route}.")
    return f"{route} dev {interface}"


def down(port: Port) -> Script:
    """Return the failure of a port that is down until it is reverted."""
    return Script((), f"{_keep(port)}{_set(port, 'down')}", back(port))


def flapping(port: Port, seconds: float, injection: str) -> Script:
    """Return the failure of a link that is down and up in turn until it is reverted.

    :param seconds: how long it is down, and then up
    :param injection: the unit that runs this, which the revert ends
    """
    turns = [f"{_set(port, state)}; sleep {seconds:g}" for state in ("down", "up")]
    inject = f"{_keep(port)}while :; do {'; '.join(turns)}; done"
    return Script((), inject, f"systemctl stop {injection}; {back(port)}")


def back(port: Port) -> str:
    """Return the command that gives an interface its link back, waits for it, and puts the rest back."""
    carrier = f"until grep -q 1 /sys/class/net/{port.interface}/carrier; do sleep 0.1; done"
    wait = f"timeout {CARRIER_LIMIT} sh -c '{carrier}'"
    routes = [f"ip {family} route replace {route}" for family, route in port.routes]
    kept = [f"echo {port.keeps} > {KEEP.format(port.interface)}"] if port.keeps else []
    return "; ".join([_set(port, "up"), wait, *routes, *kept])


def _set(port: Port, state: str) -> str:
    return f"ip link set dev {port.interface} {state}"


def _keep(port: Port) -> str:
    return f"echo 1 > {KEEP.format(port.interface)}; " if port.keeps else ""
