# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The agent's sockets on a real link: how others read its messages, and which messages it receives."""

from __future__ import annotations

import contextlib
import errno
import json
import select
import sys

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import sockets
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.ip import Datagram
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.network import Network
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import packet
from support.netns.adverts import ADVERTS, keepalived, path_of
from support.netns.captures import GOOD, dissect
from support.netns.links import VIP, VIP6, temporary_link
from support.netns.namespaces import inside
from support.netns.recorder import open_capture
from support.waiting import LIMIT_S, until

V2 = packet.Advertisement(2, 51, 100, packet.SECOND, (VIP,), packet.PASSWORD, b"secret", packet.RFC3768)
V3 = packet.Advertisement(3, 51, 100, packet.SECOND, (VIP,), checksum=packet.RFC5798)
V6 = packet.Advertisement(3, 51, 100, packet.SECOND, ("fe80::100",), checksum=packet.RFC5798)
CASTS = [(4, "unicast"), (4, "multicast"), (6, "unicast"), (6, "multicast")]
FAMILIES = [4, 6]


@pytest.fixture(scope="module")
def quiet():
    """A link that no test changes, so that they share it."""
    with temporary_link() as made:
        yield made


@pytest.fixture
def opened():
    """An Opener, whose sockets are closed at the end."""
    with contextlib.ExitStack() as stack:
        yield Opener(stack)


class Opener:
    """Opens the agent's sockets in a node's namespace."""

    def __init__(self, stack):
        self.stack = stack
        self.networks = {}

    def network(self, node):
        if node.name not in self.networks:
            with inside(node.namespace):
                network = Network()
            self.stack.callback(network.close)
            self.networks[node.name] = network
        return self.networks[node.name]

    def link(self, node, interface="eth0"):
        return next(link for link in self.network(node).netlink.links() if link.name == interface)

    def is_ready(self, node, interface, needed=""):
        """Return whether the interface is up, has the needed address, and has no tentative address."""
        addresses = [a for a in self.network(node).netlink.addresses() if a.index == self.link(node, interface).index]
        present = not needed or needed in [each.address for each in addresses]
        return self.link(node, interface).up and present and all(each.usable for each in addresses)

    def port(self, node, family, multicast=True, interface="eth0"):
        """Open a port, once no address is tentative any more."""
        until(lambda: self.is_ready(node, interface), "an address is still tentative")
        index = self.link(node, interface).index
        with inside(node.namespace):
            port = self.network(node).open_socket(interface, index, family, multicast)
        self.stack.callback(port.close)
        return port

    def announce(self, node, address):
        with inside(node.namespace):
            self.network(node).announcing(self.link(node), address)()


def address(node, family):
    return f"fe80::ff:fe00:{node.number}" if family == 6 else f"192.0.2.{node.number}"


def group(family):
    return packet.GROUP6 if family == 6 else packet.GROUP


def destination(node, family, cast):
    return group(family) if cast == "multicast" else address(node, family)


def send(port, node, family, to, vrid=51):
    """Send an advertisement from a node; return the datagram that should arrive."""
    source, advertisement = address(node, family), (V6 if family == 6 else V2)._replace(vrid=vrid)
    message = packet.encode(advertisement, source, to)
    port.sending(message, source, to)()
    return Datagram(source, to, 255, message, True)


def receive(port):
    """Return the next datagram, without its age."""
    assert select.select([port], [], [], LIMIT_S)[0], "nothing was received"
    return ageless(port.receive())


def ageless(datagram):
    assert 0 <= datagram.age <= sockets.MAX_AGE
    return datagram._replace(age=0)


def receive_all(port):
    """Return all datagrams that have arrived."""
    datagrams = []
    while select.select([port], [], [], 0)[0]:
        datagrams.append(ageless(port.receive()))
    return datagrams


# --- sending ----------------------------------------------------------------------------------------------------


def capture(frames):
    """Return the next frame with a VRRP message."""
    while True:
        assert select.select([frames], [], [], LIMIT_S)[0], "nothing was captured"
        data = frames.recv(2048)
        if (data[12:14], data[23]) == (b"\x08\x00", 112) or (data[12:14], data[20]) == (b"\x86\xdd", 112):
            return data


