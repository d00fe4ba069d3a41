# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A daemon that resigns: it serves until another router does."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.settings import Group
from support.vrrp.fakes import BACK, DOWN_INTERVAL, FRONT, VIP, Host


@pytest.fixture
def host():
    return Host()


def resign(host):
    """Tell it to leave; return when it had gone, as a list that is empty until then."""
    gone = []
    host.daemon.resign(lambda: gone.append(host.loop.now()))
    return gone


def kinds(lines):
    return [line.partition(" ")[0] for line in lines]


def test_each_router_resigns_once_and_keeps_its_addresses(host):
    host.start(FRONT, BACK).activate()
    host.hears(200)  # the first one is Backup now
    host.let(DOWN_INTERVAL)
    host.done()
    assert resign(host) == []
    assert kinds(host.acts()) == ["send", "send"]
    assert set(host.states.values()) == {"Leaving"}
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


def test_without_a_new_active_router_the_addresses_are_removed_in_the_end(host):
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


def test_a_leaving_router_that_is_stopped_removes_its_addresses_at_once(host):
    host.start().activate()
    resign(host)
    host.done()
    host.daemon.stop()
    assert (host.held, host.acts()) == ([], [f"delete {VIP}/32 from eth0"])


def test_a_leaving_router_restores_no_address(host):
    """It no longer reacts to a check that recovers, or to an address that is deleted."""
    host.start().activate()
    resign(host)
    host.netlink.take_away(f"{VIP}/32")
    host.done()
    host.let(2)
    assert [line for line in host.acts() if not line.startswith("delete")] == []


def test_a_leaving_router_keeps_its_addresses_when_the_kernel_reports_them_again(host):
    host.start().activate()
    resign(host)
    host.done()
    host.netlink.overrun()
    host.let()
    assert (host.held, host.acts()) == ([f"{VIP}/32"], [])


def test_a_leaving_router_and_its_sync_group_are_notified_once(host):
    front = FRONT._replace(notify=("/bin/tell",))
    host.start(front, BACK, groups=(Group("both", ("front", "back"), ("/bin/all",)),)).activate()
    resign(host)
    host.let(1.2)
    assert [line for line in host.acts() if line.startswith("run")] == [
        "run /bin/tell INSTANCE front STOP 100 as nobody",
        "run /bin/all GROUP both STOP 0 as nobody",
    ]


def test_a_leaving_router_is_reported_as_such_with_its_addresses(host):
    host.start().activate()
    resign(host)
    assert (host.report()["state"], host.report()["held"]) == ("Leaving", [f"{VIP}/32"])
    host.let(1.2)
    assert (host.report()["state"], host.report()["held"]) == ("Initialize", [])
