# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The roles of the programs, played against recorded results: what is installed, reloaded, started and removed."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from support.recorded_hosts import TAKEOVER, deployment, host_info, running
from support.recorded_layouts import PROGRAMS
from support.recorded_plays import run, tasks_of

HOST = {"pair": {"lb1": {}}}
SERVICES = ["haproxy", "keepalived"]
WROTE, KEPT = {"changed": True, "paths": ["/x"]}, {"changed": False, "paths": []}


def component(name, file, answers=None, host=None, check=False, then=None, **values):
    """Play a file of a role on one host.

    :param then: a task that follows it in the play
    """
    (play,) = tasks_of(name, file)
    play["tasks"] += [then] if then else []
    known = {f"__{name}_host": host_info("lb1", **(host or {})), **PROGRAMS, **values}
    return run([play], HOST, deployment(**(answers or {})), check=check, **known)


def did(play, *modules):
    assert play.code == 0, play.faults()
    return [line.partition(" ")[2] for line in play.did(*modules)]


def units(name, **values):
    return {f"{state}_units": [f"{name}.service"] for state in values.pop("states", ("active", "enabled"))}


@pytest.mark.parametrize("name", SERVICES)
def test_a_changed_file_is_reloaded_even_if_the_play_fails_right_after_it(name):
    play = component(name, "configure.yml", {"config_files": WROTE}, then={"ansible.builtin.fail": {"msg": "no room"}})
    assert play.code == 2 and f"lb1 systemd_service reloaded {name}.service" in play.did("systemd_service")


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize(
    "host, written, check, steps",
    [
        ({}, KEPT, False, ["started"]),
        (("active", "enabled"), KEPT, False, []),
        (("active",), KEPT, False, ["started"]),
        (("enabled",), KEPT, False, ["started"]),
        (("active", "enabled"), WROTE, False, ["reloaded"]),
        ((), WROTE, True, []),
        ((), KEPT, True, ["started"]),
    ],
    ids=["off", "as wanted", "not enabled", "not active", "changed", "check, changed", "check, off"],
)
def test_a_unit_starts_where_it_does_not_run_and_is_reloaded_where_a_file_changed(name, host, written, check, steps):
    play = component(name, "configure.yml", {"config_files": written}, units(name, states=host), check)
    assert did(play, "systemd_service") == [f"systemd_service {step} {name}.service" for step in steps]


@pytest.mark.parametrize("name", SERVICES)
def test_nothing_starts_in_check_mode_where_the_program_is_not_installed(name):
    play = component(name, "configure.yml", {"config_files": KEPT}, {"missing_packages": [name], "selinux": True}, True)
    assert did(play, "systemd_service", "seboolean") == []


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize(
    "why",
    [
        {"restarting_units": [f"{each}.service" for each in SERVICES]},
        {"takeover": {each: {**TAKEOVER, "stop": True} for each in SERVICES}},
    ],
    ids=["fails to start", "is started otherwise"],
)
@pytest.mark.parametrize("check", [False, True])
def test_a_unit_that_cannot_be_reloaded_stops_first(name, why, check):
    play = component(name, "configure.yml", {"config_files": WROTE}, why, check)
    stopped = f"systemd_service stopped {name}.service"
    assert did(play, "systemd_service")[:1] == ([] if check else [stopped])


@pytest.mark.parametrize("written, states", [(WROTE, ["restarted"]), (KEPT, [])])
def test_a_keepalived_that_others_have_started_is_restarted_and_never_reloaded(written, states):
    takeover = {"takeover": {"keepalived": {**TAKEOVER, "restart": True}}}
    host = {**units("keepalived", states=("active", "enabled")), **takeover}
    play = component("keepalived", "configure.yml", {"config_files": written}, host)
    assert did(play, "systemd_service") == [f"systemd_service {state} keepalived.service" for state in states]


@pytest.mark.parametrize("check", [False, True])
def test_the_tables_of_another_keepalived_are_deleted_before_ours_starts(check):
    tables = ["ip keepalived", "ip6 keepalived"]
    host = {"takeover": {"keepalived": {**TAKEOVER, "restart": True, "tables": tables}}}
    play = component("keepalived", "configure.yml", {"config_files": WROTE}, host, check)
    deleted = [f"/usr/sbin/nft 'add table {table}; delete table {table}'" for table in tables]
    assert [call.given["cmd"] for call in play.of("command")] == ([] if check else deleted)
    *_before, last = ["systemd_service restarted keepalived.service"] * check + did(play, "command", "systemd_service")
    assert last == "systemd_service restarted keepalived.service"


