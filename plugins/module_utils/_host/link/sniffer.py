# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Captures the VRRP messages on a link. It never sends.

Reading packets is pure; only ``InterfaceSocket`` touches a socket. It is a packet socket: a raw one of protocol 112
would receive neither what this host itself sends, nor the multicast groups without joining them, which sends a report.

It cannot capture what a switch does not forward to this host: unicast between two others, and ff02::12 with MLD
snooping.
"""

from __future__ import annotations

import fcntl
import ipaddress
import socket
import struct
import time
from typing import Any, Callable, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from ..._agent.config.schema import number
from ..._agent.net import bpf
from ..._agent.net.ip import IPV4, IPV6, read
from ..._agent.net.linux import PACKET_OUTGOING
from ..._agent.vrrp.core import packet
from ..._shared.vrrp_routers import LinkView, Observation

FRAGMENT = "fragment"
MAX_MESSAGE = 65536
SECONDS = number(0.1, 3600, " seconds")

# From <linux/if_ether.h>, <linux/if_packet.h> and <linux/sockios.h>; Python's socket module does not have them.
ETH_P_ALL = 0x0003
SOL_PACKET = 263
PACKET_ADD_MEMBERSHIP, PACKET_AUXDATA = 1, 8
PACKET_MR_MULTICAST = 0
TP_STATUS_VLAN_VALID = 1 << 4
SIOCGIFFLAGS = 0x8913
IFF_UP, IFF_LOOPBACK, IFF_RUNNING = 0x1, 0x8, 0x40

# The Ethernet addresses of 224.0.0.18 (RFC 1112, 6.4) and ff02::12 (RFC 2464, 7).
GROUPS = (bytes.fromhex("01005e000012"), bytes.fromhex("333300000012"))

# struct packet_mreq, and ifreq.
_MEMBERSHIP, _FLAGS = struct.Struct("=iHH8s"), struct.Struct("=16sH22x")
# struct tpacket_auxdata: its status and the VLAN's tag.
_AUXDATA = struct.Struct("=I12xHH")
# Tests the packet's protocol, which Linux provides at SKF_AD_OFF, then the byte of the header that says VRRP. Without
# this filter Python would see all traffic of a balancer.
_SKF_AD_OFF = 0xFFFFF000
VRRP_ONLY = (
    (bpf.LOAD_HALF, 0, 0, _SKF_AD_OFF),
    (bpf.EQUAL, 0, 2, IPV4),
    (bpf.LOAD_BYTE, 0, 0, 9),
    (bpf.EQUAL, 3, 4, packet.PROTOCOL),
    (bpf.EQUAL, 0, 3, IPV6),
    (bpf.LOAD_BYTE, 0, 0, 6),
    (bpf.EQUAL, 0, 1, packet.PROTOCOL),
    (bpf.RETURN, 0, 0, bpf.ALL_OF_IT),
    (bpf.RETURN, 0, 0, 0),
)


class CannotListen(Exception):
    """An interface cannot be listened on; the text is one sentence that says why."""


class Frame(NamedTuple):
    """A packet without its Ethernet header, and what the kernel read from that."""

    data: bytes
    protocol: int
    mac: bytes
    own: bool
    vlan: int = 0


def observe(frame: Frame, interface: str, at: float) -> Optional[Observation]:
    """Return the VRRP message in a frame, or None if there is none.

    A frame that is tagged for a VLAN belongs to another link, which has its own interface. A tag that only sets a
    priority (VLAN 0, IEEE 802.1Q) does not change the link.
    """
    datagram = None if frame.vlan else read(frame.data, frame.protocol)
    if datagram is None:
        return None
    source, destination, data = datagram.source, datagram.destination, datagram.message
    message: Union[packet.Advertisement, packet.Discard]
    if datagram.whole and ipaddress.ip_address(destination).is_multicast:
        message = packet.decode(data, source, destination, datagram.hop_limit)
    elif datagram.whole:
        # Like keepalived it does not check the hop limit of unicast: keepalived sends 64 over IPv6.
        message = packet.decode(data, source, destination)
    else:
        message = packet.Discard(FRAGMENT, "a fragment received, and no VRRP router has reason to send one")
    return Observation(at, interface, frame.mac.hex(":"), source, destination, message, frame.own)


def vlan_of(ancillary: Iterable[Tuple[int, int, bytes]]) -> int:
    """Return the VLAN that the kernel took from a frame's tag, 0 without one."""
    for level, kind, data in ancillary:
        if (level, kind) == (SOL_PACKET, PACKET_AUXDATA) and len(data) >= _AUXDATA.size:
            status, tag, _protocol = _AUXDATA.unpack_from(data)
            return tag & 0x0FFF if status & TP_STATUS_VLAN_VALID else 0
    return 0


