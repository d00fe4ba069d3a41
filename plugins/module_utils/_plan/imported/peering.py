# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The `peers` section of an haproxy.cfg as the peers of the services' tables, where that does the same. Pure."""

from __future__ import annotations

import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from ..._agent.config.schema import Faults, read_list
from ..model import peers
from . import secrets
from .sections import Line, Section
from .work import Work

PLACE = re.compile(r"(?P<address>[0-9.]+|\[?[0-9A-Fa-f:]+\]?):(?P<port>\d{1,5})")
KIND, LOCAL = "peers", "localpeer"


class Peers(NamedTuple):
    """Who tells whom, at one port."""

    section: Section
    port: int
    members: List[Dict[str, Any]]

    @property
    def variables(self) -> Dict[str, Any]:
        return {"haproxy_peers": self.members, "haproxy_peers_port": self.port}


def read(sections: Sequence[Section]) -> Optional[Peers]:
    """Return the peers; None where there are none, or more than a name, an address and one port for all of them."""
    found = [each for each in sections if each.kind == KIND]
    if len(found) != 1 or not found[0].lines:
        return None
    plain = [line.words for line in found[0].lines if line.keyword == "peer" and len(line.words) == 3]
    places = [PLACE.fullmatch(words[2]) for words in plain]
    ports = {place["port"] for place in places if place}
    if len(plain) < len(found[0].lines) or not all(places) or len(ports) > 1:
        return None
    members = [
        {"name": words[1], "address": place["address"].strip("[]")} for words, place in zip(plain, places) if place
    ]
    faults: Faults = []
    read_list(peers.PEER, members, peers.SECTION, faults)
    return None if faults else Peers(found[0], int(ports.pop()), members)


def without(sections: Sequence[Section], told: Optional[Peers]) -> List[Section]:
    """Return the sections with tables whose words say nothing of the peers; their texts still do."""
    return [
        each._replace(lines=tuple(_without(line, told.section.name) for line in each.lines)) if told else each
        for each in sections
    ]


def _without(line: Line, name: str) -> Line:
    at = line.words.index(KIND) if line.keyword == "stick-table" and KIND in line.words else len(line.words)
    is_theirs = line.words[at + 1 : at + 2] == (name,)
    return line._replace(words=(*line.words[:at], *line.words[at + 2 :])) if is_theirs else line


def tell(work: Work, told: Optional[Peers]) -> None:
    """Have the services tell their tables to the peers of the file."""
    if told and work.with_tables():
        work.variables.update(told.variables)
        work.expressed.append(told.section)
        whose = "with the members of a pair or haproxy_peers, by their names in the inventory"
        section = f"{told.section.title}, line {told.section.number}"
        work.lost.append(f"{section}, is left out: the role has its own, {whose}.")


def has_all(told: Peers, kept: Sequence[Any]) -> bool:
    """Return whether no line that is kept names the peers.

    :param kept: services and variables
    """
    named = re.compile(rf"\b{KIND}\s+{re.escape(told.section.name)}(?![\w.:-])")
    return not any(map(named.search, secrets.texts([*kept])))
