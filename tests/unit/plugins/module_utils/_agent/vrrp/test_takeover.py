# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The takeover of a Backup whose Active_Down_Timer expires: what it sends, in which order, and what prevents it."""

from __future__ import annotations

import errno
from unittest import mock

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.neighbour_table import Neighbour
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import unanswered
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.settings import Group
from support.vrrp.fakes import BACK, DOWN_INTERVAL, FRONT, OTHER, OWN, SECOND, SIX, THIRD, VIP, Host

ELEVEN = "192.0.2.11"
TWO = FRONT._replace(addresses=(f"{VIP}/32", f"{ELEVEN}/32"), peers=(OTHER, THIRD))
BOTH = Group("both", ("front", "back"))


@pytest.fixture
def host():
    return Host()


def test_a_backup_advertises_and_then_takes_and_announces_each_address(host):
    host.start(TWO)
    host.let(DOWN_INTERVAL - 0.000_001)
    host.done()
    host.let(0.000_001)
    assert host.done() == [
        f"send 100 to {OTHER}",
        f"send 100 to {THIRD}",
        f"add {VIP}/32 to eth0",
        f"add {ELEVEN}/32 to eth0",
        *[f"announce {VIP} on eth0", f"announce {ELEVEN} on eth0"] * 5,
        "says front: Backup to Active: no Advertisement was heard",
    ]


SERVER, OTHERS_SERVER, SERVER6 = Neighbour(2, "192.0.2.20"), Neighbour(3, "198.51.100.20"), Neighbour(2, "fe80::20")


def questions(host):
    return [line for line in host.done() if line.startswith("ask ")]


def test_whom_the_kernel_asks_for_in_vain_is_asked_for_once_more_after_a_takeover(host):
    host.netlink.asked_in_vain = [SERVER, OTHERS_SERVER, SERVER6]
    host.start(FRONT, BACK)
    assert questions(host) == []
    host.let(DOWN_INTERVAL)
    done = host.done()
    asked = [f"ask on eth0 for the MAC of 192.0.2.20 from {OWN}"]
    asked += ["ask on eth1 for the MAC of 198.51.100.20 from 198.51.100.1"]
    assert done[-2:] == asked and f"announce {VIP} on eth0 x5" in done


def test_neighbours_are_asked_for_once_however_many_routers_take_over(host):
    host.netlink.asked_in_vain = [SERVER, SERVER6]
    host.start(FRONT, FRONT._replace(name="more", vrid=61, addresses=(f"{ELEVEN}/32",)), SIX._replace(interval=SECOND))
    host.let(DOWN_INTERVAL)
    assert sorted(questions(host)) == [
        f"ask on eth0 for the MAC of 192.0.2.20 from {OWN}",
        "ask on eth0 for the MAC of fe80::20 from fe80::1",
    ]


def test_no_more_neighbours_are_asked_for_than_a_link_bears(host):
    host.netlink.asked_in_vain = [Neighbour(2, f"192.0.2.{number}") for number in range(20, 120)]
    host.start()
    host.let(DOWN_INTERVAL)
    assert len(questions(host)) == unanswered.MAX_QUESTIONS


def test_a_neighbour_that_cannot_be_asked_for_is_no_fault(host):
    host.netlink.asked_in_vain = [SERVER]
    host.start()
    host.network.ask = mock.Mock(side_effect=OSError(errno.ENETDOWN, "down"))
    host.let(DOWN_INTERVAL)
    assert host.state == "Active"


def test_the_first_failure_of_an_address_keeps_it_from_being_announced(host):
    host.netlink.refused[f"{VIP}/32"] = errno.EACCES
    host.start(TWO)
    host.done()
    host.let(DOWN_INTERVAL)
    acts = [line for line in host.acts() if "100" in line or "add" in line or "announce" in line or "refuses" in line]
    assert acts == [f"send 100 to {OTHER}", f"send 100 to {THIRD}", f"refuses {VIP}/32"]
    assert host.state == "Fault"


def test_a_peer_that_cannot_be_reached_does_not_hold_it_up(host):
    host.start(TWO)
    host.port().unreachable.add(OTHER)
    host.done()
    host.let(DOWN_INTERVAL)
    assert host.acts()[:2] == [f"send 100 to {THIRD}", f"add {VIP}/32 to eth0"]
    assert host.state == "Active"


def test_an_interface_that_takes_no_announcement_does_not_hold_it_up(host):
    host.network.mute = errno.ENETDOWN
    host.start()
    host.let(DOWN_INTERVAL)
    assert (host.state, host.held) == ("Active", [f"{VIP}/32"])


def test_an_advertisement_that_was_not_read_in_time_prevents_the_takeover(host):
    host.start()
    host.done()
    host.loop.stall(DOWN_INTERVAL)
    host.deliver(200)
    host.let()
    assert (host.state, host.done()) == ("Backup", [])


def test_a_lower_priority_that_was_not_read_in_time_prevents_nothing(host):
    host.start()
    host.done()
    host.loop.stall(DOWN_INTERVAL)
    host.deliver(50)
    host.let()
    assert (host.state, host.done()[:2]) == ("Active", [f"send 100 to {OTHER}", f"add {VIP}/32 to eth0"])


def test_a_takeover_uses_the_interface_as_it_is_then(host):
    host.start()
    host.let(1)
    host.netlink.unlink("eth0")
    host.netlink.link("eth0", 7)  # created again
    host.netlink.put("192.0.2.1/24")
    host.let()
    host.let(DOWN_INTERVAL)
    assert host.state == "Active"
    assert host.netlink.there.keys() >= {(7, VIP, 32)}


def test_a_sync_group_takes_over_together(host):
    host.start(FRONT, BACK._replace(priority=200), groups=(BOTH,))
    host.let(DOWN_INTERVAL - 0.001)
    host.done()
    host.let(0.001)
    assert [line.partition(" ")[0] for line in host.done()[:8]] == [
        *("send", "add", "announce", "says", "send", "add", "announce", "says"),
    ]


def test_a_member_whose_sync_group_is_not_ready_does_nothing(host):
    host.start(FRONT, BACK, groups=(BOTH,))
    host.hears(200, source="198.51.100.2", destination="198.51.100.1", of=BACK)
    host.let(DOWN_INTERVAL - 0.5)
    host.hears(200, source="198.51.100.2", destination="198.51.100.1", of=BACK)
    host.done()
    host.let(0.6)
    assert (set(host.states.values()), host.acts()) == ({"Backup"}, [])


def test_active_down_timer_counts_from_the_arrival_of_a_message(host):
    host.start()
    host.deliver(200, age=400)
    host.let()
    host.let(DOWN_INTERVAL - 0.000_4)
    assert host.state == "Active"
    assert host.loop.now() == round((5 + DOWN_INTERVAL) * SECOND) - 400


def test_all_is_built_before_the_advertisement_is_sent(host):
    """Clients wait from the Advertisement to the announcement."""
    host.start()
    host.let(1)
    host.done()
    for of, name in ((host.netlink, "adding"), (host.network, "announcing"), (host.port(), "sending")):
        build = getattr(of, name)
        setattr(of, name, lambda *given, build=build, name=name: host.journal.append(f"builds {name}") or build(*given))
    host.let(DOWN_INTERVAL - 1)
    kinds = [line.partition(" ")[0] for line in host.done()]
    assert kinds == ["builds", "builds", "builds", "send", "add", "announce", "says"]