@pytest.mark.parametrize("selinux, connects", [(True, True), (True, False), (False, True)])
def test_selinux_is_told_where_it_is_on_and_something_connects(selinux, connects):
    model = {"__keepalived_model": {"connects": connects, "instances": [], "daemon": {}}}
    play = component("keepalived", "configure.yml", host={"selinux": selinux}, **model)
    assert did(play, "seboolean") == ["seboolean True keepalived_connect_any"] * (selinux and connects)
    assert bool(did(component("haproxy", "configure.yml", host={"selinux": selinux}), "seboolean")) is selinux


def test_a_keepalived_that_waits_for_static_pods_is_neither_started_nor_reloaded():
    for written in (WROTE, KEPT):
        assert (
            did(
                component(
                    "keepalived", "configure.yml", {"config_files": written}, __keepalived_handed={"waits": True}
                ),
                "systemd_service",
            )
            == []
        )


@pytest.mark.parametrize("nonlocal_bind, start", [(True, []), (False, []), (True, ["/usr/sbin/nft --file /x"])])
def test_the_kernels_settings_come_before_the_reload_and_the_start_commands_after_it(nonlocal_bind, start):
    values = {"haproxy_nonlocal_bind": nonlocal_bind, "haproxy_start_commands": start}
    play = component("haproxy", "configure.yml", {"config_files": WROTE}, **values)
    assert did(play, "command", "systemd_service") == [
        *["command"] * nonlocal_bind,
        "systemd_service reloaded haproxy.service",
        *["command"] * len(start),
    ]
    assert did(component("haproxy", "configure.yml", {"config_files": WROTE}, check=True, **values), "command") == []


@pytest.mark.parametrize("family, module", [("Debian", "apt"), ("RedHat", "dnf")])
def test_packages_come_from_the_familys_own_manager_and_are_recorded_first(family, module):
    host = {"packages_host": host_info("lb1", os_family=family, missing_packages=["haproxy"])}
    play = component("packages", "install.yml", **host)
    assert play.code == 0 and [call.module for call in play.calls] == ["config_files", module]
    known = {"name", *(("install_recommends", "update_cache") if module == "apt" else ())}
    assert {*play.calls[-1].given} == known, "each manager has options of its own"
    dry = component("packages", "install.yml", check=True, **host)
    assert dry.did("apt", "dnf") == [] and dry.said == ["Would install haproxy."] and play.said == []


READ = {"recorded_packages": ["x"], "existing_units": ["u"], "own_units": ["u"]}


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize(
    "read, modules",
    [
        ({"own_packages": ["p"]}, ["systemd_service", "apt"]),
        ({"own_packages": ["p"], "os_family": "RedHat"}, ["systemd_service", "dnf"]),
        ({}, ["systemd_service"]),
        ({"own_units": []}, []),
        ({"own_units": [], "own_packages": ["p"]}, ["systemd_service", "apt"]),
        ({"existing_units": []}, []),
    ],
    ids=["its packages", "RedHat", "packages of others", "another's", "no unit of ours", "no unit"],
)
def test_a_removal_takes_only_what_the_collection_has_brought(name, read, modules):
    values = {"__packages_record": "/p", "haproxy_nonlocal_bind": True}
    own = [name] if read.get("own_packages") else []
    play = component(
        name, "remove.yml", {"host_info": host_info("lb1", **{**READ, **read, "own_packages": own})}, **values
    )
    assert play.code == 0, play.faults()
    assert [call.module for call in play.of("systemd_service", "apt", "dnf")] == modules
    assert bool(play.said) is not bool(read.get("own_packages"))


def test_a_removal_puts_in_force_what_the_owners_files_say_of_its_kernel_settings(tmp_path):
    (tmp_path / "90-onprem-lb.conf").write_text("")  # what the first command asks for
    values = {"__haproxy_sysctl_path": str(tmp_path / "90-onprem-lb.conf")}
    play = component("haproxy", "remove.yml", {"host_info": host_info("lb1", **READ)}, **values)
    calls = [
        call.given.get("cmd", "").split()[:1] or call.given.get("files") for call in play.of("command", "config_files")
    ]
    reset, deleted, applied = calls[:3]
    assert (reset, applied) == (["/sbin/sysctl"], ["/usr/lib/systemd/systemd-sysctl"])
    assert values["__haproxy_sysctl_path"] in [file["path"] for file in deleted], "or it would be applied again"


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize("left, autoremove", [("Remv libx [1]\n", False), ("0 to remove\n", True)])
def test_what_came_with_a_package_goes_with_it_unless_others_left_something(name, left, autoremove):
    read = host_info("lb1", **{**READ, "own_packages": [name]})
    play = component(name, "remove.yml", {"host_info": read, "command": {"stdout": left}})
    assert [call.given["autoremove"] for call in play.of("apt")] == [autoremove]


