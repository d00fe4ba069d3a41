# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a balancer and a server load into nftables for direct return. Pure.

A balancer hashes the client's address and port, and gives the frame the MAC address of the bucket's owner, before the
kernel's own network stack sees it. It also sets its own MAC as the source, or switches would learn the client's at the
wrong port; and it looks only at frames for its own MAC, or frames that a switch floods would be passed on twice.

A server keeps what belongs to it: new connections, and packets of a socket that it has. The rest may belong to a
connection that began before a bucket moved. That packet gets a second chance: it is marked, and goes to the bucket's
other server. One that has no socket of it either returns it with another mark, for it may answer a SYN cookie, which
the owner's listener alone can judge. That one stays wherever it is, so none runs in circles, whatever tables the hosts
have. An older table, which knows the first mark only, keeps both.

A host may be both. What is its own then goes up to its network stack, and so does what another host has handed on to
it, as a server or as a balancer: two balancers may take each other for the owner, and a frame has no hop limit.

A balancer's own programs, such as a proxy of the same service, have connections, too: those that are older than the
table, and those of a service whose new connections are left to this host. A set has them, and they go up as well. As
conntrack does, it forgets one soon that is half open or closes, so that it has those that there are.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Collection, Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .buckets import Bucket, Server, table

BALANCER = "onprem_lb_direct"  # the tables' names
SERVER = "onprem_lb_second_chance"
SEED = 0x6C62  # of the hash; a fixed one, so that all hosts agree
SECOND_CHANCE = "0x3b"  # the DSCP that marks a packet, of those for local use (RFC 2474, 6)
RETURNED, RETURNED_SET = "ecn ce", "ecn set ce"  # mark one that comes back, besides
FAMILIES = {4: "ip", 6: "ip6"}
ADDRESS_TYPES = {"ip": "ipv4_addr", "ip6": "ipv6_addr"}
SYN = "tcp flags & (fin | syn | rst | ack) == syn"  # of a client
KEPT, KEPT_SHORTLY = "1d", "5m"  # after the last packet: one that is open, and one that is half open or closes
OWN_PER_BUCKET = 16  # connections that this host may have, for each bucket of a pool
COUNTED = {"packets": "", "attempts": "_attempts"}  # of each server; how the names of the counters end
MAPS = ("_macs", "_packets", "_attempts")  # the ends of their names; what else has elements is a set
NO_LETTER = re.compile(r"[^0-9a-z]")  # what a counter's name cannot have of an address


Place = Tuple[str, int]  # a VIP and a port


class Service(NamedTuple):
    """A service of a VIP, whose port is the same on its servers.

    :ivar vip: without a prefix length
    :ivar buckets: how many, the same number on every host
    :ivar group: services of different groups share no map, even while they have the same servers
    :ivar proxy_port: the port of this host to which a redirect leads connections; 0 without a redirect
    :ivar left: whether new connections are left to this host's own programs
    """

    vip: str
    port: int
    servers: Sequence[Server]
    buckets: int
    group: str = ""
    proxy_port: int = 0
    left: bool = False

    @property
    def place(self) -> Place:
        return self.vip, self.port

    @property
    def sockets(self) -> Sequence[Place]:
        """Return the local addresses of the connections that this host's own programs have of it."""
        return list(dict.fromkeys([self.place, (self.vip, self.proxy_port or self.port)]))

    @property
    def is_redirected(self) -> bool:
        return self.proxy_port not in (0, self.port)

    @property
    def family(self) -> str:
        return FAMILIES[ipaddress.ip_address(self.vip).version]


class Pool(NamedTuple):
    """The services that have the same servers, and so the same buckets.

    :ivar name: of its chains and maps
    """

    name: str
    family: str
    buckets: List[Bucket]
    services: List[Service]

    @property
    def owners(self) -> FrozenSet[str]:
        return frozenset(bucket.owner for bucket in set(self.buckets))

    @property
    def hashed(self) -> str:
        return f"jhash {self.family} saddr . tcp sport mod {len(self.buckets)} seed {SEED:#x}"

    @property
    def place(self) -> str:
        return f"{self.family} daddr . tcp dport"

    @property
    def connection(self) -> str:
        return f"{self.place} . {self.family} saddr . tcp sport"

    @property
    def is_handed_on(self) -> str:
        return f"{self.family} dscp {SECOND_CHANCE}"

    @property
    def entrances(self) -> List[str]:
        """Return the rules that lead to its chain."""
        return [f"{self.family} daddr {each.vip} tcp dport {each.port} goto {self.name}" for each in self.services]

    def counter(self, address: str) -> str:
        """Return the counter of a server's packets."""
        return f"{self.name}_{NO_LETTER.sub('_', address)}"


