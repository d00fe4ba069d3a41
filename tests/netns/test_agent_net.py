# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The agent's sockets on a real link: what others make of what it sends, and what it hears itself."""

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
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from support.netns.captures import GOOD, dissected
from support.netns.links import VIP, VIP6, lent
from support.netns.namespaces import inside
from support.netns.recorder import frames_at
from support.netns.spoken import SPOKEN, keepalived, way_of
from support.waiting import LIMIT_S, until

V2 = packet.Advertisement(2, 51, 100, packet.SECOND, (VIP,), packet.PASSWORD, b"secret", packet.RFC3768)
V3 = packet.Advertisement(3, 51, 100, packet.SECOND, (VIP,), checksum=packet.RFC5798)
V6 = packet.Advertisement(3, 51, 100, packet.SECOND, ("fe80::100",), checksum=packet.RFC5798)
# What is sent in one family, and each way that it can go.
WAYS = [(4, "unicast"), (4, "multicast"), (6, "unicast"), (6, "multicast")]
FAMILIES = [4, 6]


@pytest.fixture(scope="module")
def quiet():
    """A link that stays as it is, so that many tests can share it."""
    with lent() as made:
        yield made


@pytest.fixture
def opened():
    """What opens ports and announcers in a node's namespace, and closes them."""
    with contextlib.ExitStack() as stack:
        yield Opener(stack)


class Opener:
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
        """Whether it is up, has the address that is needed, and no address is still checked for duplicates."""
        addresses = [a for a in self.network(node).netlink.addresses() if a.index == self.link(node, interface).index]
        found = not needed or needed in [each.address for each in addresses]
        return self.link(node, interface).up and found and all(each.usable for each in addresses)

    def port(self, node, family, multicast=True, interface="eth0"):
        """A port, once there is an address that it can send from."""
        until(lambda: self.is_ready(node, interface), "an address is still checked")
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


def destination(node, family, way):
    return group(family) if way == "multicast" else address(node, family)


def say(port, node, family, to, vrid=51):
    """An advertisement from a node, and how it should arrive."""
    source, said = address(node, family), (V6 if family == 6 else V2)._replace(vrid=vrid)
    message = packet.encode(said, source, to)
    port.sending(message, source, to)()
    return Datagram(source, to, 255, message, True)


def heard(port):
    """What comes next, but for its age, which is told whenever it is read soon enough."""
    assert select.select([port], [], [], LIMIT_S)[0], "nothing was heard"
    return ageless(port.receive())


def ageless(datagram):
    assert 0 <= datagram.age <= sockets.MAX_AGE
    return datagram._replace(age=0)


def everything(port):
    """What comes until it is quiet for a moment."""
    found = []
    while select.select([port], [], [], 0.1)[0]:
        found.append(ageless(port.receive()))
    return found


# --- what is sent -----------------------------------------------------------------------------------------------


def captured(frames):
    """The first frame of VRRP."""
    while True:
        assert select.select([frames], [], [], LIMIT_S)[0], "nothing was seen"
        data = frames.recv(2048)
        if (data[12:14], data[23]) == (b"\x08\x00", 112) or (data[12:14], data[20]) == (b"\x86\xdd", 112):
            return data


MACS = {(4, "multicast"): "01:00:5e:00:00:12", (6, "multicast"): "33:33:00:00:00:12"}


@pytest.mark.parametrize("family, way", WAYS)
def test_what_is_sent_is_a_well_formed_packet_to_the_right_place(quiet, opened, tmp_path, family, way):
    port, to = opened.port(quiet.lb1, family, way == "multicast"), destination(quiet.lb2, family, way)
    with contextlib.closing(frames_at(quiet.lb2.namespace)) as frames:
        say(port, quiet.lb1, family, to)
        frame = captured(frames)
    ether = Ether(frame)
    assert (ether.src, ether.dst) == (quiet.lb1.mac, MACS.get((family, way), quiet.lb2.mac))
    if family == 4:
        head = ether[IP]
        assert (head.tos, head.ttl, head.frag, head.len) == (0xC0, 255, 0, 40)
        assert head.id, "the kernel numbers them"
    else:
        head = ether[IPv6]
        assert (head.tc, head.hlim, head.nh) == (0xC0, 255, 112)
    assert (head.src, head.dst) == (address(quiet.lb1, family), to)
    (read,) = dissected([frame[14:]], tmp_path)
    assert (read["vrrp.checksum.status"], read["_ws.malformed"], read["_ws.expert.message"]) == (GOOD, "", "")
    assert (read["vrrp.virt_rtr_id"], read["vrrp.prio"]) == ("51", "100")


