# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What becomes of a packet in the input chains of a ruleset, whoever has loaded it: a packet that no rule may accept is
refused for certain.

`ruleset` asks the opposite, which chains might refuse, so that a run opens them. Here a rule whose match cannot be
interpreted (an xt match of iptables-nft, a named set, a mark) may match or not, and nothing is called closed that may
be open.
"""

from __future__ import annotations

import fnmatch
import ipaddress
from typing import Any, Dict, FrozenSet, Iterator, List, Mapping, NamedTuple, Optional, Set, Tuple

from .model import VRRP
from .ruleset import PROTOCOL_FIELDS, ChainName, Ruleset

ACCEPT, DROP, ON, BACK = "accept", "drop", "on", "back"  # ON: to the next rule; BACK: to the end of the chain
ANYTHING = frozenset((ACCEPT, DROP, ON))
VERDICTS = {"accept": ACCEPT, "drop": DROP, "reject": DROP, "return": BACK, "continue": ON, "queue": ACCEPT}
XT_REFUSALS = ("REJECT", "DROP")
DEEPEST = 16  # jumps, as in the kernel
NAMES = {"ip": "ipv4", "ip6": "ipv6"}  # of the families, in `meta nfproto`
PORT_HEADERS = ("tcp", "th")


class Packet(NamedTuple):
    """The first packet of a connection to a port, or, without a port, one of VRRP; '' is what nobody knows.

    :ivar links: the networks whose single hosts did not send it, where nobody knows who did
    """

    target: str = ""
    port: int = 0
    source: str = ""
    interface: str = ""
    redirected: bool = False  # whether it may have been sent to another port
    links: Tuple[Any, ...] = ()

    @property
    def family(self) -> str:
        return "ip6" if ":" in (self.target or self.source) else "ip"

    @property
    def protocol(self) -> Tuple[Any, ...]:
        return ("tcp", 6) if self.port else ("vrrp", VRRP)  # nft prints a name where it knows one


def refusing(ruleset: Ruleset, packet: Packet) -> Optional[ChainName]:
    """Return the first input chain that refuses a packet for certain; None if every one may let it through."""
    return next((name for name, ends in _ends(ruleset, packet) if ends == {DROP}), None)


def is_unknown(ruleset: Ruleset, packet: Packet) -> bool:
    """Whether rules of iptables, which nft does not show as a whole, decide about a packet."""
    undecided = {name[:2] for name, ends in _ends(ruleset, packet) if ends == {ACCEPT, DROP}}
    rules = [rule for name, chain in ruleset.items() if name[:2] in undecided for rule in chain.rules]
    return any("xt" in statement for rule in rules for statement in rule.get("expr", []))


def _ends(ruleset: Ruleset, packet: Packet) -> Iterator[Tuple[ChainName, Set[str]]]:
    """Yield each input chain that a packet passes, and what may become of it there."""
    for name, chain in sorted(ruleset.items()):
        if chain.policy and name[0] in ("inet", packet.family):
            yield name, {chain.policy if end == ON else end for end in _walk(ruleset, name, packet)}


def redirects(ruleset: Ruleset) -> bool:
    """Whether this collection sends connections on to other ports, after which no rule of a port sees the first one."""
    rules = [rule for name, chain in ruleset.items() if name[1].startswith("onprem_lb_") for rule in chain.rules]
    return any(
        kind in statement for rule in rules for statement in rule.get("expr", []) for kind in ("redirect", "dnat")
    )


def _walk(ruleset: Ruleset, name: ChainName, packet: Packet, depth: int = 0) -> FrozenSet[str]:
    """Return the ways in which a chain may end for a packet."""
    chain = ruleset.get(name)
    if chain is None or depth > DEEPEST:
        return ANYTHING
    found: Set[str] = set()
    for rule in chain.rules:
        is_certain, ends = _effect(ruleset, name, rule, packet, depth)
        found |= {ON if end == BACK else end for end in ends - {ON}}
        if is_certain and ON not in ends:
            return frozenset(found)
    return frozenset(found | {ON})


def _effect(
    ruleset: Ruleset, name: ChainName, rule: Mapping[str, Any], packet: Packet, depth: int
) -> Tuple[bool, FrozenSet[str]]:
    """Return whether a rule meets a packet for certain, and how that may end."""
    is_certain, is_foreign = True, False
    for statement in rule.get("expr", []):
        kind, what = next(iter(statement.items()))
        if kind == "match":
            matches = _matches(what, packet)
            if matches is False:
                return True, frozenset((ON,))
            is_certain = is_certain and bool(matches)
        elif kind == "limit":
            is_certain = False
        elif kind == "xt":
            is_target = isinstance(what, dict) and what.get("name") in XT_REFUSALS
            if is_target:
                return is_certain, frozenset((DROP,))
            is_certain, is_foreign = False, True
        elif kind == "vmap":
            return is_certain, _of_map(ruleset, name, what, packet, depth)
        elif kind in VERDICTS or kind in ("jump", "goto"):
            return is_certain, _of_verdict(ruleset, name, statement, packet, depth)
    return is_certain, ANYTHING if is_foreign else frozenset((ON,))


def _of_verdict(
    ruleset: Ruleset, name: ChainName, verdict: Mapping[str, Any], packet: Packet, depth: int
) -> FrozenSet[str]:
    kind, what = next(iter(verdict.items()))
    if kind not in ("jump", "goto"):
        return frozenset((VERDICTS.get(kind, ON),))
    ends = _walk(ruleset, (name[0], name[1], what["target"]), packet, depth + 1)
    return frozenset(BACK if end == ON and kind == "goto" else end for end in ends)


def _of_map(ruleset: Ruleset, name: ChainName, vmap: Mapping[str, Any], packet: Packet, depth: int) -> FrozenSet[str]:
    """Return how a verdict map may end; the elements of a named one are not listed."""
    data = vmap.get("data")
    if not isinstance(data, dict):
        return ANYTHING
    found: Set[str] = set()
    for value, verdict in data.get("set", []):
        matches = _matches({"op": "==", "left": vmap.get("key"), "right": value}, packet)
        if matches is not False:
            found |= _of_verdict(ruleset, name, verdict, packet, depth)
        if matches:
            return frozenset(found)
    return frozenset(found | {ON})


def _matches(match: Mapping[str, Any], packet: Packet) -> Optional[bool]:
    """Return whether a match holds for a packet; None if nobody knows."""
    left, operator = match.get("left"), match.get("op")
    if not isinstance(left, dict) or operator not in ("==", "!=", "in"):
        return None
    if isinstance(left.get("payload"), dict):
        found = _of_payload(left["payload"], match.get("right"), packet)
        if found is None or not _has_header(left["payload"].get("protocol"), packet):
            return found  # also with !=: a packet without the header matches neither
    else:
        found = _of_meta(left, match.get("right"), packet)
    return None if found is None else found != (operator == "!=")


def _has_header(header: Any, packet: Packet) -> bool:
    if header in NAMES:
        return bool(header == packet.family)
    return header not in ("tcp", "th", "udp", "icmp", "icmpv6", "sctp") or bool(packet.port and header in PORT_HEADERS)


def _of_payload(payload: Mapping[str, Any], right: Any, packet: Packet) -> Optional[bool]:
    header, field = payload.get("protocol"), payload.get("field")
    if not _has_header(header, packet):
        return False
    if field in ("saddr", "daddr"):
        return _has_address(right, packet.source if field == "saddr" else packet.target, packet.links)
    if header in NAMES and field in PROTOCOL_FIELDS:
        return _any(right, packet.protocol)
    return _any(right, (packet.port,)) if header in PORT_HEADERS and field == "dport" else None


def _of_meta(left: Mapping[str, Any], right: Any, packet: Packet) -> Optional[bool]:
    key = left.get("meta", {}).get("key") if isinstance(left.get("meta"), dict) else None
    if key in ("iif", "iifname"):
        return _any(right, (packet.interface,)) if packet.interface else (False if right == "lo" else None)
    if key == "l4proto":
        return _any(right, packet.protocol)
    if key == "nfproto":
        return _any(right, (NAMES[packet.family],))
    if key == "protocol":
        return _any(right, (packet.family,))
    state = left["ct"].get("key") if isinstance(left.get("ct"), dict) else None
    if state == "state":
        return _any(right, ("new",))
    # firewalld accepts whatever was sent to another port or host, which a first packet to an open port was not.
    return False if state == "status" and not packet.redirected else None


def _any(right: Any, spellings: Tuple[Any, ...]) -> Optional[bool]:
    found = [_holds(right, word) for word in spellings]
    return True if True in found else None if None in found else False


def _holds(right: Any, value: Any) -> Optional[bool]:
    """Return whether a value is among those of a match; None for a named set."""
    if isinstance(right, str) and right.startswith("@"):
        return None
    elements = _elements(right)
    if elements is not None:
        found = [_holds(each, value) for each in elements]
        return True if True in found else None if None in found else False
    if isinstance(right, dict) and isinstance(value, int) and "range" in right:
        low, high = right["range"]
        return bool(low <= value <= high) if isinstance(low, int) and isinstance(high, int) else None
    if isinstance(right, dict):
        return None
    return bool(right == value or (isinstance(right, str) and fnmatch.fnmatchcase(str(value), right)))


def _elements(right: Any) -> Optional[List[Any]]:
    inner = right["set"] if isinstance(right, dict) and "set" in right else right
    return inner if isinstance(inner, list) else None


def _has_address(right: Any, address: str, links: Tuple[Any, ...]) -> Optional[bool]:
    """Return whether an address is among those of a match; None for a named set, or an address that nobody knows."""
    elements = _elements(right)
    if elements is not None:
        found = [_has_address(each, address, links) for each in elements]
        return True if True in found else None if None in found else False
    try:
        network = _network(right)
        if not address:
            is_single = network.num_addresses == 1 and any(network[0] in link for link in links)
            return False if is_single else None
        return ipaddress.ip_address(address) in network
    except (ValueError, KeyError, TypeError):
        return None


def _network(right: Any) -> Any:
    prefix: Dict[str, Any] = right["prefix"] if isinstance(right, dict) else {"addr": right, "len": ""}
    return ipaddress.ip_network("/".join(str(prefix[key]) for key in ("addr", "len") if prefix[key] != ""))
