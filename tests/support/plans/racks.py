"""Members in racks, each in a subnet of its own with a router, which announce their VIPs by BGP."""

from __future__ import annotations

from typing import Any

from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair

VIP, VIP6 = "203.0.113.10", "2001:db8:ffff::10"
ASN, ROUTER_ASN = 64512, 64601


def router(number: int) -> str:
    return f"10.0.{number}.1"


def member(number: int, bgp: Any = None, **settings: Any) -> dict:
    """Member lbN with the address 10.0.N.11 on eth0, whose router is 10.0.N.1."""
    own = {"interface": "eth0", "mac": f"02:00:00:00:00:0{number}"}
    peers = [{"address": router(number), "asn": ROUTER_ASN, "bfd": True}]
    return {
        "name": f"lb{number}",
        "address": f"10.0.{number}.11",
        "settings": {
            "vips": [VIP],
            "services": [{"name": "https", "port": 443, "servers": ["10.0.1.31", "10.0.2.31"]}],
            "reach": "bgp",
            "bgp": {"asn": ASN, "peers": peers, **(bgp or {})},
            **settings,
        },
        "host": {
            "addresses": [
                {"interface": "lo", "address": "127.0.0.1", "prefix": 8, "mac": "00:00:00:00:00:00"},
                {**own, "address": f"10.0.{number}.11", "prefix": 24},
                {**own, "address": f"2001:db8:{number}::11", "prefix": 64},
                {**own, "address": f"fe80::{number}", "prefix": 64},
            ],
            "listeners": [],
            "answering": {},
            "instances": [],
            "problems": [],
        },
    }


def racks(count: int = 2, bgp: Any = None, **settings: Any) -> list:
    return [member(number, bgp, **settings) for number in range(1, count + 1)]


def with_peer(members: list, **changes: Any) -> list:
    """Return members, the peer of each of which has these keys, too."""
    for each in members:
        each["settings"]["bgp"]["peers"][0].update(changes)
    return members


def plan(members: list) -> Any:
    return pair.plan(members)
