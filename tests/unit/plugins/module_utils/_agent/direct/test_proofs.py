# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What follows from the answers of servers for a VIP."""

from __future__ import annotations

from functools import reduce

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.proofs import (
    ANSWERED,
    ELSEWHERE,
    NO_SOURCE,
    REFUSED,
    SILENT,
    Path,
    Target,
    judge,
    outcome_of,
    sentence,
    source_of,
    too_small,
)
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.netlink import Address
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.segments import ACK, RST, SYN, Ends, Segment

MAC, OTHER = "02:00:00:00:00:01", "02:00:00:00:00:02"
KEY, KEY6 = ("192.0.2.100", 443, "192.0.2.1"), ("2001:db8::100", 443, "2001:db8::1")
FAULTS = (SILENT, REFUSED, ELSEWHERE, NO_SOURCE)


def after(*outcomes, path=None, mac=MAC):
    return reduce(lambda found, outcome: judge(found, mac, outcome), outcomes, path or Path())


@pytest.mark.parametrize("outcome", FAULTS)
def test_nothing_is_proven_before_an_answer(outcome):
    assert not Path().proven and not Path().judged
    assert not after(outcome).proven and after(outcome).judged
    assert after(outcome, outcome, outcome, ANSWERED).proven


@pytest.mark.parametrize("outcome", FAULTS)
def test_a_path_is_lost_after_two_probes_in_a_row_without_an_answer(outcome):
    assert after(ANSWERED, outcome).proven
    assert not after(ANSWERED, outcome, outcome).proven
    assert after(ANSWERED, outcome, ANSWERED, outcome).proven


def test_nothing_of_an_old_mac_counts_for_a_new_one():
    assert not after(SILENT, path=after(ANSWERED), mac=OTHER).proven
    assert after(SILENT, path=after(SILENT), mac=OTHER).failures == 1
    assert after(ANSWERED, path=after(SILENT), mac=OTHER) == Path(OTHER, ANSWERED, 0, True)


@pytest.mark.parametrize(
    "flags, mac, outcome",
    [
        (SYN | ACK, MAC, ANSWERED),
        (SYN | ACK, OTHER, ELSEWHERE),
        (RST | ACK, MAC, REFUSED),
        (RST | ACK, OTHER, ELSEWHERE),
        (ACK, MAC, ""),
        (SYN, MAC, ""),
    ],
)
def test_what_an_answer_says(flags, mac, outcome):
    assert outcome_of(Segment(Ends("192.0.2.100", 443, "192.0.2.9", 40000), flags, 1), mac, Target(MAC, "")) == outcome


@pytest.mark.parametrize("outcome", FAULTS)
def test_each_fault_names_the_server_and_the_mend(outcome):
    said = sentence(after(outcome), KEY, "web1", "eth0")
    assert said.startswith("web1 ") and "192.0.2.100:443" in said and ": " in said


def test_the_sentences():
    assert sentence(after(SILENT), KEY, "web1", "eth0") == (
        "web1 does not answer for 192.0.2.100:443 in direct return: run the role direct_server on it, and let nothing "
        "on the path drop its frames."
    )
    assert "[2001:db8::100]:443" in sentence(after(REFUSED), KEY6, "web1", "eth0")
    assert "give eth0 an address" in sentence(after(NO_SOURCE), KEY, "web1", "eth0")
    assert sentence(after(ANSWERED, SILENT), KEY, "web1", "eth0") == sentence(Path(), KEY, "web1", "eth0") == ""


@pytest.mark.parametrize(
    "server, source",
    [
        ("192.0.2.1", "192.0.2.9"),
        ("203.0.113.1", "198.51.100.9"),
        ("2001:db8::1", "2001:db8::9"),
        ("2001:db8:1::1", "fe80::9"),
    ],
)
def test_a_server_is_asked_from_its_own_network_and_never_from_a_vip(server, source):
    addresses = [
        Address(2, "192.0.2.100", 24, True),
        Address(2, "192.0.2.8", 24, False),
        Address(2, "198.51.100.9", 24, True),
        Address(2, "192.0.2.9", 24, True),
        Address(2, "fe80::9", 64, True),
        Address(2, "2001:db8::100", 128, True),
        Address(2, "2001:db8::9", 64, True),
    ]
    assert source_of(server, addresses, {"192.0.2.100", "2001:db8::100"}) == source


def test_without_an_address_of_its_family_there_is_no_source():
    assert (
        source_of("192.0.2.1", [Address(2, "fe80::9", 64, True), Address(2, "192.0.2.100", 24, True)], {KEY[0]}) == ""
    )


@pytest.mark.parametrize(
    "mtu, mss, said",
    [
        (1500, 1460, False),
        (1400, 1460, True),
        (9000, 1460, False),
        (1500, 8960, True),
        (0, 1460, False),
        (1400, 0, False),
    ],
)
def test_an_interface_that_takes_less_than_the_servers_is_a_fault(mtu, mss, said):
    assert bool(too_small(mtu, "eth0", {KEY: Path(mss=mss)})) == said


def test_the_headers_of_each_family_count():
    assert "packets of 1500 bytes" in too_small(1400, "eth0", {KEY6: Path(mss=1440)})
    assert too_small(1500, "eth0", {KEY6: Path(mss=1440), KEY: Path(mss=1460)}) == ""


def test_what_a_server_takes_is_of_its_last_answer():
    known = judge(Path(), MAC, ANSWERED, 1460)
    assert (known.mss, judge(known, MAC, SILENT).mss, judge(known, OTHER, SILENT).mss) == (1460, 1460, 0)
