# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the API server says of a node, and the address at which it is a server. Pure."""

from __future__ import annotations

import ipaddress
import json
import re
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Tuple, Union

from ..config import fields
from .settings import FAMILIES, IPV6, LAST, Nodes

Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]

# Where OVN-Kubernetes lists the addresses of a node, the newer annotation first.
ANNOTATIONS = ("k8s.ovn.org/host-cidrs", "k8s.ovn.org/host-addresses")
EXCLUDED = ("onprem.lb/server", "false")  # the label of a node that is to be no server
NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")  # a DNS subdomain, RFC 1123


class Malformed(Exception):
    """What the API server has sent is no node; the text says why."""


class Node(NamedTuple):
    """What counts of a node."""

    name: str
    internal: Tuple[str, ...] = ()  # its InternalIPs
    annotated: Tuple[str, ...] = ()  # its addresses as OVN-Kubernetes has annotated them
    ready: bool = False
    labels: Mapping[str, str] = {}

    @property
    def excluded(self) -> bool:
        return self.labels.get(EXCLUDED[0]) == EXCLUDED[1]


def read(document: Any) -> Node:
    """Return a node from its JSON. Raises Malformed."""
    metadata, status = _mapping(document, "metadata"), _mapping(document, "status")
    name = metadata.get("name")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise Malformed("a node without a name")
    annotations = _mapping(metadata, "annotations")
    annotated = next((annotations[key] for key in ANNOTATIONS if annotations.get(key)), "[]")
    labels = {key: value for key, value in _mapping(metadata, "labels").items() if isinstance(value, str)}
    return Node(name, tuple(_internal(status)), tuple(_annotated(annotated)), _ready(status), labels)


def version(document: Any) -> str:
    """Return the resourceVersion of an object or a list; '' if it has none."""
    found = _mapping(document, "metadata").get("resourceVersion")
    return found if isinstance(found, str) else ""


def candidates(node: Node, about: Nodes) -> List[str]:
    """Return the addresses at which a node may be a server, the best first; none if none fits.

    Of each family: the InternalIPs in the machine networks, then the other InternalIPs, then the annotated addresses in
    the machine networks. Of several the first counts in Kubernetes (GetNodeHostIPs), the last in OpenShift.
    """
    networks = [ipaddress.ip_network(each) for each in about.networks]
    nobodys = {ipaddress.ip_address(each) for each in (*about.vips, *about.balancers)}
    found: List[str] = []
    for family in about.families:
        number = 6 if family == IPV6 else 4
        internal = [each for each in _usable(node.internal, number) if each not in nobodys]
        annotated = [each for each in _usable(node.annotated, number) if each not in nobodys]
        for group in (_inside(internal, networks), internal, _inside(annotated, networks)):
            found += map(str, reversed(group) if about.of_several == LAST else group)
    return list(dict.fromkeys(found))


def own(node: Node, about: Nodes) -> List[str]:
    """Return every address that the API server says a node has, whatever rule chooses it."""
    nobodys = {ipaddress.ip_address(each) for each in (*about.vips, *about.balancers)}
    texts = (*node.internal, *node.annotated)
    return [str(each) for number in (4, 6) for each in _usable(texts, number) if each not in nobodys]


def addresses(node: Node, about: Nodes) -> List[str]:
    """Return the addresses of a node, at most one of each family."""
    return [each for family in FAMILIES for each in candidates(node, about._replace(families=(family,)))[:1]]


def _inside(addresses: List[Address], networks: List[Any]) -> List[Address]:
    return [each for each in addresses if any(each in network for network in networks)]


def _usable(texts: Tuple[str, ...], number: int) -> Iterator[Address]:
    """Yield the addresses of a family at which another host can be reached. Nobody has checked what a node says."""
    for text in texts:
        written, wrong = fields.address(text.partition("/")[0])
        found = None if wrong else ipaddress.ip_address(written)
        if found and found.version == number and fields.reachable(found) and not found.is_link_local:
            yield found


def _internal(status: Dict[str, Any]) -> Iterator[str]:
    for each in _mappings(status, "addresses"):
        if each.get("type") == "InternalIP" and isinstance(each.get("address"), str):
            yield each["address"]


def _annotated(text: Any) -> Iterator[str]:
    """Yield addresses from a list in JSON; an annotation that is none has none."""
    try:
        found = json.loads(text) if isinstance(text, str) else []
    except (ValueError, RecursionError):
        found = []
    for each in found if isinstance(found, list) else []:
        if isinstance(each, str):
            yield each


def _ready(status: Dict[str, Any]) -> bool:
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in _mappings(status, "conditions"))


def _mapping(document: Any, key: str) -> Dict[str, Any]:
    found = document.get(key) if isinstance(document, dict) else None
    return found if isinstance(found, dict) else {}


def _mappings(document: Dict[str, Any], key: str) -> List[Dict[str, Any]]:
    found = document.get(key)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