def test_keepalived_hears_the_ports_and_the_ports_hear_keepalived(link, opened, tmp_path):
    """It yields only to what has the right hop limit, checksum and, over IPv6, source."""
    me = link.client
    ports = {family: opened.port(me, family) for family in FAMILIES}
    with keepalived(link.lb1, me, tmp_path) as (_process, log):
        found = {}
        while found.keys() != SPOKEN.keys():
            for port in select.select(ports.values(), [], [], LIMIT_S)[0]:
                came = port.receive()
                found[came.message[1]] = came
        for vrid, spoken in SPOKEN.items():
            assert found[vrid][:3] == (*way_of(spoken, link.lb1, me), 255)
            assert packet.decode(found[vrid].message, *found[vrid][:3]) == spoken
            source, to = way_of(spoken, me, link.lb1)
            stronger = packet.encode(spoken._replace(priority=255), source, to)
            ports[6 if ":" in to else 4].sending(stronger, source, to)()
        wanted = [f"(V{vrid}) Master received advert from" for vrid in SPOKEN]
        until(lambda: all(text in log.read_text() for text in wanted), "keepalived did not yield")
        assert "checksum" not in log.read_text()


# --- what is heard ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family, way", WAYS)
def test_what_is_heard_comes_with_its_envelope(quiet, opened, family, way):
    near, far = opened.port(quiet.lb1, family), opened.port(quiet.lb2, family)
    expected = say(near, quiet.lb1, family, destination(quiet.lb2, family, way))
    assert heard(far) == expected
    assert far.receive() is None


@pytest.mark.parametrize("family", FAMILIES)
def test_a_port_for_unicast_is_not_in_the_group_even_when_another_one_on_this_host_is(quiet, opened, family):
    near, far = opened.port(quiet.lb1, family), opened.port(quiet.lb2, family, multicast=False)
    other = opened.port(quiet.lb2, family)
    say(near, quiet.lb1, family, group(family))
    assert heard(other).destination == group(family)
    expected = say(near, quiet.lb1, family, address(quiet.lb2, family))
    assert heard(far) == expected
    assert far.receive() is None


@pytest.mark.parametrize("family", FAMILIES)
def test_the_age_of_a_message_is_reported(quiet, opened, family):
    near, far = (opened.port(node, family) for node in (quiet.lb1, quiet.lb2))
    for _try in range(100):
        say(near, quiet.lb1, family, group(family))
        assert select.select([far], [], [], LIMIT_S)[0], "nothing was heard"
        if far.receive().age > 0:
            return
    raise AssertionError("it is never told")


@pytest.mark.parametrize("family", FAMILIES)
def test_what_a_host_says_to_the_group_does_not_come_back_to_it(quiet, opened, family):
    near, another, far = (opened.port(node, family) for node in (quiet.lb1, quiet.lb1, quiet.lb2))
    expected = say(near, quiet.lb1, family, group(family))
    assert heard(far) == expected
    assert near.receive() is another.receive() is None


@pytest.mark.parametrize("family", FAMILIES)
def test_what_comes_in_on_another_interface_is_not_heard(link, opened, family):
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
    assert heard(there).source == source
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
def test_hostile_bytes_are_received_and_nothing_breaks(quiet, opened, family):
    """Any length, options in the header, fragments that the kernel puts together; and then one sound message."""
    near, far = opened.port(quiet.lb1, family), opened.port(quiet.lb2, family)
    to = address(quiet.lb2, family) + ("%eth0" if family == 6 else "")
    hostile, found = quiet.lb1.python(HOSTILE, family, to), []
    while hostile.poll() is None:
        found += everything(far)
    assert hostile.returncode == 0
    found += everything(far)
    assert len(found) > 100
    expected = say(near, quiet.lb1, family, address(quiet.lb2, family))
    assert heard(far) == expected
    assert {each.source for each in found} == {address(quiet.lb1, family)}
    for each in found:
        assert isinstance(packet.decode(each.message, each.source, each.destination, each.hop_limit), packet.Discard)


