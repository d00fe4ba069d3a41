# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether a server answers for a VIP: what is asked, what follows from the answers, and the sentences for it. Pure.

A path is proved by a SYN to the VIP that goes to the server's MAC address, as a client's would, and by the SYN-ACK that
comes back from there. A server without the VIP drops that SYN, and would drop the clients' as well.
"""

from __future__ import annotations

import ipaddress
from typing import Collection, Iterable, Mapping, NamedTuple, Tuple

from ..net import segments
from ..net.netlink import Address
from ..proxy.views import text
from .rulesets import SECOND_CHANCE

FALL = 2  # so many probes in a row without an answer: one packet may be lost
# A server that is a balancer, too, would hand the SYN on to another one, which would answer in its place.
TRAFFIC_CLASS = int(SECOND_CHANCE, 16) << 2
ECN = 0b11  # the bits of it that are ECN's; all of them are CE, as of a packet that is returned

HEADERS = {False: 40, True: 60}  # bytes of IP and TCP, by whether it is IPv6
ESTABLISHING = segments.SYN | segments.ACK

Key = Tuple[str, int, str]  # VIP, port, server's address

ANSWERED = "answered"
SILENT, REFUSED, ELSEWHERE, NO_SOURCE = "silent", "refused", "elsewhere", "no source"
SENTENCES = {
    SILENT: "{server} does not answer for {place} in direct return: run the role direct_server on it, and let nothing "
    "on the path drop its frames.",
    REFUSED: "{server} refuses connections to {place}: have its program listen on all addresses.",
    ELSEWHERE: "{server} forwards packets for {place}, and another host answers: run the role direct_server on it.",
    NO_SOURCE: "{server} cannot be probed for {place}: give {interface} an address of the VIP's family that is "
    "not a VIP.",
}


class Target(NamedTuple):
    """Whom to ask, and how.

    :ivar source: an address of this host; '' if it has none for that
    :ivar alive: whether its check is good: nobody else is asked
    """

    mac: str
    source: str
    alive: bool = True


class Path(NamedTuple):
    """What is known of the way to a server.

    :ivar mac: by which it was judged last; '' before that
    :ivar outcome: of the last probe; '' before that
    :ivar failures: how many probes in a row have failed
    :ivar mss: the longest segment that the server takes; 0 if it has not said
    """

    mac: str = ""
    outcome: str = ""
    failures: int = 0
    proven: bool = False
    mss: int = 0

    @property
    def judged(self) -> bool:
        return bool(self.outcome)


def judge(path: Path, mac: str, outcome: str, mss: int = 0) -> Path:
    """Return a path after a probe. Nothing of an old MAC address counts for a new one."""
    if outcome == ANSWERED:
        return Path(mac, outcome, 0, True, mss)
    same = mac == path.mac
    failures = path.failures + 1 if same else 1
    return Path(mac, outcome, failures, path.proven and same and failures < FALL, path.mss if same else 0)


def sentence(path: Path, key: Key, server: str, interface: str) -> str:
    """Return what is wrong with a path, and how to mend it; '' if nothing is known to be."""
    if path.proven or not path.judged:
        return ""
    return SENTENCES[path.outcome].format(server=server, place=text.place(*key[:2]), interface=interface)


def unanswered(key: Key, server: str, count: int) -> str:
    """Return what is wrong with a server of which clients hear nothing; '' if it is not known that they do not."""
    if not count:
        return ""
    return (
        f"{server} answers balancers for {text.place(*key[:2])}, and none of {count} attempts of clients has led to a "
        "connection: have its firewall let clients in, and its answers out to them."
    )


def without_chances(key: Key, server: str, by_other_list: bool) -> str:
    """Return what is wrong with a server that gives no second chances, or to the wrong server."""
    place = text.place(*key[:2])
    if by_other_list:
        return (
            f"{server} hands on what is for {place} by another list of servers than this host has, so connections "
            "whose server changes are lost: run the role direct_server on all servers, and the layout on all balancers."
        )
    return (
        f"{server} hands nothing on for {place}, so connections whose server changes are lost: run the role "
        "direct_server on it."
    )


def too_small(mtu: int, interface: str, paths: Mapping[Key, Path]) -> str:
    """Return what is wrong with an interface that takes shorter packets than clients send; '' if nothing is.

    Clients send segments as long as the server and their own link take. Nobody tells them that these are too long for
    the balancer: what is too long for an interface that receives it is gone.

    :param mtu: of the interface; 0 if it is not known
    """
    wanted = max((each.mss + HEADERS[":" in key[2]] for key, each in paths.items() if each.mss), default=0)
    if not mtu or mtu >= wanted:
        return ""
    return (
        f"{interface} has an MTU of {mtu}, and servers take packets of {wanted} bytes: uploads of clients that send "
        "such packets never end. Give balancers and servers the same MTU."
    )


def source_of(server: str, addresses: Iterable[Address], vips: Collection[str]) -> str:
    """Return the address of this host from which a server is asked: one of the server's network, if there is one.

    :param addresses: of the interface
    """
    version = ipaddress.ip_address(server).version
    own = [each for each in addresses if each.usable and each.address not in vips]
    of_family = [each for each in own if ipaddress.ip_address(each.address).version == version]
    near = [each for each in of_family if _is_near(server, each)]
    return next((each.address for each in [*near, *of_family]), "")


def _is_near(server: str, own: Address) -> bool:
    network = ipaddress.ip_interface(f"{own.address}/{own.prefix}").network
    return ipaddress.ip_address(server) in network


def outcome_of(segment: segments.Segment, mac: str, target: Target) -> str:
    """Return what an answer says; '' if it says nothing.

    :param mac: from which it came
    """
    refused = segment.flags & segments.RST
    if not refused and segment.flags & ESTABLISHING != ESTABLISHING:
        return ""
    if mac != target.mac:
        return ELSEWHERE
    return REFUSED if refused else ANSWERED
