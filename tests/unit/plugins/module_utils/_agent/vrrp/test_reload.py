# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Other settings for a daemon that runs: what is not changed does not notice."""

from __future__ import annotations

import errno

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks import settings
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.settings import Check
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import packet
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.settings import Group, Tracked
from support.vrrp.fakes import BACK, DOWN_INTERVAL, FRONT, OTHER, SECOND, SIX, THIRD, VIP, Host

HAPROXY = Check("haproxy", settings.PROCESS)
TRACKING = FRONT._replace(track=(Tracked("haproxy"),))
BOTH = Group("both", ("front", "back"), ("/bin/all",))
ELEVEN = "192.0.2.11"


@pytest.fixture
def host():
    return Host()


def test_what_is_not_changed_does_not_notice(host):
    host.start(FRONT, BACK).activate()
    port, timers = host.port(), host.loop.waiting
    host.apply(BACK, FRONT)
    assert host.done() == []
    assert host.port() is port
    assert host.loop.waiting == timers
    host.let(1)
    assert sorted(host.acts()) == [f"send 100 to {OTHER}", "send 100 to 198.51.100.2"]


def test_a_backup_that_is_not_changed_waits_no_longer(host):
    host.start(FRONT)
    for _time in range(7):
        host.let(0.5)
        host.apply(FRONT, BACK._replace(priority=_time + 1))
    host.let(DOWN_INTERVAL - 3.5)
    assert host.states["front"] == "Active"


def test_neighbours_that_come_go_and_change_are_not_noticed_either(host):
    host.start(FRONT, BACK).activate()
    host.apply(FRONT, SIX)
    host.apply(FRONT, SIX._replace(priority=7))
    host.apply(FRONT)
    assert not [line for line in host.done() if VIP in line or OTHER in line or "front" in line]
    assert host.states == {"front": "Active"}


SOFT = {
    "priority": 200,
    "preempt": False,
    "preempt_delay": SECOND,
    "auth_pass": b"geheim",
    "peers": (THIRD,),
    "source": "198.51.100.1",
    "multicast": True,
    "announce_again": 7 * SECOND,
    "notify": ("/bin/tell",),
    "checksum": packet.RFC9568,
    "interval": 2 * SECOND,
}


@pytest.mark.parametrize("field", SOFT)
def test_an_active_router_stays_active_whatever_is_changed_of_it(host, field):
    host.start().activate()
    host.apply(FRONT._replace(**{field: SOFT[field]}))
    assert (host.state, host.done()) == ("Active", [])
    host.let(1)
    (sent,) = [line for line in host.acts() if line.startswith("send")]
    priority, to = SOFT[field] if field == "priority" else 100, {"peers": THIRD, "multicast": packet.GROUP}
    assert sent == f"send {priority} to {to.get(field, OTHER)}"


@pytest.mark.parametrize("field", SOFT)
def test_a_backup_stays_backup_whatever_is_changed_of_it(host, field):
    host.start()
    host.hears(250)
    host.done()
    host.apply(FRONT._replace(**{field: SOFT[field]}))
    assert (host.state, host.done()) == ("Backup", [])


