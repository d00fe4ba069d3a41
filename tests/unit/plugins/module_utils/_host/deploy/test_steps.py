# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is done to a host, in which order, and what is not done."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy import steps as plan
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy.steps import (
    ActualState,
    ConflictingService,
    DesiredState,
    Unit,
)
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import DAEMONS, Daemon

PROXY = Daemon("proxy")
LINK, ARCHIVE, OLD = "/lib/agent.pyz", "/lib/agent-2.pyz", "/lib/agent-1.pyz"
POINTERS = {LINK: "agent-2.pyz", "/lib/onprem-lb-proxy": "/usr/bin/python3", "/lib/onprem-lb-vrrp": "/usr/bin/python3"}
FILES = {daemon.unit: f"/units/{daemon.unit}" for daemon in DAEMONS}
FILES.update({daemon.name: f"/etc/{daemon.name}.json" for daemon in DAEMONS})
WANTED = DesiredState(DAEMONS, ARCHIVE, POINTERS, FILES, "/usr/bin/python3", loaded={"proxy": "2b", "vrrp": "2b"})
RUNNING = Unit(active=True, enabled=True, pid=7, archive=ARCHIVE, loaded="2b")
DONE = ActualState(
    systemd=True,
    raw_sockets=True,
    version=(3, 8),
    users=frozenset(["onprem-lb-proxy", "onprem-lb-vrrp"]),
    pending=(),
    installed=True,
    pointers=POINTERS,
    unfinished=False,
    units={daemon.unit: RUNNING for daemon in DAEMONS},
    conflicting=(),
    enabled_conflicting=frozenset(),
    leftovers=(),
)
FRESH = DONE._replace(
    users=frozenset(),
    pending=tuple(FILES.values()),
    installed=False,
    pointers=dict.fromkeys(POINTERS, ""),
    units=dict.fromkeys(DONE.units, Unit()),
)
KEEPALIVED = ConflictingService("keepalived", 12, "keepalived.service", False)


def steps(wanted=WANTED, **found):
    return [str(step) for step in plan.present(wanted, DONE._replace(**found))]


def faults(wanted=WANTED, **found):
    return plan.faults(wanted, DONE._replace(**found))


def units(**changed):
    """Both run; what is given is different."""
    return {daemon.unit: RUNNING._replace(**changed.get(daemon.name, {})) for daemon in DAEMONS}


def test_a_host_that_is_as_wanted_is_left_alone():
    assert steps() == []


def test_a_fresh_host_gets_everything_before_anything_starts_and_the_balancer_starts_first():
    found = [str(step) for step in plan.present(WANTED, FRESH)]
    assert found[:3] == ["create user onprem-lb-proxy", "create user onprem-lb-vrrp", f"install {ARCHIVE}"]
    assert found.index(f"install {ARCHIVE}") < found.index("replace /etc/vrrp.json") < found.index(f"point {LINK}")
    assert found[-5:] == [
        "reload systemd",
        "enable onprem-lb-proxy.service",
        "enable onprem-lb-vrrp.service",
        "start onprem-lb-proxy.service",
        "start onprem-lb-vrrp.service",
    ]


def test_a_new_configuration_reloads_its_daemon_alone():
    for name in ("proxy", "vrrp"):
        found = steps(pending=(f"/etc/{name}.json",), units=units(**{name: {"loaded": "2a"}}))
        assert found == [f"replace /etc/{name}.json", f"reload onprem-lb-{name}.service"]


def test_a_configuration_that_was_written_and_never_loaded_is_loaded():
    assert steps(units=units(vrrp={"loaded": "2a"})) == ["reload onprem-lb-vrrp.service"]
    assert steps(units=units(proxy={"loaded": ""})) == ["reload onprem-lb-proxy.service"], "it does not answer"


def test_a_file_that_was_edited_and_never_loaded_is_replaced_and_nothing_reloads():
    assert steps(pending=("/etc/vrrp.json",)) == ["replace /etc/vrrp.json"]


