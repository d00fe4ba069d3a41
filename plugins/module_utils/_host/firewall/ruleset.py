# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reads `nft -j list ruleset`: which input chains would refuse a new connection, or a peer's VRRP.

A chain refuses if its policy is drop, or if one of its rules drops or rejects all traffic of that kind. A rule against
particular sources, invalid packets or an excessive rate does not count: the chains of fail2ban or crowdsec keep their
effect on our ports. A match that cannot be interpreted (an xt match of iptables-nft, a mark) counts as such a narrow
rule.
"""

from __future__ import annotations

import json
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from .model import PROTOCOLS, TCP, UDP, VRRP, FirewallError, Opening, as_source

ChainName = Tuple[str, str, str]  # family, table, chain

FAMILIES = ("ip", "ip6", "inet")
# A rule that matches on these only is still broad.
BROAD_META = {"iif", "iifname", "iiftype", "iifgroup", "nfproto", "protocol", "pkttype"}
# Tables in which an accept would be overwritten, or admit whom they keep out.
NOT_TO_OPEN = ("firewalld", "onprem_lb_")
PROTOCOL_FIELDS = {"protocol", "nexthdr"}
NUMBERS = {TCP: 6, UDP: 17}


class Chain(NamedTuple):
    policy: str  # empty for a chain that is only jumped to
    rules: List[Dict[str, Any]]


Ruleset = Dict[ChainName, Chain]


def parse(text: str) -> Ruleset:
    try:
        items = json.loads(text)["nftables"]
    except (ValueError, KeyError, TypeError):
        raise FirewallError("nft -j list ruleset does not print JSON here.") from None
    chains: Ruleset = {}
    for item in items:
        chain = item.get("chain")
        if chain and chain["family"] in FAMILIES:
            at_input = chain.get("type") == "filter" and chain.get("hook") == "input"
            policy = chain.get("policy", "accept") if at_input else ""
            chains[chain["family"], chain["table"], chain["name"]] = Chain(policy, [])
    for item in items:
        rule = item.get("rule")
        place = (rule["family"], rule["table"], rule["chain"]) if rule else None
        if place in chains:
            chains[place].rules.append(rule)
    return chains


def input_chains(ruleset: Ruleset) -> List[ChainName]:
    """Return the base chains that every packet to this host passes, without firewalld's and this collection's own."""
    return sorted(name for name, chain in ruleset.items() if chain.policy and not name[1].startswith(NOT_TO_OPEN))


def chain_refuses(ruleset: Ruleset, name: ChainName, wanted: Sequence[Opening], seen: Tuple = ()) -> bool:
    chain = ruleset.get(name)
    if not chain or name in seen:
        return False
    if chain.policy == "drop":
        return True
    return any(rule_refuses(ruleset, name, rule, wanted, seen) for rule in chain.rules)


def rule_refuses(
    ruleset: Ruleset, name: ChainName, rule: Dict[str, Any], wanted: Sequence[Opening], seen: Tuple = ()
) -> bool:
    for statement in rule.get("expr", []):
        kind, what = next(iter(statement.items()))
        if kind == "match" and not _may_match(what, wanted):
            return False
        if kind == "limit" and isinstance(what, dict) and what.get("inv"):
            return False  # only what exceeds a rate
        if kind == "vmap":
            return _map_refuses(ruleset, name, what, wanted, seen)
        if kind == "xt":
            return isinstance(what, dict) and what.get("name") in ("REJECT", "DROP")
        if kind in ("drop", "reject", "jump", "goto"):
            return _verdict_refuses(ruleset, name, statement, wanted, seen)
    return False


def _verdict_refuses(
    ruleset: Ruleset, name: ChainName, verdict: Dict[str, Any], wanted: Sequence[Opening], seen: Tuple
) -> bool:
    kind, what = next(iter(verdict.items()))
    if kind in ("jump", "goto"):
        target = (name[0], name[1], what["target"])
        return chain_refuses(ruleset, target, wanted, seen + (name,))
    return kind in ("drop", "reject")


def _map_refuses(
    ruleset: Ruleset, name: ChainName, vmap: Dict[str, Any], wanted: Sequence[Opening], seen: Tuple
) -> bool:
    """Judge a verdict map as a rule for each of its elements; those of a named map are not listed."""
    data = vmap.get("data")
    elements = data.get("set", []) if isinstance(data, dict) else []
    return any(
        _may_match({"op": "==", "left": vmap.get("key"), "right": value}, wanted)
        and _verdict_refuses(ruleset, name, verdict, wanted, seen)
        for value, verdict in elements
    )


def _may_match(match: Dict[str, Any], wanted: Sequence[Opening]) -> bool:
    """Whether a packet that we want may match, as far as that is known without its source."""
    left, right = match.get("left"), match.get("right")
    if not isinstance(left, dict):
        return False
    meta, payload = left.get("meta", {}).get("key"), left.get("payload", {})
    if meta in BROAD_META:
        return True
    if left.get("ct", {}).get("key") == "state":
        return _any_matches(match, [("new",)])
    if meta == "l4proto" or payload.get("field") in PROTOCOL_FIELDS:
        return _any_matches(match, [_protocol(opening) for opening in wanted])
    if payload.get("field") == "dport":
        ports = [(each.port,) for each in wanted if each.port and payload.get("protocol") in (each.protocol, "th")]
        unknown_set = match.get("op") == "!=" and isinstance(right, str)
        return bool(ports) and (unknown_set or _any_matches(match, ports))
    return False


def _protocol(opening: Opening) -> Tuple[Any, ...]:
    # nft prints the name if /etc/protocols, or its own list, has one.
    return (opening.protocol, NUMBERS[opening.protocol]) if opening.port else ("vrrp", VRRP)


def _any_matches(match: Dict[str, Any], values: Iterable[Tuple[Any, ...]]) -> bool:
    """Whether the match holds for one of the values, each given in all its spellings."""
    unequal = match.get("op") == "!="
    return any(any(_holds(match.get("right"), word) for word in spellings) != unequal for spellings in values)


def _holds(right: Any, value: Any) -> bool:
    if isinstance(right, list):
        return any(_holds(element, value) for element in right)
    if isinstance(right, dict) and "set" in right:
        return _holds(right["set"], value)
    if isinstance(right, dict) and "range" in right:
        low, high = right["range"]
        return all(isinstance(item, int) for item in (low, high, value)) and low <= value <= high
    return bool(right == value)


def opening_of(rule: Dict[str, Any]) -> Optional[Opening]:
    """Return what a rule of ours opens, or nothing if this version would write it differently."""
    statements = list(rule.get("expr", []))
    if not statements or statements.pop() != {"accept": None}:
        return None
    found: Dict[str, Any] = {}
    protocol = ""
    for statement in statements:
        match = statement.get("match", {})
        left = match.get("left", {})
        if match.get("op") != "==":
            return None
        payload = left.get("payload", {})
        field = left.get("meta", {}).get("key") or payload.get("field", "?")
        found[field] = match.get("right")
        protocol = payload.get("protocol") if field == "dport" else protocol
    source = _source(found.pop("saddr", ""))
    if set(found) == {"dport"} and isinstance(found["dport"], int) and protocol in PROTOCOLS:
        return Opening(found["dport"], source, protocol)
    if source and set(found) == {"l4proto"} and found["l4proto"] in ("vrrp", VRRP):
        return Opening(source=source)
    return None


def _source(saddr: Any) -> str:
    prefix = saddr.get("prefix") if isinstance(saddr, dict) else None
    return as_source(f"{prefix['addr']}/{prefix['len']}" if prefix else saddr)
