# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Lists in haproxy.cfg that may have more words than HAProxy reads of a line: it refuses the whole file then. Pure."""

from __future__ import annotations

from typing import Iterator, List, Sequence

from ..._agent.proxy.names import below, is_wildcard
from ..._shared import quoting

LINE_WORDS = 64  # MAX_LINE_ARGS of HAProxy
ROUTE, ROUTE_TO_FALLBACK = "use_backend NAME if", "use_backend NAME if { nbsrv(NAME) eq 0 }"


def of_networks(rule: str, networks: Sequence[str], name: str) -> Iterator[str]:
    """Yield a rule about clients in some networks. Those that are too many for a line are an ACL of several."""
    parts = _parts(networks, LINE_WORDS - len(f"{rule} {{ src }}".split()))
    if len(parts) > 1:
        yield from (f"acl {name} src {' '.join(part)}" for part in parts)
    yield f"{rule} {name}" if len(parts) > 1 else f"{rule} {{ src {' '.join(parts[0])} }}"


def of_requests(hosts: Sequence[str], paths: Sequence[str], sample: str, fallback: str) -> List[str]:
    """Return the conditions of which one is met by each request of a route, each short enough for its line.

    :param sample: how HAProxy gets the host that a client asks for
    :param fallback: the name of the second backend of the route, '' without one
    """
    names, ends = (
        [each for each in hosts if not is_wildcard(each)],
        [below(each) for each in hosts if is_wildcard(each)],
    )
    of_hosts = [(f"{sample} -i", names), (f"{sample} -m end -i", ends)]
    room = LINE_WORDS - len((ROUTE_TO_FALLBACK if fallback else ROUTE).split())
    longest = max(
        len(each.split()) for test, values in of_hosts for each in _conditions(test, values, LINE_WORDS) or [""]
    )
    by_path = _conditions("path_beg", [*map(quoting.haproxy, paths)], max(room // 2, room - longest))
    room -= max((len(each.split()) for each in by_path), default=0)
    by_host = [each for test, values in of_hosts for each in _conditions(test, values, room)]
    return [" ".join([*host, *path]) for host in _each(by_host) for path in _each(by_path)]


def _conditions(test: str, values: Sequence[str], room: int) -> List[str]:
    parts = _parts(values, room - len(f"{{ {test} }}".split()))
    return [f"{{ {test} {' '.join(part)} }}" for part in parts]


def _each(conditions: Sequence[str]) -> List[List[str]]:
    return [[each] for each in conditions] or [[]]


def _parts(values: Sequence[str], at_most: int) -> List[Sequence[str]]:
    return [values[at : at + at_most] for at in range(0, len(values), at_most)]