def test_a_new_version_takes_over_from_the_proxy_and_the_router_starts_anew():
    old = {"archive": OLD}
    found = steps(installed=False, pointers={**POINTERS, LINK: "agent-1.pyz"}, units=units(proxy=old, vrrp=old))
    assert found == [
        f"install {ARCHIVE}",
        f"point {LINK}",
        "upgrade onprem-lb-proxy.service",
        "restart onprem-lb-vrrp.service",
    ]


def test_a_new_version_with_another_unit_for_the_router_is_a_new_start():
    found = steps(units=units(vrrp={"archive": OLD}), pending=("/units/onprem-lb-vrrp.service",))
    assert found[-2:] == ["reload systemd", "restart onprem-lb-vrrp.service"]


def test_a_daemon_that_was_not_brought_along_is_brought_along_by_the_next_run():
    assert steps(units=units(proxy={"archive": OLD})) == ["upgrade onprem-lb-proxy.service"]
    assert steps(units=units(vrrp={"archive": OLD})) == ["restart onprem-lb-vrrp.service"]
    assert steps(unfinished=True) == ["reload onprem-lb-proxy.service", "reload onprem-lb-vrrp.service"]


def test_another_python_counts_as_another_version():
    found = steps(pointers={**POINTERS, "/lib/onprem-lb-vrrp": "/usr/bin/python3.9"})
    assert found == ["point /lib/onprem-lb-vrrp", "restart onprem-lb-vrrp.service"]


def test_a_changed_unit_never_costs_the_balancers_connections():
    found = steps(pending=("/units/onprem-lb-proxy.service",))
    assert found == ["replace /units/onprem-lb-proxy.service", "reload systemd"]
    found = steps(pending=("/units/onprem-lb-vrrp.service",))
    assert found[-2:] == ["reload systemd", "restart onprem-lb-vrrp.service"]


def test_a_unit_that_systemd_has_not_read_yet_is_read():
    assert steps(units=units(proxy={"outdated": True})) == ["reload systemd"]


def test_what_is_stopped_or_disabled_is_mended():
    assert steps(units=units(proxy={"active": False, "pid": 0})) == ["start onprem-lb-proxy.service"]
    assert steps(units=units(vrrp={"enabled": False})) == ["enable onprem-lb-vrrp.service"]


def test_a_daemon_without_a_configuration_is_stopped_before_its_files_are_removed():
    alone = WANTED._replace(daemons=(PROXY,))
    found = steps(alone, pending=("/etc/vrrp.json", "/units/onprem-lb-vrrp.service"))
    assert found[:2] == ["stop onprem-lb-vrrp.service", "delete /etc/vrrp.json"]
    assert not [step for step in found if "start" in step]


def test_a_program_that_is_to_go_is_stopped_right_before_the_agent_starts():
    wanted = WANTED._replace(replace=("keepalived", "haproxy"))
    found = [str(step) for step in plan.present(wanted, FRESH._replace(conflicting=(KEEPALIVED,)))]
    assert found[-3:] == ["stop keepalived.service", *found[-2:]] and "start" in found[-2]
    assert "stop haproxy.service" not in found, "it does not run, and does not start at boot"
    assert steps(wanted, enabled_conflicting=frozenset(["haproxy.service"])) == ["stop haproxy.service"]


def test_keepalived_stops_before_haproxy():
    wanted = WANTED._replace(replace=("haproxy", "keepalived"))
    both = frozenset(["haproxy.service", "keepalived.service"])
    assert steps(wanted, enabled_conflicting=both) == ["stop keepalived.service", "stop haproxy.service"]


def test_nothing_is_stopped_without_being_told():
    assert steps(conflicting=(KEEPALIVED,), enabled_conflicting=frozenset(["keepalived.service"])) == []


