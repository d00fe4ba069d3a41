# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the resignation for a killed keepalived removes and sends, on a host without a kernel."""

from __future__ import annotations

import errno

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.keepalived import conf, resignation
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import packet
from support.paths import GOLDEN
from support.vrrp import fakes

PAIR = (GOLDEN / "pair.lb1.keepalived.conf").read_text()
EVERY = (GOLDEN / "every-instance.keepalived.conf").read_text()
VIP = "192.0.2.10/32"
IPV6 = """\
vrrp_instance six {
    interface eth0
    virtual_router_id 7
    virtual_ipaddress {
        fe80::10/128 dev eth0
        2001:db8::10/64 dev eth0
    }
}
"""


class Log:
    def __init__(self, journal):
        self.info = self.warning = lambda text: journal.append(f"says {text}")


@pytest.fixture
def host():
    network = fakes.Network([])
    for index, name in enumerate(("eth0", "eth1"), 1):
        network.netlink.link(name, index)
    for address, name in (
        ("192.0.2.1/24", "eth0"),
        ("198.51.100.1/24", "eth1"),
        ("2001:db8::1/64", "eth0"),
        ("fe80::1/64", "eth0"),
    ):
        network.netlink.put(address, name)
    return network


def execute(host, text, *left):
    """Have the hook resign on a host on which keepalived has left addresses; return what it did."""
    for address, name in left:
        host.netlink.put(address, name)
    will = resignation.Resignation(host.netlink, host.open_socket, Log(host.journal))
    will.execute(conf.routers(text))
    return host.journal


def test_what_is_left_is_removed_and_then_priority_0_is_sent(host):
    assert execute(host, PAIR, (VIP, "eth0")) == [
        "delete 192.0.2.10/32 from eth0",
        "send 0 to 192.0.2.2",
        "says vip-192.0.2.10: keepalived had left 192.0.2.10/32: removed, and priority 0 was sent to 192.0.2.2.",
    ]


def test_a_backup_and_one_that_was_stopped_have_left_nothing_so_that_nothing_is_sent(host):
    assert execute(host, EVERY) == [] and host.ports == []


@pytest.mark.parametrize(
    "stranger, name", [("192.0.2.10/24", "eth0"), ("192.0.2.10/32", "eth1"), ("192.0.2.77/32", "eth0")]
)
def test_an_address_that_keepalived_did_not_add_stays_and_tells_nothing(host, stranger, name):
    assert execute(host, PAIR, (stranger, name)) == []


def test_each_virtual_router_is_judged_by_itself_and_all_addresses_go_before_the_first_message(host):
    done = execute(host, EVERY, ("192.0.2.11/24", "eth0"), ("2001:db8::11/64", "eth1"))
    assert [line for line in done if not line.startswith("says")] == [
        "delete 192.0.2.11/24 from eth0",
        "delete 2001:db8::11/64 from eth1",
        "send 0 to 224.0.0.18",
        "send 0 to 198.51.100.2",
    ]


def sent(host, text, *left):
    """Return each message: its interface, source, destination and bytes."""
    found = []

    class Port(fakes.Port):
        def sending(self, message, source, destination):
            return lambda: found.append((self.interface, self.index, source, destination, message))

    host.open_socket = lambda *where: Port(host.journal, *where, 0)
    execute(host, text, *left)
    return found


def as_keepalived(interval, addresses, version=2, **fields):
    """What the peers accept: the Advertisements of this router, but for the priority."""
    return packet.Advertisement(version, priority=0, interval=interval, addresses=addresses, **fields)


def test_version_2_has_its_password_and_is_what_its_peers_accept(host):
    ((interface, index, source, destination, message),) = sent(host, PAIR, (VIP, "eth0"))
    assert (interface, index, source, destination) == ("eth0", 1, "192.0.2.1", "192.0.2.2")
    expected = as_keepalived(1_000_000, ("192.0.2.10",), vrid=51, auth_type=1, auth_pass=b"0f3a9c1e")
    assert message == packet.encode(expected, source, destination)
    assert packet.decode(message, source, destination) == expected._replace(checksum=packet.RFC3768)


@pytest.mark.parametrize("written, wanted", [("much-too-long", b"much-too"), ("ünïcödé", "ünïcö".encode())])
def test_a_password_is_cut_to_8_bytes(host, written, wanted):
    ((*_where, source, to, message),) = sent(host, PAIR.replace("0f3a9c1e", written), (VIP, "eth0"))
    assert packet.decode(message, source, to).auth_pass == wanted


def test_without_a_password_version_2_does_not_authenticate(host):
    text = PAIR.replace("auth_type PASS", "").replace("auth_pass 0f3a9c1e", "")
    ((*_where, source, to, message),) = sent(host, text, (VIP, "eth0"))
    assert packet.decode(message, source, to).auth_type == packet.NO_AUTHENTICATION


def test_version_3_has_no_password_and_the_checksum_of_keepalived(host):
    ((*_where, source, to, message),) = sent(host, EVERY, ("192.0.2.10/24", "eth0"))
    expected = as_keepalived(100_000, ("192.0.2.10", "192.0.2.11"), version=3, vrid=16)
    assert (source, to) == ("192.0.2.1", "224.0.0.18")
    assert packet.decode(message, source, to) == expected._replace(checksum=packet.RFC5798)