def open_socket(interfaces: Sequence[str]) -> Any:
    """Return a socket that receives the VRRP messages of every link, and on these interfaces the two multicast groups.

    ``read`` ignores what arrives before the filter is attached.
    """
    try:
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
    except PermissionError:
        raise CannotListen(
            "There is no permission to open raw sockets: use become, or give the container NET_RAW."
        ) from None
    try:
        bpf.attach(sock, VRRP_ONLY)
        sock.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        for interface in interfaces:
            index = socket.if_nametoindex(interface)
            for group in GROUPS:
                membership = _MEMBERSHIP.pack(index, PACKET_MR_MULTICAST, len(group), group)
                sock.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, membership)
    except OSError as error:
        sock.close()
        raise CannotListen(f"Nothing can be heard on {', '.join(interfaces)}: {error}.") from None
    return sock


class InterfaceSocket:
    """Receives on some interfaces. Never sends."""

    def __init__(self, interfaces: Sequence[str], opener: Callable[[Sequence[str]], Any] = open_socket) -> None:
        self.interfaces = interfaces
        self._socket = opener(interfaces)

    def receive(self, seconds: float) -> Optional[Tuple[str, Frame]]:
        """Return the next frame and its interface, or None if there is none in time or it came on another interface."""
        self._socket.settimeout(seconds)
        try:
            data, ancillary, _flags, address = self._socket.recvmsg(MAX_MESSAGE, socket.CMSG_SPACE(_AUXDATA.size))
        except socket.timeout:
            return None
        interface, protocol, kind, _hardware, mac = address
        if interface not in self.interfaces:
            return None
        return interface, Frame(data, protocol, mac, kind == PACKET_OUTGOING, vlan_of(ancillary))

    def __enter__(self) -> InterfaceSocket:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._socket.close()


def listen(
    interfaces: Sequence[str],
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
    opener: Callable[[Sequence[str]], Any] = InterfaceSocket,
) -> Iterator[Observation]:
    """Yield each VRRP message as it arrives, for some seconds, timed from the start."""
    with opener(interfaces) as sock:
        begin = now = clock()
        while now - begin < seconds:
            received = sock.receive(begin + seconds - now)
            now = clock()
            observation = received and observe(received[1], received[0], now - begin)
            if observation:
                yield observation


def collect(interface: Optional[str], seconds: float) -> LinkView:
    """Return what is captured on an interface, or on every one that is up, in some seconds.

    :raises CannotListen: if that is impossible
    """
    wrong = SECONDS(seconds)[1]
    if wrong:
        raise CannotListen(f"seconds is {seconds}: {wrong}")
    view = LinkView()
    for observation in listen(choose_interfaces(interface), seconds):
        view.add(observation)
    return view


def flags_of(interface: str) -> int:
    """Return an interface's flags. They come from the kernel, because /sys may be another namespace's."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        answer = fcntl.ioctl(any_socket, SIOCGIFFLAGS, _FLAGS.pack(interface.encode(), 0))
    return int(_FLAGS.unpack(answer)[1])


def has_carrier(interface: str, flags: Callable[[str], int] = flags_of) -> bool:
    """Whether an interface is up, and something is at the other end of its cable.

    :raises OSError: if there is no such interface
    """
    return flags(interface) & (IFF_UP | IFF_RUNNING) == IFF_UP | IFF_RUNNING


def choose_interfaces(
    wanted: Optional[str],
    known: Callable[[], List[Tuple[int, str]]] = socket.if_nameindex,
    flags: Callable[[str], int] = flags_of,
) -> List[str]:
    """Return the wanted interface, or every one that is up except lo.

    :raises CannotListen: if there is none, or it is down
    """
    names = [name for _index, name in known()]
    if wanted and wanted not in names:
        raise CannotListen(f"There is no interface {wanted}: there are {', '.join(names)}.")
    if wanted:
        if not flags(wanted) & IFF_UP:
            raise CannotListen(f"Interface {wanted} is down, so nothing can be heard on it: set it up first.")
        return [wanted]
    found = [name for name in names if flags(name) & (IFF_UP | IFF_LOOPBACK) == IFF_UP]
    if not found:
        raise CannotListen("No interface but lo is up, so nothing can be heard: set one up first.")
    return found
