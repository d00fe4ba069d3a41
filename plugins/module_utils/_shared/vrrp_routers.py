# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Evaluates the VRRP messages of a link: which router advertises which VRID, and which of them conflict. Pure.

A router is a mapping as `vrrp_info` returns it. `sniffer` captures the messages.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Dict, Iterable, List, NamedTuple, Sequence, Tuple, Union

from .._agent.vrrp.core.packet import NO_AUTHENTICATION, PASSWORD, PASSWORD_SIZE, SECOND, Advertisement, Discard
from . import markdown

AUTH_TYPES = {NO_AUTHENTICATION: "none", PASSWORD: "simple"}
# Seconds for which two Actives may overlap in a takeover: the old one may have just sent another advertisement.
OVERLAP_TOLERANCE = 0.1
# After so many of its own intervals without an advertisement the others take over (RFC 9568, 6.1: three and a part of
# one). One that advertises after that is a new Active.
MISSED_INTERVALS = 4

BGP_UNHEARD = "BGP announces the VIPs, and who else announces them is known to the routers alone: a survey hears VRRP."

Router = Dict[str, Any]


class Observation(NamedTuple):
    """One VRRP message, and when (seconds, from any start) and where it was captured."""

    at: float
    interface: str
    mac: str
    source: str
    destination: str
    message: Union[Advertisement, Discard]
    own: bool = False  # this host sent it

    @property
    def family(self) -> int:
        return 6 if ":" in self.source else 4


class Span(NamedTuple):
    """From when to when a router was Active without interruption, according to its advertisements."""

    first: float
    last: float


# Marks the end after priority 0: no span continues it, and it overlaps with none.
ENDED = Span(float("inf"), float("-inf"))


class LinkView:
    """Evaluates message by message, so that a busy link does not fill the memory."""

    def __init__(self) -> None:
        self.routers: Dict[Tuple[str, int, int, str], Router] = {}
        self.spans: Dict[Tuple[str, int, int, str], List[Span]] = {}
        self.discarded: Dict[str, Dict[str, Any]] = {}

    def add(self, observation: Observation) -> None:
        message = observation.message
        if isinstance(message, Discard) and message.advertisement:
            message = message.advertisement  # it has its VRID and its addresses, however it authenticates
        if isinstance(message, Discard):
            count = self.discarded.get(message.reason, {"count": 0})["count"] + 1
            last = {"detail": message.detail, "source": observation.source, "interface": observation.interface}
            self.discarded[message.reason] = {"count": count, **last}
            return
        key = (observation.interface, observation.family, message.vrid, observation.source)
        earlier = self.routers.get(key, {"seen": 0, "first": observation.at})
        self.routers[key] = _router(observation, message, earlier)
        _continue(self.spans.setdefault(key, []), observation.at, message)

    def result(self, with_auth_pass: bool = False) -> Dict[str, Any]:
        """Return ``{routers, discarded, conflicts}``."""
        hidden = () if with_auth_pass else ("auth_pass",)
        return {
            "routers": [
                {name: value for name, value in self.routers[key].items() if name not in hidden}
                for key in sorted(self.routers)
            ],
            "discarded": {reason: self.discarded[reason] for reason in sorted(self.discarded)},
            "conflicts": self._conflicts(),
        }

    def _conflicts(self) -> List[str]:
        links: Dict[Tuple[str, int, int], List[str]] = {}
        for interface, family, vrid, source in sorted(self.routers):
            links.setdefault((interface, family, vrid), []).append(source)
        found = []
        for link, sources in links.items():
            both = [source for source in sources if self._shares(link, source, sources)]
            if both:
                interface, family, vrid = link
                found.append(
                    f"VRID {vrid} (IPv{family}) on {interface} has {_count(len(both))} Actives: {' and '.join(both)}."
                )
        return found

    def _shares(self, link: Tuple[str, int, int], source: str, sources: Sequence[str]) -> bool:
        return any(
            _overlap(one, other)
            for peer in sources
            if peer != source
            for one in self.spans[(*link, source)]
            for other in self.spans[(*link, peer)]
        )


