# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is in the way of a role is refused before the role changes anything, and what is in another's way is not."""

from __future__ import annotations

import json

import pytest
import yaml
from ansible_collections.onprem.lb.plugins.module_utils._host.states.snapshot import WATCHED_UNITS
from ansible_collections.onprem.lb.plugins.module_utils._shared import paths
from support.paths import ROLES
from support.roles import REFUSE, calls, defaults, refusals, variables_of

HOST_INFO, SYSTEMD, CONFIG_FILES = "onprem.lb.host_info", "ansible.builtin.systemd_service", "onprem.lb.config_files"
READ = {"expiring": []}  # of what a host has returned, what other tasks look at
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
        "/usr/local/lib/onprem-lb-keepalived/hook",
    ],
}
OBSTACLES = {name: f"{name} is in the way." for names in NEEDED.values() for name in names}


def preflight(role, obstacles=(), of_others=(), adopt=False, unfit=(), unadoptable=()):
    """The sentences with which a role's preflight refuses a host that is good otherwise.

    :param of_others: what `host_info` says of the things that others have set up
    :param unadoptable: and what of those that cannot be adopted
    """
    takeover = {"refusals": list(of_others), "unadoptable": list(unadoptable)}
    host = {"problems": [], "obstacles": dict(obstacles), "takeover": {role: takeover}}
    none = {f"__{role}_unknown": [], f"__{role}_lacks": [], f"__{role}_model": {"faults": []}}
    given = {**defaults(role), f"{role}_adopt": adopt, **none, f"__{role}_unfit": list(unfit), f"__{role}_host": host}
    return refusals(role, "preflight.yml", given)


@pytest.mark.parametrize("role", NEEDED)
def test_a_role_refuses_what_is_in_its_own_way(role):
    assert preflight(role, OBSTACLES) == [OBSTACLES[name] for name in NEEDED[role]]
    assert preflight(role, {}) == []


@pytest.mark.parametrize("role", NEEDED)
def test_a_role_refuses_files_that_its_variables_name_and_that_are_not_fit_for_use(role):
    unfit = [f"{role}_services[0] (web).check.ca is '/etc/ca.pem': it cannot be read."]
    assert preflight(role, unfit=unfit) == unfit


def test_a_host_is_asked_about_every_file_that_the_variables_name():
    given = {"haproxy_down_file": "/srv/x/down", "haproxy_services": [{"name": "web"}]}
    ((_module, asked),) = calls("haproxy", {**names_of("haproxy"), **given}, HOST_INFO, tasks_from="read.yml")
    assert asked["named"] == {"down_file": "/srv/x/down", "services": [{"name": "web"}]}
    assert asked["sets_booleans"] is True and asked["servers"] == [{"name": "web"}]
    programs = [{"key": "instances (a).notify", "command": "/bin/x", "user": "root"}]
    model = {"__keepalived_model": {"programs": programs, "connects": False}}
    ((_module, asked),) = calls("keepalived", {**names_of("keepalived"), **model}, HOST_INFO, tasks_from="read.yml")
    assert asked["named"] == {"programs": programs}
    assert asked["sets_booleans"] is False  # because none of its scripts connects


def names_of(role):
    paths = {f"__{role}_unit_path": "/x", f"__{role}_sysctl_path": "/y", f"__{role}_hook": "/z"}
    return {**defaults(role), **paths, f"__{role}_host": READ}


@pytest.mark.parametrize("role", NEEDED)
@pytest.mark.parametrize("adopt, said", [(False, ["theirs"]), (True, []), ("false", ["theirs"]), ("true", [])])
def test_what_others_have_set_up_is_refused_unless_the_user_adopts_it(role, adopt, said):
    assert preflight(role, {}, ["theirs"], adopt) == said


@pytest.mark.parametrize("role", NEEDED)
@pytest.mark.parametrize("adopt", [False, True])
def test_what_cannot_be_adopted_is_refused_in_any_case(role, adopt):
    assert preflight(role, adopt=adopt, unadoptable=["no way"]) == ["no way"]


@pytest.mark.parametrize("role", NEEDED)
def test_a_role_asks_for_what_others_have_set_up(role):
    model = {"programs": [], "connects": True}
    given = {**defaults(role), **variables_of(role), f"__{role}_model": model, f"__{role}_host": READ}
    ((_module, asked),) = calls(role, given, HOST_INFO, tasks_from="read.yml")
    assert asked["configs"] == {role: defaults(role)[f"{role}_config_path"]}


def test_one_reason_for_two_packages_is_said_once():
    assert preflight("keepalived", dict.fromkeys(["keepalived", "psmisc"], "dpkg!")) == ["dpkg!"]


