# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A router ends and leaves its addresses, and another process finds them: other hosts see a longer interval."""

from __future__ import annotations

import pytest
from support.vrrp.fakes import BACK, DOWN_INTERVAL, FRONT, OTHER, SECOND, VIP, Host

START = 1.2  # seconds from the end of a process until the next one listens


def sends(lines):
    return [line for line in lines if line.startswith("send")]


@pytest.fixture
def host():
    return Host()


def succeeded(old):
    """Return another daemon on the same host, to which this one has left its addresses."""
    old.daemon.advertise()
    new = Host()
    new.loop.clock = old.loop.clock + int(START * SECOND)
    new.netlink.there = dict(old.netlink.there)
    new.netlink.pending.clear()
    return new


def test_an_active_one_advertises_once_more_and_a_backup_does_not(host):
    host.start(FRONT, BACK).activate()
    host.hears(200)
    host.done()
    host.daemon.advertise()
    (sent,) = sends(host.acts())
    assert sent.startswith("send 100 to") and host.states == {"front": "Backup", "back": "Active"}


def test_the_next_process_advertises_before_a_backup_of_any_priority_takes_over(host):
    """At an interval of one second the best Backup waits for three, and its Skew_Time."""
    host.start().activate()
    host.let(0.999)  # whenever it ends
    host.done()
    new = succeeded(host)
    assert sends(host.acts()) == [f"send 100 to {OTHER}"]
    new.start(FRONT)
    new.let(3 - START)
    assert sends(new.acts()) == [f"send 100 to {OTHER}"] and DOWN_INTERVAL > 3
    assert new.held == [f"{VIP}/32"]


def test_the_addresses_are_there_all_the_time_and_are_announced(host):
    host.start().activate()
    new = succeeded(host)
    new.start(FRONT)
    new.let(DOWN_INTERVAL)
    acts = new.acts()
    assert not [line for line in acts if line.startswith("delete")] and new.held == [f"{VIP}/32"]
    assert f"announce {VIP} on eth0 x5" in acts


def test_a_backup_starts_anew(host):
    host.start(FRONT)
    host.hears(101)
    new = succeeded(host)
    new.start(FRONT)
    new.let(DOWN_INTERVAL - 0.01)
    assert (new.state, new.held, sends(new.acts())) == ("Backup", [], [])


def test_a_backup_that_has_taken_over_meanwhile_keeps_the_addresses_if_it_is_the_better_one(host):
    host.start().activate()
    new = succeeded(host)
    new.start(FRONT)
    new.hears(200)
    assert (new.state, new.held) == ("Backup", [])