MACS = {(4, "multicast"): "01:00:5e:00:00:12", (6, "multicast"): "33:33:00:00:00:12"}


@pytest.mark.parametrize("family, cast", CASTS)
def test_an_advertisement_is_a_well_formed_packet_to_its_destination(quiet, opened, tmp_path, family, cast):
    port, to = opened.port(quiet.lb1, family, cast == "multicast"), destination(quiet.lb2, family, cast)
    with contextlib.closing(open_capture(quiet.lb2.namespace)) as frames:
        send(port, quiet.lb1, family, to)
        frame = capture(frames)
    from support.scapy_layers import IP, Ether, IPv6  # which each worker of the stage would import

    ether = Ether(frame)
    assert (ether.src, ether.dst) == (quiet.lb1.mac, MACS.get((family, cast), quiet.lb2.mac))
    if family == 4:
        head = ether[IP]
        assert (head.tos, head.ttl, head.frag, head.len) == (0xC0, 255, 0, 40)
        assert head.id, "the kernel numbers them"
    else:
        head = ether[IPv6]
        assert (head.tc, head.hlim, head.nh) == (0xC0, 255, 112)
    assert (head.src, head.dst) == (address(quiet.lb1, family), to)
    (read,) = dissect([frame[14:]], tmp_path)
    assert (read["vrrp.checksum.status"], read["_ws.malformed"], read["_ws.expert.message"]) == (GOOD, "", "")
    assert (read["vrrp.virt_rtr_id"], read["vrrp.prio"]) == ("51", "100")


def test_keepalived_accepts_our_advertisements_and_we_accept_those_of_keepalived(link, opened, tmp_path):
    """keepalived yields only to messages with the right hop limit, checksum and, over IPv6, source."""
    me = link.client
    ports = {family: opened.port(me, family) for family in FAMILIES}
    with keepalived(link.lb1, me, tmp_path) as (_process, log):
        received = {}

        def all_are_received():
            received.update((each.message[1], each) for port in ports.values() for each in receive_all(port))
            return received.keys() == ADVERTS.keys()

        until(all_are_received, lambda: f"only {received.keys()} were received")
        for vrid, advert in ADVERTS.items():
            assert received[vrid][:3] == (*path_of(advert, link.lb1, me), 255)
            assert packet.decode(received[vrid].message, *received[vrid][:3]) == advert
            source, to = path_of(advert, me, link.lb1)
            stronger = packet.encode(advert._replace(priority=255), source, to)
            ports[6 if ":" in to else 4].sending(stronger, source, to)()
        expected = [f"(V{vrid}) Master received advert from" for vrid in ADVERTS]
        until(lambda: all(text in log.read_text() for text in expected), "keepalived did not yield")
        assert "checksum" not in log.read_text()


# --- receiving --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family, cast", CASTS)
def test_a_message_comes_with_its_addresses_and_its_hop_limit(quiet, opened, family, cast):
    near, far = opened.port(quiet.lb1, family), opened.port(quiet.lb2, family)
    expected = send(near, quiet.lb1, family, destination(quiet.lb2, family, cast))
    assert receive(far) == expected
    assert far.receive() is None


@pytest.mark.parametrize("family, cast", CASTS)
def test_the_kernel_drops_messages_for_other_vrids_and_the_filter_can_be_replaced(quiet, opened, family, cast):
    near, far = opened.port(quiet.lb1, family), opened.port(quiet.lb2, family)
    to = destination(quiet.lb2, family, cast)
    far.listen_for({7, 255})
    send(near, quiet.lb1, family, to)
    for vrid in (7, 255):
        expected = send(near, quiet.lb1, family, to, vrid)
        assert receive(far) == expected
    far.listen_for({7, 51})
    expected = send(near, quiet.lb1, family, to)
    assert expected.message[1] == 51 and receive(far) == expected


@pytest.mark.parametrize("family", FAMILIES)
def test_a_unicast_port_receives_no_multicast_even_if_another_port_of_this_host_does(quiet, opened, family):
    near, far = opened.port(quiet.lb1, family), opened.port(quiet.lb2, family, multicast=False)
    other = opened.port(quiet.lb2, family)
    send(near, quiet.lb1, family, group(family))
    assert receive(other).destination == group(family)
    expected = send(near, quiet.lb1, family, address(quiet.lb2, family))
    assert receive(far) == expected
    assert far.receive() is None