@pytest.mark.parametrize("native", [True, False])
def test_a_layout_refuses_what_is_in_the_way_of_its_own_units_and_files_and_of_packages_that_it_needs(native):
    definition = {
        "prefix": "pair",
        "packages": ["nftables", "haproxy"],
        "units": ["guard.service"],
        "files": ["/etc/onprem-lb/x.nft"],
    }
    own = ["/etc/onprem-lb-pair-members.json", "/var/lib/onprem.lb/states"]
    names = ("nftables", "guard.service", "/etc/onprem-lb/x.nft", "keepalived.service", *own)
    obstacles = {name: f"{name}!" for name in names}
    host = {"obstacles": obstacles, "missing_packages": []}
    variables = {"layout_definition": definition, "__layout_host": host, "__layout_stages": ["configure"]}
    variables.update(inventory_hostname="lb1", __layout_components=["haproxy", "keepalived"])
    expected = [
        "guard.service!",
        "/etc/onprem-lb/x.nft!",
        *(f"{path}!" for path in own),
        *(["nftables!"] if native else []),
    ]
    found = refusals("layout", "present.yml", {**variables, "__layout_is_native": native, "__layout_in_pods": False})
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize(
    "missing, stages, native, refused",
    [
        (["haproxy"], ["configure", "verify"], True, True),
        (["haproxy"], ["install", "configure"], True, False),
        (["haproxy"], ["verify"], True, False),
        (["haproxy"], ["configure"], False, False),
        ([], ["configure"], True, False),
    ],
)
def test_a_run_that_leaves_out_the_installation_needs_the_programs(missing, stages, native, refused):
    variables = {
        "inventory_hostname": "lb1",
        "layout_definition": {"prefix": "pair", "packages": [], "units": [], "files": []},
        "__layout_host": {"obstacles": {}, "missing_packages": missing},
        "__layout_stages": stages,
        "__layout_components": ["haproxy", "keepalived"],
        "__layout_is_native": native,
        "__layout_in_pods": False,
    }
    sentence = "lb1 lacks haproxy: run the stage install as well."
    assert refusals("layout", "present.yml", variables) == ([sentence] if refused else [])


def test_a_layout_looks_for_every_file_that_haproxy_and_keepalived_need():
    files = [each["path"] for each in paths.of_programs(paths.DEFAULTS)]
    needed = [path for names in NEEDED.values() for path in names if path.startswith("/")]
    assert sorted(files) == sorted(needed)


def removal(role, existing=(), unremovable=None, **read):
    """What a removal knows of a host on which this collection has set the role's unit up and installed its package."""
    ours = {"own_units": [f"{role}.service"], "own_packages": [role], "recorded_packages": [role, "other"]}
    kept = {"takeover": {role: {"put_back": ["/kept"]}}, "missing_packages": []}
    found = {"existing_units": list(existing), "unremovable": unremovable or {}, "os_family": "Debian"}
    state = {f"{role}_state": "absent", "ansible_check_mode": False}
    known = {**defaults(role), **variables_of(role), **state}
    asked = {"__packages_unused_before": {"stdout": ""}}
    return {**known, **asked, f"__{role}_before_removal": {**ours, **kept, **found, **read}}


@pytest.mark.parametrize("role", PACKAGES)
def test_a_removal_stops_a_unit_that_exists_whatever_becomes_of_its_package(role):
    unit = f"{role}.service"
    ((_module, stop),) = calls(role, removal(role, [unit]), SYSTEMD)
    assert (stop["name"], stop["state"], stop["enabled"]) == (unit, "stopped", False)
    assert calls(role, removal(role), SYSTEMD) == []


@pytest.mark.parametrize("role", PACKAGES)
def test_a_removal_reads_the_unit_and_the_packages_that_it_removes(role):
    ((_module, asked),) = calls(role, removal(role), HOST_INFO)
    config = defaults(role)[f"{role}_config_path"]
    assert asked == {"packages": PACKAGES[role], "units": [f"{role}.service"], "configs": {role: config}}


APT, DEBUG = "ansible.builtin.apt", "ansible.builtin.debug"
OTHERS = {"own_units": [], "own_packages": [], "recorded_packages": []}


@pytest.mark.parametrize("role", PACKAGES)
def test_only_a_package_that_this_collection_has_installed_is_removed_and_the_others_are_named(role):
    ((_module, removed),) = calls(role, removal(role), APT, DEBUG)
    assert (removed["name"], removed["state"]) == ([role], "absent")
    ((module, said),) = calls(role, removal(role, own_packages=[]), APT, DEBUG)
    assert module == DEBUG and said["msg"].strip() == (
        f"{role} stays installed, because nothing records that this collection installed it. If nothing else needs it, "
        "remove it with the package manager."
    )
    assert calls(role, removal(role, own_packages=[], missing_packages=[role]), APT, DEBUG) == []


