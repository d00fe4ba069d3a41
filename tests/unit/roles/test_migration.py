# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a member does that changes its engine or delivery, and what is verified of it before the next one does."""

from __future__ import annotations

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from support.paths import ROLES
from support.roles import calls, tasks, variables_of

EXPECTED = {"vips": ["192.0.2.10"], "targets": [["192.0.2.10", 8443]]}


@pytest.mark.parametrize("migrating, targets", [("lb2", []), ("lb1", EXPECTED["targets"])])
def test_new_services_answer_through_the_vips_once_the_last_member_has_migrated(migrating, targets):
    """Until then the VIPs may be on a member with the engine and the services of before."""
    loader = DataLoader()
    read = loader.load_from_file(str(ROLES / "layout" / "tasks" / "migrate.yml"), trusted_as_template=True)
    (verify,) = [task for task in read[0]["block"] if task.get("ansible.builtin.include_tasks") == "verify.yml"]
    known = {"__layout_me": {"expected": EXPECTED}, "__layout_plan": {"migration_order": ["lb2", "lb1"]}}
    variables = {**known, **verify["vars"], "__layout_migrating": migrating}
    expected = Templar(loader=loader, variables=variables).template(verify["vars"]["__layout_expected"])
    assert expected == {**EXPECTED, "targets": targets}


SYSTEMD, PODS, ROLE = "ansible.builtin.systemd_service", "onprem.lb.member_pods", "ansible.builtin.include_role"
FILE, ARCHIVE = "ansible.builtin.file", "onprem.lb.program"
WRITES = "onprem.lb.config_files"
ROUTER, BALANCER, FOLLOW = "onprem-lb-router", "onprem-lb-balancer", "onprem-lb-follow"


INTERRUPTED = {"active_units": ["haproxy.service", ROUTER], "enabled_units": []}


def moves(moves_from, *more, **known):
    """Return what the migration of a member calls, in its order.

    :param moves_from: the delivery that goes
    """
    variables = {
        **variables_of("layout"),
        "__layout_host": {"active_units": ["haproxy.service", "keepalived.service"], "enabled_units": []},
        "__layout_has_balancer": True,
        "__layout_settings": {"down_file": "/run/haproxy.down"},
        "__layout_components": ["haproxy", "keepalived"],
        "__layout_pods": {"files": [], "secrets": [], "pods": [BALANCER, ROUTER], "archive": "/agent.pyz"},
        "__layout_component": "keepalived",
        "__layout_me": {"moves_from": moves_from},
        "__layout_in_pods": moves_from == "unit",
        "__layout_is_native": moves_from != "unit",
        "__layout_plan": {"migration_order": []},
        "layout_definition": {"verify": False},
        "inventory_hostname": "lb1",
        "__layout_migrating": "lb1",
        "ansible_check_mode": False,
        "item": "A",
        **known,
    }
    return calls("layout", variables, SYSTEMD, PODS, ROLE, FILE, ARCHIVE, *more, tasks_from="migrate.yml")


def loop_of(name):
    loader = DataLoader()
    read = loader.load_from_file(str(ROLES / "layout" / "tasks" / "migrate.yml"), trusted_as_template=True)
    (loop,) = [task["loop"] for task in read[0]["block"] if task["name"] == name]
    host = {"active_units": ["haproxy.service", "keepalived.service"], "enabled_units": ["onprem-lb-shutdown.service"]}
    variables = {**variables_of("layout"), "__layout_host": host}
    return Templar(loader=loader, variables=variables).template(loop)


def test_units_are_stopped_for_good_before_the_pods_start_and_removed_at_the_end():
    found = moves("unit")
    again = moves("unit", __layout_host=INTERRUPTED)
    assert again[0] == (PODS, {"pods": [ROUTER], "state": "stopped"}), "one that an interrupted run has started"
    assert found[0] == (SYSTEMD, {"name": "A", "enabled": False, "state": "stopped"})
    assert loop_of("Migrate | Stop the units, the router's first") == [
        "keepalived.service",
        "onprem-lb-shutdown.service",
        "haproxy.service",
    ]
    assert [module for module, _given in found[1:]] == [ROLE, ARCHIVE, PODS, FILE, ROLE]
    assert found[1][1] == {"name": "onprem.lb.ipi", "tasks_from": "nftables_files_absent.yml"}
    assert found[3][1] == {"pods": [BALANCER, ROUTER], "state": "started"}
    assert found[-1][1] == {"name": "onprem.lb.keepalived", "tasks_from": "remove.yml"}


def test_the_tables_of_a_pod_that_runs_already_stay_loaded():
    """The files of the units go alone: an interrupted move has them beside a sidecar that has loaded its own tables."""
    assert [task for task in tasks("ipi", "nftables_files_absent.yml") if "onprem.lb.nft_tables" in task] == []
    assert [task for task in tasks("ipi", "nftables_absent.yml") if "onprem.lb.nft_tables" in task]


def test_pods_are_stopped_before_the_units_start_and_their_manifests_go_at_the_end():
    found = moves("pod", WRITES)
    assert [module for module, _given in found] == [PODS, ROLE, WRITES, PODS]
    assert found[0][1] == {"pods": ["A"], "state": "stopped"}
    assert loop_of("Migrate | Stop follow, the router, then the balancer") == [FOLLOW, ROUTER, BALANCER]
    assert found[2][1] == {"files": [], "folders": ["/etc/kubernetes/static-pod-resources/onprem-lb"]}
    assert found[3][1] == {"pods": [BALANCER, ROUTER, FOLLOW], "state": "absent"}


def test_the_router_of_one_engine_has_stopped_before_the_pods_of_the_other_one_start():
    found = moves("", __layout_in_pods=True, __layout_is_native=False)
    assert [given for module, given in found if module == PODS] == [
        {"pods": [ROUTER], "state": "stopped"},
        {"pods": [BALANCER, ROUTER], "state": "started"},
    ]


@pytest.mark.parametrize(
    "moves_from, in_pods, expected",
    [
        ("", False, ["Replace the engine"]),
        ("", True, ["Stop the router, which gives the VIPs up", "Start the pods"]),
        (
            "unit",
            True,
            [
                *("Stop the units, the router's first", "Remove the redirect and the guard", "Start the pods"),
                *("Delete what the units have left", "Remove keepalived and haproxy"),
            ],
        ),
        (
            "pod",
            False,
            [
                *("Stop follow, the router, then the balancer", "Configure haproxy and keepalived"),
                *("Delete what the pods have read", "Delete their manifests"),
            ],
        ),
    ],
)
def test_a_member_changes_its_engine_or_its_delivery(moves_from, in_pods, expected):
    loader = DataLoader()
    (read,) = loader.load_from_file(str(ROLES / "layout" / "tasks" / "migrate.yml"), trusted_as_template=True)
    known = {
        **variables_of("layout"),
        "__layout_me": {"moves_from": moves_from},
        "__layout_in_pods": in_pods,
        "__layout_host": {"active_units": []},
        "__layout_has_balancer": True,
        "ansible_check_mode": False,
    }
    *steps, verify = read["block"]
    templar = Templar(loader=loader, variables=known)

    def holds(task):
        conditions = task["when"] if isinstance(task["when"], list) else [task["when"]]
        return all(map(templar.evaluate_conditional, conditions))

    assert [task["name"].removeprefix("Migrate | ") for task in steps if holds(task)] == expected
    assert "when" not in verify
