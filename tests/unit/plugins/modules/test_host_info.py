# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module host_info: what is asked of it and said by it, and what a plan makes of that."""

from __future__ import annotations

import hashlib
import json
import os

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host import records
from ansible_collections.onprem.lb.plugins.module_utils._host.read import (
    cgroups,
    facts,
    held_back,
    in_force,
    packages,
    processes,
    served_certificates,
    server_names,
    static_pods,
    takeover,
)
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from ansible_collections.onprem.lb.plugins.modules import host_info
from support.kubelets import BALANCER, ROUTER, Kubelet
from support.modules import refusal, run
from support.plans.pairs import pair
from support.programs import Programs
from support.segments import AUTH_PASS, DEAF, deafen, hear

KEEPALIVED_CONF = """\
vrrp_instance vip-192.0.2.10 {
    virtual_router_id 51
    auth_pass native77
}
"""
VRRP_JSON = {
    "instances": [
        {"name": "vip-192.0.2.10", "vrid": 52, "auth_pass": "agents88"},
        {"name": "vip-192.0.2.11", "vrid": 53, "auth_pass": "native77"},
    ]
}
ADDRESS = {"interface": "eth0", "address": "192.0.2.1", "prefix": 24, "mac": "02:00:00:00:00:01"}
IP_JSON = [{"ifname": "eth0", "address": ADDRESS["mac"], "addr_info": [{"local": "192.0.2.1", "prefixlen": 24}]}]
UNITS = """\
Id=haproxy.service
LoadState=loaded
ActiveState=active
UnitFileState=enabled

Id=keepalived.service
LoadState=masked
ActiveState=inactive
UnitFileState=masked

Id=onprem-lb-vrrp.service
LoadState=not-found
ActiveState=inactive
UnitFileState=
"""
PROGRAMS = {
    "ip": json.dumps(IP_JSON),
    "systemctl": lambda words: (0, f"MainPID={os.getpid()}\n" if "--property=MainPID" in words else UNITS, ""),
    "dpkg-query": (1, "haproxy install ok installed\n", "no packages found matching keepalived\n"),
    "apt-get": "",
}


@pytest.fixture(autouse=True)
def host(monkeypatch, tmp_path):
    """A Debian host with systemd, keepalived's configuration and the agent's; gives the arguments that name them."""
    (tmp_path / "os-release").write_text("ID=debian\n")
    (tmp_path / "keepalived.conf").write_text(KEEPALIVED_CONF)
    (tmp_path / "vrrp.json").write_text(json.dumps(VRRP_JSON))
    monkeypatch.setattr(facts, "SYSTEMD", str(tmp_path))
    monkeypatch.setattr(facts, "OS_RELEASE", str(tmp_path / "os-release"))
    monkeypatch.setattr(facts, "SELINUX", str(tmp_path / "enforce"))
    monkeypatch.setattr(Reader, "answering", lambda *_asked: {"192.0.2.10": ["02:00:00:00:00:63"]})
    monkeypatch.setattr(Reader, "unobtainable", lambda _reader, missing: f"no way to {missing}")
    (tmp_path / "packages.json").write_text('["haproxy"]')
    names = {"keepalived_config": "keepalived.conf", "agent_config": "vrrp.json", "packages_record": "packages.json"}
    return {name: str(tmp_path / file) for name, file in names.items()}


def look(given, check=False, programs=None):
    asked = {name: given[name] for name in given if name not in host_info.OF_LAYOUT}
    asked["layout"] = {name: given[name] for name in given if name in host_info.OF_LAYOUT}
    return run(
        host_info, asked, programs if isinstance(programs, Programs) else Programs(programs or PROGRAMS), check=check
    )


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({"listen": "long"}, "argument 'listen' is of type str"),
        ({"units": {"a": 1}}, "cannot be converted to a list"),
        ({"loaded": {"haproxy.cfg": 1}}, "cannot be converted to a list"),
        ({"files": {"a": 1}}, "cannot be converted to a list"),
        ({"with_auth_pass": "perhaps"}, "argument 'with_auth_pass' is of type str"),
        ({"vip": "192.0.2.10"}, "module: vip. Supported parameters include"),
    ],
)
def test_a_wrong_argument_is_named(given, sentence):
    assert sentence in refusal(host_info, given)


