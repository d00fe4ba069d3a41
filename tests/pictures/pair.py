# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clients, the VIP, two balancers and the servers behind them, with what listens where. Pure."""

from __future__ import annotations

from typing import Iterator, List, NamedTuple, Sequence

from .svg import MARGIN, SMALL, WIDTH, Box, arrow, heading, label, note, panel, part, picture

TITLE = "A pair of balancers"
ABOUT = "Clients know one address, the VIP. One balancer holds it, and the other one takes over."
TOP, GAP = 112, 52
HOST = (386, 232, 150)  # a balancer's left edge, width and height
SERVERS = (694, WIDTH - MARGIN - 694)  # their left edge and width
TRUNK = 656  # where the lines from the balancers to the servers meet
INSET = 14


class Balancer(NamedTuple):
    """A member of the pair."""

    name: str
    address: str
    priority: int


class Group(NamedTuple):
    """The servers of one or more services."""

    ports: List[int]
    check: str
    addresses: List[str]


class Pair(NamedTuple):
    """What is drawn.

    :ivar interval: seconds between two advertisements
    """

    vip: str
    vrid: int
    interval: float
    balancers: Sequence[Balancer]
    groups: Sequence[Group]
    statistics: str


def draw(pair: Pair) -> str:
    hosts = [Box(HOST[0], TOP + row * (HOST[2] + GAP), HOST[1], HOST[2]) for row in range(len(pair.balancers))]
    bottom = hosts[-1].bottom
    shapes = [
        heading(TITLE, ABOUT),
        *_columns(),
        *(shape for at, host in enumerate(hosts) for shape in _host(pair, at, host)),
        *_clients(pair, hosts),
        *_election(pair, hosts),
        *_servers(pair, hosts),
        *_legend(pair, bottom + 44),
    ]
    return picture(round(bottom + 76), TITLE, f"{ABOUT} {_described(pair)}", shapes)


def _ports(numbers: Sequence[int]) -> str:
    return "  ".join(f":{number}" for number in sorted(numbers))


def _described(pair: Pair) -> str:
    groups = [f"port {', '.join(map(str, group.ports))} to {', '.join(group.addresses)}" for group in pair.groups]
    return f"haproxy passes {'; '.join(groups)}."


def _columns() -> Iterator[str]:
    for x, words in ((MARGIN, "CLIENTS"), (206, "VIRTUAL IP (VIP)"), (HOST[0], "BALANCERS"), (SERVERS[0], "SERVERS")):
        yield label((x, TOP - 18), words, "quiet", 11, "strong")


def _inside(host: Box, row: int) -> Box:
    """Return the place of a program on a balancer."""
    return Box(host.x + INSET, host.y + 40 + row * 58, host.width - 2 * INSET, 38)


def _clients(pair: Pair, hosts: Sequence[Box]) -> Iterator[str]:
    middle = (hosts[0].y + hosts[-1].bottom) / 2
    clients, vip = Box(MARGIN, middle - 48, 132, 96), Box(206, middle - 28, 132, 56)
    yield panel(clients, "border", "quiet")
    for row, words in enumerate(("kubectl", "nodes, pods", "browsers")):
        yield label((clients.centre[0], clients.y + 24 + row * 24), words, anchor="middle")
    yield panel(vip, "vip")
    yield label((vip.centre[0], vip.centre[1] - 9), pair.vip, "vip", 15, "code strong", "middle")
    yield label((vip.centre[0], vip.centre[1] + 13), f"VRID {pair.vrid}", "vip", SMALL, anchor="middle")
    yield arrow([(clients.right, middle), (vip.x - 3, middle)], "vip")
    bend = (vip.right + HOST[0]) / 2
    for host in reversed(hosts):
        y = _inside(host, 0).centre[1]
        yield arrow(
            [(vip.right, middle), (bend, middle), (bend, y), (_inside(host, 0).x - 3, y)], "vip", host is not hosts[0]
        )


def _host(pair: Pair, at: int, host: Box) -> Iterator[str]:
    balancer, holds = pair.balancers[at], at == 0
    own_ports = sorted({number for group in pair.groups for number in group.ports})
    yield panel(host, "vip" if holds else "border", "quiet")
    yield label((host.x + INSET, host.y + 21), balancer.name, style="strong")
    yield label((host.right - INSET, host.y + 21), balancer.address, "quiet", SMALL, "code", "end")
    balances, elects = _inside(host, 0), _inside(host, 1)
    yield part(balances, "balancer", "haproxy", _ports(own_ports))
    yield part(elects, "router", "keepalived", f"priority {balancer.priority}")
    x = balances.x + 24
    yield arrow([(x, balances.bottom), (x, elects.y - 2)], "balancer")
    yield label((x + 12, (balances.bottom + elects.y) / 2), "says when it stops or dies", "balancer", 11)


def _election(pair: Pair, hosts: Sequence[Box]) -> Iterator[str]:
    x = HOST[0] + HOST[1] / 2 - 52
    for upper, lower in zip(hosts, hosts[1:]):
        yield arrow([(x, _inside(upper, 1).bottom), (x, lower.y - 3)], "router")
        yield note(
            (x + 14, upper.bottom + 18),
            [f"advertises every {pair.interval:g} s", "VRRP, IP protocol 112"],
            "router",
            11,
        )


def _servers(pair: Pair, hosts: Sequence[Box]) -> Iterator[str]:
    heights = [58 + 19 * len(group.addresses) for group in pair.groups]
    gap = (hosts[-1].bottom - TOP - sum(heights)) / max(1, len(heights) - 1)
    tops = [TOP + sum(heights[:at]) + at * gap for at in range(len(heights))]
    boxes = [Box(SERVERS[0], top, SERVERS[1], height) for top, height in zip(tops, heights)]
    for group, box in zip(pair.groups, boxes):
        yield from _group(group, box)
    levels = [_inside(host, 0).centre[1] for host in hosts]
    start = _inside(hosts[0], 0).right
    for level in levels[1:]:
        yield arrow([(start, level), (TRUNK, level)], "balancer", dashed=True, head=False)
    for box in boxes:
        # Where a balancer is beside the servers, the line to them is straight.
        end = next((level for level in levels if box.y < level < box.bottom), box.centre[1])
        yield arrow([(start, levels[0]), (TRUNK, levels[0]), (TRUNK, end), (box.x - 3, end)], "balancer")


def _group(group: Group, box: Box) -> Iterator[str]:
    yield panel(box, "border", "quiet")
    yield label((box.x + INSET, box.y + 20), _ports(group.ports), style="code strong")
    yield label((box.x + INSET, box.y + 40), f"check: {group.check}", "quiet", SMALL)
    for row, address in enumerate(group.addresses):
        yield label((box.x + INSET, box.y + 62 + row * 19), address, "plain", SMALL, "code")


def _legend(pair: Pair, y: float) -> Iterator[str]:
    entries = (
        ("vip", False, "clients"),
        ("balancer", False, "connections and checks"),
        ("router", False, "VRRP"),
        ("quiet", True, "after a failover"),
    )
    x: float = MARGIN
    for tone, dashed, words in entries:
        yield arrow([(x, y), (x + 30, y)], tone, dashed, head=not dashed)
        yield label((x + 38, y), words, "quiet", SMALL)
        x += 38 + len(words) * SMALL * 0.56 + 24
    statistics = f"statistics of each balancer: {pair.statistics}"
    yield label((WIDTH - MARGIN, y), statistics, "quiet", SMALL, anchor="end")
