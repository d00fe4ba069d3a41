# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A takeover that is made ready before: what is seen from outside comes first, and only if it is still right."""

from __future__ import annotations

import errno

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.prepared import PreparedCall
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.settings import Group
from support.vrrp.fakes import BACK, DOWN_INTERVAL, FRONT, OTHER, SECOND, THIRD, VIP, Host

ELEVEN = "192.0.2.11"
TWO = FRONT._replace(addresses=(f"{VIP}/32", f"{ELEVEN}/32"), peers=(OTHER, THIRD))
BOTH = Group("both", ("front", "back"))


@pytest.fixture
def host():
    return Host()


class Call:
    def __init__(self, fault=None):
        self.fault, self.made = fault, 0

    def __call__(self):
        self.made += 1
        if self.fault:
            raise self.fault


def test_a_deed_that_is_done_ahead_is_not_done_again_in_its_turn():
    call = Call()
    deed = PreparedCall(call)
    assert deed.run_early()
    deed()
    assert call.made == 1


def test_a_deed_that_is_not_done_ahead_is_done_in_its_turn():
    call = Call()
    PreparedCall(call)()
    assert call.made == 1


def test_a_required_call_that_failed_early_stops_later_calls_and_is_reported_in_its_turn():
    call = Call(OSError(errno.EACCES, "no"))
    deed = PreparedCall(call, required=True)
    assert not deed.run_early()
    with pytest.raises(OSError) as raised:
        deed()
    assert (raised.value, call.made) == (call.fault, 1)


def test_another_call_that_failed_early_is_made_again_in_its_turn():
    call = Call(OSError(errno.EAGAIN, "later"))
    deed = PreparedCall(call)
    assert deed.run_early()
    with pytest.raises(OSError):
        deed()
    call.fault = None
    deed()
    assert call.made == 3


def test_all_that_others_see_comes_before_anything_is_written_down(host):
    host.start(TWO)
    host.let(DOWN_INTERVAL - 0.001)
    host.done()
    host.let(0.001)
    done = host.done()
    assert done[:6] == [
        f"send 100 to {OTHER}",
        f"send 100 to {THIRD}",
        f"add {VIP}/32 to eth0",
        f"add {ELEVEN}/32 to eth0",
        f"announce {VIP} on eth0",
        f"announce {ELEVEN} on eth0",
    ]
    assert done[-1] == "says front: Backup to Active: no Advertisement was heard"
    assert sum(line == f"announce {VIP} on eth0" for line in done) == 5


def test_nothing_is_sent_before_active_down_timer_expires(host):
    host.start()
    host.done()
    host.let(DOWN_INTERVAL - 0.000_601)
    assert host.done() == []
    host.let(0.000_001)  # from now on it is made ready
    assert (host.state, host.loop.now()) == ("Active", round((5 + DOWN_INTERVAL) * SECOND))


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
    assert host.done()[:2] == [f"send 100 to {THIRD}", f"add {VIP}/32 to eth0"]
    assert host.state == "Active"


def test_an_interface_that_takes_no_announcement_does_not_hold_it_up(host):
    host.network.mute = errno.ENETDOWN
    host.start()
    host.let(DOWN_INTERVAL)
    assert (host.state, host.held) == ("Active", [f"{VIP}/32"])


def interrupt(host, happens):
    """Something happens while the last moment passes."""
    hold = host.loop.spin_until

    def held(moment):
        host.loop.spin_until = hold
        hold(moment)
        happens()

    host.loop.spin_until = held


def test_an_advertisement_at_the_last_moment_prevents_the_takeover(host):
    host.start()
    host.done()
    interrupt(host, lambda: host.deliver(200))
    host.let(DOWN_INTERVAL)
    assert (host.state, host.done()) == ("Backup", [])


def test_a_takeover_that_was_not_wanted_leaves_the_next_one_right(host):
    host.start()
    interrupt(host, lambda: host.deliver(200))
    host.let(DOWN_INTERVAL)
    host.netlink.unlink("eth0")
    host.netlink.link("eth0", 7)  # made anew meanwhile
    host.netlink.put("192.0.2.1/24")
    host.let()
    host.done()
    host.let(DOWN_INTERVAL)
    assert host.state == "Active"
    assert host.netlink.there.keys() >= {(7, VIP, 32)}


