# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The agent's netlink socket with a real kernel: links and addresses, and their changes."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import subprocess
import sys
import time
from functools import partial

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import netlink
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.netlink import (
    AddressGone,
    AddressUpdated,
    LinkGone,
    LinkUpdated,
    Lost,
)
from support.netns.links import VIP, VIP6
from support.netns.namespaces import inside
from support.waiting import LIMIT_S, MOMENT_S, until

MANY = 5000
# Binds to an IPv6 address of this host, and then prints the source that the kernel chooses towards another address.
SOURCES = """
import socket, sys
own, other = sys.argv[1:]
with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as server:
    server.bind((own, 0))
with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as chooser:
    chooser.connect((other, 9))
    print(chooser.getsockname()[0])
"""


@contextlib.contextmanager
def kernel_of(namespace):
    with inside(namespace):
        kernel = netlink.Netlink()
    try:
        yield kernel
    finally:
        kernel.close()


@pytest.fixture
def kernel(link):
    with kernel_of(link.lb1.namespace) as opened:
        yield opened


def wait_for(kernel, condition):
    """Return all events up to one that meets a condition."""
    end, events = time.monotonic() + LIMIT_S, []
    while not any(map(condition, events)):
        assert select.select([kernel], [], [], max(0, end - time.monotonic()))[0], events
        events += kernel.events()
    return events


def named(kernel, name):
    return next((link for link in kernel.links() if link.name == name), None)


def held(kernel, address):
    return [found for found in kernel.addresses() if found.address == address]


def same(event):
    """Compare the types, too: as tuples LinkGone and LinkUpdated are equal."""
    return lambda other: isinstance(other, type(event)) and other == event


def is_at(kind, address):
    return lambda event: isinstance(event, kind) and event.address.address == address


@pytest.mark.parametrize("vip, prefix", [(VIP, 32), (VIP, 24), (VIP6, 128), (VIP6, 64)])
def test_a_change_of_an_address_is_reported_and_listed(link, kernel, vip, prefix):
    eth0 = named(kernel, "eth0").index
    ours = (kernel.adding(eth0, f"{vip}/{prefix}"), lambda: kernel.delete(eth0, f"{vip}/{prefix}"))
    theirs = tuple(lambda do=do: link.lb1.ip("addr", do, f"{vip}/{prefix}", "dev", "eth0") for do in ("add", "del"))
    for add, delete in (ours, theirs):
        add()
        added = wait_for(kernel, is_at(AddressUpdated, vip))[-1].address
        assert (added.index, added.prefix) == (eth0, prefix)
        assert [found.prefix for found in held(kernel, vip)] == [prefix]
        delete()
        wait_for(kernel, is_at(AddressGone, vip))
        assert held(kernel, vip) == []


@pytest.mark.parametrize("vip", [f"{VIP}/32", f"{VIP6}/128"])
def test_adding_and_deleting_twice_is_refused_the_second_time(link, kernel, vip):
    eth0 = named(kernel, "eth0").index
    adding, deleting = kernel.adding(eth0, vip), partial(kernel.delete, eth0, vip)
    for change, number, there in ((adding, errno.EEXIST, 1), (deleting, errno.EADDRNOTAVAIL, 0)):
        change()
        with pytest.raises(OSError) as refused:
            change()
        assert refused.value.errno == number
        assert len(held(kernel, vip.partition("/")[0])) == there


@pytest.mark.parametrize("left, configured", [(f"{VIP}/32", f"{VIP}/24"), (f"{VIP6}/128", f"{VIP6}/64")])
def test_an_address_with_another_prefix_length_is_a_second_one_in_ipv4_and_in_the_way_in_ipv6(kernel, left, configured):
    eth0 = named(kernel, "eth0").index
    kernel.adding(eth0, left)()
    with pytest.raises(OSError) as refused:
        kernel.delete(eth0, configured)
    assert refused.value.errno == errno.EADDRNOTAVAIL
    if ":" in left:
        with pytest.raises(FileExistsError):
            kernel.adding(eth0, configured)()
    else:
        kernel.adding(eth0, configured)()
        assert len(held(kernel, VIP)) == 2


@pytest.mark.parametrize("vip", [f"{VIP}/32", f"{VIP6}/128"])
def test_on_an_interface_that_is_gone_adding_fails_and_deleting_succeeds(kernel, vip):
    kernel.delete(99, vip)
    with pytest.raises(OSError) as refused:
        kernel.adding(99, vip)()
    assert refused.value.errno == errno.ENODEV


