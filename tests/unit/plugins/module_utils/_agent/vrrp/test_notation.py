# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How addresses and routes are written."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import notation, rules
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.notation import Route

ADDRESS = notation.on_interface(rules.vip)


@pytest.mark.parametrize(
    "written, read",
    [
        ("192.0.2.10", "192.0.2.10/32"),
        ("192.0.2.10/24", "192.0.2.10/24"),
        (" 192.0.2.10  dev eth1 ", "192.0.2.10/32 dev eth1"),
        ("2001:db8::10/64 dev bond0.7", "2001:db8::10/64 dev bond0.7"),
    ],
)
def test_an_address_may_have_an_interface(written, read):
    assert ADDRESS(written) == (read, None)
    assert notation.split_dev(read) == (read.split()[0], read.split()[-1] if "dev" in read else "")


@pytest.mark.parametrize(
    "written, wrong",
    [
        ("192.0.2.300 dev eth1", "an address, with or without a prefix length, is required."),
        ("192.0.2.10 dev", "an address is required, or an address, dev and the interface that carries it."),
        ("192.0.2.10 label eth0:1", "an address, with or without a prefix length, is required."),
        ("192.0.2.10 dev a-name-that-is-too-long", "an interface's name has at most 15 characters."),
        ({"a": 1}, "an address, with or without a prefix length, is required."),
        (
            "192.0.2.10 label a dev eth1",
            "an address is required, or an address, dev and the interface that carries it.",
        ),
        (None, "an address, with or without a prefix length, is required."),
    ],
)
def test_an_address_that_is_written_otherwise_is_refused(written, wrong):
    assert ADDRESS(written) == (None, wrong)


@pytest.mark.parametrize(
    "written, read",
    [
        ("10.0.0.0/8 dev eth1", Route("10.0.0.0/8", "eth1")),
        ("to 10.0.0.1 dev eth1", Route("10.0.0.1/32", "eth1")),
        ("default via 192.0.2.254 dev eth0", Route("0.0.0.0/0", "eth0", "192.0.2.254")),
        ("default via fe80::1 dev eth0", Route("::/0", "eth0", "fe80::1")),
        (
            "10.0.0.0/8 table 254 metric 254 src 192.0.2.10 dev eth0 via 192.0.2.254",
            Route("10.0.0.0/8", "eth0", "192.0.2.254", "192.0.2.10", 254),
        ),
        ("2001:DB8::/32 dev eth0 table 4294967295", Route("2001:db8::/32", "eth0", table=4294967295)),
    ],
)
def test_a_route_is_read_and_written_in_one_way(written, read):
    assert notation.read_route(written) == (read, None)
    assert notation.route(written) == (str(read), None)
    assert notation.read_route(str(read)) == (read, None)


def test_a_route_is_written_as_ip_route_writes_it():
    whole = Route("10.0.0.0/8", "eth0", "192.0.2.254", "192.0.2.10", 50, 7)
    assert str(whole) == "10.0.0.0/8 via 192.0.2.254 dev eth0 src 192.0.2.10 metric 50 table 7"


@pytest.mark.parametrize(
    "written, wrong",
    [
        ("", "a network, dev and an interface are required."),
        (["10.0.0.0/8"], "a network, dev and an interface are required."),
        ("10.0.0.0/8", "it names no interface: write dev and its name."),
        ("10.0.0.0/8 via 192.0.2.254", "it names no interface: write dev and its name."),
        (
            "10.0.0.1/8 dev eth0",
            "'10.0.0.1/8' is not a network: use a form such as 10.0.0.0/8, or 0.0.0.0/0 or ::/0 for every address.",
        ),
        (
            "default dev eth0",
            "'default' is not a network: use a form such as 10.0.0.0/8, or 0.0.0.0/0 or ::/0 for every address.",
        ),
        (
            "fe80::%eth0/64 dev eth0",
            "'fe80::%eth0/64' is not a network: use a form such as 10.0.0.0/8, or 0.0.0.0/0 or ::/0 for every address.",
        ),
        ("10.0.0.0/8 dev eth0 scope link", "scope is unknown; a route has a network, and once each via, dev, src,"),
        ("10.0.0.0/8 dev eth0 dev eth1", "dev is there twice; a route has a network, and once each via, dev, src,"),
        ("10.0.0.0/8 dev eth0 metric", "metric is '': a metric from 0 to 4294967295 is required."),
        ("10.0.0.0/8 dev eth0 table main", "table is 'main': the number of a table from 1 to 4294967295 is required."),
        ("10.0.0.0/8 dev eth0 via 224.0.0.1", "via is '224.0.0.1': no host can be reached at that address."),
        ("10.0.0.0/8 dev eth0 src 192.0.2", "src is '192.0.2': an IPv4 or IPv6 address is required."),
        ("10.0.0.0/8 dev eth0 via fe80::1", "it mixes IPv4 and IPv6: name addresses of one family."),
    ],
)
def test_a_route_that_the_kernel_could_not_have_is_refused(written, wrong):
    found, sentence = notation.route(written)
    assert found is None and sentence.startswith(wrong)
