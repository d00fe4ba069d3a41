# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The daemon: what it does in which order, and what it makes of news about links, checks and sync groups."""

from __future__ import annotations

import errno

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks import settings
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.settings import Check
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.settings import Group, Tracked
from support.vrrp.fakes import BACK, DOWN_INTERVAL, EPOCH, FRONT, OTHER, OWN, SECOND, SIX, VIP, Host

ADD, DELETE, ANNOUNCE = f"add {VIP}/32 to eth0", f"delete {VIP}/32 from eth0", f"announce {VIP} on eth0"
HAPROXY, LOAD = Check("haproxy", settings.PROCESS), Check("load", settings.FILE)
TRACKING = FRONT._replace(track=(Tracked("haproxy"), Tracked("load", -10)))
GONE = f"send 0 to {OTHER}", DELETE


@pytest.fixture
def host():
    return Host()


def tracking(host):
    host.start(TRACKING, checks=(HAPROXY, LOAD))
    host.finds("load", value=0)
    host.finds("haproxy")
    host.done()
    return host


# --- effects ----------------------------------------------------------------------------------------------------


def test_a_router_that_becomes_active_advertises_adds_its_addresses_announces_them_and_logs_it(host):
    host.start()
    assert host.done() == ["says front: Initialize to Backup: start"]
    host.let(DOWN_INTERVAL)
    assert host.done() == [
        f"send 100 to {OTHER}",
        ADD,
        f"{ANNOUNCE} x5",
        "says front: Backup to Active: no Advertisement was heard",
    ]


YIELDED = [
    f"send 100 to {OTHER}",
    DELETE,
    f"says front: Active to Backup: Advertisement with priority 200 from {OTHER}",
]


def test_a_router_that_yields_advertises_once_more_removes_its_addresses_and_finds_the_winners_mac(host):
    host.start().activate()
    host.hears(200)
    assert host.done() == [*YIELDED, f"ask on eth0 for the MAC of {OTHER} from {OWN}"]
    assert host.held == []
    host.hears(200)
    assert host.done() == []  # it has asked already


def test_a_winner_that_cannot_be_asked_for_is_no_fault(host):
    host.start().activate()
    host.network.mute = errno.ENETDOWN
    host.hears(200)
    assert host.done() == YIELDED


def test_a_group_needs_no_mac(host):
    host.start(FRONT._replace(multicast=True, peers=())).activate()
    host.hears(200)
    assert not [act for act in host.done() if act.startswith("ask")]


def test_a_router_that_stops_resigns_before_it_removes_its_addresses(host):
    host.start().activate()
    host.daemon.stop()
    assert host.done() == [*GONE, "says front: Active to Initialize: stop"]