def _router(observation: Observation, message: Advertisement, earlier: Router) -> Router:
    """Return a router as its latest advertisement describes it."""
    return {
        "interface": observation.interface,
        "family": observation.family,
        "vrid": message.vrid,
        "version": message.version,
        "source": observation.source,
        "mac": observation.mac,
        "own": observation.own,
        "destination": observation.destination,
        "unicast": not ipaddress.ip_address(observation.destination).is_multicast,
        "priority": message.priority,
        "interval": message.interval / SECOND,
        "addresses": list(message.addresses),
        "auth_type": AUTH_TYPES.get(message.auth_type, str(message.auth_type)),
        "auth_pass": message.auth_pass.decode("utf-8", "backslashreplace"),
        "checksum": message.checksum,
        "seen": earlier["seen"] + 1,
        "first": earlier["first"],
        "last": observation.at,
    }


def _continue(spans: List[Span], at: float, message: Advertisement) -> None:
    """Extend the last span, or start a new one. Priority 0 ends it (RFC 9568, 5.2.4)."""
    if message.priority == 0:
        spans.append(ENDED)
    elif spans and at - spans[-1].last <= MISSED_INTERVALS * message.interval / SECOND:
        spans[-1] = Span(spans[-1].first, at)
    else:
        spans.append(Span(at, at))


def _overlap(one: Span, other: Span) -> bool:
    """Whether the span that began first still lasted after the other had begun."""
    earlier, later = sorted((one, other), key=lambda span: (span.first, -span.last))
    return earlier.last - later.first > OVERLAP_TOLERANCE


def _count(number: int) -> str:
    return {2: "two", 3: "three"}.get(number, str(number))


def taken(routers: Iterable[Router]) -> List[Dict[str, Any]]:
    """Return which router has which VRID, as `vrid.choose` takes it."""
    return [
        {
            "vrid": router["vrid"],
            "by": f"{router['source']}, heard on {router['interface']} for {_list(router['addresses'])}",
        }
        for router in routers
    ]


def foreign_routers(routers: Iterable[Router], members: Iterable[str]) -> List[Router]:
    """Return the routers whose source is none of the members' addresses."""
    own = {_plain(address) for address in members}
    return [router for router in routers if router["source"] not in own]


def conflicts(
    routers: Iterable[Router],
    members: Iterable[str],
    vips: Iterable[str],
    vrids: Iterable[Any],
    auth_pass: str = "",
) -> List[str]:
    """Return a sentence for every router on the link that would conflict with a pair. No sentence shows a password.

    :param routers: as `vrrp_info` returns them, with their passwords if ``auth_pass`` is to be compared
    :param members: every address of every member, link-local ones too, which are the sources in IPv6
    :param vips: the pair's own, with or without a prefix length
    :param vrids: the pair's own: numbers, or mappings ``{vrid, family, interface}`` of which the last two may be
        missing; a number is compared in both families and on every link
    """
    instances = [item if isinstance(item, dict) else {"vrid": item} for item in vrids]
    floating = {_plain(vip) for vip in vips}
    found = []
    for router in foreign_routers(routers, members):
        same_vrid = any(_is_on(router, instance) for instance in instances)
        shared = [address for address in router["addresses"] if address in floating]
        if same_vrid or shared:
            found.append(_warning(router, same_vrid, shared, _password(router, auth_pass)))
    return list(dict.fromkeys(found))


def _is_on(router: Router, instance: Dict[str, Any]) -> bool:
    """Whether a router belongs to an instance. IPv4 and IPv6 are separate Virtual Routers, and so are two links."""
    return bool(
        router["vrid"] == instance["vrid"]
        and instance.get("family") in (None, router["family"])
        and instance.get("interface") in (None, router["interface"])
    )


