# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host offers the other members whose balancer does not answer, on a host without a kernel."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.keepalived import offers
from ansible_collections.onprem.lb.plugins.module_utils._agent.keepalived.senders import LOWEST
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import machine
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import offers as core
from support.agent.loops import SECOND, Time
from support.paths import GOLDEN
from support.vrrp import fakes

PAIR = (GOLDEN / "pair.lb1.keepalived.conf").read_text()
NAME, VIP = "haproxy_answers", "192.0.2.10/32"
TOLD = "vip-192.0.2.10 is offered to the other members."


@pytest.fixture
def host():
    network = fakes.Network([])
    network.netlink.link("eth0", 1)
    network.netlink.put("192.0.2.1/24", "eth0")
    return network


class Log:
    def __init__(self):
        self.said = []
        self.info = self.warning = self.said.append


def made(host, text=PAIR):
    """Return the offers of a host, its clock, and what it has logged."""
    time, log = Time(), Log()
    return offers.Offers(time, log, lambda: text, NAME, lambda: host.netlink, host.open_socket), time, log.said


def sent(host, text=PAIR, numbers=(1,), pause=SECOND):
    """Return what a host sends after questions of these numbers."""
    offer, time, _said = made(host, text)
    for number in numbers:
        offer.make(number)
        time.advance(pause)
    return host.journal


def test_a_holder_resigns_once_its_lower_priority_has_settled_and_says_later_that_it_is_still_there(host):
    host.netlink.put(VIP, "eth0")
    offer, time, said = made(host)
    offer.make(1)
    assert host.journal == []
    time.advance(core.SETTLED)
    assert host.journal == ["send 0 to 192.0.2.2"] and said == [TOLD]
    time.advance(SECOND)
    assert host.journal[1:] == ["send 1 to 192.0.2.2"]  # 254 and the weight


def test_it_says_nothing_more_once_another_member_has_taken_over(host):
    host.netlink.put(VIP, "eth0")
    offer, time, _said = made(host)
    offer.make(1)
    time.advance(core.SETTLED)
    host.netlink.delete(1, VIP)
    host.journal.clear()
    time.advance(SECOND)
    assert host.journal == []


def test_a_backup_offers_nothing(host):
    assert sent(host) == []


def test_one_that_answers_before_its_offer_is_due_makes_none(host):
    host.netlink.put(VIP, "eth0")
    assert sent(host, numbers=(1, 0), pause=core.SETTLED - 1) == []


def test_it_is_offered_three_times_in_a_row_and_then_every_fourth_time(host):
    host.netlink.put(VIP, "eth0")
    assert sent(host, numbers=range(1, 32), pause=10 * SECOND).count("send 0 to 192.0.2.2") == 3 + 7


def test_only_the_first_offer_is_logged(host):
    host.netlink.put(VIP, "eth0")
    offer, time, said = made(host)
    for number in range(1, 12):
        offer.make(number)
        time.advance(10 * SECOND)
    assert said == [TOLD]


def test_what_cannot_be_sent_is_a_sentence_once(host):
    host.netlink.put(VIP, "eth0")
    offer, time, said = made(host)

    def refused(*_where):
        raise PermissionError(1, "Operation not permitted")

    offer._open_socket = refused
    for number in (1, 2):
        offer.make(number)
        time.advance(2 * SECOND)
    assert said == ["vip-192.0.2.10 cannot be offered to the other members: Operation not permitted."]


@pytest.mark.parametrize("weight", ["", "weight 0"], ids=["not tracked", "tracked with FAULT"])
def test_what_does_not_only_lower_its_priority_is_not_offered(host, weight):
    line = f"        {NAME} weight -253\n"
    text = PAIR.replace(line, f"        {NAME} {weight}\n" if weight else "")
    assert text != PAIR
    host.netlink.put(VIP, "eth0")
    assert sent(host, text) == []


def test_the_wait_is_between_the_skew_times_of_those_that_answer_and_those_that_do_not():
    for version, unit in ((2, SECOND), (3, SECOND // 10)):
        for highest, lowest in ((254, 253), (254, 228), (100, 98), (254, 128)):
            patience = core.patience(highest, unit)
            answering, silent = (
                machine.skew_time(
                    machine.VirtualRouter(version, priority, unit, "192.0.2.1"), machine.State(active_interval=unit)
                )
                for priority in (lowest, LOWEST)
            )
            assert answering < patience < silent
