# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the roles do on the RedHat family and under SELinux, as their tasks tell; the rest is played on `rpm`."""

from __future__ import annotations

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from ansible_collections.onprem.lb.plugins.filter import roles
from support.paths import ROLES
from support.roles import calls, tasks, variables_of

APT, DNF = "ansible.builtin.apt", "ansible.builtin.dnf"
SEBOOLEAN, CONFIG_FILES = "ansible.posix.seboolean", "onprem.lb.config_files"
FAMILIES = {"Debian": APT, "RedHat": DNF}
BINDINGS = "python3-libsemanage"
PACKAGES = {"haproxy": ["haproxy"], "keepalived": ["keepalived", "psmisc"]}


def host(role, family="RedHat", missing=(), selinux=False, check=False, state="present"):
    """The variables of a role's run on a host where all is set up but the packages that are missing."""
    found = {
        "os_family": family,
        "missing_packages": list(missing),
        "package_lists_fresh": True,
        "selinux": selinux,
        "expiring": [],
        "active_units": [f"{role}.service"],
        "restarting_units": [],
        "enabled_units": [f"{role}.service"],
        "existing_units": [f"{role}.service"],
        "own_units": [f"{role}.service"],
        "own_packages": [role],
        "recorded_packages": [role],
        "takeover": {
            role: {"keep": [], "set_aside": [], "put_back": [], "stop": False, "restart": False, "tables": []}
        },
    }
    return {
        **variables_of(role),
        f"{role}_state": state,
        f"{role}_packages": PACKAGES[role],
        f"__{role}_handed": {"host": found},
        f"__{role}_host": found,
        f"__{role}_before_removal": found,
        f"__{role}_files": [],
        f"__{role}_secrets": [],
        f"__{role}_written": {"changed": False},
        f"__{role}_stopped": {"changed": False},
        "__packages_unused_before": {"stdout": ""},
        "ansible_check_mode": check,
    }


@pytest.mark.parametrize("role", PACKAGES)
@pytest.mark.parametrize("family", FAMILIES)
def test_missing_packages_come_by_the_familys_own_manager(role, family):
    ((manager, call),) = calls(role, host(role, family, missing=PACKAGES[role]), APT, DNF)
    assert (manager, call["name"], call.get("state", "present")) == (FAMILIES[family], PACKAGES[role], "present")


@pytest.mark.parametrize("role", PACKAGES)
@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_is_installed_where_nothing_is_missing_nor_in_check_mode(role, family):
    assert calls(role, host(role, family), APT, DNF) == []
    assert calls(role, host(role, family, missing=PACKAGES[role], check=True), APT, DNF) == []


@pytest.mark.parametrize("role", PACKAGES)
@pytest.mark.parametrize("family", FAMILIES)
def test_packages_are_removed_by_the_familys_own_manager_but_not_killall_which_others_use(role, family):
    ((manager, call),) = calls(role, host(role, family, state="absent"), APT, DNF)
    assert (manager, call["name"], call["state"]) == (FAMILIES[family], [role], "absent")


@pytest.mark.parametrize("role", PACKAGES)
def test_what_shows_that_a_program_is_ours_is_removed_last(role):
    """So that a run that was interrupted before is completed by the next one."""
    variables = {**host(role, "Debian", state="absent"), f"{role}_config_path": "/etc/x.cfg"}
    *earlier, (_module, record), (_module, last) = calls(role, variables, APT, CONFIG_FILES)
    assert record["files"][0]["path"] == "/etc/onprem-lb-packages.json" and APT in [module for module, _call in earlier]
    assert last["files"] == [{"path": f"/etc/systemd/system/{role}.service.d/onprem-lb.conf", "state": "absent"}]


def test_where_selinux_is_enabled_haproxy_may_connect_to_any_port_before_it_gets_a_file_that_needs_it():
    check, boolean, files = calls(
        "haproxy", {**host("haproxy", selinux=True), "__haproxy_differs": ["file"]}, SEBOOLEAN, CONFIG_FILES
    )
    assert boolean == (SEBOOLEAN, {"name": "haproxy_connect_any", "state": True, "persistent": True})
    assert check == files and files[0] == CONFIG_FILES


def test_where_selinux_is_not_enabled_no_boolean_is_set():
    assert [name for name, _call in calls("haproxy", host("haproxy"), SEBOOLEAN, CONFIG_FILES)] == [CONFIG_FILES]


@pytest.mark.parametrize("connects", [True, False])
def test_where_selinux_is_enabled_keepalived_may_connect_if_one_of_its_checks_does(connects):
    known = {**host("keepalived", selinux=True), "__keepalived_model": {"connects": connects}}
    found = calls("keepalived", known, SEBOOLEAN, CONFIG_FILES, tasks_from="configure.yml")
    allowed = (SEBOOLEAN, {"name": "keepalived_connect_any", "state": True, "persistent": True})
    assert [name for name, _call in found] == ([SEBOOLEAN] if connects else []) + [CONFIG_FILES]
    assert (allowed in found) is connects


@pytest.mark.parametrize("role", PACKAGES)
def test_in_check_mode_no_boolean_is_set_without_the_package_that_it_takes(role):
    known = {**host(role, selinux=True, missing=[BINDINGS], check=True), "__keepalived_model": {"connects": True}}
    assert SEBOOLEAN not in [name for name, _call in calls(role, known, SEBOOLEAN, tasks_from="configure.yml")]


@pytest.mark.parametrize("role", PACKAGES)
def test_what_sets_a_boolean_is_installed_and_never_recorded_as_what_a_removal_takes_away(role):
    read = host(role, missing=[*PACKAGES[role], BINDINGS])[f"__{role}_host"]
    known = {"packages_host": read, "ansible_check_mode": False}
    (_module, record), (_dnf, installed) = calls("packages", known, CONFIG_FILES, DNF, tasks_from="install.yml")
    assert installed["name"] == [*PACKAGES[role], BINDINGS]
    assert yaml.safe_load(str(record["files"][0]["content"])) == [role]


def test_ansible_looks_for_modules_of_ansible_posix_on_hosts_with_selinux_alone():
    files = [file.name for file in ROLES.glob("*/tasks/**/*.yml") if f"{SEBOOLEAN}:" in file.read_text()]
    assert files == ["selinux.yml", "selinux.yml"]


@pytest.mark.parametrize("selinux", [True, False])
@pytest.mark.parametrize("role", ["haproxy", "keepalived"])
def test_a_controller_without_ansible_posix_is_told_so_before_anything_changes(role, selinux, monkeypatch):
    monkeypatch.setattr(roles.importlib.util, "find_spec", lambda _name: None)
    (given,) = [task["vars"] for task in tasks(role, "preflight.yml") if f"__{role}_faults" in task.get("vars", {})]
    assert f"__{role}_lacks" in given[f"__{role}_faults"] and "missing_collections" in given[f"__{role}_lacks"]
    known = {f"__{role}_host": {"selinux": selinux}, f"__{role}_model": {"connects": True}}
    needed = Templar(loader=DataLoader(), variables=known).template(trust_as_template(given[f"__{role}_collections"]))
    found = roles.missing_collections(needed)
    assert [each.startswith("The controller lacks the collection ansible.posix") for each in found] == [True] * selinux


def test_a_collection_that_is_there_is_not_missed(monkeypatch):
    assert roles.missing_collections(["onprem.lb"]) == []
    assert len(roles.missing_collections(["no.such", "nobody.has"])) == 2