def test_a_lower_voice_at_the_last_moment_changes_nothing(host):
    host.start()
    host.done()
    interrupt(host, lambda: host.deliver(50))
    host.let(DOWN_INTERVAL)
    assert (host.state, host.done()[:2]) == ("Active", [f"send 100 to {OTHER}", f"add {VIP}/32 to eth0"])


def test_a_whole_sync_group_takes_over_in_one_go(host):
    host.start(FRONT, BACK._replace(priority=200), groups=(BOTH,))
    host.let(DOWN_INTERVAL - 0.001)
    host.done()
    host.let(0.001)
    assert [line.partition(" ")[0] for line in host.done()[:7]] == [
        *("send", "add", "announce", "send", "add", "announce", "announce"),
    ]


def test_a_member_whose_sync_group_is_not_ready_does_nothing(host):
    host.start(FRONT, BACK, groups=(BOTH,))
    host.hears(200, source="198.51.100.2", destination="198.51.100.1", of=BACK)
    host.let(DOWN_INTERVAL - 0.5)
    host.hears(200, source="198.51.100.2", destination="198.51.100.1", of=BACK)
    host.done()
    host.let(0.6)
    assert (set(host.states.values()), host.acts()) == ({"Backup"}, [])


def test_what_is_ready_is_used_once(host):
    host.start(FRONT._replace(announce_again=0)).activate()
    host.hears(200)
    host.done()
    host.let(DOWN_INTERVAL)
    assert host.done()[:3] == [f"send 100 to {OTHER}", f"add {VIP}/32 to eth0", f"announce {VIP} on eth0 x5"]


def test_active_down_timer_counts_from_the_arrival_of_a_message(host):
    host.start()
    host.deliver(200, age=400)
    host.let()
    host.let(DOWN_INTERVAL - 0.000_5)
    assert host.state == "Active"
    assert host.loop.now() == round((5 + DOWN_INTERVAL) * SECOND) - 400


def resign(host):
    """Tell it to leave; return when it had gone, as a list that is empty until then."""
    gone = []
    host.daemon.resign(lambda: gone.append(host.loop.now()))
    return gone


def kinds(lines):
    return [line.partition(" ")[0] for line in lines]


def test_all_farewells_are_said_once_and_the_addresses_stay(host):
    host.start(FRONT, BACK).activate()
    host.hears(200)  # the first one is Backup now
    host.let(DOWN_INTERVAL)
    host.done()
    assert resign(host) == []
    assert kinds(host.acts()) == ["send", "send"]
    assert set(host.states.values()) == {"Initialize"}
    assert len(host.held) == 2


def test_a_moment_after_the_new_active_routers_advertisement_the_addresses_are_removed(host):
    host.start().activate()
    gone = resign(host)
    host.let(0.3)
    host.hears(50)
    host.done()
    host.let(0.049)
    assert (gone, host.held) == ([], [f"{VIP}/32"])
    host.let(0.001)
    assert (len(gone), host.held, host.acts()) == (1, [], [f"delete {VIP}/32 from eth0"])


def test_without_a_new_active_router_they_go_when_the_linger_time_is_over(host):
    host.start().activate()
    gone = resign(host)
    host.let(1.199)
    assert gone == []
    host.let(0.001)
    assert (len(gone), host.held) == (1, [])


def test_of_several_routers_the_last_one_ends_it(host):
    host.start(FRONT, BACK).activate()
    gone = resign(host)
    host.hears(50)
    host.let(0.05)
    assert (gone, host.held) == ([], ["198.51.100.10/32"])
    host.let(1.15)
    assert len(gone) == 1


def test_a_backup_leaves_without_a_word_and_at_once(host):
    host.start()
    host.done()
    assert len(resign(host)) == 1
    assert host.acts() == []


def test_a_router_that_keeps_its_addresses_removes_them_at_once_when_it_is_stopped(host):
    host.start().activate()
    resign(host)
    host.done()
    host.daemon.stop()
    assert (host.held, host.acts()) == ([], [f"delete {VIP}/32 from eth0"])


def test_a_router_that_keeps_its_addresses_after_its_resignation_restores_none(host):
    """It no longer reacts to a check that recovers, or to an address that is deleted."""
    host.start().activate()
    resign(host)
    host.netlink.take_away(f"{VIP}/32")
    host.done()
    host.let(2)
    assert [line for line in host.acts() if not line.startswith("delete")] == []
