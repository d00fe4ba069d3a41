# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The probe that runs before a deployment, on a real link: which hosts answer for an address."""

from __future__ import annotations

import json
import subprocess

from support.waiting import LIMIT_S

VIP, VIP6 = "192.0.2.100", "2001:db8::100"

ASK = """
import json, sys
from ansible_collections.onprem.lb.plugins.module_utils._host.link.neighbours import holders_on_link
print(json.dumps(holders_on_link({"eth0": sys.argv[1:]}, 0.6)))
"""


def ask(node):
    out, _err = node.python(ASK, VIP, VIP6).communicate(timeout=LIMIT_S)
    return json.loads(out)


def cache(node):
    command = ["ip", "-n", node.namespace, "neigh", "show"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_no_host_answers_for_a_free_address(link):
    assert ask(link.client) == {VIP: [], VIP6: []}


def test_the_holder_answers_in_both_families(link):
    link.lb1.take_over(VIP, VIP6)
    assert ask(link.client) == {VIP: [link.lb1.mac], VIP6: [link.lb1.mac]}


def test_two_holders_are_both_found(link):
    link.lb1.take_over(VIP, VIP6)
    link.lb2.take_over(VIP, VIP6)
    both = [link.lb1.mac, link.lb2.mac]
    assert ask(link.client) == {VIP: both, VIP6: both}


def test_an_arp_probe_leaves_no_entry_in_the_holders_neighbour_table(link):
    link.lb1.take_over(VIP)
    assert ask(link.client)[VIP] == [link.lb1.mac]
    assert f"192.0.2.{link.client.number} " not in cache(link.lb1)


def test_a_probe_does_not_make_duplicate_address_detection_fail(link):
    """A solicitation from :: would (RFC 4862, 5.4.3)."""
    link.lb1.set_dad(True)
    link.lb1.set_sysctl("ipv6/conf/eth0/dad_transmits", 2 * LIMIT_S)  # one a second
    link.lb1.ip("addr", "add", VIP6, "dev", "eth0")
    ask(link.client)
    addresses = link.lb1.output("ip", "-6", "addr", "show", "dev", "eth0")
    assert "tentative" in addresses and "dadfailed" not in addresses
