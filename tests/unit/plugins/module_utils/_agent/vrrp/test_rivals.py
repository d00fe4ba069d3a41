# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A second Active router: two hosts hold the addresses, and this one says so."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import rivals
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.settings import Group
from support.vrrp.fakes import BACK, EPOCH, FRONT, OTHER, OWN, SECOND, THIRD, Host

NOTIFYING = FRONT._replace(peers=(OTHER, THIRD), notify=("/bin/tell",))
FOUND = f"front: {OTHER} is Active as well, with priority 50: it receives none of our Advertisements, or discards them"
GONE = f"front: {OTHER} is no longer Active as well"


@pytest.fixture
def host():
    return Host().start(NOTIFYING).activate()


TOLD = "run /bin/tell INSTANCE front MASTER 100 as nobody"


def advertises(host, seconds, *routers, priority=50):
    """Return what is said and run while routers advertise a lower priority."""
    for _second in range(seconds):
        for source in routers:
            host.hears(priority, source=source)
        host.let(1)
    return [line for line in host.done() if line.startswith(("says", "run"))]


def test_a_second_active_is_logged_once_and_the_program_is_told_again_at_each_of_its_advertisements(host):
    assert advertises(host, 10, OTHER) == [TOLD, TOLD, TOLD, f"says {FOUND}", *7 * [TOLD]]
    assert (host.state, host.report()["lower"]) == ("Active", 10)


def test_a_storm_of_advertisements_is_a_call_each_second_and_one_after_the_last(host):
    for _tenth in range(25):
        host.hears(50, source=OTHER)
        host.let(0.1)
    assert [line for line in host.done() if line == TOLD] == [TOLD, TOLD, TOLD]
    host.let(2)
    assert [line for line in host.done() if line == TOLD] == [TOLD]
    host.let(10)
    assert [line for line in host.done() if line == TOLD] == []


def test_a_router_that_has_yielded_meanwhile_is_told_nothing_more(host):
    for _time in range(2):
        host.hears(50, source=OTHER)
    host.hears(200, source=OTHER)
    host.let(2)
    assert [line for line in host.done() if line.startswith("run")] == [TOLD, TOLD.replace("MASTER", "BACKUP")]


def test_the_program_of_a_sync_group_is_told_again_as_well():
    groups = (Group("both", ("front", "back"), ("/bin/all",)), Group("others", ("other",), ("/bin/others",)))
    host = Host().start(NOTIFYING, BACK, groups=groups).activate()
    host.hears(50, source=OTHER)
    host.let()
    told = [line for line in host.done() if line.startswith("run")]
    assert told == [TOLD, "run /bin/all GROUP both MASTER 0 as nobody"]


def test_the_last_advertisements_of_a_router_that_yields_are_no_second_active(host):
    """Its own, and the one that keepalived's hook sends. Its program may have been told that it owns the addresses."""
    assert advertises(host, 2, OTHER) == [TOLD, TOLD]
    host.let(10)
    assert advertises(host, 2, OTHER) == [TOLD, TOLD]
    assert (host.report()["rivals"], host.report()["lower"]) == ([], 4)


def test_a_router_that_resigns_is_no_second_active(host):
    assert advertises(host, 3, OTHER, priority=0) == []


def test_each_rival_is_reported_as_long_as_it_advertises(host):
    advertises(host, 3, OTHER, THIRD)
    found = host.report()["rivals"]
    assert [(rival["source"], rival["priority"]) for rival in found] == [(OTHER, 50), (THIRD, 50)]
    assert {rival["since"] for rival in found} == {EPOCH + host.loop.now() / SECOND - 3}
    advertises(host, 4, THIRD)
    assert [rival["source"] for rival in host.report()["rivals"]] == [THIRD]


def test_the_end_of_a_rival_is_logged_and_its_return_too(host):
    advertises(host, 5, OTHER)
    host.let(5)
    assert host.says() == [GONE]
    assert f"says {FOUND}" in advertises(host, 3, OTHER)


def test_no_timer_stays_behind_when_no_rival_is_left(host):
    before = host.loop.waiting
    advertises(host, 3, OTHER)
    host.let(20)
    assert host.loop.waiting == before


def test_a_router_that_yields_has_no_rivals(host):
    advertises(host, 3, OTHER)
    for _second in range(5):
        host.hears(200, source=THIRD)
        host.let(1)
    assert (host.state, host.report()["rivals"]) == ("Backup", [])


def test_forged_sources_do_not_fill_the_memory_or_the_log():
    group = FRONT._replace(multicast=True, peers=())
    host = Host().start(group).activate()
    for _round in range(3):
        for number in range(100):
            host.hears(50, source=f"10.0.0.{number}", destination="224.0.0.18", of=group)
        host.let(1)
    assert len(host.report()["rivals"]) == len(host.says()) == rivals.MAX_RIVALS
    assert OWN not in [rival["source"] for rival in host.report()["rivals"]]


def test_forged_sources_that_come_and_go_fill_no_log_and_a_rival_that_stays_is_named_within_a_minute():
    host = Host().start(FRONT._replace(peers=(OTHER, *(f"10.0.0.{number}" for number in range(100))))).activate()
    for number in range(80):
        for _time in range(rivals.FEWEST):
            host.hears(50, source=f"10.0.0.{number}")
        host.let(0.5)  # each is gone 3.1 s later
    assert sum("is Active as well" in line for line in host.says()) == rivals.MAX_RIVALS
    said = []
    for _second in range(60):
        host.hears(50, source=OTHER)
        host.let(1)
        said += [line for line in host.says() if "is Active as well" in line]
    assert said == [FOUND]
