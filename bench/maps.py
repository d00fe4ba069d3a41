"""How long direct return takes to compute the tables of a large site, and nft(8) to load them."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

from ansible_collections.onprem.lb.plugins.module_utils._agent.direct import buckets, rulesets
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.buckets import Server
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.rulesets import Service
from support.netns.links import temporary_link

ROUNDS = int(os.environ.get("ROUNDS", "5"))
SERVICES, SERVERS = 255, 1000
AIM = "1 s together"


def measure() -> int:
    """Print the figures; return 0, because nothing can be lost."""
    print(f"\n{'seconds, median of ' + str(ROUNDS) + ' rounds':<58}{'computed':>12}{'loaded':>12}   aim")
    each = SERVERS // SERVICES + 1
    pools = [pool(number, each) for number in range(SERVICES)]
    row(f"{SERVICES} services, {SERVERS} servers, {each} each", pools, 256)
    row("the same with the default", pools, buckets.size(each))
    row(f"a service with {buckets.MOST_SERVERS} servers", [(0, buckets.MOST_SERVERS)], buckets.MOST)
    return 0


def pool(number: int, count: int):
    """Return the first server of a service, and how many it has; some servers are of two services."""
    return (number * SERVERS // SERVICES) % (SERVERS - count + 1), count


def row(what: str, pools, count: int) -> None:
    addresses = [f"10.0.{number >> 8}.{number & 255}" for number in range(SERVERS)]
    macs = {address: f"02:00:0a:00:{number >> 8:02x}:{number & 255:02x}" for number, address in enumerate(addresses)}
    services = [
        Service(f"10.1.0.{number}", 443, [Server(address) for address in addresses[at : at + servers]], count)
        for number, (at, servers) in enumerate(pools)
    ]
    computed, loaded = zip(*(once(services, macs) for _round in range(ROUNDS)))
    total = sum(service.buckets for service in services)
    times = "".join(f"{statistics.median(each):>12.2f}" for each in (computed, loaded))
    print(f"{what + f': {total} buckets':<58}{times}   {AIM}", flush=True)


def once(services, macs):
    """Return the seconds to compute a table, and to load it."""
    with tempfile.TemporaryDirectory(prefix="onpremlb-bench-") as folder, temporary_link(2) as link:
        path = Path(folder, "table.nft")
        begin = time.monotonic()
        path.write_text(rulesets.whole(rulesets.of_balancer(services, "eth0", macs, link.members[0].mac)))
        computed = time.monotonic()
        link.members[0].output("nft", "--file", str(path))
        return computed - begin, time.monotonic() - computed
