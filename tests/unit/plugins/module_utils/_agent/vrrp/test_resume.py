# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A daemon that resumes with another one's state: other hosts see no difference."""

from __future__ import annotations

import errno
import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks import settings as checks
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.client import Result
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.settings import Check
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import settings
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import machine, tracking
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.settings import Group, Tracked
from support.vrrp.fakes import BACK, DOWN_INTERVAL, FRONT, OTHER, SECOND, SIX, VIP, Host

HAPROXY = Check("haproxy", checks.PROCESS, fall=3)
LINK = Check("link", checks.INTERFACE, interface="eth1")
TRACKING = FRONT._replace(track=(Tracked("haproxy"),), notify=("/bin/tell",))
TOGETHER = Group("both", ("front", "back"), ("/bin/all",))


@pytest.fixture
def host():
    return Host()


def _nothing(_what):
    pass


def succeeded(old, meanwhile=_nothing, change=_nothing):
    """Another daemon on the same host, to which this one has handed over.

    :param meanwhile: happens while the new one waits for its turn
    :param change: what the other version does to what it remembers
    """
    new = Host()
    new.loop.clock = old.loop.clock
    new.netlink.there, new.netlink.up = dict(old.netlink.there), dict(old.netlink.up)
    new.netlink.pending.clear()
    new.daemon.start(old.daemon.settings, later=True)
    assert new.done() == [] and new.checks.applied == []
    meanwhile(new)
    known = old.daemon.to_json()
    change(known)
    new.daemon.resume(json.loads(json.dumps(known)))
    new.let()
    return new


def is_the_same(old, new):
    before, after = old.daemon.report(), new.daemon.report()
    return after == before


def test_an_active_one_goes_on_with_its_next_advertisement_in_time(host):
    host.start(FRONT, BACK).activate()
    host.let(0.4)
    new = succeeded(host)
    assert new.done() == [] and is_the_same(host, new)
    host.done()
    for _second in range(3):
        host.let(0.3)
        new.let(0.3)
        host.let(0.7)
        new.let(0.7)
        sent = [line for line in new.acts() if line.startswith("send")]
        assert sent == [line for line in host.acts() if line.startswith("send")] and len(sent) == 2


def test_an_active_one_goes_on_with_its_probes_for_other_hosts(host):
    host.start(FRONT).activate()
    new = succeeded(host)
    new.let(62)
    assert new.network.probes == [("eth0", VIP)]


def test_an_address_that_was_added_to_a_backup_meanwhile_is_removed(host):
    host.start(FRONT)
    host.hears(101)
    new = succeeded(host, meanwhile=lambda new: new.netlink.put(f"{VIP}/24"))
    new.hears(101)
    assert (new.state, new.held) == ("Backup", [])


def test_a_backup_resumes_with_the_rest_of_active_down_timer(host):
    host.start(FRONT)
    host.hears(101)
    host.let(DOWN_INTERVAL - 1)
    new = succeeded(host)
    assert is_the_same(host, new)
    new.let(0.99)
    assert new.state == "Backup"
    new.let(0.02)
    assert new.state == "Active"


def test_a_backup_goes_by_the_interval_that_it_has_learned(host):
    host.start(SIX)
    host.hears(101, source="fe80::9", destination="ff02::12", of=SIX, interval=4 * SECOND)
    new = succeeded(host)
    assert new.daemon.routers["six"].state == host.daemon.routers["six"].state
    new.let(12)
    assert new.state == "Backup"


def test_what_checks_have_found_counts_until_they_find_something_else(host):
    host.start(TRACKING, checks=(HAPROXY, LINK))
    host.finds("haproxy", detail="pid 7")
    host.activate()
    new = succeeded(host)
    assert is_the_same(host, new) and new.done() == []
    assert new.checks.applied == [((HAPROXY, LINK), "nobody")]
    assert Result("haproxy", True, 0, "pid 7") in new.checks.results
    new.finds("haproxy", up=False)
    assert new.state == "Fault"


def test_a_router_in_fault_stays_in_fault_until_it_recovers(host):
    host.start(TRACKING, checks=(HAPROXY,))
    host.finds("haproxy", up=False)
    new = succeeded(host)
    assert is_the_same(host, new) and new.done() == []
    new.finds("haproxy")
    assert new.state == "Backup"


