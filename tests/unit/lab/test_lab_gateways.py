"""Each gateway of a network behind routers is one router's first choice, and every other router's second."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path

import pytest

from lab import gateways
from lab.layout import LAYOUTS, Lab
from lab.network import Network

ROUTED = [lab for lab in (Lab(Path("/c"), scenario) for scenario in LAYOUTS) if lab.has_routers]
INSTANCE = re.compile(r"vrrp_instance (\w+) \{(.*?)\n\}", re.DOTALL)


def instances(lab, ipv6):
    """Return what each router's configuration says of each instance: the priority, and the rest."""
    networks = {
        name: Network(
            ipaddress.IPv4Network(f"10.1.{at}.0/24"), ipaddress.IPv6Network(f"fd00:{at}::/64") if ipv6 else None
        )
        for at, name in enumerate(lab.networks)
    }
    found = {}
    for host in lab.hosts:
        for name, body in INSTANCE.findall(gateways.keepalived(lab, networks, host)) if host.router else ():
            priority = int(re.search(r"priority (\d+)", body)[1])
            found.setdefault(name, {})[host.name] = (priority, re.sub(r"priority \d+", "", body))
    return found


@pytest.mark.parametrize("ipv6", [True, False])
@pytest.mark.parametrize("lab", ROUTED, ids=lambda lab: lab.scenario)
def test_routers_agree_on_all_but_who_is_first(lab, ipv6):
    routers = {host.name for host in lab.hosts if host.router}
    found = instances(lab, ipv6)
    behind = [name for name in lab.networks if not lab.leads_out(name)]
    assert len(found) == len(behind) * len(routers) * (2 if ipv6 else 1)
    for name, by_router in found.items():
        assert set(by_router) == routers
        assert len({body for _priority, body in by_router.values()}) == 1
        first = max(by_router, key=lambda router: by_router[router][0])
        assert first in name.split("_")
        assert len({priority for priority, _body in by_router.values()}) > 1


@pytest.mark.parametrize("lab", ROUTED, ids=lambda lab: lab.scenario)
def test_no_gateway_is_a_hosts_own_address(lab):
    numbers = [host.number for host in lab.hosts] + [host.gateway for host in lab.hosts if host.router]
    assert len(set(numbers)) == len(numbers)