def _password(router: Router, auth_pass: str) -> str:
    """Return how the router's password compares with ours, or nothing if there is none to compare."""
    if not auth_pass or router["auth_type"] != AUTH_TYPES[PASSWORD] or "auth_pass" not in router:
        return ""
    ours = auth_pass.encode()[:PASSWORD_SIZE].decode("utf-8", "backslashreplace")
    return "our" if router["auth_pass"] == ours else "another"


def _warning(router: Router, same_vrid: bool, shared: List[str], password: str) -> str:
    vips = f"our VIP {_list(shared)}" if shared else _list(router["addresses"])
    secret = f", with {password} password" if password else ""
    sentence = (
        f"{router['source']} already advertises VRID {router['vrid']} on {router['interface']} for {vips} "
        f"(priority {router['priority']}{secret})"
    )
    if password == "our":
        return f"{sentence}: it seems to be a member that the inventory lacks, add it there or stop it."
    if not same_vrid:
        return f"{sentence}: choose another VIP, or stop it there."
    if shared:
        return f"{sentence}: add it to the inventory if it is a member, else choose another VIP and another VRID."
    return f"{sentence}: it is not of this pair, choose another VRID."


def _list(addresses: Sequence[str]) -> str:
    return ", ".join(addresses)


def _plain(address: Any) -> str:
    """Return an address in its shortest form, without prefix length and scope."""
    text = str(address).partition("/")[0].partition("%")[0]
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return text


HEAD = ("VRID", "IP", "source", "MAC", "version", "priority", "interval", "sent", "addresses", "password", "heard by")


def survey(hosts: Iterable[Dict[str, Any]]) -> List[str]:
    """Return what several hosts captured as the lines of one table, and below it what is wrong.

    :param hosts: ``{name, seen}``, where ``seen`` is what `vrrp_info` returned there, and ``reach``, how clients reach
        the VIPs of its layout, if that is known
    """
    rows: Dict[Tuple[Any, ...], Dict[str, Any]] = {}
    below: Dict[str, List[str]] = {}
    every = [*hosts]
    of_bgp = [host["name"] for host in every if host.get("reach") == "bgp"]
    for host in every:
        for router in host["seen"]["routers"]:
            # Two links may each have an fe80::1, but hardly with the same hardware address.
            key = (router["family"], router["vrid"], router["source"], router["mac"], tuple(router["addresses"]))
            row = rows.setdefault(key, {"router": router, "host": "", "sent": [], "heard": []})
            row["host"] = host["name"] if router["own"] else row["host"]
            row["sent"].append(f"to {router['destination']}" if router["unicast"] else "multicast")
            row["heard"].append(f"{host['name']} {router['interface']}")
        for sentence in [*host["seen"]["conflicts"], *_discards(host["seen"])]:
            below.setdefault(sentence, []).append(host["name"])
    if not rows:
        lines = ["No VRRP router was heard."]
    else:
        lines = markdown.table([list(HEAD), *(_cells(rows[key]) for key in sorted(rows))])
    unheard = [f"{BGP_UNHEARD} (Of {_list(of_bgp)}.)"] if of_bgp else []
    return [*lines, *(f"{sentence} (Heard by {_list(names)}.)" for sentence, names in below.items()), *unheard]


def _discards(seen: Dict[str, Any]) -> List[str]:
    return [
        f"No advertisement ({reason}), {last['count']} times on {last['interface']}, lately from {last['source']}: "
        f"{last['detail']}."
        for reason, last in seen["discarded"].items()
    ]


def _cells(row: Dict[str, Any]) -> List[str]:
    router = row["router"]
    return [
        str(router["vrid"]),
        f"IPv{router['family']}",
        f"{router['source']} ({row['host']})" if row["host"] else router["source"],
        router["mac"],
        str(router["version"]),
        str(router["priority"]),
        f"{router['interval']:g} s",
        _list(list(dict.fromkeys(row["sent"]))),
        _list(router["addresses"]),
        router["auth_type"],
        _list(row["heard"]),
    ]