def test_adding_an_ipv6_address_where_ipv6_is_disabled_is_an_error(link, kernel):
    link.lb1.set_sysctl("ipv6/conf/eth0/disable_ipv6", True)
    eth0 = named(kernel, "eth0").index
    with pytest.raises(OSError) as refused:
        kernel.adding(eth0, f"{VIP6}/128")()
    assert refused.value.errno == errno.EACCES
    with pytest.raises(OSError) as refused:
        kernel.delete(eth0, f"{VIP6}/128")
    assert refused.value.errno == errno.EADDRNOTAVAIL


@pytest.mark.parametrize("prefix, deprecated", [(128, True), (64, False)])
def test_an_ipv6_vip_is_usable_at_once_and_with_128_bits_never_a_source(link, kernel, prefix, deprecated):
    vip = "2001:db8::2:2"  # it shares a longer prefix with the destination than the host's own address does
    kernel.adding(named(kernel, "eth0").index, f"{vip}/{prefix}")()
    (found,) = held(kernel, vip)
    assert found.usable
    chosen = link.lb1.output(sys.executable, "-c", SOURCES, vip, "2001:db8::2:3").strip()
    assert (chosen == vip) == (not deprecated)
    added = wait_for(kernel, is_at(AddressUpdated, vip))[-1].address
    assert added.usable


def test_a_tentative_address_is_reported_again_when_it_is_usable_and_a_duplicate_is_not_usable(link, kernel):
    for node in link.members:
        node.set_dad(True)
    link.lb1.ip("addr", "add", VIP6, "dev", "eth0")
    events = wait_for(kernel, lambda event: is_at(AddressUpdated, VIP6)(event) and event.address.usable)
    states = [event.address.usable for event in events if is_at(AddressUpdated, VIP6)(event)]
    assert states == sorted(states)
    with kernel_of(link.lb2.namespace) as other:
        link.lb2.ip("addr", "add", VIP6, "dev", "eth0")
        until(lambda: "dadfailed" in link.lb2.output("ip", "-6", "addr", "show", "dev", "eth0"))
        assert [found.usable for found in held(other, VIP6)] == [False]


def test_an_interface_that_goes_down_and_up_is_reported(link, kernel):
    eth0 = named(kernel, "eth0")
    assert eth0.up
    assert eth0.mac.hex(":") == link.lb1.mac
    link.lb1.ip("link", "set", "eth0", "down")
    events = wait_for(kernel, same(LinkUpdated(eth0._replace(up=False))))
    v6, v4 = (is_at(AddressGone, address) for address in ("2001:db8::1", "192.0.2.1"))
    events += [] if any(map(v6, events)) else wait_for(kernel, v6)
    assert not any(map(v4, events)), "IPv4 addresses stay"
    link.lb1.ip("link", "set", "eth0", "up")
    wait_for(kernel, same(LinkUpdated(eth0)))


def test_a_lost_carrier_is_reported(link, kernel):
    eth0 = named(kernel, "eth0")
    subprocess.run(["ip", "-n", link.bridge, "link", "set", link.lb1.port, "down"], check=True)
    wait_for(kernel, same(LinkUpdated(eth0._replace(up=False))))
    assert not named(kernel, "eth0").up
    subprocess.run(["ip", "-n", link.bridge, "link", "set", link.lb1.port, "up"], check=True)
    wait_for(kernel, same(LinkUpdated(eth0)))


def test_an_interface_that_is_renamed_keeps_its_index(link, kernel):
    eth0 = named(kernel, "eth0")
    link.lb1.ip("link", "set", "eth0", "down")
    link.lb1.ip("link", "set", "eth0", "name", "lan0")
    wait_for(kernel, same(LinkUpdated(eth0._replace(name="lan0", up=False))))
    assert named(kernel, "lan0").index == eth0.index
    assert named(kernel, "eth0") is None


