# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The virtual addresses: on an interface, off it, taken away by others, refused by the kernel."""

from __future__ import annotations

import errno

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks import settings as checks
from support.vrrp.fakes import DOWN_INTERVAL, FRONT, OTHER, OWN, SECOND, SIX, VIP, Host

SECOND_VIP = "192.0.2.11"
TWO = FRONT._replace(addresses=(f"{VIP}/32", f"{SECOND_VIP}/24"))
ADD, DELETE, ANNOUNCE = f"add {VIP}/32 to eth0", f"delete {VIP}/32 from eth0", f"announce {VIP} on eth0"


@pytest.fixture
def host():
    return Host()


def test_what_was_done_is_known_before_the_kernel_says_so(host):
    """Otherwise an address would seem to be taken away that was just put there."""
    host.start()
    (router,) = host.daemon.routers.values()
    assert host.daemon.addresses.adding(router, router.addresses)()
    assert (host.report()["held"], host.daemon.addresses.missing(router)) == ([f"{VIP}/32"], [])
    host.daemon.addresses.remove(router, router.addresses)
    assert (host.report()["held"], host.daemon.addresses.missing(router)) == ([], [*router.addresses])


# --- refused ----------------------------------------------------------------------------------------------------


def test_without_its_addresses_a_router_is_in_fault_and_says_so_to_its_peers(host):
    host.netlink.refused[f"{VIP}/32"] = errno.EACCES
    host.start()
    host.done()
    host.let(DOWN_INTERVAL)
    assert host.done() == [
        f"send 100 to {OTHER}",
        f"refuses {VIP}/32",
        f"says front: {VIP}/32 cannot be put on eth0: Permission denied",
        f"send 0 to {OTHER}",
        DELETE,
        "says front: Active to Fault: the kernel refuses the virtual addresses",
    ]
    assert host.report()["priority"]["because"] == [{"name": "the virtual addresses", "change": None}]


def test_one_of_two_addresses_is_not_enough(host):
    host.netlink.refused[f"{SECOND_VIP}/24"] = errno.EACCES
    host.start(TWO)
    host.let(DOWN_INTERVAL)
    assert (host.state, host.held) == ("Fault", [])