def test_an_active_router_advertises_every_interval(host):
    host.start(FRONT._replace(version=3, interval=SECOND // 100))
    host.let(1)
    host.done()
    host.let(0.5)
    assert host.acts() == [f"send 100 to {OTHER} x50"]


def test_a_timer_follows_a_deadline_that_is_moved_forward(host):
    host.start()
    host.hears(200)
    host.hears(0)
    host.done()
    host.let(156 / 256 - 0.001)
    assert host.acts() == []
    host.let(0.001)
    assert host.state == "Active"


def test_routers_of_one_host_do_not_wait_for_each_other(host):
    host.start(FRONT, BACK._replace(priority=254))
    host.let(3 + 2 / 256)
    assert host.states == {"front": "Backup", "back": "Active"}


def test_255_routers_on_one_interface_each_have_their_timer_and_their_messages(host):
    every = [
        FRONT._replace(name=str(vrid), vrid=vrid, priority=vrid % 254 + 1, addresses=(f"10.0.0.{vrid}/32",))
        for vrid in range(1, 256)
    ]
    host.start(*every)
    assert len(host.network.open_ports) == 1
    assert host.loop.waiting == 255
    host.let(2)
    for instance in every[::2]:
        host.deliver(255, of=instance)
    host.let(1.5)
    active = {name for name, state in host.states.items() if state == "Active"}
    assert active == {str(vrid) for vrid in range(2, 255, 2) if vrid % 254 + 1 >= 128}
    assert len(host.held) == len(active)
    host.daemon.stop()
    assert host.held == []
    assert host.loop.waiting <= len(active)  # what was to be announced again


# --- where it sends from ----------------------------------------------------------------------------------------


def test_an_interface_that_goes_down_is_a_fault_at_once_and_its_return_none(host):
    host.start().activate()
    host.netlink.link("eth0", 2, up=False)
    host.let()
    assert host.done() == [DELETE, "says front: Active to Fault: interface eth0 is down"], "nobody would hear it resign"
    host.netlink.link("eth0", 2)
    host.let()
    assert host.done() == ["says front: Fault to Backup: interface eth0 is well again"]
    host.activate()
    host.daemon.stop()
    assert f"send 0 to {OTHER}" in host.done()


def test_a_renamed_interface_loses_the_addresses_after_a_resignation(host):
    """It has another name now, and is up: the addresses would be served by two hosts."""
    host.start().activate()
    host.netlink.link("lan", 2)
    host.let()
    assert host.acts() == [f"send 0 to {OTHER}", f"delete {VIP}/32 from lan"]
    assert (host.state, host.held, host.network.open_ports) == ("Fault", [], [])
    host.netlink.link("eth0", 2)
    host.let(DOWN_INTERVAL)
    assert (host.state, host.held) == ("Active", [f"{VIP}/32"])


def test_an_interface_that_takes_over_the_name_takes_over_the_addresses(host):
    host.start().activate()
    host.netlink.link("lan", 2)
    host.netlink.link("eth0", 3)
    host.let()
    assert host.acts() == [f"send 0 to {OTHER}", f"delete {VIP}/32 from lan"]
    assert host.state == "Backup"
    host.let(DOWN_INTERVAL)
    assert host.acts()[1] == ADD
    assert host.report()["source"] == "198.51.100.1"


def test_an_interface_that_is_made_anew_gets_the_addresses_back(host):
    host.start().activate()
    host.netlink.unlink("eth0")
    host.let()
    assert (host.state, host.network.open_ports) == ("Fault", [])
    host.netlink.link("eth0", 9)
    host.netlink.put("192.0.2.1/24")
    host.let()
    assert host.state == "Backup"
    host.let(DOWN_INTERVAL)
    assert (host.state, host.held) == ("Active", [f"{VIP}/32"])


def test_an_interface_that_was_recreated_between_two_events_is_another_one(host):
    host.start().activate()
    host.netlink.unlink("eth0")
    host.netlink.link("eth0", 9)
    host.netlink.put("192.0.2.1/24")
    host.let()
    assert host.state == "Backup"
    assert [port.index for port in host.network.open_ports] == [9]
    host.let(DOWN_INTERVAL)
    assert (host.state, host.held) == ("Active", [f"{VIP}/32"])


def test_without_an_address_to_send_from_a_router_gives_up_while_it_still_can(host):
    host.start().activate()
    host.netlink.take_away("192.0.2.1/24")
    host.let()
    assert host.done() == [*GONE, "says front: Active to Fault: interface eth0 has no IPv4 address to send from"]
    host.netlink.put("192.0.2.9/24")
    host.let()
    assert (host.state, host.report()["source"]) == ("Backup", "192.0.2.9")


def test_an_active_router_whose_source_changes_goes_on_from_the_new_one(host):
    host.netlink.put("192.0.2.9/24")
    host.start().activate()
    host.netlink.take_away("192.0.2.1/24")
    host.let(1)
    assert host.acts() == [f"send 100 to {OTHER}"]
    assert (host.state, host.report()["source"]) == ("Active", "192.0.2.9")


def test_an_ipv6_router_waits_for_its_link_local_address(host):
    host.netlink.put("fe80::1/64", usable=False)
    host.start(SIX)
    assert host.state == "Fault"
    host.netlink.put("fe80::1/64")
    host.let()
    assert host.state == "Backup"


def test_after_lost_events_all_is_learnt_anew(host):
    host.start(FRONT, BACK).activate()
    host.netlink.link("eth0", 2, up=False)
    host.netlink.overrun()
    host.let()
    assert host.states == {"front": "Fault", "back": "Active"}


def test_events_of_virtual_addresses_do_not_recompute_the_egress(host):
    host.start()
    looked = []
    host.daemon.transport.follow = lambda: looked.append(1) or True
    host.let(DOWN_INTERVAL)
    assert (host.state, looked) == ("Active", [])
    host.netlink.link("eth9", 9)
    host.let()
    assert looked == [1]


def test_a_socket_that_could_not_be_opened_is_tried_again_after_ten_seconds(host):
    host.start()
    looked = []
    host.daemon.transport.follow = lambda: looked.append(1) or len(looked) > 1
    host.netlink.link("eth9", 9)
    host.let(9)
    assert looked == [1]
    host.let(30)
    assert looked == [1, 1]


# --- checks -----------------------------------------------------------------------------------------------------


def test_a_router_waits_until_all_that_it_tracks_has_been_read(host):
    host.start(TRACKING, checks=(HAPROXY, LOAD))
    assert (host.state, host.report()["waiting_for"]) == ("Initialize", ["haproxy", "load"])
    host.finds("load", value=0)
    assert (host.state, host.report()["waiting_for"]) == ("Initialize", ["haproxy"])
    host.finds("haproxy")
    assert host.done() == ["says front: Initialize to Backup: haproxy was read"]


def test_a_check_that_fails_is_a_fault_at_once(host):
    tracking(host).activate()
    host.finds("haproxy", up=False, detail="no process haproxy")
    assert host.done() == [*GONE, "says front: Active to Fault: haproxy failed: no process haproxy"]
    assert host.report()["reason"] == "haproxy failed: no process haproxy"
    host.finds("haproxy")
    assert host.state == "Backup"


def test_a_weight_changes_the_next_advertisement(host):
    tracking(host).activate()
    host.finds("load", value=3)
    assert host.acts() == []
    host.let(1)
    assert host.acts() == [f"send 70 to {OTHER}"]
    assert host.report()["priority"] == {
        "configured": 100,
        "effective": 70,
        "because": [{"name": "load", "change": -30}],
    }


def test_a_check_counts_for_each_router_that_tracks_it(host):
    also = BACK._replace(track=(Tracked("haproxy"),))
    host.start(TRACKING._replace(track=(Tracked("haproxy"),)), also, SIX, checks=(HAPROXY,))
    host.finds("haproxy", up=False)
    assert host.states == {"front": "Fault", "back": "Fault", "six": "Backup"}


def test_the_result_of_a_removed_check_is_ignored(host):
    host.start()
    host.finds("haproxy", up=False)
    assert host.state == "Backup"


def test_an_interface_can_be_tracked_without_any_other_process(host):
    uplink = Check("uplink", settings.INTERFACE, interface="eth1")
    host.start(FRONT._replace(track=(Tracked("uplink", -50),)), checks=(uplink,))
    assert host.state == "Backup"
    found = []
    for change in (lambda: host.netlink.link("eth1", 3, up=False), lambda: host.netlink.unlink("eth1")):
        change()
        host.let()
        found.append((host.report()["priority"]["effective"], host.daemon.report()["checks"][0]["detail"]))
    assert found == [(50, "interface eth1 is down"), (50, "interface eth1 is not there")]
    host.netlink.link("eth1", 3)
    host.let()
    assert host.report()["priority"]["effective"] == 100


def test_every_cause_of_a_fault_at_the_start_is_named(host):
    host.netlink.unlink("eth0")
    host.start(TRACKING, checks=(HAPROXY, LOAD))
    host.finds("load", value=0)
    host.finds("haproxy", up=False, detail="no process haproxy")
    assert host.says() == [
        "front: Initialize to Fault: interface eth0 is not there; interface eth0 has no IPv4 address to send from; "
        "haproxy failed: no process haproxy"
    ]


@pytest.mark.parametrize(
    "instance, change, reason",
    [
        (FRONT._replace(source="192.0.2.9"), None, "192.0.2.9, the source address, is not on this host"),
        (
            SIX,
            lambda host: host.netlink.take_away("fe80::1/64"),
            "interface eth0 has no link-local address to send from",
        ),
        (FRONT, lambda host: setattr(host.network, "shut", 1), "interface eth0 has no socket for VRRP"),
    ],
)
def test_a_router_that_cannot_send_says_why(host, instance, change, reason):
    if change:
        change(host)
    host.start(instance)
    assert host.says()[-1] == f"{instance.name}: Initialize to Fault: {reason}"


def test_an_interface_that_was_replaced_is_said_to_be(host):
    host.start().activate()
    host.netlink.link("lan", 2)
    host.netlink.link("eth0", 3)
    host.let()
    assert host.says()[0] == "front: Active to Fault: interface eth0 is another one now"


# --- notify -----------------------------------------------------------------------------------------------------


def test_a_notify_program_gets_the_arguments_that_keepalived_would_pass(host):
    notifying = TRACKING._replace(notify=("/bin/tell", "a b"))
    host.start(notifying, checks=(HAPROXY, LOAD), script_user="watch")
    for name in ("load", "haproxy"):
        host.finds(name)
    host.let(DOWN_INTERVAL)
    host.finds("haproxy", up=False)
    host.daemon.stop()
    assert [line for line in host.done() if line.startswith("run")] == [
        f"run /bin/tell a b INSTANCE front {state} 100 as watch" for state in ("BACKUP", "MASTER", "FAULT", "STOP")
    ]


def test_a_notify_program_gets_the_current_priority(host):
    notifying = TRACKING._replace(notify=("/bin/tell",))
    host.start(notifying, checks=(HAPROXY, LOAD))
    host.finds("load", value=2)
    host.finds("haproxy")
    assert "run /bin/tell INSTANCE front BACKUP 80 as nobody" in host.done()


BOTH = Group("both", ("front", "back"), ("/bin/all",))


def test_a_sync_group_is_reported_once_when_all_of_it_has_changed(host):
    host.start(FRONT, BACK._replace(priority=200), groups=(BOTH,))
    host.let(DOWN_INTERVAL)
    assert [line for line in host.done() if "both" in line] == [
        "says both: the sync group is Backup",
        "run /bin/all GROUP both BACKUP 0 as nobody",
        "says both: the sync group is Active",
        "run /bin/all GROUP both MASTER 0 as nobody",
    ]
    assert host.states == {"front": "Active", "back": "Active"}
    host.daemon.stop()
    assert [line for line in host.done() if line.startswith("run")] == ["run /bin/all GROUP both STOP 0 as nobody"]


def test_a_sync_group_is_reported_after_its_members(host):
    """A program that is run for the group finds all of its members changed."""
    notifying = [each._replace(notify=("/bin/tell",)) for each in (FRONT, BACK)]
    host.start(*notifying, groups=(BOTH,)).activate()
    host.netlink.link("eth1", 3, up=False)
    host.let()
    assert [line for line in host.done() if line.startswith("run")] == [
        "run /bin/tell INSTANCE back FAULT 100 as nobody",
        "run /bin/tell INSTANCE front FAULT 100 as nobody",
        "run /bin/all GROUP both FAULT 0 as nobody",
    ]


# --- sync groups ------------------------------------------------------------------------------------------------


def test_a_fault_of_one_takes_the_whole_group_along(host):
    host.start(FRONT, BACK, SIX, groups=(BOTH,)).activate()
    host.netlink.link("eth1", 3, up=False)
    host.let()
    assert host.states == {"front": "Fault", "back": "Fault", "six": "Active"}
    assert "says front: Active to Fault: back of its sync group is in Fault" in host.journal
    notice = "run /bin/all GROUP both FAULT 0 as nobody"
    assert sorted(host.acts()) == sorted([*GONE, "delete 198.51.100.10/32 from eth1", notice])
    assert host.report()["priority"]["because"] == [{"name": "the sync group", "change": None}]
    host.netlink.link("eth1", 3)
    host.let()
    assert host.states == {"front": "Backup", "back": "Backup", "six": "Active"}


def test_one_whose_addresses_are_refused_takes_the_whole_group_along(host):
    host.netlink.refused["198.51.100.10/32"] = 13
    host.start(FRONT, BACK, groups=(BOTH,))
    host.let(DOWN_INTERVAL)
    assert host.states == {"front": "Fault", "back": "Fault"}
    assert host.held == []


def test_the_timers_of_a_whole_group_follow_the_event_of_one(host):
    host.start(FRONT, BACK, groups=(BOTH,)).activate()
    host.hears(200)
    assert host.states == {"front": "Backup", "back": "Backup"}
    host.done()
    host.let(DOWN_INTERVAL)
    assert host.states == {"front": "Active", "back": "Active"}


# --- the report -------------------------------------------------------------------------------------------------


def test_the_report_has_exactly_what_was_agreed(host):
    host.start(TRACKING, BACK, SIX, groups=(BOTH,), checks=(HAPROXY, LOAD))
    host.let(1)
    host.finds("load", up=False, value=7, detail="7 in /run/load")
    report = host.daemon.report()
    assert set(report) == {"instances", "groups", "checks"}
    assert [each["name"] for each in report["instances"]] == ["front", "back", "six"]
    assert report["groups"] == [{"name": "both", "instances": ["front", "back"], "state": "Initialize"}]
    assert report["checks"] == [
        {"name": "haproxy", "type": "process", "up": None, "since": None, "value": 0, "detail": "", "known": False},
        {
            "name": "load",
            "type": "file",
            "up": False,
            "since": EPOCH + 6.0,
            "value": 7,
            "detail": "7 in /run/load",
            "known": True,
        },
    ]


def test_an_instance_is_reported_with_its_group_and_with_what_it_holds(host):
    host.start(FRONT, BACK, groups=(Group("alone", ("front",)),)).activate()
    assert (host.report()["group"], host.report()["held"]) == ("alone", [f"{VIP}/32"])
    assert (host.report("back")["group"], host.report("back")["transitions"]) == (None, 2)


def test_the_report_can_be_shown(host):
    from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import show

    host.start(TRACKING, BACK, groups=(BOTH,), checks=(HAPROXY, LOAD))
    agent = {"agent": "x", "version": "1", "pid": 1, "since": EPOCH, "config": "", "config_fault": None, "limits": []}
    report = {**agent, **host.daemon.report()}
    assert "not known yet" in show.table(report, EPOCH)
    assert "onprem_lb_vrrp_state" in show.prometheus(report)


# --- the own interface, users of programs ------------------------------------------------------------------------


def test_with_dont_track_primary_the_own_interface_may_be_down(host):
    host.start(FRONT._replace(dont_track_primary=True)).activate()
    host.netlink.link("eth0", 2, up=False)
    host.let(1)
    assert (host.state, host.report()["waiting_for"]) == ("Active", [])


@pytest.mark.parametrize(
    "may_be_down, carrier, after", [(True, False, "Active"), (True, True, "Fault"), (False, False, "Fault")]
)
def test_with_dont_track_primary_a_source_that_goes_with_the_carrier_is_no_fault(host, may_be_down, carrier, after):
    host.start(FRONT._replace(dont_track_primary=may_be_down)).activate()
    host.netlink.link("eth0", 2, up=carrier)
    host.let()
    own = next(each for each in host.netlink.addresses() if each.address == OWN)
    host.netlink.take_away(f"{OWN}/{own.prefix}")
    host.let()
    host.done()
    host.let(1)
    assert host.state == after
    assert not any(line.startswith("send") for line in host.acts()), "there is no address to send from"
    host.netlink.link("eth0", 2)
    host.done()
    host.let(1)
    assert host.state == after, "what manages the network gives the address back later"
    assert not any(line.startswith("send") for line in host.acts()), "there is none yet"
    host.netlink.put(f"{OWN}/{own.prefix}")
    host.let(1)
    assert (host.state == "Active") is (after == "Active")
    assert any(line.startswith("send") for line in host.done()) is (after == "Active")


def test_a_router_that_is_reloaded_with_dont_track_primary_leaves_fault(host):
    host.start(FRONT)
    host.netlink.link("eth0", 2, up=False)
    host.let()
    assert host.state == "Fault"
    host.apply(FRONT._replace(dont_track_primary=True))
    assert host.state == "Backup"
    host.apply(FRONT)
    assert host.state == "Fault"


def test_a_notify_program_runs_as_its_own_user(host):
    told = FRONT._replace(notify=("/bin/tell",), notify_user="ops")
    group = Group("both", ("front", "back"), ("/bin/all",), "other")
    host.start(told, BACK._replace(notify=("/bin/tell",)), groups=(group,))
    assert [line for line in host.acts() if line.startswith("run")] == [
        "run /bin/tell INSTANCE front BACKUP 100 as ops",
        "run /bin/tell INSTANCE back BACKUP 100 as nobody",
        "run /bin/all GROUP both BACKUP 0 as other",
    ]