def test_what_the_package_leaves_goes_with_it_and_an_owners_file_stays(tmp_path):
    read = host_info("lb1", **{**READ, "own_packages": ["haproxy"]})
    play = component("haproxy", "remove.yml", {"host_info": read, "command": {"stdout": ""}})
    commands = [call.given["cmd"] for call in play.of("command") if call.given["cmd"].startswith("find ")]
    assert [command.split()[1] for command in commands] == ["/run/haproxy", "/var/lib/haproxy"]
    for name in ("empty", "used"):
        (tmp_path / name / "dev").mkdir(parents=True)
    (tmp_path / "used" / "server-state").write_text("1\n")
    for name in ("empty", "used"):
        subprocess.run(
            shlex.split(commands[1].replace("/var/lib/haproxy", str(tmp_path / name))), check=True, capture_output=True
        )
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["used"]
    assert [path.name for path in (tmp_path / "used").iterdir()] == ["server-state"]


def test_a_package_of_the_owner_keeps_its_folders():
    play = component("haproxy", "remove.yml", {"host_info": host_info("lb1", **{**READ, "own_packages": []})})
    assert not [call for call in play.of("command") if call.given.get("cmd", "").startswith("find ")]


def test_a_dry_removal_resets_no_kernel_setting():
    play = component("haproxy", "remove.yml", {"host_info": host_info("lb1", **READ)}, check=True)
    assert play.code == 0 and play.did("command") == []


@pytest.mark.parametrize("name", SERVICES)
def test_a_program_is_waited_for_until_it_has_loaded_its_file(name):
    readings = [host_info("lb1"), running(CALL, stale=["it has not loaded its file."]), running(CALL)]
    model = {"service_ports": [443], "ports": [], "instances": [], "connects": False}
    values = {f"__{name}_model": model}
    play = component(name, "verify.yml", {"host_info": list(readings)}, **values)
    assert (play.code, play.faults(), len(play.of("host_info"))) == (0, [], 3)
    assert component(name, "verify.yml", {"host_info": readings[:2]}, **values).code == 2
    assert component(name, "verify.yml", {"host_info": readings[:1]}, check=True, **values).calls == []


def test_haproxy_is_waited_for_until_it_listens():
    model = {"__haproxy_model": {"service_ports": [443], "ports": []}}
    silent = {**running(CALL), "listeners": []}
    play = run(tasks_of("haproxy", "verify.yml"), HOST, {"host_info": [silent, running(CALL)]}, **model)
    assert play.code == 0 and len(play.of("host_info")) == 2
    assert run(tasks_of("haproxy", "verify.yml"), HOST, {"host_info": silent}, **model).code == 2


class CALL:
    """One that asks for one unit, as the roles' own waits do."""

    on, given = "lb1", {"units": ["haproxy.service"]}


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize("differs, checked", [(["/x"], 1), ([], 0)])
def test_only_files_that_differ_are_checked_and_a_check_is_no_change(name, differs, checked):
    play = component(name, "check.yml", {"config_files": WROTE}, **{f"__{name}_not_in_force": differs})
    assert [call.check for call in play.of("config_files")] == [True] * checked
    assert play.facts["lb1"][f"__{name}_checked"]["changed"] is False


AGENT = {"__agent_faults": [], "agent_down_file": "/run/a.down", "__agent_model": {**PROGRAMS["__agent_model"]}}
UP = {"vrrp": {"instances": [{"state": "Backup"}]}, "proxy": {"state": "serving", "config_fault": ""}, "problems": []}


def agent(file="main.yml", answers=None, check=False, **values):
    usual = {"raw": {"rc": 0}, "agent_info": {**UP, "listeners": [], "addresses": []}}
    known = {"__agent_wants_vrrp": True, "__agent_wants_proxy": True, **AGENT, **values}
    return run(tasks_of("agent", file), HOST, deployment(**{**usual, **(answers or {})}), check=check, **known)


