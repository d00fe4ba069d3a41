# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Compares a frr.conf of this collection with what FRR runs, and says which sessions the difference ends. Pure.

The role writes each line as ``show running-config`` does, so that lines can be compared as they are.
"""

from __future__ import annotations

import re
from typing import Dict, Iterable, Iterator, List, NamedTuple, Set, Tuple

from ..._shared import mark

EXTRA = "! Lines of frr_extra_lines"  # the role's template writes it; what follows may look otherwise when it runs
OWN = re.compile(r"(router |bfd$|route-map|ip prefix-list|ipv6 prefix-list)")  # the beginnings that the role writes
PROTOCOL = re.compile(r"router ")
NAMED = re.compile(r"(route-map|(ip|ipv6) prefix-list) onprem-")
ENDS = re.compile(r"(!|#|exit(-[\w-]+)?$|end$|Building configuration|Current configuration)")
NOT_COMMANDS = re.compile(r"\s*(Building configuration|Current configuration|end$)")  # of `show running-config`
# Not of this collection: to frr-reload a line that the file lacks is one to undo. With `no ip forwarding` it would make
# a router of this host, because FRR shows that line where the kernel does not forward.
CARRIED = re.compile(r"(no ip forwarding|no ipv6 forwarding|hostname|domainname|password|enable password|username)\b")
NEIGHBOUR = re.compile(r"(?:no )?neighbor (\S+) (.+)")
# What changes a neighbour's session without ending it. Of what is not here it is assumed that it ends it.
KEEPS = re.compile(r"(timers|description|route-map|prefix-list|filter-list|send-community|advertisement-interval)\b")
OF_ALL = re.compile(r"bgp router-id\b")  # what ends all sessions


class Line(NamedTuple):
    """A line, and the lines of the blocks around it."""

    around: Tuple[str, ...]
    text: str

    @property
    def root(self) -> str:
        return (*self.around, self.text)[0]


def lines(text: str) -> List[Line]:
    """Return the lines of a file that is indented as FRR does it, without comments and ends of blocks."""
    found: List[Line] = []
    blocks: List[Tuple[int, str]] = []
    for raw in text.splitlines():
        words = " ".join(raw.split())
        if not words or ENDS.match(words):
            continue
        depth = len(raw) - len(raw.lstrip())
        while blocks and blocks[-1][0] >= depth:
            blocks.pop()
        found.append(Line(tuple(block for _depth, block in blocks), words))
        blocks.append((depth, words))
    return found


def own_part(text: str) -> Tuple[str, bool]:
    """Return the part of a file that the role has rendered, and whether raw lines of the user follow."""
    own, mark, _extra = text.partition(f"\n{EXTRA}\n")
    return f"{own}\n", bool(mark)


def differences(wanted: str, running: str) -> List[str]:
    """Return what FRR lacks of a file, and what it has beyond it, each in words.

    What raw lines may have brought is not counted as too much, unless it is in a list or a map of the role.
    """
    own, has_extra = own_part(wanted)
    want, have = lines(own), lines(running)
    theirs = NAMED if has_extra else OWN
    lacks = [f"lacks {_words(line)}" for line in _without(want, have)]
    return lacks + [f"has {_words(line)}" for line in _without(have, want) if theirs.match(line.root)]


def _without(some: Iterable[Line], others: Iterable[Line]) -> List[Line]:
    known = set(others)
    return [line for line in some if line not in known]


def _words(line: Line) -> str:
    return " / ".join((*line.around, line.text))


def of_others(running: str, file: str, path: str) -> List[str]:
    """Return a sentence for each protocol that FRR runs, and that neither this collection nor a file has configured.

    :param file: the text of the file at the path; a foreign one is reported for itself
    """
    saved = {line.text for line in lines(file)}
    found = [line.text for line in lines(running) if not line.around and PROTOCOL.match(line.text)]
    return [
        f"FRR runs `{each}`, which {path} does not have and which would be lost: remove it, or set frr_adopt to true."
        for each in found
        if each not in saved and not mark.is_marked(file)
    ]


def carried(wanted: str, running: str) -> List[str]:
    """Return the lines that frr-reload must find in its file beside those of the file, or it would undo them."""
    given = {line.text for line in lines(wanted)}
    return [
        line.text for line in lines(running) if not line.around and CARRIED.match(line.text) and line.text not in given
    ]


def resets(wanted: str, running: str) -> List[str]:
    """Return the peers whose sessions end when FRR goes over from one configuration to the other."""
    before, after = _sessions(running), _sessions(wanted)
    if before.of_all != after.of_all:
        return sorted(before.peers)
    return sorted(peer for peer, known in before.peers.items() if _is_reset(known, after.peers.get(peer, set())))


def peers(text: str) -> List[str]:
    """Return the peers that a file has."""
    return sorted(_sessions(text).peers)


def _is_reset(before: Set[str], after: Set[str]) -> bool:
    """Whether a session ends. One that BFD is to watch goes on, one that it has watched may not."""
    return bool(before - after) or any(not line.endswith("bfd") and " bfd " not in line for line in after - before)


class Sessions(NamedTuple):
    of_all: List[str]  # what ends all sessions when it changes
    peers: Dict[str, Set[str]]  # of each what ends its session


def _sessions(text: str) -> Sessions:
    bgp = [line for line in lines(text) if line.root.startswith("router bgp ")]
    peers: Dict[str, Set[str]] = {}
    for peer, line in _of_neighbours(bgp):
        peers.setdefault(peer, set()).update([line] if line else [])
    return Sessions([line.text for line in bgp if not line.around or OF_ALL.match(line.text)], peers)


def _of_neighbours(bgp: Iterable[Line]) -> Iterator[Tuple[str, str]]:
    """Yield each neighbour, with a line of it that matters to its session, or nothing."""
    for line in bgp:
        found = NEIGHBOUR.match(line.text)
        if found:
            yield found[1], "" if KEEPS.match(found[2]) else _words(line)
