# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role frr, played against recorded results: what it refuses, what it changes, and what a removal takes."""

from __future__ import annotations

import pytest
from support.paths import ROLES
from support.recorded_hosts import TAKEOVER, deployment, host_info
from support.recorded_plays import run, tasks_of
from support.roles import defaults

HOST = {"pair": {"lb1": {}}}
GIVEN = {
    "frr_asn": 64512,
    "frr_peers": [{"address": "192.0.2.200", "asn": 64601, "password": "correct-horse"}],
    "frr_prefixes": ["198.51.100.10"],
}
RUNS = {"sessions": [], "no_answer": "", "unsaved": []}
WROTE = {"changed": True, "paths": ["/etc/frr/frr.conf"], "steps": [], "resets": ["192.0.2.200"], "unchecked": []}
UNIT = {f"{state}_units": ["frr.service"] for state in ("existing", "own", "active", "enabled")}


def host(takeover=None, **values):
    return host_info("lb1", **{"takeover": {"frr": {**TAKEOVER, **(takeover or {})}}, **values})


def play(file="main.yml", read=None, answers=None, check=False, **values):
    usual = {"host_info": read or host(), "component_info": RUNS, "frr_config": WROTE, **(answers or {})}
    return run(tasks_of("frr", file), HOST, deployment(**usual), check=check, **{**defaults("frr"), **GIVEN, **values})


def test_it_installs_what_is_missing_and_configures_in_one_call():
    done = play(read=host(missing_packages=["frr", "frr-pythontools"]))
    assert done.code == 0, done.faults()
    modules = [call.module for call in done.calls if call.module not in ("config_files", "refuse")]
    assert modules == ["host_info", "component_info", "apt", "frr_config", "component_info"]
    (configured,) = done.of("frr_config")
    texts = {each["path"]: each for each in configured.given["files"]}
    conf = texts["/etc/frr/frr.conf"]
    assert (conf["owner"], conf["group"], conf["mode"], conf["check"]) == ("frr", "frr", "0640", "vtysh")
    assert "neighbor 192.0.2.200 password correct-horse\n" in conf["content"]
    assert "bgp router-id 192.0.2.1\n" in conf["content"], "the host's first address"
    assert "correct-horse" in configured.given["secrets"]
    assert "bgpd=yes\nbfdd=yes\n" in texts["/etc/frr/daemons"]["content"]


@pytest.mark.parametrize(
    "what, fault",
    [
        ({"read": host(problems=["a."])}, "a."),
        ({"read": host(takeover={"refusals": ["b."]})}, "b."),
        ({"answers": {"component_info": {**RUNS, "unsaved": ["c."]}}}, "c."),
        ({"read": host(obstacles={"/etc/frr/daemons": "d."})}, "d."),
        ({"frr_asn": 0}, "frr_asn is not set: set the AS number of this host."),
    ],
)
def test_what_is_in_the_way_is_refused_before_anything_changes(what, fault):
    done = play(**what)
    assert done.code == 2 and fault in str(done.faults()) and done.did("apt", "frr_config", "config_files") == []


def test_files_of_others_are_kept_if_they_are_adopted():
    theirs = {"refusals": ["b."], "keep": ["/etc/frr/frr.conf"], "set_aside": ["/etc/systemd/system/frr.service"]}
    unsaved = {"component_info": {**RUNS, "unsaved": ["c."]}}
    done = play(read=host(takeover=theirs), answers=unsaved, frr_adopt=True)
    assert done.code == 0, done.faults()
    (configured,) = done.of("frr_config")
    kept = {each["path"]: each.get("keep", False) for each in configured.given["files"]}
    assert kept["/etc/frr/frr.conf"] is True and kept["/etc/frr/daemons"] is False
    assert configured.given["set_aside"] == theirs["set_aside"]


def test_an_frr_that_does_not_answer_ends_the_run():
    done = play("verify.yml", answers={"component_info": {**RUNS, "no_answer": "FRR does not answer."}})
    assert done.code == 2 and "FRR does not answer." in str(done.faults())
    assert play("verify.yml", check=True).calls == []


def test_a_check_is_no_change():
    done = play("check.yml", __frr_host=host())
    assert [call.check for call in done.of("frr_config")] == [True]
    assert done.facts["lb1"]["__frr_checked"]["changed"] is False


@pytest.mark.parametrize(
    "read, modules",
    [
        ({**UNIT, "own_packages": ["frr", "frr-pythontools"]}, ["systemd_service", "apt"]),
        (UNIT, ["systemd_service"]),
        ({**UNIT, "own_units": []}, []),
        ({}, []),
    ],
    ids=["its packages", "packages of others", "another's", "nothing"],
)
def test_a_removal_takes_only_what_the_collection_has_brought(read, modules):
    done = play(read=host(**read), answers={"command": {"stdout": ""}}, frr_state="absent")
    assert done.code == 0, done.faults()
    assert [call.module for call in done.of("systemd_service", "apt")] == modules
    deleted = [file for call in done.of("config_files") for file in call.given["files"]]
    assert {each["path"] for each in deleted if each.get("own_only")} == {"/etc/frr/frr.conf", "/etc/frr/daemons"}


def test_every_file_of_the_role_is_known_as_this_collections_own():
    for template in (ROLES / "frr" / "templates").iterdir():
        assert template.read_text().startswith("# Managed by Ansible, onprem.lb.frr.")