def test_the_agent_is_checked_before_the_firewall_opens_and_it_changes():
    play = agent()
    assert play.code == 0, play.faults()
    assert [(call.module, call.check) for call in play.of("agent", "firewall_openings")] == [
        *(("agent", True), ("firewall_openings", False), ("agent", False)),
    ]


def test_a_check_of_the_agent_is_no_change():
    assert agent("check.yml").facts["lb1"]["__agent_deployed"]["changed"] is False
    assert agent("configure.yml").facts["lb1"]["__agent_deployed"]["changed"] is True


def test_a_host_without_python_is_refused_in_a_sentence_unless_a_layout_has_read_it():
    play = agent(answers={"raw": {"rc": 1, "failed": True, "msg": "sh"}}, agent_python="")
    assert play.code == 2 and "lb1 has no Python 3.8 or later" in str(play.faults()) and play.did("agent") == []
    assert [call.check for call in agent(check=True).of("raw")] == [False]
    given = agent("preflight.yml", __agent_handed={"host": {"problems": []}})
    assert given.code == 0 and given.calls == []


@pytest.mark.parametrize(
    "late",
    [
        {"vrrp": None},
        {"vrrp": {"instances": [{"state": "Initialize"}]}},
        {"vrrp": {**UP["vrrp"], "config_fault": "x"}},
        {"proxy": {"state": "x"}},
    ],
)
def test_both_daemons_are_waited_for(late):
    play = agent("verify.yml", {"agent_info": [{**UP, **late}, UP]})
    assert play.code == 0 and len(play.of("agent_info")) == 2
    assert agent("verify.yml", {"agent_info": {**UP, **late}}).code == 2
    assert agent("verify.yml", check=True).calls == []


@pytest.mark.parametrize(
    "down_file, firewall, modules",
    [("/run/a.down", True, ["agent", "config_files", "firewall_openings"]), ("", False, ["agent"])],
)
def test_the_agent_is_removed_with_its_down_file_and_its_openings(down_file, firewall, modules):
    play = agent(agent_state="absent", agent_down_file=down_file, agent_firewall=firewall)
    assert play.code == 0 and [call.module for call in play.calls] == modules


@pytest.mark.parametrize("told", [[], ["web: tls.profile is intermediate by default."]])
@pytest.mark.parametrize(
    "expiring", [[], ["/etc/haproxy/web.pem expires on 2026-02-10, in 9 days: put a renewed one there."]]
)
def test_certificates_that_expire_and_whom_a_default_locks_out_are_said_in_each_run(expiring, told):
    host = host_info("lb1", expiring=expiring)
    known = {
        "__haproxy_model": {"faults": [], "ports": [], "restricted_ports": [], "told": told},
        "__haproxy_unknown": [],
        "__haproxy_handed": {"host": host},
    }
    play = component("haproxy", "preflight.yml", host={"expiring": expiring}, **known)
    assert play.code == 0 and play.said == ([expiring + told] if expiring + told else [])


@pytest.mark.parametrize("name", SERVICES)
def test_a_role_sets_its_program_up_or_removes_it_but_not_both(name):
    fresh = host_info("lb1", missing_packages=[name], selinux=True, own_packages=[name], existing_units=["u"])
    model = {
        "service_ports": [],
        "ports": [],
        "restricted_ports": [],
        "instances": [],
        "connects": True,
        "faults": [],
        "told": [],
        "programs": [],
        "daemon": {},
    }
    values = {f"__{name}_model": model, f"__{name}_unknown": [], f"__{name}_packages_record": "/p"}
    answers = {"host_info": lambda call: running(call) if call.given.get("loaded") else fresh}
    up = run(tasks_of(name), HOST, deployment(**answers), **{**PROGRAMS, **values, f"__{name}_not_in_force": ["/x"]})
    assert up.code == 0, up.faults()
    assert "present" not in str(up.did("apt")) and [call.given.get("state") for call in up.of("apt")] == [None]
    assert ("config_files", True) in [(call.module, call.check) for call in up.calls] or name == "keepalived"
    down = run(tasks_of(name), HOST, deployment(**answers), **{**PROGRAMS, **values, f"{name}_state": "absent"})
    assert down.code == 0 and [call.given["state"] for call in down.of("apt")] == ["absent"]
    given = component(name, "preflight.yml", **{**values, f"__{name}_handed": {"host": fresh}, f"__{name}_faults": []})
    assert given.code == 0 and given.did("host_info") == []