def test_a_password_that_keepalived_ignores_in_version_3_is_not_sent(host):
    ((*_where, source, to, message),) = sent(host, PAIR.replace("version 2", "version 3"), (VIP, "eth0"))
    assert packet.decode(message, source, to).auth_pass == b""


def test_ipv6_is_sent_from_the_link_local_address_that_is_no_vip(host):
    host.netlink.take_away("fe80::1/64")
    host.netlink.put("fe80::10/128")
    host.netlink.put("fe80::1/64")  # the kernel may name the VIP first
    left = ("fe80::10/128", "eth0"), ("2001:db8::10/64", "eth0")
    ((interface, _index, source, to, message),) = sent(host, IPV6, *left)
    assert (interface, source, to) == ("eth0", "fe80::1", "ff02::12")
    expected = as_keepalived(1_000_000, ("fe80::10", "2001:db8::10"), version=3, vrid=7)
    assert packet.decode(message, source, to) == expected._replace(checksum=packet.RFC5798)


def test_each_peer_gets_its_own_message_from_the_interfaces_first_address(host):
    found = sent(host, EVERY, ("198.51.100.10/32", "eth1"))
    assert [(interface, source, to) for interface, _index, source, to, _message in found] == [
        ("eth1", "198.51.100.1", "198.51.100.2"),
        ("eth1", "198.51.100.1", "198.51.100.3"),
    ]


def test_nothing_is_sent_while_an_address_cannot_be_removed_because_two_hosts_would_have_it(host):
    host.netlink.kept.add("192.0.2.11/24")
    left = ("192.0.2.10/24", "eth0"), ("192.0.2.11/24", "eth0"), ("198.51.100.10/32", "eth1")
    assert [line for line in execute(host, EVERY, *left) if line.startswith(("send", "says front"))] == [
        "says front: 192.0.2.11/24 cannot be removed: Operation not permitted.",
        "send 0 to 198.51.100.2",
        "send 0 to 198.51.100.3",
    ]


def test_an_address_that_goes_meanwhile_is_no_fault(host):
    twice = PAIR + PAIR.replace("virtual_router_id 51", "virtual_router_id 52")
    done = execute(host, twice, (VIP, "eth0"))
    assert done.count("send 0 to 192.0.2.2") == 2


@pytest.mark.parametrize(
    "text, sentence",
    [
        (PAIR.replace("192.0.2.2", "fe80::2"), "fe80::2 is not an IPv4 address"),
        (PAIR.replace("version 2", "version 4"), "there is no VRRP version 4"),
        (PAIR.replace("advert_int 1", "advert_int 0"), "the interval of version 2 is 1 to 255"),
        (PAIR.replace("interface eth0", "interface none").replace("unicast_src_ip", "#"), "none has no address"),
    ],
)
def test_addresses_go_even_where_nothing_can_be_sent(host, text, sentence):
    first, *rest = execute(host, text, (VIP, "eth0"))
    assert first.startswith(f"says vip-192.0.2.10: priority 0 cannot be sent: {sentence}")
    assert rest == [
        "delete 192.0.2.10/32 from eth0",
        "says vip-192.0.2.10: keepalived had left 192.0.2.10/32: removed.",
    ]


def test_a_kernel_that_opens_no_socket_is_said(host):
    host.shut = errno.EPERM
    done = execute(host, PAIR, (VIP, "eth0"))
    assert done[0] == "says vip-192.0.2.10: priority 0 cannot be sent: Operation not permitted."
    assert done[1] == "delete 192.0.2.10/32 from eth0"


def test_a_peer_that_cannot_be_reached_does_not_keep_the_others_from_hearing(host):
    open_socket = host.open_socket

    def lacks_a_route(*where):
        port = open_socket(*where)
        port.unreachable.add("198.51.100.2")
        return port

    host.open_socket = lacks_a_route
    done = execute(host, EVERY, ("198.51.100.10/32", "eth1"))
    assert done[1:] == [
        "says back: priority 0 cannot be sent to 198.51.100.2: Network is unreachable.",
        "send 0 to 198.51.100.3",
        "says back: keepalived had left 198.51.100.10/32: removed, and priority 0 was sent to 198.51.100.3.",
    ]


def test_what_a_file_includes_is_said_because_it_is_not_read(tmp_path, monkeypatch, host):
    monkeypatch.setattr(resignation, "Log", lambda: Log(host.journal))
    monkeypatch.setattr(resignation.netlink, "Netlink", lambda: host.netlink)
    path = tmp_path / "keepalived.conf"
    path.write_text(f"include more.conf\n{PAIR}")
    assert resignation.main(str(path)) == 0
    (said,) = host.journal
    assert said.startswith(f"says {path} has include more.conf, and the VIPs, VRIDs and passwords in there are ")


def test_a_file_that_is_gone_is_said_and_changes_nothing(tmp_path, capfd):
    assert resignation.main(str(tmp_path / "none")) == 1
    assert capfd.readouterr().err == f"{tmp_path}/none cannot be read: No such file or directory.\n"
