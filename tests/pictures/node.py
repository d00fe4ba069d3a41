# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs on a master that looks after itself, and who tells whom. Pure."""

from __future__ import annotations

from typing import Iterator, NamedTuple, Sequence

from .svg import MARGIN, SMALL, WIDTH, Box, arrow, heading, label, panel, part, picture

TITLE = "A master that looks after itself"
ABOUT = "follow watches the cluster's nodes. haproxy gets their API servers, and dnsmasq their names."
ARROW = "\N{RIGHTWARDS ARROW}"
OUTSIDE = (MARGIN, 150)  # the left edge and the width of each column
HOST = (238, 418)
NETWORK = (256, 146)  # what clients and other nodes connect to
PROGRAMS = (444, 188)
OTHERS = (720, WIDTH - MARGIN - 720)
TOP, FIRST, STEP, PART, TAIL = 96, 46, 88, 42, 26  # of the host: its top, its rows of programs, and what is below them
BEND = (NETWORK[0] + NETWORK[1] + PROGRAMS[0]) / 2
TRUNK = (PROGRAMS[0] + PROGRAMS[1] + HOST[0] + HOST[1]) / 2


class Node(NamedTuple):
    """What is drawn.

    :ivar masters: the names, the holder's first
    :ivar joins: the name of a master that joins
    :ivar api: the name of the API
    """

    vip: str
    port: int
    to_port: int
    masters: Sequence[str]
    joins: str
    api: str


def draw(node: Node) -> str:
    host = Box(HOST[0], TOP, HOST[1], FIRST + 2 * STEP + PART + TAIL)
    shapes = [
        heading(TITLE, ABOUT),
        panel(host, "vip", "quiet"),
        label((host.x + 18, host.y + 22), node.masters[0], style="strong"),
        label((host.right - 18, host.y + 22), f"holds {node.vip}", "vip", SMALL, anchor="end"),
        *_parts(node),
        *_connections(node),
        *_words(),
    ]
    about = (
        f"{ABOUT} haproxy on port {node.to_port} serves {node.vip}:{node.port}, and tells keepalived whether it does. "
        f"A master that joins, {node.joins}, becomes a server without a run and without a reload."
    )
    return picture(host.bottom + 28, TITLE, about, shapes)


def _box(column: Sequence[float], row: int) -> Box:
    return Box(column[0], TOP + FIRST + row * STEP, column[1], PART)


def _parts(node: Node) -> Iterator[str]:
    yield part(_box(NETWORK, 0), "vip", "nftables", f"{ARROW} {node.to_port}")
    yield part(_box(NETWORK, 1), "router", "keepalived")
    yield part(_box(NETWORK, 2), "wait", "dnsmasq", ":53")
    yield part(_box(PROGRAMS, 0), "balancer", "haproxy", f":{node.to_port}")
    yield part(_box(PROGRAMS, 1), "wait", "follow")
    yield part(_box(PROGRAMS, 2), "quiet", "kube-apiserver", f":{node.port}")
    for row, master in enumerate(node.masters[1:]):
        yield part(_box(OTHERS, row), "quiet", master, f":{node.port}")
    yield part(_box(OTHERS, len(node.masters) - 1), "balancer", node.joins, "joins", dashed=True)


def _connections(node: Node) -> Iterator[str]:
    for row, (asker, words, tone) in enumerate(
        (
            ("a client connects to", f"{node.vip}:{node.port}", "vip"),
            ("the other nodes hear", "VRRP", "router"),
            ("a pod asks for", node.api, "wait"),
        )
    ):
        outside, inside = _box(OUTSIDE, row), _box(NETWORK, row)
        yield label((outside.x, outside.y - 12), asker, "quiet", SMALL)
        yield panel(outside, tone)
        yield label(outside.centre, words, tone, 11, "code", "middle")
        ends = [(outside.right, outside.centre[1]), (inside.x - 3, inside.centre[1])]
        if tone == "router":
            ends = [(inside.x, inside.centre[1]), (outside.right + 3, outside.centre[1])]
        yield arrow(ends, tone)
    table, balancer = _box(NETWORK, 0), _box(PROGRAMS, 0)
    yield arrow([(table.right, table.centre[1]), (balancer.x - 3, balancer.centre[1])], "vip")
    yield from _of_balancer(node)
    yield from _of_follow()


def _of_balancer(node: Node) -> Iterator[str]:
    balancer, router, server = _box(PROGRAMS, 0), _box(NETWORK, 1), _box(PROGRAMS, 2)
    low = balancer.bottom - 9
    end = (router.right + 3, router.centre[1])
    yield arrow([(balancer.x, low), (BEND, low), (BEND, end[1]), end], "balancer")
    start = (balancer.right, balancer.centre[1])
    yield arrow([start, (TRUNK, start[1]), (TRUNK, server.centre[1]), (server.right + 3, server.centre[1])], "balancer")
    trunk = (HOST[0] + HOST[1] + OTHERS[0]) / 2
    for row in range(len(node.masters)):
        box = _box(OTHERS, row)
        bends = [start, (trunk, start[1]), (trunk, box.centre[1]), (box.x - 3, box.centre[1])]
        yield arrow(bends, "balancer", dashed=row == len(node.masters) - 1)


def _of_follow() -> Iterator[str]:
    balancer, follow, server, names = _box(PROGRAMS, 0), _box(PROGRAMS, 1), _box(PROGRAMS, 2), _box(NETWORK, 2)
    x = follow.centre[0]
    yield arrow([(x, server.y), (x, follow.bottom + 3)], "quiet")
    yield arrow([(x, follow.y), (x, balancer.bottom + 3)], "wait")
    low = follow.bottom - 9
    yield arrow([(follow.x, low), (BEND, low), (BEND, names.centre[1]), (names.right + 3, names.centre[1])], "wait")


def _words() -> Iterator[str]:
    balancer, follow, router, names = _box(PROGRAMS, 0), _box(PROGRAMS, 1), _box(NETWORK, 1), _box(NETWORK, 2)
    x, half = follow.centre[0] + 12, (STEP - PART) / 2
    yield label((x, balancer.bottom + half), "servers", "wait", 11)
    yield label((x, follow.bottom + half), "nodes", "quiet", 11)
    yield label((BEND - 10, router.y - 12), "serves, or has died", "balancer", 11, anchor="end")
    yield label((BEND - 10, names.y - 12), "names", "wait", 11, anchor="end")