@pytest.mark.parametrize("role", PACKAGES)
def test_a_unit_that_is_not_this_collections_is_not_stopped(role):
    stopped = [call for call in calls(role, removal(role, [f"{role}.service"], **OTHERS), SYSTEMD) if "name" in call[1]]
    assert stopped == []


@pytest.mark.parametrize("role", PACKAGES)
def test_a_removal_deletes_no_configuration_of_others_and_puts_back_what_was_kept_after_the_packages_are_gone(role):
    found = calls(role, removal(role), CONFIG_FILES, APT)
    deleted, *_left, record, last = [call for module, call in found if module == CONFIG_FILES]
    config = defaults(role)[f"{role}_config_path"]
    assert {"path": config, "state": "absent", "own_only": True} in deleted["files"]
    assert (json.loads(record["files"][0]["content"]), record["files"][0]["state"]) == (["other"], "present")
    assert last["put_back"] == ["/kept"] and [module for module, _call in found].index(APT) < len(found) - 1
    (_module, emptied) = calls(role, removal(role, recorded_packages=[role]), CONFIG_FILES)[-2]
    assert emptied["files"][0]["state"] == "absent"


def test_what_is_installed_is_recorded_before_it_is_installed_except_what_other_programs_may_use():
    host = {"missing_packages": ["haproxy", "curl"], "recorded_packages": ["old"], "os_family": "Debian"}
    known = {"packages_host": {**host, "package_lists_fresh": True}, "ansible_check_mode": False}
    (_first, record), (_second, installed) = calls("packages", known, CONFIG_FILES, APT, tasks_from="install.yml")
    assert json.loads(record["files"][0]["content"]) == ["haproxy", "old"]
    assert (installed["name"], installed["update_cache"], "state" in installed) == (["haproxy", "curl"], False, False)
    assert record["files"][0]["path"] == "/etc/onprem-lb-packages.json"


def configured(role, stop=False, restarting=(), active=None):
    """Return the calls that configure a program whose files are in place, and what they make of its unit."""
    unit = f"{role}.service"
    host = {
        "takeover": {role: {"stop": stop, "restart": False, "tables": [], "set_aside": ["/aside"], "keep": []}},
        "selinux": False,
    }
    host.update(restarting_units=restarting, active_units=[unit] if active is None else active, missing_packages=[])
    host.update(enabled_units=[unit])
    stops = {"changed": stop or unit in restarting}
    known = {**defaults(role), f"__{role}_host": host, "ansible_check_mode": False, f"__{role}_secrets": []}
    known.update({f"__{role}_files": [], f"__{role}_written": {"changed": False}, f"__{role}_stopped": stops})
    found = calls(role, known, SYSTEMD, CONFIG_FILES, tasks_from="configure.yml")
    return found, [call["state"] for module, call in found if module == SYSTEMD]


@pytest.mark.parametrize("role", PACKAGES)
@pytest.mark.parametrize("stop, restarting", [(True, False), (False, True), (False, False)])
def test_a_program_that_is_started_otherwise_or_fails_at_its_start_stops_before_its_files_change_and_starts_again(
    role, stop, restarting
):
    found, states = configured(role, stop, [f"{role}.service"] * restarting)
    assert states == (["stopped", "started"] if stop or restarting else [])
    assert [module for module, _call in found].index(CONFIG_FILES) == len(states[:1])
    assert found[len(states[:1])][1]["set_aside"] == ["/aside"]


@pytest.mark.parametrize("role", PACKAGES)
@pytest.mark.parametrize("other", sorted({*WATCHED_UNITS}))
def test_another_unit_that_fails_at_its_start_stops_no_program_that_runs(role, other):
    assert configured(role, restarting=[other])[1] == (["stopped", "started"] if other == f"{role}.service" else [])


@pytest.mark.parametrize("role", PACKAGES)
def test_a_removal_of_packages_that_apt_would_not_remove_is_refused_with_the_mend(role):
    held = {role: f"run `apt-mark unhold {role}`."}
    assert refusals(role, "remove.yml", removal(role, unremovable=held)) == [held[role]]
    assert refusals(role, "remove.yml", removal(role)) == []


REMOVALS = {"haproxy": "remove.yml", "keepalived": "remove.yml", "layout": "absent.yml"}


@pytest.mark.parametrize("role, file", REMOVALS.items())
def test_the_refusal_comes_before_anything_is_changed(role, file):
    tasks = yaml.safe_load((ROLES / role / "tasks" / file).read_text())
    assert [HOST_INFO in tasks[0], REFUSE in tasks[1]] == [True, True]


def test_the_removal_of_a_layout_is_refused_for_both_programs_at_once():
    unremovable = {"keepalived": "unhold keepalived.", "haproxy": "unhold haproxy."}
    said = refusals("layout", "absent.yml", {"__layout_host": {"unremovable": unremovable}})
    assert said == ["unhold keepalived.", "unhold haproxy."]
