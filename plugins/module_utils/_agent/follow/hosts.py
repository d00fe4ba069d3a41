# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The names of nodes as a resolver reads them: a hosts file, and the names that it must not ask others for. Pure."""

from __future__ import annotations

import re
from typing import Dict, Iterable, Iterator, List, Mapping, Sequence, Tuple

MARK = "# Managed by Ansible, onprem.lb.resolver; written by `agent follow` where a cluster is followed."
RESERVED = ("api", "api-int", "apps")  # what a cluster's own records begin with, and no node may be called
LOCALHOST = "localhost"  # neither may one be called so, RFC 6761 section 6.3
LABEL = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)")  # RFC 1123, 2.1

Nodes = Mapping[str, Sequence[str]]  # the addresses of each node, by its name


def hosts(nodes: Nodes, domain: str, reserved: Iterable[str] = RESERVED) -> str:
    """Return the hosts file: each address with the fully qualified name and the short one."""
    named = _named(nodes, domain, reserved)
    lines = [f"{address} {' '.join(names)}" for names, addresses in named for address in addresses]
    return "\n".join([MARK, *lines, ""])


def local(nodes: Nodes, domain: str, reserved: Iterable[str] = RESERVED) -> str:
    """Return dnsmasq's ``servers-file``: a name without an address of a family has an empty answer for it.

    Without this dnsmasq asks its upstreams for that family, and a name server that does not answer delays the node.
    Each entry is a whole zone to dnsmasq, so there are none of short names: ``dev`` would be the top-level domain.
    """
    lines = [f"server=/{names[0]}/" for names, _addresses in _named(nodes, domain, reserved)]
    return "\n".join([MARK, *lines, ""])


def refusal(name: str, domain: str, reserved: Iterable[str] = RESERVED) -> str:
    """Return why a node gets no name, as the end of a sentence; '' where it gets one.

    Its name becomes one of its domain alone: whoever may add a node must not answer for the names of others.
    """
    own = label(name, domain)
    if own == domain:
        return "it is the domain itself"
    if "." in own:
        return f"it is not directly below {domain}"
    if not LABEL.fullmatch(own):
        return "its part before the domain is no label of DNS"
    return "that name is another record's" if own in {*reserved, LOCALHOST} else ""


def label(name: str, domain: str) -> str:
    """Return the name of a node within its domain. It may be called by that, or by the whole name."""
    lower = name.lower()
    return lower[: -len(domain) - 1] if lower.endswith(f".{domain}") else lower


def nameless(nodes: Iterable[str], domain: str, reserved: Iterable[str] = RESERVED) -> Dict[str, str]:
    """Return the nodes that get no name, each with the reason."""
    refused = {name: refusal(name, domain, reserved) for name in sorted(nodes)}
    return {name: why for name, why in refused.items() if why}


def said(refused: Mapping[str, str]) -> str:
    """Return a sentence of the nodes that get no name, each with the reason."""
    return f"The resolver gives no name to {', '.join(f'{name} ({why})' for name, why in refused.items())}."


def _named(nodes: Nodes, domain: str, reserved: Iterable[str]) -> Iterator[Tuple[List[str], List[str]]]:
    """Yield the whole and the short name, and the addresses, of each node that gets a name, in the order of names."""
    for name in sorted(nodes):
        if nodes[name] and not refusal(name, domain, reserved):
            own = label(name, domain)
            yield [f"{own}.{domain}", own], sorted(nodes[name])
