# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The peers of HAProxy: the members tell each other what their stick tables have, so that a failover keeps it. Pure.

A host alone is its own peer: so an old process passes its tables on to the new one at a reload. HAProxy finds itself
among the peers by a name, which is usually the host's own; here it is that of the inventory.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

from ..._agent.config.schema import Faults, Field, integer, read_list, repeated
from ..._agent.proxy import config, rules
from ..._agent.proxy.rules import Claim
from ..._agent.proxy.settings import places
from ..._shared import quoting
from . import stick, values
from .raw_binds import is_loopback
from .raw_lines import SECTION as SECTION_OF
from .services import backends, listeners

SECTION = "haproxy_peers"
PORT = 10000
PORT_FIELD = Field(integer(0, 65535, "a port (0 for none)"), PORT)
ALONE = "127.0.0.1"
LOCAL_PEER = re.compile(r"\s*localpeer\s")

PEER = {
    "name": Field(values.quotable(quoting.haproxy), required=True),
    "address": Field(config.server_address, required=True),
}


def has_tables(services: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a service has something to tell peers.

    :param services: as `read_services` returns them
    """
    return any(stick.tables(service, [each for _place, each in backends({**service}, "")]) for service in services)


def read(
    given: Any,
    services: Sequence[Mapping[str, Any]],
    tuning: Mapping[str, Any],
    host: str,
    addresses: Sequence[Mapping[str, Any]] = (),
) -> Dict[str, Any]:
    """Return ``{peers, faults}``: the peers are ``{local, members, port}``, or None where nothing is to be told.

    :param given: the variable `haproxy_peers`
    :param host: its name; '' where it is not known
    :param addresses: those of this host, as `host_info` returns them; none where they are not known
    """
    faults: Faults = []
    members = read_list(PEER, given, SECTION, faults)
    faults += [] if faults else [*_of_members(members, host, [each["address"] for each in addresses])]
    port = tuning["peers_port"]
    if faults or not port or not has_tables(services):
        return {"peers": None, "faults": faults}
    for at, line in enumerate(tuning["global_lines"], 1):
        if LOCAL_PEER.match(line):
            faults.append(f"haproxy_global_lines: line {at} is a localpeer, and this host is {host}: leave it out.")
    local = host or SECTION
    faults += _of_own_sections(tuning["extra_lines"], local)
    found = {"local": local, "members": members or [{"name": local, "address": ALONE}], "port": port}
    return {"peers": found, "faults": faults}


def _of_members(members: Sequence[Mapping[str, Any]], host: str, addresses: Sequence[str]) -> Iterator[str]:
    for value in repeated([each["address"] for each in members]):
        yield f"{SECTION} has the address {value} twice: name each balancer once."
    own = [each["address"] for each in members if each["name"] == host]
    if members and host and not own:
        yield f"{SECTION} lacks {host}: add it with its own address, or leave all of them out."
    for address in own:  # haproxy listens there: it tests a configuration without that, and then could not start
        if addresses and address not in addresses:
            yield f"{SECTION} has {address} for {host}, which has no such address: name one that it has."


def _of_own_sections(lines: Sequence[str], local: str) -> Iterator[str]:
    """Refuse the user's own peers that HAProxy would leave out, as the host has another name among them."""
    names: Dict[str, List[str]] = {}
    section = ""
    for words in map(str.split, lines):
        if SECTION_OF.match(" ".join(words)):
            section = "".join(words[1:2]) if words[0] == "peers" else ""
            names.update({section: []} if section else {})
        elif section and words[:1] in (["peer"], ["server"]):
            names[section] += words[1:2]
    for section, known in names.items():
        if section == SECTION:
            yield f"haproxy_extra_lines have a section 'peers {SECTION}', which the services have, too: rename yours."
        elif local not in known:
            yield (
                f"haproxy_extra_lines have a section 'peers {section}' without a peer {local}, as this host is called "
                "where a service has a stick table: name its peer so, or set haproxy_peers_port to 0."
            )


def listening(peers: Optional[Mapping[str, Any]], name: str) -> List[Dict[str, Any]]:
    """Return where a host listens for its peers, as `port_conflicts` takes it.

    :param peers: as `read` returns them
    :param name: of the host
    """
    own = [each["address"] for each in peers["members"] if each["name"] == name] if peers else []
    return [{"name": SECTION, "port": peers["port"], "bind": own}] if peers and own else []


def clashes(peers: Optional[Mapping[str, Any]], services: Sequence[Mapping[str, Any]], others: List[Claim]) -> Faults:
    """Return a sentence for each other listener at the port: a firewall would let its clients in to the peers, too.

    :param others: what listens besides the services
    """
    addresses = [each["address"] for each in peers["members"]] if peers else []
    own = places(addresses, peers["port"]) if peers else []
    every = [*rules.claims(listeners([{**each} for each in services]), [], None), *others]
    meeting = [
        each
        for each in every
        if any(each.place.overlaps(one) for one in own)
        or (own and each.place.port == own[0].port and not is_loopback(each.place))
    ]
    return [
        f"haproxy_peers_port is {each.place.port}, where {each.owner} listens: choose another port." for each in meeting
    ]


def never_limited(services: Sequence[Dict[str, Any]], addresses: Sequence[str]) -> None:
    """Exempt addresses from each limit: from these the members ask whether a service answers."""
    for service in services:
        limit = service["rate_limit"]
        if limit:
            limit["except"] = list(dict.fromkeys([*limit["except"], *addresses]))
