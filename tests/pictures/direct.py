# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way of a packet through direct return, from a client to a server and back. Pure."""

from __future__ import annotations

from typing import Iterator, NamedTuple, Sequence

from .svg import MARGIN, SMALL, WIDTH, Box, arrow, heading, label, note, panel, part, picture

TITLE = "Direct return: the server answers the client itself"
ABOUT = "Each balancer has the same table and no state of connections, so a connection outlives a failover."
ARROW = "\N{RIGHTWARDS ARROW}"
CLIENT = (MARGIN, 146)  # the left edge and the width of each column
BALANCER = (272, 226)
SERVER = (632, WIDTH - MARGIN - 632)
TOP, HEIGHT, GAP, FIRST, PART = 138, 92, 66, 36, 38  # of a host: its top, height and the space below it; of its program
BACK = TOP - 24  # the height at which answers go back
TRUNK = (BALANCER[0] + BALANCER[1] + SERVER[0]) / 2


class Direct(NamedTuple):
    """What is drawn.

    :ivar balancers: the names, the holder's first
    :ivar servers: the addresses
    """

    vip: str
    port: int
    balancers: Sequence[str]
    servers: Sequence[str]


def draw(direct: Direct) -> str:
    shapes = [heading(TITLE, ABOUT), *_hosts(direct), *_way(direct), *_others(direct)]
    about = (
        f"{ABOUT} A packet for {direct.vip}:{direct.port} gets the MAC address of a server, which has the VIP on lo. A "
        "packet of a connection that a server does not have goes to one other server."
    )
    rows = max(len(direct.balancers), len(direct.servers))
    return picture(_host(CLIENT, rows - 1).bottom + 28, TITLE, about, shapes)


def _host(column: Sequence[float], row: int) -> Box:
    return Box(column[0], TOP + row * (HEIGHT + GAP), column[1], HEIGHT)


def _program(column: Sequence[float], row: int) -> Box:
    host = _host(column, row)
    return Box(host.x + 14, host.y + FIRST, host.width - 28, PART)


def _hosts(direct: Direct) -> Iterator[str]:
    client = _host(CLIENT, 0)
    yield panel(client, "border", "quiet")
    yield label((client.x + 14, client.y + 21), "a client", style="strong")
    yield label(
        (client.x + 14, _program(CLIENT, 0).centre[1]), f"{ARROW} {direct.vip}:{direct.port}", "vip", SMALL, "code"
    )
    for row, name in enumerate(direct.balancers):
        host = _host(BALANCER, row)
        yield panel(host, "border" if row else "vip", "quiet")
        yield label((host.x + 14, host.y + 19), name, style="strong")
        if not row:
            yield label((host.right - 14, host.y + 19), f"holds {direct.vip}", "vip", SMALL, anchor="end")
        yield part(_program(BALANCER, row), "router", "nftables", f"bucket {ARROW} MAC")
    for row, address in enumerate(direct.servers):
        host = _host(SERVER, row)
        yield panel(host, "border", "quiet")
        yield label((host.x + 14, host.y + 19), address, style="code strong")
        yield part(_program(SERVER, row), "balancer", f":{direct.port}", f"{direct.vip} on lo")


def _way(direct: Direct) -> Iterator[str]:
    """The packet's way, and that of its answer."""
    client, table, server = (_program(column, 0) for column in (CLIENT, BALANCER, SERVER))
    y = table.centre[1]
    yield arrow([(_host(CLIENT, 0).right, y), (table.x - 3, y)], "vip")
    yield arrow([(table.right, y), (server.x - 3, y)], "vip")
    yield note((TRUNK, y - 30), ["with the MAC", "of the server"], "vip", 11, "middle")
    x = _host(SERVER, 0).centre[0]
    back = [(x, _host(SERVER, 0).y), (x, BACK), (client.centre[0], BACK), (client.centre[0], _host(CLIENT, 0).y - 3)]
    yield arrow(back, "balancer")
    yield label(
        (_host(BALANCER, 0).centre[0], BACK - 12), "the answer, past the balancer", "balancer", 11, anchor="middle"
    )


def _others(direct: Direct) -> Iterator[str]:
    """What happens after a failover, and after a bucket has moved."""
    for row in range(1, len(direct.balancers)):
        start = (_program(BALANCER, row).right, _program(BALANCER, row).centre[1])
        first = _program(SERVER, 0)
        end = (first.x - 3, first.bottom - 9)
        yield arrow([start, (TRUNK, start[1]), (TRUNK, end[1]), end], "quiet", dashed=True)
        below = _host(BALANCER, row - 1).bottom + GAP / 2
        yield label((BALANCER[0] + 14, below), "after a failover: the same table, the same server", "quiet", 11)
    for row in range(1, len(direct.servers)):
        upper, lower = _host(SERVER, row - 1), _host(SERVER, row)
        x = upper.x + 34
        yield arrow([(x, _program(SERVER, row - 1).bottom), (x, lower.y - 3)], "wait")
        yield note(
            (x + 14, upper.bottom + GAP / 2 - 8),
            ["what is of none of its", "connections: a second chance"],
            "wait",
            11,
        )