def test_a_new_interface_of_the_same_name_has_another_index(link, kernel):
    add = ("link", "add", "eth1", "type", "veth", "peer", "far1")
    link.lb1.ip(*add)
    link.lb1.ip("addr", "add", "198.51.100.1/24", "dev", "eth1")
    first = named(kernel, "eth1")
    link.lb1.ip("link", "del", "eth1")
    link.lb1.ip(*add)
    second = named(kernel, "eth1")
    assert second.index != first.index
    events = wait_for(kernel, lambda event: isinstance(event, LinkUpdated) and event.link.index == second.index)
    (gone,) = [at for at, event in enumerate(events) if same(LinkGone(first))(event)]
    assert any(is_at(AddressGone, "198.51.100.1")(event) for event in events[:gone])


def test_a_port_that_leaves_its_bridge_is_not_gone(link):
    with kernel_of(link.bridge) as kernel:
        port = named(kernel, link.lb1.port)
        subprocess.run(["ip", "-n", link.bridge, "link", "set", port.name, "nomaster"], check=True)
        subprocess.run(["ip", "-n", link.bridge, "link", "set", port.name, "mtu", "1400"], check=True)
        subprocess.run(["ip", "-n", link.bridge, "link", "set", port.name, "down"], check=True)
        events = wait_for(kernel, same(LinkUpdated(port._replace(up=False))))
        assert not [event for event in events if isinstance(event, LinkGone)]


# --- thousands of addresses -------------------------------------------------------------------------------------


class Known:
    """The addresses that a daemon knows: it lists them once, and then follows the events."""

    def __init__(self, kernel):
        self.kernel, self.losses = kernel, 0
        self.list()

    def list(self):
        self.addresses = {(found.index, found.address, found.prefix) for found in self.kernel.addresses()}

    def follow(self):
        """Read the events that are there; return whether there are more."""
        for event in self.kernel.events():
            if isinstance(event, Lost):
                self.losses += 1
                self.list()
            elif isinstance(event, (AddressUpdated, AddressGone)):
                address = (event.address.index, event.address.address, event.address.prefix)
                (self.addresses.add if isinstance(event, AddressUpdated) else self.addresses.discard)(address)
        return bool(select.select([self.kernel], [], [], 0)[0])


def churn(node, folder):
    """Start `ip`, which adds thousands of addresses of both families and deletes every second one."""
    lines = []
    for number in range(MANY):
        address = f"2001:db8:1::{number:x}/128 nodad" if number % 10 == 0 else f"10.{number >> 8}.{number & 255}.1/32"
        lines.append(f"addr add {address} dev eth1")
        if number % 2:
            lines.append(f"addr del {address} dev eth1")
    batch = folder / "batch"
    batch.write_text("\n".join(lines) + "\n")
    node.ip("link", "add", "eth1", "type", "veth", "peer", "far1")
    node.ip("link", "set", "eth1", "up")
    return subprocess.Popen(["ip", "-n", node.namespace, "-batch", str(batch)])


def settle(known):
    """Follow the events until the known addresses are the kernel's, which reports IPv6 addresses a little later."""
    end = time.monotonic() + LIMIT_S
    while known.follow() or known.addresses != {(a.index, a.address, a.prefix) for a in known.kernel.addresses()}:
        assert time.monotonic() < end, "the known addresses differ from the kernel's"


def test_thousands_of_changes_are_followed(link, kernel, tmp_path):
    known = Known(kernel)
    batch = churn(link.lb1, tmp_path)
    while batch.poll() is None:
        select.select([kernel], [], [], MOMENT_S)
        known.follow()
    assert batch.returncode == 0
    settle(known)
    assert len(known.addresses) > MANY / 2


def test_thousands_of_changes_fit_into_the_buffer_while_nothing_is_read(link, kernel, tmp_path):
    known = Known(kernel)
    assert churn(link.lb1, tmp_path).wait(LIMIT_S) == 0
    settle(known)
    assert len(known.addresses) > MANY / 2
    assert known.losses == 0


def test_a_loss_is_reported_and_all_addresses_are_known_after_it(link, monkeypatch, tmp_path):
    monkeypatch.setattr(netlink, "RECEIVE_BUFFER", 1 << 16)
    with kernel_of(link.lb1.namespace) as kernel:
        known = Known(kernel)
        assert churn(link.lb1, tmp_path).wait(LIMIT_S) == 0
        settle(known)
    assert known.losses > 0
    assert len(known.addresses) > MANY / 2


def test_the_receive_buffer_may_exceed_the_systems_limit(kernel):
    with socket.socket(fileno=os.dup(kernel.fileno())) as sock:
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 2 * netlink.RECEIVE_BUFFER