@pytest.mark.parametrize("family", FAMILIES)
def test_the_age_of_a_message_is_reported(quiet, opened, family):
    near, far = (opened.port(node, family) for node in (quiet.lb1, quiet.lb2))
    for _try in range(100):
        send(near, quiet.lb1, family, group(family))
        assert select.select([far], [], [], LIMIT_S)[0], "nothing was received"
        if far.receive().age > 0:
            return
    raise AssertionError("the age is always 0")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_host_does_not_receive_its_own_multicast(quiet, opened, family):
    near, another, far = (opened.port(node, family) for node in (quiet.lb1, quiet.lb1, quiet.lb2))
    expected = send(near, quiet.lb1, family, group(family))
    assert receive(far) == expected
    assert near.receive() is another.receive() is None


@pytest.mark.parametrize("family", FAMILIES)
def test_a_port_receives_nothing_from_other_interfaces(link, opened, family):
    second = ("eth1", "type", "veth", "peer", "eth1", "netns", link.lb2.namespace)
    link.lb1.ip("link", "add", *second)
    for node in (link.lb1, link.lb2):
        node.ip("link", "set", "eth1", "up")
        node.ip("addr", "add", f"198.51.100.{node.number}/24", "dev", "eth1")
        node.ip("addr", "add", f"fe80::{node.number}:1/64", "dev", "eth1", "nodad")
    near = opened.port(link.lb1, family, interface="eth1")
    first, there = opened.port(link.lb2, family), opened.port(link.lb2, family, interface="eth1")
    source = f"fe80::{link.lb1.number}:1" if family == 6 else f"198.51.100.{link.lb1.number}"
    message = packet.encode(V6 if family == 6 else V3, source, group(family))
    near.sending(message, source, group(family))()
    assert receive(there).source == source
    assert first.receive() is None


HOSTILE = """
import random, socket, sys
random.seed(int(sys.argv[1]))
family = socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET
with socket.socket(family, socket.SOCK_RAW, 112) as link:
    link.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0")
    for _count in range(300):
        if family == socket.AF_INET and random.random() < 0.5:
            options = b"\\x01" * (4 * random.randrange(11))
            link.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, options)
        link.sendto(random.randbytes(random.choice((0, 1, 2, 7, 8, 20, 40, 1000, 3000, 9000, 60000))), (sys.argv[2], 0))
"""


@pytest.mark.parametrize("family", FAMILIES)
def test_random_bytes_are_received_and_discarded(quiet, opened, family):
    """They have any length, options in the header, and fragments. A valid message follows."""
    near, far = opened.port(quiet.lb1, family), opened.port(quiet.lb2, family)
    to = address(quiet.lb2, family) + ("%eth0" if family == 6 else "")
    hostile, received = quiet.lb1.python(HOSTILE, family, to), []
    until(lambda: received.extend(receive_all(far)) or hostile.poll() is not None)
    assert hostile.returncode == 0
    received += receive_all(far)
    expected = send(near, quiet.lb1, family, address(quiet.lb2, family))
    until(lambda: received.extend(receive_all(far)) or expected in received, "no valid message is received any more")
    received.remove(expected)
    assert received
    assert {each.source for each in received} == {address(quiet.lb1, family)}
    for each in received:
        assert isinstance(packet.decode(each.message, each.source, each.destination, each.hop_limit), packet.Discard)


# --- changes of the interface -----------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_a_port_survives_a_rename_of_its_interface(link, opened, family):
    near, far = opened.port(link.lb1, family), opened.port(link.lb2, family)
    link.lb2.ip("link", "set", "eth0", "down")
    link.lb2.ip("link", "set", "eth0", "name", "lan0", "up")
    until(lambda: opened.is_ready(link.lb2, "lan0", address(link.lb2, family)), "it does not come up")
    expected = send(near, link.lb1, family, group(family))
    assert receive(far) == expected
    expected = send(far, link.lb2, family, group(family))
    assert receive(near) == expected