@pytest.mark.parametrize("check", [True, False])
def test_all_that_was_asked_for_is_returned_in_both_modes(host, check):
    asked = {
        "vips": ["192.0.2.10"],
        "packages": ["haproxy", "keepalived"],
        "programs": ["ip", "killall"],
        "units": ["haproxy.service", "keepalived.service"],
    }
    found = look({**host, **asked}, check)
    assert (found["os_family"], found["addresses"], found["problems"]) == ("Debian", [ADDRESS], [])
    assert found["answering"] == {"192.0.2.10": ["02:00:00:00:00:63"]}
    assert (found["missing_packages"], found["missing_programs"]) == (["keepalived"], ["killall"])
    assert found["unobtainable"] == "no way to ['keepalived']"
    assert found["active_units"] == found["enabled_units"] == ["haproxy.service"]
    assert (found["heard"], found["selinux"]) == ([], False) and "changed" not in found


@pytest.mark.parametrize("state, restarting", [("activating", True), ("deactivating", True), ("inactive", False)])
def test_a_unit_that_systemd_starts_again_and_again_is_returned(host, state, restarting):
    asked = {"units": ["haproxy.service", "keepalived.service"]}
    said = UNITS.replace("ActiveState=inactive", f"ActiveState={state}", 1)
    found = look({**host, **asked}, programs={**PROGRAMS, "systemctl": said})
    assert found["restarting_units"] == ["keepalived.service"] * restarting
    assert found["active_units"] == ["haproxy.service"]


@pytest.mark.parametrize("check", [True, False])
def test_what_is_in_the_way_of_a_deployment_is_returned_by_its_name_in_both_modes(host, check):
    said = "haproxy hold ok installed\nkeepalived hold ok not-installed\npsmisc install ok installed\n"
    asked = {
        "packages": ["haproxy", "keepalived", "psmisc"],
        "units": ["haproxy.service", "keepalived.service", "onprem-lb-vrrp.service"],
        "files": ["/sys/haproxy.cfg", host["agent_config"]],
    }
    found = look({**host, **asked}, check, {**PROGRAMS, "dpkg-query": said})
    assert list(found["obstacles"]) == ["keepalived", "keepalived.service", "/sys/haproxy.cfg"]
    assert "apt-mark unhold keepalived" in found["obstacles"]["keepalived"]
    assert "systemctl unmask keepalived.service" in found["obstacles"]["keepalived.service"]
    assert (found["missing_packages"], list(found["unremovable"])) == (["keepalived"], ["haproxy"])
    assert found["existing_units"] == ["haproxy.service", "keepalived.service"]


def test_for_a_package_that_only_needs_to_be_configured_no_source_is_asked_for(host):
    programs = {**PROGRAMS, "dpkg-query": "haproxy install ok half-configured\n"}
    found = look({**host, "packages": ["haproxy"]}, programs=programs)
    assert (found["missing_packages"], found["unobtainable"], found["obstacles"]) == (["haproxy"], "no way to []", {})


def test_of_two_configurations_on_one_host_that_of_keepalived_counts(host):
    found = {instance["name"]: instance["vrid"] for instance in look(host)["instances"]}
    assert found == {"vip-192.0.2.10": 51, "vip-192.0.2.11": 53}


def test_passwords_are_returned_only_to_whoever_asks_for_them(host, monkeypatch):
    hear(monkeypatch, ("192.0.2.99", 51))
    shown = str(look({**host, "listen": 1}))
    assert not [password for password in ("native77", "agents88", AUTH_PASS) if password in shown]
    found = look({**host, "listen": 1, "with_auth_pass": True})
    assert [instance["auth_pass"] for instance in found["instances"]] == ["", "native77"]
    assert found["heard"][0]["auth_pass"] == AUTH_PASS