def test_a_sync_group_keeps_its_state_and_its_next_change_is_reported_once(host):
    front, back = (each._replace(track=(Tracked("haproxy"),)) for each in (FRONT, BACK))
    host.start(front, back, groups=(TOGETHER,), checks=(HAPROXY,))
    host.finds("haproxy")
    host.activate()
    new = succeeded(host)
    assert new.done() == [] and is_the_same(host, new)
    new.finds("haproxy", up=False)
    assert [line for line in new.done() if "/bin/all" in line] == ["run /bin/all GROUP both FAULT 0 as nobody"]


def test_an_interface_that_goes_down_meanwhile_is_seen(host):
    host.start().activate()
    new = succeeded(host, lambda new: new.netlink.link("eth0", 2, up=False))
    assert new.state == "Fault" and f"delete {VIP}/32 from eth0" in new.acts()


def test_an_address_that_is_taken_away_meanwhile_is_put_back(host):
    host.start().activate()
    new = succeeded(host, lambda new: new.netlink.take_away(f"{VIP}/32"))
    assert new.state == "Active" and new.held == [f"{VIP}/32"]
    assert f"announce {VIP} on eth0" in " ".join(new.acts())


def test_what_the_old_one_had_no_time_to_see_is_seen(host):
    host.start(FRONT._replace(track=(Tracked("link"),)), BACK, checks=(LINK,)).activate()
    host.netlink.take_away(f"{VIP}/32")
    host.netlink.link("eth1", 3, up=False)
    new = succeeded(host)
    assert new.states == {"front": "Fault", "back": "Fault"}
    host = Host().start().activate()
    host.netlink.take_away(f"{VIP}/32")
    assert succeeded(host).held == [f"{VIP}/32"]


def test_what_is_heard_while_it_waits_for_its_turn_counts(host):
    host.start()
    new = succeeded(host, lambda new: new.deliver(200))
    assert new.report()["received"] == 1


def test_what_was_heard_before_all_was_ready_is_for_the_old_one(host):
    new = Host()
    port = []
    opened = new.network.open_socket

    def open_socket(*where):
        port.append(opened(*where))
        new.deliver(200)
        return port[-1]

    new.network.open_socket = open_socket
    new.daemon.start(settings.Settings((FRONT,)), later=True)
    assert port[0].inbox == []


def test_addresses_that_the_kernel_refused_are_tried_again_in_time(host):
    host.netlink.refused[f"{VIP}/32"] = errno.ENOSPC
    host.start()
    host.let(DOWN_INTERVAL)
    assert host.state == "Fault"
    new = succeeded(host)
    assert new.state == "Fault"
    new.let(10 + DOWN_INTERVAL)
    assert new.state == "Active"


def test_addresses_are_announced_again_as_if_they_had_just_come(host):
    host.start().activate()
    new = succeeded(host)
    new.let(5)
    assert f"announce {VIP} on eth0 x5" in new.acts()
    new.let(61)
    assert f"announce {VIP} on eth0" in new.acts()


def test_what_only_another_version_knows_counts_for_nothing(host):
    host.start().activate()

    def change(known):
        known["routers"]["front"]["state"]["mood"] = "fair"
        known["routers"]["front"]["age"] = 3
        known["weather"] = None

    assert succeeded(host, change=change).state == "Active"


def test_a_new_one_gives_up_as_the_old_one_would_have(host):
    host.start().activate()
    new = succeeded(host)
    new.daemon.stop()
    assert new.acts() == [f"send 0 to {OTHER}", f"delete {VIP}/32 from eth0"]


@pytest.mark.parametrize(
    "state",
    [
        machine.State(),
        machine.State("Fault", None, 0, {"link": tracking.FAULT, "load": -3}, True),
        machine.State("Backup", 7, 5, {"link": 0}, True, preempt_at=9, wants_active=True, holding=True),
    ],
)
def test_a_state_is_the_same_on_the_other_side(state):
    assert machine.from_json(json.loads(json.dumps(machine.to_json(state)))) == state


def test_a_router_that_still_waits_for_the_startup_delay_starts_in_the_new_process(host):
    host.start(FRONT, startup_delay=60 * SECOND)
    new = succeeded(host)
    assert new.state == "Backup"