@pytest.mark.parametrize(
    "found, words",
    [
        ({"systemd": False}, "systemd does not run here"),
        ({"version": ()}, "/usr/bin/python3 is not a working Python"),
        ({"version": (3, 6)}, "/usr/bin/python3 is Python 3.6, and the agent needs 3.8 or later"),
        ({"raw_sockets": False}, "there is no permission to open raw sockets"),
        ({"conflicting": (KEEPALIVED,)}, "keepalived runs here (pid 12, keepalived.service, not this collection's)"),
        ({"conflicting": (KEEPALIVED._replace(ours=True),)}, "keepalived.service, this collection's)"),
        ({"conflicting": (KEEPALIVED._replace(unit=""),)}, "no systemd unit"),
        ({"conflicting": (KEEPALIVED._replace(unit="", where="the pod 0c2b"),)}, "(pid 12, the pod 0c2b, not this"),
    ],
)
def test_what_is_in_the_way_is_one_sentence(found, words):
    (sentence,) = faults(**found)
    assert words in sentence and sentence.count(". ") == 0


def test_a_conflicting_service_matters_only_to_the_daemon_that_it_conflicts_with():
    balancer = WANTED._replace(daemons=(PROXY,))
    assert faults(balancer, raw_sockets=False, conflicting=(KEEPALIVED,)) == []
    assert faults(conflicting=(KEEPALIVED._replace(program="haproxy"),)) == [], "its ports tell whether it is"
    assert faults(WANTED._replace(replace=("keepalived",)), conflicting=(KEEPALIVED,)) == []
    assert faults() == []


def test_the_router_goes_first_and_nothing_is_left():
    found = [str(step) for step in plan.absent(DONE._replace(leftovers=("/etc/x", "/lib/x")))]
    assert found == [
        "stop onprem-lb-vrrp.service",
        "stop onprem-lb-proxy.service",
        "remove user onprem-lb-proxy",
        "remove user onprem-lb-vrrp",
        "remove /etc/x",
        "remove /lib/x",
        "reload systemd",
    ]
    assert plan.absent(FRESH) == []


def test_addresses_that_the_new_configuration_does_not_know_are_left_behind():
    config = {"instances": [{"addresses": ["192.0.2.10/24"]}, {"addresses": ["2001:db8::10"]}]}
    assert plan.orphaned([{"held": ["192.0.2.10/24", "2001:db8::10/128"]}], config) == []
    assert plan.orphaned([{"held": ["192.0.2.10/24", "192.0.2.11/32"]}], config) == ["192.0.2.11/32"]
    assert plan.orphaned([{"held": ["192.0.2.10/24 dev eth1"]}], config) == ["192.0.2.10/24 dev eth1"]


def test_an_address_stays_where_it_is_however_its_interface_is_written():
    """The agent reports an address on its router's own interface without `dev`."""
    config = {"instances": [{"interface": "eth0", "addresses": ["192.0.2.10/24 dev eth0"]}]}
    assert plan.orphaned([{"interface": "eth0", "held": ["192.0.2.10/24"]}], config) == []
    assert plan.orphaned([{"interface": "eth0", "held": ["192.0.2.10/24 dev eth1"]}], config) != []
    assert plan.orphaned([{"interface": "eth1", "held": ["192.0.2.10/24"]}], config) == ["192.0.2.10/24"]


def test_excluded_addresses_and_routes_are_left_behind_like_others():
    way = "10.0.0.0/8 via 192.0.2.254"
    instance = {"addresses": [], "excluded_addresses": ["2001:db8::10/128 dev eth1"], "virtual_routes": [way]}
    running = [{"held": ["2001:db8::10/64 dev eth1"], "virtual_routes": [way]}]
    assert plan.orphaned(running, {"instances": [instance]}) == []
    assert plan.orphaned(running, {"instances": [{"addresses": []}]}) == ["2001:db8::10/64 dev eth1", way]