class Table(NamedTuple):
    """A balancer's table.

    :ivar structure: all of it as nft reads it, but what its maps and sets have
    :ivar elements: that: by the name of the map or set what each key has, '' in a set
    :ivar counters: the service and the server that each counter is of: (VIP, port, server's address)
    :ivar attempts: the same of the counters of packets that begin a connection
    :ivar places: of its services, each with its pool's name
    :ivar owners: of each place, the addresses of the servers that get new connections
    :ivar sockets: the places of the services, by the local address of a socket that a program of this host may have
    :ivar settling: the places that leave everything to this host
    """

    structure: str
    elements: Mapping[str, Mapping[str, str]]
    counters: Mapping[str, Sequence[Tuple[str, int, str]]]
    attempts: Mapping[str, Sequence[Tuple[str, int, str]]]
    places: Mapping[Place, str] = {}
    owners: Mapping[Place, FrozenSet[str]] = {}
    sockets: Mapping[Place, Sequence[Place]] = {}
    settling: FrozenSet[Place] = frozenset()

    @property
    def leaves(self) -> bool:
        """Whether it leaves new connections to this host."""
        return any(found for name, found in self.elements.items() if name.endswith("_left"))


def of_balancer(services: Sequence[Service], interface: str, macs: Mapping[str, str], own: str) -> Table:
    """Return the balancer's table.

    :param interface: to which clients send, and on whose link the servers are
    :param macs: the MAC address of each server that may get connections, by its address
    :param own: the balancer's own MAC address; a server that has it is this host
    """
    pools = _pools(services)
    entrances = [f"ether daddr != {own} accept", *(rule for pool in pools for rule in pool.entrances)]
    hook = f'ingress device "{interface}" priority filter'
    blocks = [block for pool in pools for block in _steering(pool, interface, macs, own)]
    elements = {name: each for pool in pools for name, each in _steered(pool, macs, own).items()}
    counters = {
        pool.counter(server.address): [(each.vip, each.port, server.address) for each in pool.services]
        for pool in pools
        for server in pool.services[0].servers
    }
    attempts = {f"{name}{COUNTED['attempts']}": keys for name, keys in counters.items()}
    structure = _file("netdev", BALANCER, [*blocks, _base_chain("ingress", hook, entrances)])
    places = {service.place: pool.name for pool in pools for service in pool.services}
    owners = {service.place: pool.owners for pool in pools for service in pool.services}
    return Table(structure, elements, counters, attempts, places, owners, _sockets(pools))


def whole(table: Table, keep: bool = False) -> str:
    """Return an nft file that replaces the balancer's table by this one.

    :param keep: whether connections stay noted that this host has. nft refuses that where a set or a chain of the same
        name is another one, and what the new table does not name stays, without a rule
    """
    added = "".join(command("add", name, found) for name, found in table.elements.items())
    if not keep:
        return table.structure + added
    flushed = (f"flush {'map' if name.endswith(MAPS) else 'set'} netdev {BALANCER} {name}\n" for name in table.elements)
    return table.structure.replace("delete table", "flush table", 1) + "".join(flushed) + added


def change(before: Table, after: Table) -> Optional[str]:
    """Return an nft file that makes one table the other, '' if they are the same, None if only ``whole`` can.

    The kernel replaces elements several times faster than the table, and the counters go on.
    """
    if before.structure != after.structure:
        return None
    commands = []
    for name, wanted in after.elements.items():
        found = before.elements[name]
        dropped = {key: "" for key, value in found.items() if wanted.get(key) != value}
        added = {key: value for key, value in wanted.items() if found.get(key) != value}
        commands += [command("delete", name, dropped), command("add", name, added)]
    return "".join(commands)


def removal() -> str:
    """Return an nft file that removes the balancer's table, if it is there."""
    return f"add table netdev {BALANCER}\ndelete table netdev {BALANCER}\n"


def removal_of_server() -> str:
    """Return an nft file that removes a server's tables, those that are there."""
    return "".join(f"add table {family} {SERVER}\ndelete table {family} {SERVER}\n" for family in FAMILIES.values())


