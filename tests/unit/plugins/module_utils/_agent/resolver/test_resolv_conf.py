# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of another resolv.conf is taken over, and where the host's own resolver stands in it."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.resolver import resolv_conf

OWN = "192.0.2.11"
THEIRS = [f"192.0.2.{number}" for number in range(1, 6)]


def servers(text):
    return [line.split()[1] for line in text.splitlines() if line.startswith("nameserver")]


@pytest.mark.parametrize(
    "upstreams, places",
    [
        (0, [OWN]),
        (1, [OWN, THEIRS[0]]),
        (2, [OWN, THEIRS[1]]),
        (3, [OWN, OWN, THEIRS[2]]),
        (5, [OWN, OWN, THEIRS[2]]),
    ],
)
def test_it_takes_all_places_but_the_last_one_and_adds_none(upstreams, places):
    """A retry of glibc is of the next place, and dnsmasq asks the next server then. glibc reads three."""
    assert servers(resolv_conf.render("", OWN, THEIRS[:upstreams])) == places


def test_while_it_does_not_answer_the_host_has_what_it_had():
    source = "search a.example\noptions timeout:2 rotate\nnameserver 192.0.2.1\n"
    text = resolv_conf.render_stopped(source, THEIRS)
    assert servers(text) == THEIRS[:3] and text.startswith(resolv_conf.MARK)
    assert "search a.example" in text and "options timeout:2\n" in text


@pytest.mark.parametrize("option", [*resolv_conf.OPTIONS, "attempts:3", "timeout:1", "ndots:5"])
def test_an_option_that_means_the_same_is_taken_over(option):
    assert resolv_conf.carried(f"options {option}") == ([f"options {option}"], [])


@pytest.mark.parametrize("option", [*resolv_conf.DROPPED, "ip6-bytestring"])
def test_any_other_option_is_left_out_and_said(option):
    lines, dropped = resolv_conf.carried(f"options {option} ndots:2\noptions {option}\n")
    assert lines == ["options ndots:2"] and len(dropped) == 1 and f"the option {option}," in dropped[0]


@pytest.mark.parametrize("line", ["search a.example b.example", "domain a.example", "sortlist 192.0.2.0/24"])
def test_the_lines_that_are_not_about_servers_are_taken_over(line):
    assert resolv_conf.carried(f"# said by dhclient\n; and\n  {line}\nlookup file bind\n") == ([line], [])


def test_each_name_server_is_named_once():
    assert resolv_conf.nameservers("nameserver 192.0.2.1\n#nameserver 192.0.2.9\nnameserver 192.0.2.1\n") == [
        "192.0.2.1"
    ]


@pytest.mark.parametrize(
    "written, read",
    [
        ("2001:DB8:0::7", ["2001:db8::7"]),
        ("fe80:0::1%eth0", ["fe80::1%eth0"]),
        *((wrong, []) for wrong in ("dns.example", "192.0.2", "192.0.2.1#54", "%eth0", "0.0.0.0", "")),
    ],
)
def test_a_name_server_is_an_address_and_compared_as_one(written, read):
    assert resolv_conf.nameservers(f"nameserver {written}\nnameserver {written}\n") == read