@pytest.mark.parametrize("state, stale", [("active", True), ("inactive", False)])
def test_a_running_unit_that_has_not_loaded_its_configuration_is_stale(host, monkeypatch, tmp_path, state, stale):
    monkeypatch.setattr(in_force, "record_of", lambda _program: str(tmp_path / "no record"))
    programs = {**PROGRAMS, "systemctl": f"ActiveState={state}\n"}
    sentence = "keepalived.service has not loaded its configuration since it changed."
    assert look({**host, "loaded": ["keepalived.service"]}, programs=programs)["stale"] == [sentence] * stale


@pytest.mark.parametrize("engine", ["native", "agent"])
def test_a_member_that_cannot_listen_for_others_is_refused_by_the_plan(host, monkeypatch, engine):
    deafen(monkeypatch)
    found = look({**host, "listen": 1})
    assert (found["heard"], found["problems"]) == ([], [DEAF])
    members = pair(engine=engine)
    members[1]["host"]["problems"] = found["problems"]
    assert _pair.plan(members).faults == [f"lb2: {DEAF}"]


def test_the_other_members_are_asked_too_so_that_one_that_has_left_is_known_by_its_mac(host, monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(Reader, "answering", lambda _reader, addresses, *_more: asked.extend(addresses) or {})
    (tmp_path / "members.json").write_text('{"lb1": ["lb1.example", "192.0.2.1"], "lb3": ["192.0.2.3"]}')
    (tmp_path / "vrrp.json").write_text(
        json.dumps({"instances": [{**VRRP_JSON["instances"][1], "peers": ["192.0.2.4"]}]})
    )
    look({**host, "vips": ["192.0.2.10"], "members_record": str(tmp_path / "members.json")})
    assert asked == ["192.0.2.10", "192.0.2.1", "192.0.2.3", "192.0.2.4"]


def test_who_is_not_to_listen_is_no_problem(host, monkeypatch):
    deafen(monkeypatch)
    assert look(host)["problems"] == []


def test_what_keeps_a_host_from_being_a_balancer_is_said_each_in_a_sentence(host, monkeypatch, tmp_path):
    monkeypatch.setattr(facts, "SYSTEMD", str(tmp_path / "none"))
    (tmp_path / "os-release").write_text("ID=alpine\n")

    def answering(*_asked):
        raise PermissionError

    monkeypatch.setattr(Reader, "answering", answering)
    problems = look({**host, "runs_units": ["the router"]}, programs={"apt-get": ""})["problems"]
    assert [sentence.partition(":")[0] for sentence in problems] == [
        "systemd does not run here",
        "the program ip is missing",
        "this is alpine",
        "there is no permission to open raw sockets",
    ]


@pytest.mark.parametrize(
    "units, said",
    [
        ([], []),
        (["the resolver"], ["systemd does not run here: it is to run the resolver."]),
        (["the balancer", "the router"], ["systemd does not run here: it is to run the balancer, the router."]),
    ],
)
def test_systemd_is_missed_only_where_it_is_to_run_something(units, said, host, monkeypatch, tmp_path):
    monkeypatch.setattr(facts, "SYSTEMD", str(tmp_path / "none"))
    assert look({**host, "runs_units": units})["problems"] == said


@pytest.mark.parametrize(
    "recorded, own", [('["haproxy"]', ["haproxy"]), ("[]", []), ("", []), ("{", []), ('{"a": 1}', [])]
)
def test_only_a_package_that_this_collection_has_installed_is_its_own_to_remove(host, tmp_path, recorded, own):
    (tmp_path / "packages.json").write_text(recorded)
    held = {**PROGRAMS, "dpkg-query": "haproxy hold ok installed\n"}
    found = look({**host, "packages": ["haproxy", "keepalived"]}, programs=held)
    assert (found["own_packages"], list(found["unremovable"])) == (own, own)


def test_a_package_that_is_only_to_be_removed_is_never_missing(host, tmp_path):
    (tmp_path / "packages.json").write_text('["haproxy", "dnsmasq-base"]')
    held = {**PROGRAMS, "dpkg-query": "keepalived install ok installed\nhaproxy hold ok installed\n"}
    found = look({**host, "packages": ["keepalived"], "removes": ["haproxy", "dnsmasq-base"]}, programs=held)
    assert (found["missing_packages"], list(found["unremovable"])) == ([], ["haproxy"])


def shipped(tmp_path):
    digest = hashlib.md5((tmp_path / "keepalived.conf").read_bytes()).hexdigest()
    return {**PROGRAMS, "dpkg-query": f" {tmp_path / 'keepalived.conf'} {digest}\n"}


def test_the_example_that_a_package_brings_has_no_instances(host, tmp_path):
    vrids = [instance["vrid"] for instance in look(host, programs=shipped(tmp_path))["instances"]]
    assert vrids == [instance["vrid"] for instance in VRRP_JSON["instances"]]


@pytest.mark.parametrize("check", [True, False])
def test_what_others_have_set_up_is_returned_by_program(host, tmp_path, monkeypatch, check):
    monkeypatch.setattr(takeover, "UNITS", str(tmp_path))
    monkeypatch.setattr(processes, "named", lambda _names: [])
    (tmp_path / "keepalived.conf.before-onprem-lb").write_text("kept\n")
    configs = {"configs": {"haproxy": str(tmp_path / "none"), "keepalived": host["keepalived_config"]}}
    found = look({**host, **configs}, check)
    assert (found["takeover"]["haproxy"]["refusals"], found["takeover"]["haproxy"]["keep"]) == ([], [])
    (sentence,) = found["takeover"]["keepalived"]["refusals"]
    assert sentence.startswith(f"{host['keepalived_config']} was not written by this collection")
    assert found["takeover"]["keepalived"]["put_back"] == [host["keepalived_config"]]
    (problem,) = found["problems"]
    assert "another one is kept from before" in problem
    assert look({**host, **configs}, check, shipped(tmp_path))["takeover"]["keepalived"]["refusals"] == []
    assert look(host)["takeover"] == {}


KEEPALIVED_VERSION = (0, "", "Keepalived v2.2.7 (01/16,2022)\n\nCopyright(C) 2001-2022\n")


@pytest.mark.parametrize(
    "asked, installed, version",
    [("keepalived", {"keepalived": KEEPALIVED_VERSION}, "2.2.7"), ("keepalived", {}, ""), ("haproxy", {}, "")],
)
def test_the_version_of_keepalived_is_returned_where_its_configuration_is_asked_for(host, asked, installed, version):
    programs = Programs({**PROGRAMS, **installed})
    found = look({**host, "configs": {asked: host["keepalived_config"]}}, programs=programs)
    assert found["keepalived_version"] == version
    assert programs.ran.count("keepalived -v") == len(installed), "it is asked once"


@pytest.mark.parametrize("asked, problems", [({"keepalived": "/none"}, 1), ({"haproxy": "/none"}, 0), ({}, 0)])
def test_another_program_that_moves_vips_is_a_problem_where_keepalived_is_wanted(host, monkeypatch, asked, problems):
    static = cgroups.RunsIn(cgroups.STATIC_POD, "d41d")
    others = [processes.Process("kube-vip", 88, static, True, {"address": "192.0.2.10"})]
    monkeypatch.setattr(processes, "named", lambda _names: others)
    found = look({**host, "vips": ["192.0.2.10/24"], "configs": asked})["problems"]
    assert len(found) == problems and all("kube-vip runs in the static pod d41d (pid 88)" in each for each in found)


MEND = "-e ipi_take_over=true."


@pytest.mark.parametrize("takes_over", [True, False])
def test_a_static_pod_is_disabled_or_is_a_problem_whose_mend_names_the_variable(
    host, monkeypatch, tmp_path, takes_over
):
    manifest = tmp_path / "vip.yaml"
    manifest.write_text("kind: Pod\n")
    static = cgroups.RunsIn(cgroups.STATIC_POD, "d41d")
    kube_vip = processes.Process("kube-vip", 88, static, True, {"address": "192.0.2.10"})
    monkeypatch.setattr(processes, "named", lambda _names: [kube_vip])
    monkeypatch.setattr(static_pods, "manifest", lambda _program: str(manifest))
    asked = {"takes_over": takes_over, "take_over_variable": "ipi_take_over"}
    found = look({**host, "vips": ["192.0.2.10/24"], "configs": {"keepalived": "/none"}, **asked})
    assert found["static_pods"] == ([{"program": "kube-vip", "manifest": str(manifest)}] if takes_over else [])
    assert [each[-len(MEND) :] for each in found["problems"]] == ([] if takes_over else [MEND])
    (tmp_path / ".vip.yaml.before-onprem-lb").touch()
    again = look({**host, "vips": ["192.0.2.10/24"], "configs": {"keepalived": "/none"}, **asked})["problems"]
    assert len(again) == 1 and ("another manifest is kept from before" in again[0]) == takes_over


def test_the_instances_are_those_of_the_router_that_is_to_run(host, tmp_path, monkeypatch):
    """A member that moves to the other delivery has both for a while, and must not lose its password."""

    def named(**given):
        return [each["name"] for each in look({**host, **given})["instances"]]

    with Kubelet(tmp_path, monkeypatch) as kubelet:
        of_unit = named()
        kubelet.writes(ROUTER)
        assert named() == of_unit, "the pod has no file yet"
        config = tmp_path / "resources" / "keepalived" / "keepalived.conf"
        config.parent.mkdir(parents=True)
        config.write_text(KEEPALIVED_CONF.replace("vrrp_instance ", "vrrp_instance POD_"))
        of_pod = named()
        assert of_pod and all(name.startswith("POD_") for name in of_pod)
        kubelet.manifest(ROUTER).unlink()
        assert named() == of_unit
        none = str(tmp_path / "none")
        assert named(keepalived_config=none, agent_config=none) == of_pod, "its pod is stopped, and there is no unit"


def test_the_certificates_of_api_servers_are_held_against_the_names_and_the_vips(host, monkeypatch):
    asked = []
    lacking = [{"server": "a", "name": "b"}]
    monkeypatch.setattr(served_certificates, "uncovered", lambda *given: asked.append(given) or lacking)
    api = {"servers": ["192.0.2.21"], "names": ["api.example.com"]}
    found = look({**host, "api": api, "vips": ["192.0.2.10/24", {"address": "2001:db8::10"}]})
    assert asked == [(["192.0.2.21"], ["api.example.com", "192.0.2.10", "2001:db8::10"])]
    assert found["uncovered"] == [{"server": "a", "name": "b"}]
    assert found["resolved"] == {}


def test_the_names_of_servers_are_resolved(host, monkeypatch):
    monkeypatch.setattr(server_names, "resolved", lambda given: {"asked": given})
    assert look({**host, "servers": ["app.example.com"]})["resolved"] == {"asked": ["app.example.com"]}


@pytest.mark.parametrize(
    "os_release, enabled, package",
    [
        ("ID=debian\n", True, ["python3-semanage"]),
        ('ID=rocky\nID_LIKE="rhel fedora"\n', True, ["python3-libsemanage"]),
        ("ID=arch\n", True, []),
        ("ID=debian\n", False, []),
    ],
)
def test_where_selinux_is_enabled_the_package_that_sets_its_booleans_is_looked_for(
    host, tmp_path, monkeypatch, os_release, enabled, package
):
    asked = []
    monkeypatch.setattr(Reader, "packages", lambda _reader, names: asked.append(names) or packages.Packages({}))
    (tmp_path / "os-release").write_text(os_release)
    if enabled:
        (tmp_path / "enforce").write_text("1")
    look({**host, "packages": ["haproxy"], "sets_booleans": True})
    look({**host, "packages": ["haproxy"]})
    assert asked == [["haproxy", *package], ["haproxy"]]


@pytest.mark.parametrize(
    "os_release, is_there, package",
    [
        ("ID=debian\n", False, ["iputils-ping"]),
        ('ID=rocky\nID_LIKE="rhel fedora"\n', False, ["iputils"]),
        ("ID=arch\n", False, []),
        ("ID=debian\n", True, []),  # it may be of another package
    ],
)
def test_where_checks_ping_and_no_ping_is_there_its_package_is_looked_for(
    host, tmp_path, monkeypatch, os_release, is_there, package
):
    asked = []
    monkeypatch.setattr(Reader, "packages", lambda _reader, names: asked.append(names) or packages.Packages({}))
    (tmp_path / "os-release").write_text(os_release)
    for pings in (True, False):
        look(
            {**host, "packages": ["haproxy"], "pings": pings},
            programs={**PROGRAMS, **({"ping": ""} if is_there else {})},
        )
    assert asked == [["haproxy", *package], ["haproxy"]]


def test_what_keeps_the_router_stopped_is_returned_for_the_plan(host, tmp_path, monkeypatch):
    record = {"to": "lb2", "since": "2026-01-31 12:00 UTC", "by": "anna", "work": "", "done": ""}
    (tmp_path / "switchover.json").write_text(json.dumps(record))
    paths = {during: str(tmp_path / f"{during}.json") for during in ("switchover", "maintenance")}
    monkeypatch.setattr(held_back.in_force, "__defaults__", (paths,))
    assert look(host)["held_back"] == {"during": "switchover", **record}


def test_static_pods_are_among_the_units_that_are_there_and_that_run(tmp_path, monkeypatch):
    asked = {"units": ["haproxy.service", BALANCER, ROUTER], "loaded": [BALANCER, ROUTER]}
    programs = Programs({"systemctl": UNITS, "ip": json.dumps(IP_JSON)})
    with Kubelet(tmp_path, monkeypatch) as kubelet:
        kubelet.starts(BALANCER, "haproxy.cfg")
        kubelet.writes(ROUTER)
        found = look(asked, programs=programs)
        assert found["own_units"][-2:] == [BALANCER, ROUTER] and found["stale"] == []
        assert found["enabled_units"] == ["haproxy.service", BALANCER, ROUTER]
        assert found["active_units"] == ["haproxy.service", BALANCER]
        kubelet.config(BALANCER).write_text("of now")
        assert look(asked, programs=programs)["stale"] == [
            f"{BALANCER} has not loaded {kubelet.config(BALANCER)} since it changed."
        ]


def test_the_checks_that_run_are_told_as_digests_alone(host, tmp_path):
    path = tmp_path / "keepalived.conf"
    path.write_text('vrrp_script storage {\n    script "/bin/storage --password s3cret"\n    interval 5\n}\n')
    found = look({"keepalived_config": str(path), "named": {"script_user": "watch"}})
    assert [*found["checks"]["native"]] == ["storage"] and "s3cret" not in str(found)
    assert found["script_user"] == "watch"


def test_the_checks_of_a_run_that_was_interrupted_are_not_known_to_be_good(host, tmp_path, monkeypatch):
    path = tmp_path / "keepalived.conf"
    path.write_text('vrrp_script storage {\n    script "/usr/bin/true"\n}\n')
    monkeypatch.setattr(records, "DUE", str(tmp_path / "due.json"))
    assert [*look({"keepalived_config": str(path)})["checks"]["native"]] == ["storage"]
    (tmp_path / "due.json").write_text("")
    assert look({"keepalived_config": str(path)})["checks"] == {"native": {}, "agent": {}}


def test_what_a_layout_cannot_ask_for_is_refused_by_name():
    assert "layout has ping: there are removes, " in refusal(host_info, {"layout": {"ping": True}})
