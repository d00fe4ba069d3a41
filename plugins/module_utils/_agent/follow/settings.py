# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The settings of ``follow``: typed, complete, immutable. Times are microseconds."""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

from .hosts import RESERVED

MILLION = 1_000_000

IPV4, IPV6 = "ipv4", "ipv6"
FAMILIES = (IPV4, IPV6)
FIRST, LAST = "first", "last"  # of several addresses
STATUS_SOCKET = "/run/onprem-lb-follow/status.sock"


class Server(NamedTuple):
    """A node as a server of the balancer."""

    name: str
    address: str


class Api(NamedTuple):
    """How to reach the API server. Files are read anew for each connection, because certificates and tokens rotate."""

    servers: Tuple[str, ...]  # URLs, the local API server first
    ca: str = ""  # a file of the trusted authorities; the system's if empty
    certificate: str = ""  # the client's, with its key
    key: str = ""  # in the certificate's file if empty
    token: str = ""  # a file with a bearer token, instead of a certificate
    server_name: str = ""  # that the certificate is for; the URL's host if empty
    timeout: int = 5 * MILLION  # for a connection, and for each answer but that of a watch


class Nodes(NamedTuple):
    """Which nodes are servers, and at which address."""

    label: str = "node-role.kubernetes.io/control-plane"
    families: Tuple[str, ...] = (IPV4,)  # the first one of which a node has an address
    networks: Tuple[str, ...] = ()  # the machine networks, whose addresses are preferred
    of_several: str = FIRST  # which of several addresses counts: as in Kubernetes, or LAST as in OpenShift
    vips: Tuple[str, ...] = ()  # which are nobody's address
    balancers: Tuple[str, ...] = ()  # neither are these: the addresses of balancers that are no nodes
    not_ready_for: int = 60 * MILLION


class Target(NamedTuple):
    """A backend of HAProxy or a service of the proxy, whose servers are the nodes."""

    name: str
    port: int = 0  # that of its first server if 0
    options: str = ""  # of HAProxy's server lines; those of its first server if empty
    fallback: str = ""  # a second backend of HAProxy's with the same servers, if its file has that
    label: str = ""  # of the nodes that are its servers; that of `Nodes` if empty


class Haproxy(NamedTuple):
    """A running HAProxy and its file."""

    backends: Tuple[Target, ...]
    config: str = "/etc/haproxy/haproxy.cfg"
    socket: str = "/run/haproxy/admin.sock"
    program: str = "/usr/sbin/haproxy"
    reload: Tuple[str, ...] = ()  # for what its runtime API refuses
    loaded: str = ""  # the record of the file that it has loaded, if its unit writes one


class Proxy(NamedTuple):
    """A running proxy of the agent, and its file."""

    services: Tuple[Target, ...]
    config: str = "/etc/onprem-lb-agent/proxy.json"
    socket: str = "/run/onprem-lb-proxy/status.sock"


class Hosts(NamedTuple):
    """The files with the nodes' names for this host's resolver."""

    domain: str  # that of the nodes
    file: str = "/etc/onprem-lb-resolver/hosts"
    local: str = "/etc/onprem-lb-resolver/local"  # the names alone, for dnsmasq; not written if empty
    reserved: Tuple[str, ...] = RESERVED  # the names that no node may have


class Settings(NamedTuple):
    """All of it."""

    api: Api
    nodes: Nodes = Nodes()
    haproxy: Optional[Haproxy] = None
    proxy: Optional[Proxy] = None
    drain_for: int = 300 * MILLION  # how long sessions with a server that leaves may last
    state_file: str = "/var/lib/onprem-lb-follow/servers.json"
    status_socket: str = STATUS_SOCKET
    hosts: Optional[Hosts] = None