def add_interface(node):
    node.ip("link", "add", "eth1", "type", "veth", "peer", "far1")
    node.ip("link", "set", "far1", "up")
    node.ip("link", "set", "eth1", "up")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_port_of_a_removed_interface_does_not_work_with_a_new_one_of_that_name(link, opened, family):
    """The agent must open another port."""
    add_interface(link.lb1)
    port = opened.port(link.lb1, family, interface="eth1")
    link.lb1.ip("link", "del", "eth1")
    add_interface(link.lb1)
    with pytest.raises(OSError) as refused:
        send(port, link.lb1, family, group(family))
    assert refused.value.errno == errno.ENODEV
    opened.port(link.lb1, family, interface="eth1")


@pytest.mark.parametrize("family, number", [(4, errno.ENETUNREACH), (6, errno.EINVAL)])
def test_sending_on_an_interface_that_is_down_is_an_error(link, opened, family, number):
    port = opened.port(link.lb1, family)
    link.lb1.ip("link", "set", "eth0", "down")
    with pytest.raises(OSError) as refused:
        send(port, link.lb1, family, group(family))
    assert refused.value.errno == number


def test_there_is_no_port_without_an_interface_or_with_the_index_of_another(quiet, opened):
    opened.network(quiet.lb1)
    for family in FAMILIES:
        with inside(quiet.lb1.namespace), pytest.raises(OSError) as refused:
            sockets.open_socket("eth9", 99, family, True)
        assert refused.value.errno == errno.ENODEV
        with inside(quiet.lb1.namespace), pytest.raises(OSError):
            sockets.open_socket("eth0", 99, family, True)


# --- announcements ----------------------------------------------------------------------------------------------


def ask_for(node, vip):
    """Send a datagram, so that the node must resolve the address."""
    family = "AF_INET6" if ":" in vip else "AF_INET"
    code = f"import socket; socket.socket(socket.{family}, socket.SOCK_DGRAM).sendto(b'', ('{vip}', 9))"
    node.output(sys.executable, "-W", "ignore", "-c", code)


def neighbour(node, vip):
    """Return the node's neighbour entry of an address: its MAC, and whether it is a router."""
    entries = json.loads(node.output("ip", "-json", "neigh", "show", "to", vip))
    return [(each.get("lladdr"), "router" in each) for each in entries]


@pytest.mark.parametrize("vip", [VIP, VIP6])
def test_an_announcement_moves_the_address_in_a_neighbours_cache(link, opened, vip):
    prefix = 128 if ":" in vip else 32
    for node in link.members:
        opened.network(node).netlink.adding(opened.link(node).index, f"{vip}/{prefix}")()
        opened.announce(node, vip)
        if node is link.lb1:
            ask_for(link.client, vip)
        until(lambda mac=node.mac: neighbour(link.client, vip) == [(mac, False)], "it did not move")


def test_an_announcement_says_whether_the_host_is_a_router(link, opened):
    opened.network(link.lb2).netlink.adding(opened.link(link.lb2).index, f"{VIP6}/128")()
    ask_for(link.client, VIP6)
    link.lb2.set_forwarding(True)
    opened.announce(link.lb2, VIP6)
    until(lambda: neighbour(link.client, VIP6) == [(link.lb2.mac, True)], "it is not a router")
    link.lb2.set_forwarding(False)
    opened.announce(link.lb2, VIP6)
    until(lambda: neighbour(link.client, VIP6) == [(link.lb2.mac, False)], "it is still a router")


@pytest.mark.parametrize("vip", [VIP, VIP6])
def test_an_announcement_that_cannot_be_sent_is_an_error(link, opened, vip):
    eth0, network = opened.link(link.lb1), opened.network(link.lb1)
    link.lb1.ip("link", "set", "eth0", "down")
    with inside(link.lb1.namespace), pytest.raises(OSError) as refused:
        network.announcing(eth0, vip)()
    assert refused.value.errno == errno.ENETDOWN
    with inside(link.lb1.namespace), pytest.raises(OSError) as refused:
        network.announcing(eth0._replace(name="eth9"), vip)()
    assert refused.value.errno == errno.ENODEV


def test_the_announcers_socket_receives_nothing(quiet, opened):
    opened.network(quiet.lb2)
    opened.announce(quiet.lb1, VIP)
    lines = quiet.lb2.output("cat", "/proc/net/packet").splitlines()[1:]
    assert [line.split()[3] for line in lines] == ["0000"]
