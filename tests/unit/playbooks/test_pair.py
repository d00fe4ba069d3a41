# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook pair, played against recorded results: a deployment, a dry run, a failure on the way, a removal."""

from __future__ import annotations

import functools

import pytest
from support.recorded_hosts import PAIR, PAIR_VARIABLES, deployment, fresh_then_running, host_info, locked, running
from support.recorded_plays import run

PASSWORD = "Zq7Zq7Zq"
VARIABLES = {**PAIR_VARIABLES, "pair_auth_pass": PASSWORD, "pair_verify": True}


def played(answers=None, playbook="pair", check=False, limit="all", **variables):
    return run(playbook, PAIR, deployment(**(answers or {})), check=check, limit=limit, **{**VARIABLES, **variables})


def released(play):
    return {*play.did("member_lock")} >= {"lb1 member_lock absent", "lb2 member_lock absent"}


def order(play, *wanted):
    """Return the steps of these kinds, each line once, in the order of their first."""
    return list(dict.fromkeys(play.did(*wanted)))


def test_a_first_deployment_installs_checks_configures_verifies_and_shows_no_password():
    play = played({"host_info": fresh_then_running(missing_packages=["haproxy", "keepalived"])})
    assert play.code == 0 and play.faults() == [] and released(play)
    packages = ["haproxy", "keepalived"]
    assert [(call.on, call.given["name"]) for call in play.of("apt", "dnf")] == [("lb1", packages), ("lb2", packages)]
    last = ["lb1 layout_info", "lb2 layout_info", "lb1 member_lock absent", "lb2 member_lock absent"]
    assert [call.module for call in play.of("member_lock", "apt", "layout_info")][::2] == [
        "member_lock",
        "apt",
        "layout_info",
        "member_lock",
    ]
    assert order(play, "systemd_service", "layout_info", "member_lock")[2:] == [
        *(f"{name} systemd_service started onprem-lb-down-file.service" for name in ("lb1", "lb2")),
        *("lb1 systemd_service reloaded haproxy.service", "lb2 systemd_service reloaded haproxy.service"),
        *("lb1 systemd_service reloaded keepalived.service", "lb2 systemd_service reloaded keepalived.service"),
        *last,
    ]
    checks = [call.check for call in play.of("config_files") if "haproxy.cfg" in str(call.given)]
    assert checks == [True, True, False, False]
    assert any(PASSWORD in str(call.given) for call in play.calls)
    assert [text for text in play.shown if PASSWORD in text and "/etc/keepalived" not in text] == []
    assert "192.0.2.10 is held by lb1." in play.said[-1]


def changing(call):
    """A pair that runs, and whose files differ."""
    return running(call, instances=[], members={"lb1": ["192.0.2.1"], "lb2": ["192.0.2.2"]})


def test_a_change_that_ends_with_two_holders_fails_returns_every_member_and_releases_it():
    play = played({"layout_info": {"faults": ["192.0.2.10 is held by lb1 and lb2."]}, "host_info": changing})
    assert play.code == 2 and released(play)
    assert "confirmed" not in str(play.did("member_state"))
    assert play.did("member_state")[-2:] == ["lb1 member_state abandoned", "lb2 member_state abandoned"]


def test_a_dry_run_changes_nothing_and_says_what_to_run_next():
    play = played(check=True)
    assert play.code == 0 and released(play)
    assert all(call.check for call in play.calls if call.module in ("config_files", "systemd_service", "program"))
    assert play.did("layout_info", "member_state", "systemd_service", "command") == []
    assert "--check" in str(play.said[-1])


@pytest.mark.parametrize("check", [False, True])
def test_a_certificate_that_was_replaced_has_haproxy_reloaded_and_is_named(check):
    sentence = "haproxy.service has not loaded /etc/haproxy/web.pem since it changed."

    def writes(call):
        stale = [sentence] if "haproxy.cfg" in str(call.given["files"]) else []
        return {"changed": bool(stale), "paths": [], "stale": stale, "commands": [], "unchecked": []}

    answers = {"config_files": writes, "host_info": changing, "program": {"changed": False}}
    play = played(answers, check=check)
    assert play.code == 0, play.faults()
    reloads = [f"{name} systemd_service reloaded haproxy.service" for name in ("lb1", "lb2")]
    of_programs = [
        line for line in play.did("systemd_service") if line.endswith((" haproxy.service", "keepalived.service"))
    ]
    assert of_programs == ([] if check else reloads)
    said = f"lb1, lb2: {'to do' if check else 'done'}: reload, because {sentence.rstrip('.')}"
    assert any(line.startswith(said) for line in play.said[-1])


def test_a_member_that_fails_ends_the_run_on_all_of_them_and_all_are_released():
    def fails(call):
        return (
            {"failed": True, "msg": "no room"}
            if call.on == "lb2" and not call.check
            else {"changed": True, "paths": []}
        )

    play = played({"config_files": fails})
    assert play.code == 2 and released(play) and play.did("layout_info") == []
    assert play.did("systemd_service") == []


def test_a_wrong_variable_is_refused_before_a_member_is_locked():
    play = played(pair_vips=["nonsense"])
    assert play.code == 2 and play.did("member_lock", "host_info") == []