# --- when the interface changes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_a_port_survives_that_its_interface_is_renamed_and_goes_down_and_up(link, opened, family):
    near, far = opened.port(link.lb1, family), opened.port(link.lb2, family)
    link.lb2.ip("link", "set", "eth0", "down")
    link.lb2.ip("link", "set", "eth0", "name", "lan0", "up")
    until(lambda: opened.is_ready(link.lb2, "lan0", address(link.lb2, family)), "it does not come up")
    expected = say(near, link.lb1, family, group(family))
    assert heard(far) == expected
    expected = say(far, link.lb2, family, group(family))
    assert heard(near) == expected


def add_interface(node):
    node.ip("link", "add", "eth1", "type", "veth", "peer", "far1")
    node.ip("link", "set", "far1", "up")
    node.ip("link", "set", "eth1", "up")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_port_is_deaf_and_dumb_when_its_interface_was_made_anew(link, opened, family):
    """So whoever has it must open another one."""
    add_interface(link.lb1)
    port = opened.port(link.lb1, family, interface="eth1")
    link.lb1.ip("link", "del", "eth1")
    add_interface(link.lb1)
    with pytest.raises(OSError) as refused:
        say(port, link.lb1, family, group(family))
    assert refused.value.errno == errno.ENODEV
    opened.port(link.lb1, family, interface="eth1")


@pytest.mark.parametrize("family, number", [(4, errno.ENETUNREACH), (6, errno.EINVAL)])
def test_sending_on_an_interface_that_is_down_is_an_error(link, opened, family, number):
    port = opened.port(link.lb1, family)
    link.lb1.ip("link", "set", "eth0", "down")
    with pytest.raises(OSError) as refused:
        say(port, link.lb1, family, group(family))
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
    """Sends something, so that it has to know where."""
    family = "AF_INET6" if ":" in vip else "AF_INET"
    code = f"import socket; socket.socket(socket.{family}, socket.SOCK_DGRAM).sendto(b'', ('{vip}', 9))"
    node.output(sys.executable, "-W", "ignore", "-c", code)


def neighbour(node, vip):
    """What a node believes about an address: MAC, and whether it is a router."""
    found = json.loads(node.output("ip", "-json", "neigh", "show", "to", vip))
    return [(each.get("lladdr"), "router" in each) for each in found]


@pytest.mark.parametrize("vip", [VIP, VIP6])
def test_an_announcement_moves_the_address_in_a_neighbours_cache(link, opened, vip):
    prefix = 128 if ":" in vip else 32
    for node in link.members:
        opened.network(node).netlink.adding(opened.link(node).index, f"{vip}/{prefix}")()
        opened.announce(node, vip)
        if node is link.lb1:
            ask_for(link.client, vip)
        until(lambda mac=node.mac: neighbour(link.client, vip) == [(mac, False)], "it did not move")


def test_a_router_stays_one_for_its_neighbours_when_it_takes_an_address_over(link, opened):
    opened.network(link.lb2).netlink.adding(opened.link(link.lb2).index, f"{VIP6}/128")()
    ask_for(link.client, VIP6)
    link.lb2.forward(True)
    opened.announce(link.lb2, VIP6)
    until(lambda: neighbour(link.client, VIP6) == [(link.lb2.mac, True)], "it is no router")
    link.lb2.forward(False)
    opened.announce(link.lb2, VIP6)
    until(lambda: neighbour(link.client, VIP6) == [(link.lb2.mac, False)], "it is still a router")


@pytest.mark.parametrize("vip", [VIP, VIP6])
def test_what_cannot_be_announced_is_an_error(link, opened, vip):
    eth0, network = opened.link(link.lb1), opened.network(link.lb1)
    link.lb1.ip("link", "set", "eth0", "down")
    with inside(link.lb1.namespace), pytest.raises(OSError) as refused:
        network.announcing(eth0, vip)()
    assert refused.value.errno == errno.ENETDOWN
    with inside(link.lb1.namespace), pytest.raises(OSError) as refused:
        network.announcing(eth0._replace(name="eth9"), vip)()
    assert refused.value.errno == errno.ENODEV


def test_the_announcer_hears_nothing_that_would_fill_its_socket(quiet, opened):
    opened.network(quiet.lb2)
    opened.announce(quiet.lb1, VIP)
    lines = quiet.lb2.output("cat", "/proc/net/packet").splitlines()[1:]
    assert [line.split()[3] for line in lines] == ["0000"]
