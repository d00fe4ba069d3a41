# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The names of nodes as a resolver reads them: a hosts file, and the names that it must not ask others for. Pure."""

from __future__ import annotations

from typing import Iterable, Iterator, List, Mapping, Sequence, Tuple

MARK = "# Managed by Ansible, onprem.lb.resolver; written by `agent follow` where a cluster is followed."
RESERVED = ("api", "api-int", "apps")  # what a cluster's own records begin with, and no node may be called
LOCALHOST = "localhost"  # neither may one be called so, RFC 6761 section 6.3

Nodes = Mapping[str, Sequence[str]]  # the addresses of each node, by its name


def hosts(nodes: Nodes, domain: str, reserved: Iterable[str] = RESERVED) -> str:
    """Return the hosts file: each address with the fully qualified name and the short one."""
    named = _named(nodes, domain, reserved)
    lines = [f"{address} {' '.join(names)}" for names, addresses in named for address in addresses]
    return "\n".join([MARK, *lines, ""])


def local(nodes: Nodes, domain: str, reserved: Iterable[str] = RESERVED) -> str:
    """Return dnsmasq's ``servers-file``: a name without an address of a family has an empty answer for it.

    Without this dnsmasq asks its upstreams for that family, and a name server that does not answer delays the node.
    """
    lines = [f"server=/{'/'.join(names)}/" for names, _addresses in _named(nodes, domain, reserved)]
    return "\n".join([MARK, *lines, ""])


def _named(nodes: Nodes, domain: str, reserved: Iterable[str]) -> Iterator[Tuple[List[str], List[str]]]:
    """Yield the names and the addresses of each node, in the order of the names."""
    taken = {*reserved, LOCALHOST}
    for name in sorted(nodes):
        names = _names(name, domain)
        if nodes[name] and not (names[0].endswith(f".{domain}") and _label(names[0], domain) in taken):
            yield names, sorted(nodes[name])


def _names(name: str, domain: str) -> List[str]:
    """Return the full and the short name. A node may be called by either; one of another domain has one name."""
    short = name[: -len(domain) - 1] if name.endswith(f".{domain}") else name
    return [name] if "." in short else [f"{short}.{domain}", short]


def _label(name: str, domain: str) -> str:
    """Return the part of a name that is directly below the domain."""
    return name[: -len(domain) - 1].rpartition(".")[2]
