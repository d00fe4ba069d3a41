"""How routers stand in for each other: each gateway is a VIP of theirs, as it is in most networks.

Pure: the layout in, keepalived's configuration out. Each router prefers its own gateway.
"""

from __future__ import annotations

from typing import Iterator, List, Mapping

from .layout import Host, Lab
from .network import Network

VRIDS = 200  # and the gateway's number: far from those that members have
ADVERT_S = 0.3  # a router is stood in for after three of them, and some


def keepalived(lab: Lab, networks: Mapping[str, Network], host: Host) -> str:
    """Return the configuration of a router, with an instance for each gateway of each network behind it."""
    lines = ["global_defs {", f"    router_id {host.name}", "    vrrp_version 3", "}"]
    for at, name in enumerate(host.networks):
        if lab.leads_out(name):
            continue
        for router in (other for other in lab.hosts if other.router and name in other.networks):
            own = router == host
            lines += _instance(
                f"{name}_{router.name}", at, router, [networks[name].address(router.gateway) + "/32"], own
            )
            address6 = networks[name].address6(router.gateway)
            if address6:
                addresses = [
                    f"fe80::{VRIDS}:{router.gateway}/128",
                    f"{address6}/128",
                ]  # RFC 9568: a link-local one first
                lines += _instance(f"{name}_{router.name}_v6", at, router, addresses, own)
    return "\n".join(lines)


def _instance(name: str, interface: int, router: Host, addresses: List[str], own: bool) -> Iterator[str]:
    yield f"vrrp_instance {name} {{"
    yield "    state BACKUP"
    yield f"    interface eth{interface}"
    yield f"    virtual_router_id {VRIDS + router.gateway}"
    yield f"    priority {200 if own else 100}"
    yield f"    advert_int {ADVERT_S}"
    yield "    virtual_ipaddress {"
    yield from (f"        {address}" for address in addresses)
    yield "    }"
    yield "}"
