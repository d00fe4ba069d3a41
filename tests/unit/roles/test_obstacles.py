# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is in the way of a role is refused before the role changes anything, and what is in another's way is not."""

from __future__ import annotations

import pytest
import yaml
from support.paths import ROLES
from support.roles import calls, refusals

HOST_INFO, SYSTEMD, CONFIG_FILES = "onprem.lb.host_info", "ansible.builtin.systemd_service", "onprem.lb.config_files"
PACKAGES = {"haproxy": ["haproxy"], "keepalived": ["keepalived", "psmisc"]}
NEEDED = {
    "haproxy": [
        "haproxy",
        "haproxy.service",
        "/etc/haproxy/haproxy.cfg",
        "/etc/systemd/system/haproxy.service.d/onprem-lb.conf",
        "/etc/sysctl.d/90-onprem-lb.conf",
    ],
    "keepalived": [
        "keepalived",
        "psmisc",
        "keepalived.service",
        "/etc/keepalived/keepalived.conf",
        "/etc/systemd/system/keepalived.service.d/onprem-lb.conf",
    ],
}
OBSTACLES = {name: f"{name} is in the way." for names in NEEDED.values() for name in names}


def defaults(role):
    return yaml.safe_load((ROLES / role / "defaults" / "main.yml").read_text())


def preflight(role, obstacles):
    """The sentences with which a role's preflight refuses a host that has these obstacles and is good otherwise."""
    host = {"problems": [], "obstacles": obstacles}
    good = {f"__{role}_unknown": [], f"__{role}_command_faults": [], f"__{role}_model": {"faults": []}}
    return refusals(role, "preflight.yml", {**defaults(role), **good, f"__{role}_host": host})


@pytest.mark.parametrize("role", NEEDED)
def test_a_role_refuses_what_is_in_its_own_way(role):
    assert preflight(role, OBSTACLES) == [OBSTACLES[name] for name in NEEDED[role]]
    assert preflight(role, {}) == []


def test_one_reason_for_two_packages_is_said_once():
    assert preflight("keepalived", dict.fromkeys(["keepalived", "psmisc"], "dpkg!")) == ["dpkg!"]


@pytest.mark.parametrize("native", [True, False])
def test_a_layout_refuses_what_is_in_the_way_of_its_own_units_and_files_and_of_packages_that_it_needs(native):
    definition = {"packages": ["nftables", "haproxy"], "units": ["guard.service"], "files": ["/etc/onprem-lb/x.nft"]}
    names = ("nftables", "guard.service", "/etc/onprem-lb/x.nft", "keepalived.service")
    obstacles = {name: f"{name}!" for name in names}
    variables = {"layout_definition": definition, "__layout_host": {"obstacles": obstacles}}
    expected = ["guard.service!", "/etc/onprem-lb/x.nft!", *(["nftables!"] if native else [])]
    found = refusals("layout", "preflight.yml", {**variables, "__layout_is_native": native})
    assert sorted(found) == sorted(expected)


def test_a_layout_looks_for_every_file_that_haproxy_and_keepalived_need():
    files = yaml.safe_load((ROLES / "layout" / "vars" / "main.yml").read_text())["__layout_files"]
    needed = [path for names in NEEDED.values() for path in names if path.startswith("/")]
    assert sorted(path.partition("default('")[2].partition("'")[0] or path for path in files) == sorted(needed)


def removal(role, existing=(), unremovable=None):
    read = {"existing_units": list(existing), "unremovable": unremovable or {}, "os_family": "Debian"}
    state = {f"{role}_state": "absent", "ansible_check_mode": False}
    return {**defaults(role), **state, f"__{role}_host_read": read, f"__{role}_unit_path": "/x"}


@pytest.mark.parametrize("role", PACKAGES)
def test_a_removal_stops_a_unit_that_exists_whatever_becomes_of_its_package(role):
    unit = f"{role}.service"
    (_module, stop), reload = calls(role, removal(role, [unit]), SYSTEMD)
    assert (stop["name"], stop["state"], stop["enabled"]) == (unit, "stopped", False)
    assert calls(role, removal(role), SYSTEMD) == [reload] == [(SYSTEMD, {"daemon_reload": True})]


@pytest.mark.parametrize("role", PACKAGES)
def test_a_removal_reads_the_unit_and_the_packages_that_it_removes(role):
    ((_module, asked),) = calls(role, removal(role), HOST_INFO)
    assert asked == {"packages": [role], "units": [f"{role}.service"]}


@pytest.mark.parametrize("role", PACKAGES)
def test_a_removal_of_packages_that_apt_would_not_remove_is_refused_with_the_mend(role):
    held = {role: f"run `apt-mark unhold {role}`."}
    assert refusals(role, "remove.yml", removal(role, unremovable=held)) == [held[role]]
    assert refusals(role, "remove.yml", removal(role)) == []


REMOVALS = {"haproxy": "remove.yml", "keepalived": "remove.yml", "layout": "absent.yml"}


@pytest.mark.parametrize("role, file", REMOVALS.items())
def test_the_refusal_comes_before_anything_is_changed(role, file):
    tasks = yaml.safe_load((ROLES / role / "tasks" / file).read_text())
    assert [HOST_INFO in tasks[0], "ansible.builtin.assert" in tasks[1]] == [True, True]


def test_the_removal_of_a_layout_is_refused_for_both_programs_at_once():
    unremovable = {"keepalived": "unhold keepalived.", "haproxy": "unhold haproxy."}
    said = refusals("layout", "absent.yml", {"__layout_host": {"unremovable": unremovable}})
    assert said == ["unhold keepalived.", "unhold haproxy."]
