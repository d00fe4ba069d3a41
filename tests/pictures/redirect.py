# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the API's VIP is redirected on the master that holds it, and what happens when its haproxy dies. Pure."""

from __future__ import annotations

from typing import Iterator, NamedTuple, Sequence

from .svg import MARGIN, SMALL, WIDTH, Box, Point, arrow, heading, label, panel, part, picture

TITLE = "Two programs, one port: the redirect on a master"
ABOUT = "kube-apiserver and haproxy share a host. Only connections to the VIP are redirected."
ARROW = "\N{RIGHTWARDS ARROW}"
CLIENT = (MARGIN, 150)  # the left edge and the width of each column
HOST = (238, 418)
OTHERS = (720, WIDTH - MARGIN - 720)
TABLE = (256, 146)
PROGRAMS = (444, 194)
TOP, HEIGHT, GAP = 116, 168, 56
UPPER, LOWER, PART = 42, 110, 42  # of a row: where its two lines of programs begin, and their height


class Redirect(NamedTuple):
    """What is drawn.

    :ivar masters: the names, the holder's first
    :ivar outage_ms: for how long, at most, the VIP leads to the local API server alone
    """

    vip: str
    port: int
    to_port: int
    masters: Sequence[str]
    address: str
    outage_ms: int


class Row(NamedTuple):
    """The places of one state of the holder."""

    y: float

    @property
    def table(self) -> Box:
        return Box(TABLE[0], self.y + UPPER, TABLE[1], PART)

    @property
    def balancer(self) -> Box:
        return Box(PROGRAMS[0], self.y + UPPER, PROGRAMS[1], PART)

    @property
    def server(self) -> Box:
        return Box(PROGRAMS[0], self.y + LOWER, PROGRAMS[1], PART)

    def client(self, box: Box) -> Box:
        return Box(CLIENT[0], box.y, CLIENT[1], PART)


def draw(redirect: Redirect) -> str:
    serving, dead = Row(TOP), Row(TOP + HEIGHT + GAP)
    shapes = [
        heading(TITLE, ABOUT),
        *_host(redirect, serving, "haproxy serves: its unit has loaded the table"),
        *_clients(redirect, serving),
        *_serving(redirect, serving),
        *_host(redirect, dead, f"haproxy has died: until the VIP has moved, {redirect.outage_ms} ms at most"),
        *_clients(redirect, dead),
        *_dead(redirect, dead),
    ]
    about = (
        f"{ABOUT} {redirect.vip}:{redirect.port} goes to haproxy on port {redirect.to_port} of the same host, and from "
        f"there to every API server. Without haproxy the table is gone, and it is the local API server."
    )
    return picture(TOP + 2 * HEIGHT + GAP + 28, TITLE, about, shapes)


def _host(redirect: Redirect, row: Row, state: str) -> Iterator[str]:
    yield label((MARGIN, row.y - 18), state, style="strong")
    host = Box(HOST[0], row.y, HOST[1], HEIGHT)
    yield panel(host, "vip", "quiet")
    yield label((host.x + 18, row.y + 21), redirect.masters[0], style="strong")
    yield label((host.right - 18, row.y + 21), f"holds {redirect.vip}", "vip", SMALL, anchor="end")


def _clients(redirect: Redirect, row: Row) -> Iterator[str]:
    yield label((MARGIN, row.y + 21), "a client connects to", "quiet", SMALL)
    for address, tone, box in ((redirect.vip, "vip", row.table), (redirect.address, "border", row.server)):
        place = row.client(box)
        yield panel(place, tone, "quiet" if tone == "border" else tone)
        words = f"{address}:{redirect.port}"
        yield label(place.centre, words, "quiet" if tone == "border" else tone, SMALL, "code", "middle")


def _direct(row: Row) -> str:
    """The node's own address leads to its own API server, always."""
    y = row.server.centre[1]
    return arrow([(CLIENT[0] + CLIENT[1], y), (row.server.x - 3, y)])


def _serving(redirect: Redirect, row: Row) -> Iterator[str]:
    table, balancer, server = row.table, row.balancer, row.server
    yield part(table, "router", "nftables", f"{ARROW} {redirect.to_port}")
    yield part(balancer, "balancer", "haproxy", f":{redirect.to_port}")
    yield part(server, "quiet", "kube-apiserver", f":{redirect.port}")
    yield arrow(_straight(row.client(table), table), "vip")
    yield arrow(_straight(table, balancer), "vip")
    yield _direct(row)
    x = server.centre[0]
    yield arrow([(x, balancer.bottom), (x, server.y - 3)], "balancer")
    trunk = (HOST[0] + HOST[1] + OTHERS[0]) / 2
    for master, place in zip(redirect.masters[1:], (balancer, server)):
        box = Box(OTHERS[0], place.y, OTHERS[1], PART)
        yield part(box, "quiet", master, f":{redirect.port}")
        start, y = (balancer.right, balancer.centre[1]), box.centre[1]
        yield arrow([start, (trunk, start[1]), (trunk, y), (box.x - 3, y)], "balancer")


def _dead(redirect: Redirect, row: Row) -> Iterator[str]:
    table, server = row.table, row.server
    yield panel(table, "quiet", dashed=True)
    yield label(table.centre, "table removed", "quiet", SMALL, anchor="middle")
    yield part(row.balancer, "fault", "haproxy", "dead")
    yield part(server, "quiet", "kube-apiserver", f":{redirect.port}")
    bend, client = (table.right + server.x) / 2, row.client(table)
    yield arrow([(client.right, client.centre[1]), (table.x, client.centre[1])], "vip", head=False)
    yield arrow(
        [(table.right, table.centre[1]), (bend, table.centre[1]), (bend, server.y + 8), (server.x - 3, server.y + 8)],
        "vip",
    )
    yield _direct(row)


def _straight(start: Box, end: Box) -> Sequence[Point]:
    return [(start.right, start.centre[1]), (end.x - 3, end.centre[1])]
