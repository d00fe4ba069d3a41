# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The startup delay: no router takes part before it is over."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks import settings
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.settings import Check
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.settings import Tracked
from support.vrrp.fakes import BACK, FRONT, SECOND, VIP, Host

HAPROXY, LOAD = Check("haproxy", settings.PROCESS), Check("load", settings.FILE)
TRACKING = FRONT._replace(track=(Tracked("haproxy"), Tracked("load", -10)))


@pytest.fixture
def host():
    return Host()


def test_until_the_startup_delay_is_over_no_router_takes_part(host):
    host.start(FRONT, startup_delay=2 * SECOND)
    host.hears(200)
    host.let(1.999)
    assert (host.state, host.acts()) == ("Initialize", [])
    host.let(0.001)
    assert host.state == "Backup"


def test_a_router_that_finds_its_addresses_does_not_wait_for_the_startup_delay(host):
    """It is for a host that boots. After an upgrade, or a crash, a Backup would take over meanwhile."""
    host.netlink.put(f"{VIP}/32")
    host.start(FRONT, startup_delay=60 * SECOND)
    host.let(2)
    assert (host.state, host.held) == ("Active", [f"{VIP}/32"])


def test_the_startup_delay_does_not_delay_checks(host):
    host.start(TRACKING, checks=(HAPROXY, LOAD), startup_delay=2 * SECOND)
    assert [check.name for check in host.checks.applied[-1][0]] == ["haproxy", "load"]


def test_a_router_that_is_removed_during_the_startup_delay_does_not_start(host):
    host.start(FRONT, BACK, startup_delay=2 * SECOND)
    host.apply(BACK)
    host.let(2)
    assert host.states == {"back": "Backup"}


def test_an_agent_that_resigns_during_the_startup_delay_starts_no_router(host):
    host.start(FRONT, startup_delay=2 * SECOND)
    host.daemon.resign(lambda: None)
    host.let(3)
    assert host.state == "Initialize"


def test_a_reload_after_the_startup_delay_starts_a_new_router_at_once(host):
    host.start(FRONT, startup_delay=2 * SECOND)
    host.let(2)
    host.apply(FRONT, BACK, startup_delay=2 * SECOND)
    assert host.states == {"front": "Backup", "back": "Backup"}