def test_a_record_that_cannot_be_written_is_said_before_anything_changes():
    def read(call):
        return host_info(call.on, obstacles={path: f"{path}!" for path in call.given["files"]})

    play = played({"host_info": read})
    said = [line for sentences in play.faults() for line in sentences]
    assert {"/etc/onprem-lb-pair-members.json!", "/var/lib/onprem.lb/states!"} <= {*said}
    assert play.code == 2 and play.did("member_state", "config_files", "apt") == []


def test_a_removal_needs_a_confirmation_and_removes_every_program():
    names = {"os_family": "Debian", "resolved": False, "networkmanager": False}
    answers = {"member_lock": locked, "host_info": lambda call: host_info(call.on), "component_info": names}
    assert played(answers, "remove").calls == []
    play = played(answers, "remove", confirm=True)
    assert play.code == 0 and released(play), play.faults()
    lines = play.did("agent", "member_pods", "firewall_openings")
    assert lines[:2] == ["lb1 agent absent", "lb2 agent absent"] and "lb1 firewall_openings absent" in lines
    dry = played(answers, "remove", check=True, limit="lb1")
    assert dry.code == 0 and {call.check for call in dry.of("agent")} == {True}


@functools.lru_cache(maxsize=None)
def removed(limit=None, check=False, failing=""):
    def deletes(call):
        gone = [file["path"] for file in call.given["files"] if file.get("state") == "absent"]
        return {"changed": True, "paths": gone, "deleted": gone, "failed": call.on == failing, "msg": "no"}

    def read(call):
        return host_info(
            call.on, own_packages=[name for name in call.given["packages"] if name in ("haproxy", "keepalived")]
        )

    names = {"os_family": "Debian", "resolved": False, "networkmanager": False}
    answers = {"host_info": read, "component_info": names, "config_files": deletes, "apt": {"changed": True}}
    return played(answers, "remove", limit=limit, check=check, confirm=True)


def test_the_end_of_a_removal_says_what_has_gone_and_what_to_run_next():
    play = removed()
    said = str(play.said)
    assert "lb1, lb2: done: " in said and "; remove haproxy, keepalived" in said and "/run/haproxy.down" in said
    assert "No member is left, so nobody holds their VIPs." in said


def test_a_removal_of_one_of_two_is_warned_of_before_it_is_done_and_in_a_dry_run():
    warning = (
        "lb1 stays alone: when it fails, nobody holds its VIPs. Set another member up first, or remove it as well."
    )
    for check in (False, True):
        play = removed(limit="lb2", check=check)
        assert warning in str(play.said)
        assert str(play.said).index(warning) < str(play.said).index("lb2: to do: " if check else "lb2: done: ")
    assert warning not in str(removed().said)


def test_a_removal_that_fails_on_a_member_names_it_at_the_end():
    play = removed(failing="lb2")
    assert play.code != 0 and "Not removed: lb2." in str(play.said) and "when lb2 answers, repeat" in str(play.said)


def test_a_run_for_one_member_reads_the_other_one_and_changes_it_not():
    play = played(limit="lb2", pair_interface="eth0")
    assert play.code == 0, play.faults()
    assert {call.on for call in play.of("host_info")} == {"lb1", "lb2"}
    assert {call.on for call in play.of("config_files", "systemd_service", "layout_info")} == {"lb2"}
    assert [call.hidden for call in play.of("host_info") if "packages" in call.given or call.on == "lb1"][0] is True


def test_the_end_of_a_run_lists_the_packages_routers_and_files_of_a_member_that_changes_its_engine():
    def writes(call):
        gone = [file["path"] for file in call.given["files"] if file.get("state") == "absent"]
        return {"changed": bool(gone), "paths": gone, "deleted": gone, "stale": [], "commands": [], "unchecked": []}

    def unit(call):
        return {"changed": True, "name": call.given["name"], "state": call.given["state"], "status": {}}

    def native_then(call):
        return running(call, own_packages=["haproxy"], own_units=["haproxy.service"])

    answers = {
        "host_info": native_then,
        "config_files": writes,
        "systemd_service": unit,
        "apt": {"changed": True},
        "agent": {"changed": True, "steps": ["start onprem-lb-vrrp.service"], "archive": "/a.pyz"},
        "raw": {"rc": 0},
        "agent_info": {
            **{name: [] for name in ("problems", "listeners", "addresses")},
            "vrrp": {"instances": [{"state": "Backup"}]},
            "proxy": {"state": "serving", "config_fault": ""},
        },
    }
    play = played(answers, pair_engine="agent")
    assert play.code == 0, play.faults()
    (line,) = [line for line in play.said[-1] if line.startswith("lb1, lb2: done: ")]
    for step in (
        "start onprem-lb-vrrp.service",
        "remove haproxy",
        "stop keepalived.service",
        "delete /etc/keepalived/",
    ):
        assert step in line


def test_a_service_of_which_no_server_is_up_is_named_at_the_end_of_a_run():
    sentence = "No server of web is up (0 of 2), so its clients get no answer."

    def seen(call):
        said = [sentence] if call.given.get("servers") else []
        return {"faults": [], "held": ["192.0.2.10"] if call.on == "lb1" else [], "unserved": said}

    assert f"lb1, lb2: {sentence}" in played({"layout_info": seen}).said[-1]