def of_server(services: Sequence[Service], interface: str, own: Collection[str]) -> str:
    """Return an nft file that replaces a server's tables, one of each family.

    :param interface: on whose link the balancers and the other servers are
    :param own: this server's addresses
    """
    files = []
    for family in FAMILIES.values():
        pools = _pools([service for service in services if service.family == family])
        entrances = [f'iifname != "{interface}" accept', *(rule for pool in pools for rule in pool.entrances)]
        blocks = [block for pool in pools for block in _second_chance(pool, interface, own)]
        # What a redirect has translated is known after conntrack alone, which nobody else needs for this.
        redirected = any(service.is_redirected for pool in pools for service in pool.services)
        priority = "mangle" if redirected else "raw - 10"
        hook = _base_chain("prerouting", f"prerouting priority {priority}", entrances)
        files.append(_file(family, SERVER, [*blocks, hook]))
    return "".join(files)


def _steering(pool: Pool, interface: str, macs: Mapping[str, str], own: str) -> List[str]:
    """Return the counters, maps and sets of a pool, all of them empty, and its chain."""
    servers = [server.address for server in pool.services[0].servers]
    here = [address for address in servers if macs.get(address) == own]
    blocks = [f"    counter {pool.counter(address)}{end} {{ }}" for end in COUNTED.values() for address in servers]
    blocks += [_elements(f"map {pool.name}_macs", "mark : ether_addr")]
    blocks += [_elements(f"map {pool.name}_{counted}", "ether_addr : counter") for counted in COUNTED]
    blocks += _of_this_host(pool)
    if here:
        blocks += [_elements(f"set {pool.name}_here", "mark"), _elements(f"set {pool.name}_others", "ether_addr")]
    counted = f'counter name "{pool.counter(here[0])}"' if here else ""
    kept = [f"meta mark @{pool.name}_here {counted} meta mark set 0 accept"] if here else []
    rules = [
        *([f"{pool.is_handed_on} accept", f"ether saddr @{pool.name}_others accept"] if kept else []),
        f"{SYN} jump {pool.name}_new",
        f"{pool.place} @{pool.name}_settling accept",
        f"{pool.connection} @{pool.name}_own goto {pool.name}_to_host",
        f"meta mark set {pool.hashed}",
        *kept,
        f"ether saddr set {own} ether daddr set meta mark map @{pool.name}_macs",
        f"counter name ether daddr map @{pool.name}_packets",
        f"{SYN} counter name ether daddr map @{pool.name}_attempts",
        f'fwd to "{interface}"',
    ]
    return [*blocks, _chain(pool.name, rules)]


def _of_this_host(pool: Pool) -> List[str]:
    """Return the sets and the chains of the connections that this host has itself.

    A port that a client uses again is a new connection. One that does not fit into the set goes to the servers.
    """
    own, closing = f"@{pool.name}_own", f"@{pool.name}_closing"
    connection, place = pool.connection, f"{ADDRESS_TYPES[pool.family]} . inet_service"
    shortly = f"{{ {connection} timeout {KEPT_SHORTLY} }}"
    size = OWN_PER_BUCKET * len(pool.buckets)
    options = f"flags dynamic, timeout; timeout {KEPT}; size {size}; "
    new = [
        f"delete {own} {{ {connection} }} delete {closing} {{ {connection} }}",
        f"{pool.place} @{pool.name}_left add {own} {shortly} accept",
    ]
    to_host = [
        f"tcp flags & (fin | rst) != 0 update {closing} {shortly}",
        f"{connection} {closing} update {closing} {shortly} update {own} {shortly} accept",
        f"update {own} {{ {connection} }} accept",
    ]
    return [
        _elements(f"set {pool.name}_left", place),
        _elements(f"set {pool.name}_settling", place),
        _elements(f"set {pool.name}_own", f"{place} . {place}", options=options),
        _elements(f"set {pool.name}_closing", f"{place} . {place}", options=options),
        _chain(f"{pool.name}_new", new),
        _chain(f"{pool.name}_to_host", to_host),
    ]


def _sockets(pools: Sequence[Pool]) -> Dict[Place, List[Place]]:
    found: Dict[Place, List[Place]] = {}
    for service in (service for pool in pools for service in pool.services):
        for socket in service.sockets:
            found.setdefault(socket, []).append(service.place)
    return found