def test_a_shorter_interval_counts_from_the_next_advertisement_on(host):
    three = FRONT._replace(version=3)
    host.start(three).activate()
    host.apply(three._replace(interval=SECOND // 10))
    host.let(1)
    assert host.acts() == [f"send 100 to {OTHER} x10"]


def test_a_shorter_wait_counts_at_once(host):
    host.start(FRONT._replace(version=2, interval=10 * SECOND))
    host.apply(FRONT)
    host.let(DOWN_INTERVAL)
    assert host.state == "Active"


def test_a_longer_interval_of_others_is_waited_for(host):
    host.start()
    host.let(DOWN_INTERVAL - 0.1)
    host.apply(FRONT._replace(interval=10 * SECOND))
    host.let(30)
    assert host.state == "Backup"


@pytest.mark.parametrize("field, value", [("interface", "eth1"), ("vrid", 77), ("version", 3)])
def test_another_virtual_router_is_one_that_stops_and_one_that_starts(host, field, value):
    host.start().activate()
    host.apply(FRONT._replace(**{field: value}))
    assert host.done() == [
        f"send 0 to {OTHER}",
        f"delete {VIP}/32 from eth0",
        "says front: Active to Initialize: stop",
        "says front: Initialize to Backup: start",
    ]


def test_another_name_moves_nothing(host):
    host.start(FRONT._replace(announce_again=7 * SECOND)).activate()
    host.apply(FRONT._replace(name="other", announce_again=7 * SECOND))
    assert (host.states, host.done()) == ({"other": "Active"}, [])
    host.let(8)
    assert f"announce {VIP} on eth0" in host.done()
    host.hears(200)
    assert host.says() == [f"other: Active to Backup: Advertisement with priority 200 from {OTHER}"]


def test_two_instances_may_swap_their_names(host):
    second = FRONT._replace(name="second", vrid=77, priority=250, addresses=("192.0.2.77/32",))
    host.start(FRONT, second).activate()
    host.apply(FRONT._replace(name="second"), second._replace(name="front"))
    assert (host.states, host.done()) == ({"second": "Active", "front": "Active"}, [])
    assert host.report("front")["held"] == ["192.0.2.77/32"]


def test_a_member_of_a_sync_group_keeps_its_state_under_another_name(host):
    host.start(FRONT, BACK, groups=(Group("both", ("front", "back")),)).activate()
    host.apply(FRONT._replace(name="other"), BACK, groups=(Group("both", ("other", "back")),))
    assert (host.states, host.done()) == ({"other": "Active", "back": "Active"}, [])
    host.hears(200)
    assert set(host.states.values()) == {"Backup"}


def test_an_instance_that_is_removed_stops(host):
    host.start(FRONT, BACK).activate()
    host.apply(BACK)
    assert host.acts() == [f"send 0 to {OTHER}", f"delete {VIP}/32 from eth0"]
    host.let(100)
    assert not [line for line in host.acts() if VIP in line]


def test_an_instance_that_is_added_starts(host):
    host.start().activate()
    host.apply(FRONT, BACK)
    assert host.done() == ["says back: Initialize to Backup: start"]
    host.let(DOWN_INTERVAL)
    assert host.states == {"front": "Active", "back": "Active"}


# --- addresses --------------------------------------------------------------------------------------------------


def test_an_active_router_takes_new_addresses_and_drops_old_ones(host):
    host.start(FRONT._replace(addresses=(f"{VIP}/32", "192.0.2.12/32"))).activate()
    host.apply(FRONT._replace(addresses=(f"{VIP}/32", f"{ELEVEN}/32")))
    assert host.done() == [
        "delete 192.0.2.12/32 from eth0",
        f"add {ELEVEN}/32 to eth0",
        f"says front: {ELEVEN}/32 put on eth0: new",
        *[f"announce {VIP} on eth0", f"announce {ELEVEN} on eth0"] * 5,
    ]
    assert host.state == "Active"


def test_an_active_router_says_which_addresses_it_has_now(host):
    host.start().activate()
    two = FRONT._replace(addresses=(f"{VIP}/32", f"{ELEVEN}/32"))
    host.apply(two)
    sent = []
    host.port().heard = sent.append
    host.let(1)
    assert sent[0].addresses == (VIP, ELEVEN)


def test_a_router_whose_new_address_is_refused_is_in_fault(host):
    host.netlink.refused[f"{ELEVEN}/32"] = errno.EACCES
    host.start().activate()
    host.apply(FRONT._replace(addresses=(f"{VIP}/32", f"{ELEVEN}/32")))
    assert (host.state, host.held) == ("Fault", [])
    assert not [line for line in host.acts() if line.startswith("announce")]


def test_other_addresses_than_the_refused_ones_are_tried_at_once(host):
    host.netlink.refused[f"{VIP}/32"] = errno.EACCES
    host.start()
    host.let(DOWN_INTERVAL)
    assert host.state == "Fault"
    host.apply(FRONT._replace(priority=101))
    assert host.state == "Fault"
    host.apply(FRONT._replace(addresses=(f"{ELEVEN}/32",)))
    assert host.state == "Backup"


def test_a_backup_touches_no_address(host):
    host.start()
    host.hears(200)
    host.done()
    host.apply(FRONT._replace(addresses=(f"{ELEVEN}/32",)))
    assert host.done() == []


def test_a_new_address_is_no_source(host):
    host.netlink.put("192.0.2.9/24")
    host.start()
    host.apply(FRONT._replace(addresses=("192.0.2.1/24",)))
    assert host.report()["source"] == "192.0.2.9"


@pytest.mark.parametrize("before, seconds", [(0, [10, 20, 30]), (60, [10, 20, 30])])
def test_how_often_an_announcement_is_repeated_can_be_changed_while_active(host, before, seconds):
    host.start(FRONT._replace(announce_again=before * SECOND)).activate()
    host.apply(FRONT._replace(announce_again=10 * SECOND))
    found = []
    for second in range(1, 35):
        host.let(1)
        if f"announce {VIP} on eth0" in host.acts():
            found.append(second)
    assert found == seconds


def test_the_second_round_of_announcements_comes_whatever_is_changed_meanwhile(host):
    host.start()
    host.let(DOWN_INTERVAL + 1)
    host.apply(FRONT._replace(priority=7))
    host.done()
    host.let(4)
    assert f"announce {VIP} on eth0 x5" in host.acts()


def test_an_announcement_that_is_not_to_be_repeated_any_more_ends(host):
    host.start(FRONT._replace(announce_again=10 * SECOND)).activate()
    host.apply(FRONT._replace(announce_again=0))
    host.let(10)
    host.done()
    host.let(100)
    assert not [line for line in host.acts() if line.startswith("announce")]


# --- checks -----------------------------------------------------------------------------------------------------


def test_what_is_not_tracked_any_more_is_no_fault_any_more(host):
    host.start(TRACKING, checks=(HAPROXY,))
    host.finds("haproxy", up=False)
    assert host.state == "Fault"
    host.apply(FRONT)
    assert host.state == "Backup"


def test_what_is_not_tracked_any_more_is_waited_for_no_more(host):
    host.start(TRACKING, checks=(HAPROXY,))
    assert host.state == "Initialize"
    host.apply(FRONT)
    assert host.state == "Backup"


def test_what_is_not_tracked_any_more_takes_nothing_from_the_priority(host):
    weighted = FRONT._replace(track=(Tracked("haproxy", -50),))
    host.start(weighted, checks=(HAPROXY,))
    host.finds("haproxy", up=False)
    assert host.report()["priority"]["effective"] == 50
    host.apply(FRONT)
    assert host.report()["priority"] == {"configured": 100, "effective": 100, "because": []}


def test_another_weight_counts_at_once(host):
    host.start(FRONT._replace(track=(Tracked("haproxy", -50),)), checks=(HAPROXY,))
    host.finds("haproxy", up=False)
    host.apply(FRONT._replace(track=(Tracked("haproxy", -20),)), checks=(HAPROXY,))
    assert host.report()["priority"]["effective"] == 80
    host.apply(TRACKING, checks=(HAPROXY,))
    assert host.state == "Fault"


def test_an_active_router_that_tracks_something_new_stays_active_until_it_is_known(host):
    host.start().activate()
    host.apply(TRACKING, checks=(HAPROXY,))
    assert (host.state, host.report()["waiting_for"], host.done()) == ("Active", ["haproxy"], [])
    host.finds("haproxy", up=False)
    assert host.state == "Fault"


def test_a_check_that_is_known_already_counts_at_once_for_who_begins_to_track_it(host):
    host.start(FRONT, BACK._replace(track=TRACKING.track), checks=(HAPROXY,))
    host.finds("haproxy", up=False)
    host.apply(TRACKING, BACK, checks=(HAPROXY,))
    assert host.states == {"front": "Fault", "back": "Backup"}


def test_a_changed_check_keeps_its_reading_until_it_has_a_result(host):
    host.start(TRACKING, checks=(HAPROXY,))
    host.finds("haproxy")
    other = HAPROXY._replace(process="keepalived")
    host.apply(TRACKING, checks=(other,))
    assert (host.state, host.daemon.report()["checks"][0]["up"]) == ("Backup", None)
    assert host.checks.applied[-1] == ((other,), "nobody")
    host.finds("haproxy", up=False)
    assert host.state == "Fault"


def test_a_check_that_is_what_it_was_is_still_known(host):
    host.start(TRACKING, checks=(HAPROXY,))
    host.finds("haproxy")
    host.apply(TRACKING, BACK._replace(track=TRACKING.track), checks=(HAPROXY,))
    assert host.states == {"front": "Backup", "back": "Backup"}


def test_an_interface_check_of_another_interface_is_read_at_once(host):
    uplink = Check("uplink", settings.INTERFACE, interface="eth1")
    instance = FRONT._replace(track=(Tracked("uplink"),))
    host.start(instance, checks=(uplink,))
    host.apply(instance, checks=(uplink._replace(interface="eth9"),))
    assert host.state == "Fault"


# --- sync groups ------------------------------------------------------------------------------------------------


def test_an_instance_that_joins_a_sync_group_shares_its_fault_at_once(host):
    host.start(TRACKING, BACK, checks=(HAPROXY,))
    host.finds("haproxy", up=False)
    assert host.states == {"front": "Fault", "back": "Backup"}
    host.apply(TRACKING, BACK, checks=(HAPROXY,), groups=(BOTH,))
    assert host.states == {"front": "Fault", "back": "Fault"}


def test_an_instance_that_leaves_a_sync_group_leaves_its_fault_at_once(host):
    host.start(TRACKING, BACK, checks=(HAPROXY,), groups=(BOTH,))
    host.finds("haproxy", up=False)
    host.apply(TRACKING, BACK, checks=(HAPROXY,))
    assert host.states == {"front": "Fault", "back": "Backup"}


def test_the_fault_of_an_instance_that_is_removed_leaves_its_group(host):
    host.start(TRACKING, BACK, checks=(HAPROXY,), groups=(BOTH,))
    host.finds("haproxy", up=False)
    host.apply(BACK, checks=(HAPROXY,), groups=(Group("both", ("back",)),))
    assert host.states == {"back": "Backup"}


def test_a_group_in_fault_of_which_something_else_changes_does_not_move(host):
    host.start(TRACKING, BACK, checks=(HAPROXY,), groups=(BOTH,))
    host.finds("haproxy", up=False)
    host.done()
    host.apply(TRACKING, BACK, checks=(HAPROXY,), groups=(BOTH._replace(notify=("/bin/other",)),))
    assert host.done() == []


def test_an_instance_that_joins_a_sync_group_does_not_share_a_fault_that_ends_with_the_same_reload(host):
    host.start(BACK, TRACKING, checks=(HAPROXY,))
    host.finds("haproxy", up=False)
    host.let(DOWN_INTERVAL)
    assert host.states == {"back": "Active", "front": "Fault"}
    host.done()
    host.apply(BACK, FRONT, groups=(BOTH,))
    assert host.states == {"back": "Backup", "front": "Backup"}  # together, as the group wants it
    assert not [line for line in host.says() if "to Fault" in line]


def test_active_routers_that_are_joined_stay_active_and_their_group_is_reported(host):
    host.start(FRONT, BACK).activate()
    host.apply(FRONT, BACK, groups=(BOTH,))
    assert host.daemon.report()["groups"][0]["state"] == "Active"
    assert host.done() == [
        "says both: the sync group is Active",
        "run /bin/all GROUP both MASTER 0 as nobody",
    ]


def test_a_group_that_comes_back_is_a_new_one(host):
    host.start(FRONT, BACK, groups=(BOTH,)).activate()
    host.apply(FRONT, BACK)
    host.apply(FRONT, BACK, groups=(BOTH,))
    assert host.acts() == ["run /bin/all GROUP both MASTER 0 as nobody"]


def test_a_group_that_stays_is_not_reported_again(host):
    host.start(FRONT, BACK, groups=(BOTH,)).activate()
    host.apply(FRONT._replace(priority=7), BACK, groups=(BOTH,))
    assert host.done() == []
    assert host.daemon.report()["groups"][0]["state"] == "Active"