def tries(host, seconds):
    """The seconds between the tries."""
    found = []
    for _second in range(seconds):
        host.let(1)
        if f"refuses {VIP}/32" in host.journal:
            found.append(host.loop.now() // SECOND)
        host.journal.clear()
    return [later - earlier for earlier, later in zip(found, found[1:])]


def test_refused_addresses_are_tried_again_after_pauses_that_grow_to_five_minutes(host):
    host.netlink.refused[f"{VIP}/32"] = errno.EACCES
    host.start()
    pauses = [round(pause / 10) * 10 for pause in tries(host, 1700)]
    assert pauses[:7] == [10, 20, 40, 80, 160, 300, 300]


def test_the_pauses_are_short_again_after_a_success(host):
    host.netlink.refused[f"{VIP}/32"] = errno.EACCES
    host.start()
    tries(host, 200)
    host.netlink.refused.clear()
    host.let(200)
    assert host.state == "Active"
    host.hears(200)
    host.netlink.refused[f"{VIP}/32"] = errno.EACCES
    assert tries(host, 40)[0] < 15


def test_addresses_that_are_no_more_refused_are_taken(host):
    host.netlink.refused[f"{VIP}/32"] = errno.EACCES
    host.start()
    host.let(DOWN_INTERVAL)
    host.netlink.refused.clear()
    host.done()
    host.let(10 + DOWN_INTERVAL)
    assert f"says front: {VIP}/32 could be put on eth0" in host.done()
    assert (host.state, host.held) == ("Active", [f"{VIP}/32"])


def test_an_address_that_the_kernel_refuses_is_logged_once(host):
    host.netlink.refused[f"{VIP}/32"] = errno.EACCES
    host.start()
    host.let(100)
    assert sum("cannot be put" in line for line in host.says()) == 1


def test_an_address_that_cannot_be_removed_is_logged(host):
    host.start().activate()

    host.netlink.kept.add(f"{VIP}/32")
    host.hears(200)
    assert f"front: {VIP}/32 cannot be taken off eth0: Operation not permitted" in host.says()


# --- taken away -------------------------------------------------------------------------------------------------


def test_an_address_that_another_program_removes_is_put_back_and_announced_at_once(host):
    host.start().activate()
    host.netlink.take_away(f"{VIP}/32")
    host.let()
    assert host.done() == [ADD, f"says front: {VIP}/32 put on eth0: another program had removed it", f"{ANNOUNCE} x5"]
    assert host.state == "Active"


def test_an_address_that_another_program_adds_to_a_backup_is_removed(host):
    """Two hosts would answer for it."""
    host.start()
    host.hears(200)
    host.done()
    host.netlink.put(f"{VIP}/32")
    host.netlink.put(f"{VIP}/24")
    host.let()
    assert host.done() == [
        DELETE,
        f"delete {VIP}/24 from eth0",
        f"says front: {VIP}/32, {VIP}/24 taken off eth0: another program had added it",
    ]
    assert (host.state, host.held) == ("Backup", [])


@pytest.mark.parametrize("events", ["read", "lost"])
def test_an_address_that_another_program_adds_to_an_active_router_with_another_prefix_length_is_removed(host, events):
    host.start().activate()
    host.netlink.put(f"{VIP}/24")
    if events == "lost":
        host.netlink.overrun()
    host.let()
    assert host.done() == [
        f"delete {VIP}/24 from eth0",
        f"says front: {VIP}/24 taken off eth0: another program had added it",
    ]
    assert host.held == [f"{VIP}/32"]


def test_an_added_address_that_must_not_be_removed_is_logged_and_reported(host):
    host.start()
    host.hears(200)
    host.done()
    host.netlink.kept.add(f"{VIP}/32")
    host.netlink.put(f"{VIP}/32")
    host.let()
    assert host.done() == [f"says front: {VIP}/32 cannot be taken off eth0: Operation not permitted"]
    assert (host.report()["held"], host.daemon.held()) == ([f"{VIP}/32"], [f"{VIP}/32"])


def test_an_address_that_was_removed_by_others_meanwhile_is_not_reported_as_removed(host):
    host.start()
    host.hears(200)
    host.done()
    host.netlink.put(f"{VIP}/32")
    host.netlink.there.popitem()  # its event is still to come
    host.let()
    assert host.says() == []


def test_a_router_that_was_started_after_a_crash_keeps_what_appears(host):
    host.netlink.put(f"{VIP}/32")
    host.start(TWO)
    host.done()
    host.netlink.put(f"{SECOND_VIP}/24")
    host.let()
    assert host.done() == []


def test_only_what_is_missing_is_put_back(host):
    host.start(TWO).activate()
    host.netlink.take_away(f"{SECOND_VIP}/24")
    host.let()
    assert [line for line in host.acts() if line.startswith("add")] == [f"add {SECOND_VIP}/24 to eth0"]


def test_an_address_that_another_program_changes_is_put_back(host):
    host.start().activate()
    host.netlink.take_away(f"{VIP}/32")
    host.netlink.put(f"{VIP}/24")
    host.let()
    assert f"{VIP}/32" in host.held


def test_an_address_that_another_program_puts_back_is_left_alone(host):
    host.start().activate()
    host.netlink.take_away(f"{VIP}/32")
    host.netlink.put(f"{VIP}/32")
    host.let()
    assert host.done() == []


def test_a_router_that_cannot_restore_an_address_is_in_fault(host):
    host.start().activate()
    host.netlink.refused[f"{VIP}/32"] = errno.EACCES
    host.netlink.take_away(f"{VIP}/32")
    host.let()
    assert host.acts() == [f"refuses {VIP}/32", f"send 0 to {OTHER}", DELETE]
    assert host.state == "Fault"


def test_only_an_active_router_puts_an_address_back(host):
    host.netlink.put(f"{VIP}/32")
    host.start()
    host.hears(200)
    host.netlink.put(f"{VIP}/32")
    host.let()
    host.done()
    host.netlink.take_away(f"{VIP}/32")
    host.let()
    assert host.done() == []


def test_other_addresses_that_vanish_are_ignored(host):
    host.netlink.put("192.0.2.77/24")
    host.start().activate()
    host.netlink.take_away("192.0.2.77/24")
    host.let()
    assert host.done() == []


def test_its_own_removal_is_not_taken_for_another_programs(host):
    host.start().activate()
    host.hears(200)
    host.let()
    host.done()
    host.let(DOWN_INTERVAL)
    assert not [line for line in host.says() if "somebody" in line]


def test_after_lost_events_an_address_that_went_meanwhile_is_put_back(host):
    host.start().activate()
    host.netlink.take_away(f"{VIP}/32")
    host.netlink.overrun()
    host.let()
    assert host.acts() == [ADD, f"{ANNOUNCE} x5"]


# --- what was left ----------------------------------------------------------------------------------------------


def test_an_address_left_by_a_crash_is_kept_and_announced_when_no_other_router_has_it(host):
    host.netlink.put(f"{VIP}/32")
    host.start()
    host.done()
    host.let(1 + 156 / 256)
    assert host.acts() == [f"send 100 to {OTHER}", ADD, f"{ANNOUNCE} x5"]


def test_an_address_left_by_a_crash_is_removed_as_soon_as_another_router_has_it(host):
    host.netlink.put(f"{VIP}/32")
    host.start()
    host.done()
    host.hears(101)
    assert host.done() == [DELETE]
    host.hears(101)
    assert host.done() == []


def test_what_was_left_is_removed_also_while_checks_are_waited_for(host):
    from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import settings

    host.netlink.put(f"{VIP}/32")
    tracking = FRONT._replace(track=(settings.Tracked("haproxy"),))
    host.start(tracking, checks=(checks.Check("haproxy", checks.PROCESS),))
    assert host.state == "Initialize"
    host.hears(0)
    assert host.acts() == []
    host.hears(1)
    assert host.acts() == [DELETE]
    host.hears(1)
    assert host.acts() == []


def test_what_was_left_is_removed_when_there_is_a_fault(host):
    host.netlink.put(f"{VIP}/32")
    host.netlink.link("eth0", 2, up=False)
    host.start()
    assert host.acts() == [DELETE]
    assert host.state == "Fault"


def test_what_was_left_is_removed_at_a_stop(host):
    host.netlink.put(f"{VIP}/32")
    host.start()
    host.done()
    host.daemon.stop()
    assert host.acts() == [f"send 0 to {OTHER}", DELETE]


@pytest.mark.parametrize(
    "instance, configured, left", [(FRONT, f"{VIP}/24", f"{VIP}/32"), (SIX, "2001:db8::10/64", "2001:db8::10/128")]
)
class TestAnAddressThatWasLeftWithAnotherPrefixLength:
    """By an agent with other settings, or by keepalived."""

    @pytest.fixture
    def host(self, instance, configured, left):
        host = Host()
        host.netlink.put(left)
        host.start(instance._replace(addresses=(configured,)))
        host.done()
        return host

    def test_is_replaced_when_no_other_router_has_it(self, host, configured, left):
        assert host.report(next(iter(host.states)))["held"] == [left]
        host.let(1 + 156 / 256)
        assert (host.state, host.held) == ("Active", [configured])
        name = next(iter(host.states))
        replaced = f"{name}: {left} taken off eth0: the one with the configured prefix length takes its place"
        assert replaced in host.says()

    def test_is_removed_as_soon_as_another_router_has_it(self, host, instance, left):
        group = {"destination": "ff02::12", "source": "fe80::9"} if instance is SIX else {}
        own = next(iter(host.daemon.routers.values())).instance
        host.hears(101, of=own, **group)
        assert (host.state, host.held) == ("Backup", [])

    def test_is_removed_at_a_stop(self, host):
        host.daemon.stop()
        assert (host.held, host.daemon.held()) == ([], [])


def test_an_address_that_nobody_has_reported_yet_is_found_by_the_kernels_answer(host):
    """Its event may be on its way."""
    six = SIX._replace(addresses=("2001:db8::10/64",))
    host.start(six)
    host.let(2)
    host.loop.watched.clear()  # no events are read
    host.netlink.put("2001:db8::10/128")
    host.let(2)
    assert (host.state, host.held) == ("Active", ["2001:db8::10/64"])


def test_an_ipv6_address_that_failed_duplicate_detection_is_added_anew(host):
    host.netlink.put("2001:db8::10/64", usable=False)
    host.start(SIX._replace(addresses=("2001:db8::10/64",)))
    host.let(DOWN_INTERVAL)
    assert host.acts().count("delete 2001:db8::10/64 from eth0") == 1
    assert all(found.usable for found in host.netlink.there.values())


def test_an_ipv6_address_is_taken_and_announced_like_any_other(host):
    host.start(SIX)
    host.let(DOWN_INTERVAL)
    acts = host.acts()
    assert acts[:3] == ["send 100 to ff02::12", "add fe80::10/128 to eth0", "add 2001:db8::10/64 to eth0"]
    assert acts[3:5] == ["announce fe80::10 on eth0", "announce 2001:db8::10 on eth0"]


def test_a_router_that_is_not_active_leaves_addresses_alone_that_are_no_more_its_own(host):
    """An administrator may have made it a fixed one before it was taken out of the configuration."""
    host.start(TWO)
    host.hears(200, of=TWO)
    host.netlink.put(f"{SECOND_VIP}/24")
    host.apply(FRONT)
    assert host.held == [f"{SECOND_VIP}/24"]
    assert OWN not in host.held