def _steered(pool: Pool, macs: Mapping[str, str], own: str) -> Dict[str, Dict[str, str]]:
    """Return the elements of a pool's maps and sets."""
    owners = [(str(number), macs[bucket.owner]) for number, bucket in enumerate(pool.buckets)]
    found = {f"{pool.name}_macs": {number: mac for number, mac in owners if mac != own}}
    servers = [server.address for server in pool.services[0].servers if server.address in macs]
    # Of two servers with one MAC the first one counts for both.
    for counted, end in COUNTED.items():
        found[f"{pool.name}_{counted}"] = {
            macs[address]: f'"{pool.counter(address)}{end}"' for address in reversed(servers) if macs[address] != own
        }
    found[f"{pool.name}_left"] = {element(*each.place): "" for each in pool.services if each.left}
    found[f"{pool.name}_settling"] = {}
    if any(macs[address] == own for address in servers):
        found[f"{pool.name}_here"] = {number: "" for number, mac in owners if mac == own}
        found[f"{pool.name}_others"] = {macs[address]: "" for address in servers if macs[address] != own}
    return found


def _second_chance(pool: Pool, interface: str, own: Collection[str]) -> List[str]:
    """Return the chains of a pool's packets, and of those of them that get a second chance, or come back from it.

    `socket` finds the connection's own socket first, then a listener. One that listens on every address has `wildcard`
    1, and a connection, whose own address is the VIP, 0. Without `wildcard` it is half open, or waits in TIME_WAIT.
    """
    others = [(number, other) for number, bucket in enumerate(pool.buckets) for other in [bucket.other(own)] if other]
    kind = f"mark : {ADDRESS_TYPES[pool.family]}"
    redirected = any(service.is_redirected for service in pool.services)
    to_other = f'dup to meta mark map @{pool.name}_others device "{interface}" counter drop'
    return [
        _elements(f"map {pool.name}_others", kind, (f"{number} : {other}" for number, other in others)),
        _chain(f"{pool.name}_return", [f"{pool.family} {RETURNED_SET}", to_other, "accept"]),
        _chain(
            f"{pool.name}_second_chance",
            [
                f"meta mark set {pool.hashed}",
                f"{pool.is_handed_on} goto {pool.name}_return",
                f"{pool.family} dscp set {SECOND_CHANCE}",
                to_other,
                "accept",
            ],
        ),
        _chain(
            pool.name,
            [
                *(["ct status dnat accept"] if redirected else []),  # the socket that has it has another port
                f"{pool.is_handed_on} {pool.family} {RETURNED} counter accept",
                "tcp flags & (syn | rst) == syn accept",
                "socket wildcard 0 accept",
                f"socket wildcard 1 goto {pool.name}_second_chance",
                "socket transparent 0 accept",
                f"goto {pool.name}_second_chance",
            ],
        ),
    ]


def _pools(services: Sequence[Service]) -> List[Pool]:
    """Return the pools of the services that have a server."""
    found: Dict[Tuple[object, ...], Pool] = {}
    for service in services:
        key = (service.family, service.buckets, tuple(sorted(service.servers)), service.group)
        if key not in found:
            buckets = table(service.servers, service.buckets)
            found[key] = Pool(f"servers_{len(found)}", service.family, buckets, [])
        found[key].services.append(service)
    return [pool for pool in found.values() if pool.buckets]


def element(*parts: object) -> str:
    """Return what nft calls a concatenation."""
    return " . ".join(map(str, parts))


def command(verb: str, name: str, elements: Mapping[str, str]) -> str:
    """Return what adds or deletes elements, '' if there are none."""
    listed = ", ".join(f"{key} : {value}" if value else key for key, value in elements.items())
    return f"{verb} element netdev {BALANCER} {name} {{ {listed} }}\n" if listed else ""


def _elements(name: str, kind: str, elements: Iterable[str] = (), options: str = "") -> str:
    listed = ", ".join(elements)
    return f"    {name} {{ type {kind}; {options}{f'elements = {{ {listed} }}; ' if listed else ''}}}"


def _base_chain(name: str, hook: str, rules: Sequence[str]) -> str:
    return _chain(name, [f"type filter hook {hook}; policy accept;", *rules])


def _chain(name: str, rules: Sequence[str]) -> str:
    return "\n".join([f"    chain {name} {{", *(f"        {rule}" for rule in rules), "    }"])


def _file(family: str, name: str, blocks: Sequence[str]) -> str:
    """One transaction replaces the table: no packet meets half of it."""
    whole = f"{family} {name}"
    return "\n".join([f"add table {whole}", f"delete table {whole}", f"table {whole} {{", *blocks, "}\n"])
