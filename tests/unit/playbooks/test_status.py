# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks status, switchover and maintenance where no host answers, and with wrong variables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import units
from ansible_collections.onprem.lb.plugins.module_utils._shared import held_back
from support import recorded_plays
from support.members import NAMES, SECOND, VIP, announcer, seen, session
from support.paths import PLAYBOOKS
from support.playbooks import PAIR, play, printed
from support.recorded_hosts import CLUSTER as HOSTS
from support.recorded_hosts import CLUSTER_VARIABLES

CLUSTER = """
[ipi_masters]
m1
m2
[ipi_workers]
w1
[ipi_masters:vars]
ipi_api_vips=["192.0.2.5"]
"""


LIVING = ("status", "switchover", "maintenance")
REFUSED = ("-e", "ansible_ssh_executable=ssh ansible_host=127.0.0.1 ansible_port=1")


@pytest.mark.parametrize("given, problem", [((), "cannot be read: "), (REFUSED, "cannot be reached: ssh: ")])
def test_members_that_do_not_answer_are_named_in_the_table_and_fail_the_run(tmp_path, given, problem):
    code, said = play(tmp_path, PAIR, "onprem.lb.status", *given)
    assert code == 2
    lines = printed(said)
    assert [line.split("|")[1].strip() for line in lines if line.startswith("| lb")] == ["lb1", "lb2"]
    assert [line.partition(problem)[0] for line in lines if problem in line] == ["lb1 ", "lb2 "]


def test_a_limit_leaves_members_out_and_says_so(tmp_path):
    _code, said = play(tmp_path, PAIR, "onprem.lb.status", "--limit", "lb2")
    assert "lb1 was not read: it is outside --limit." in printed(said)


def test_the_json_is_written_to_a_file_in_check_mode_too(tmp_path):
    given = ("-e", "status_format=json", "-e", "status_output=~/status.json", "--check")
    for _run in ("first", "second"):
        code, said = play(tmp_path, PAIR, "onprem.lb.status", *given)
        assert code == 2 and '"was_read": false' in said
    (layout,) = json.loads((tmp_path / "status.json").read_text())["layouts"]
    assert [member["name"] for member in layout["members"]] == ["lb1", "lb2"]
    assert [vip["address"] for vip in layout["vips"]] == ["192.0.2.10"]


def test_a_pair_and_a_cluster_are_shown_in_one_run(tmp_path):
    _code, said = play(tmp_path, PAIR + CLUSTER, "onprem.lb.status", "-e", "status_format=json")
    text = said[said.index('"layouts"') : said.index("PLAY RECAP")]
    assert [text.count(f'"name": "{name}"') for name in ("lb1", "lb2", "m1", "m2", "w1")] == [1, 1, 1, 1, 1]
    assert text.count('"not_asked"') == 2 and '"192.0.2.5"' in text


REACHED = {"reached": [f"{VIP} 443"]}
HOLDERS = {"member_info": lambda call: seen(int(call.on[-1]), [VIP] * (call.on == "lb1"))}
WEB = {"name": "web", "port": 443, "check": {"type": "https"}, "servers": [{"address": "192.0.2.21"}]}


def asking(heard, tried, **variables):
    """Play the status of a pair with a host that is no member."""
    known = {"pair_vips": [VIP], "pair_services": [WEB], **variables}
    groups = {"pair": dict.fromkeys(NAMES, known), "probe": {"client": {}}}
    return recorded_plays.run("status", groups, {**HOLDERS, "layout_info": heard, "vip_probe": tried})


@pytest.mark.parametrize(
    "heard, tried, code, sentence",
    [
        (REACHED, {}, 0, f"{VIP} answers client (TLS at 443)."),
        (REACHED, {"timeout": 5}, 2, f"{VIP} accepts connections from client at port 443, and does not answer TLS "),
        ({"reached": []}, {}, 2, f"{VIP} accepts no connection from client: see "),
        (
            {"unreachable": True},
            {},
            0,
            "client cannot be reached: no route to host. Nothing was asked through the VIPs.",
        ),
    ],
)
def test_the_host_that_is_no_member_asks_through_the_vips(heard, tried, code, sentence):
    done = asking(heard, {"tried": 5, "failed_attempts": sum(tried.values()), "failures": tried})
    (connected,), asked = done.of("layout_info"), done.of("vip_probe")
    assert (connected.on, connected.given["plan"]["targets"]) == ("client", [[VIP, 443]])
    assert [(each.on, each.given["address"], each.given["tls"]) for each in asked] == (
        [("client", VIP, True)] if heard == REACHED else []
    )
    assert done.code == code and sentence in str(done.said), done.faults()


def test_without_such_a_host_nothing_is_asked():
    done = recorded_plays.run("status", {"pair": {name: {"pair_vips": [VIP]} for name in ("lb1", "lb2")}}, HOLDERS)
    assert done.of("layout_info", "vip_probe") == [] and done.code == 0, done.faults()
    assert done.failures == []  # not even an ignored one, which is shown


INGRESS = "192.0.2.30"
ANNOUNCED = {
    "pair_reach": "bgp",
    "pair_vips": [VIP],
    "pair_services": [WEB],
    "pair_bgp": {"asn": 64512, "peers": [{"address": "192.0.2.254", "asn": 64601}]},
}


@pytest.mark.parametrize(
    "second, code, sentence",
    [
        ("serves", 0, f"{VIP} is announced by lb1 and lb2."),
        ("failed", 2, f"lb2 does not announce {VIP}: haproxy_down: 1."),
    ],
)
def test_of_members_that_announce_each_is_to_announce_all_of_its_own(second, code, sentence):
    answers = {"member_info": lambda call: announcer(int(call.on[-1]), {VIP: "serves" if call.on == "lb1" else second})}
    members = {name: {**ANNOUNCED, "ansible_host": f"192.0.2.{name[-1]}"} for name in NAMES}
    done = recorded_plays.run("status", {"pair": members}, answers)
    assert done.code == code and sentence in str(done.said), done.faults()
    assert "What the inventory plans was not compared" not in str(done.said)


@pytest.mark.parametrize("of_worker, code", [({INGRESS: "serves"}, 0), ({}, 2), ({INGRESS: "failed"}, 2)])
def test_a_node_is_to_announce_the_vips_that_it_may_carry(of_worker, code):
    own = {"m1": {VIP: "serves"}, "m2": {VIP: "serves", INGRESS: "serves"}, "w1": of_worker or {SECOND: "serves"}}
    sent = [session(sent=2)]
    answers = {"member_info": lambda call: announcer(int(call.on[-1]), own[call.on], sessions=sent)}
    bgp = {"ipi_reach": "bgp", "ipi_bgp": {"asn": 64512, "peers": [{"address": "192.0.2.254", "asn": 64601}]}}
    variables = {**CLUSTER_VARIABLES, "ipi_api_vips": [VIP], "ipi_ingress_vips": [INGRESS], **bgp}
    variables["ipi_ingress_members"] = ["m2", "w1"]
    done = recorded_plays.run("status", HOSTS, answers, **variables)
    assert "What the inventory plans was not compared" not in str(done.said)
    assert done.code == code, done.faults()
    assert (f"w1 does not announce {INGRESS}: " in str(done.said)) == bool(code)
    assert "m1 does not" not in str(done.said) and f"{VIP} is announced by m1 and m2." in str(done.said)


def test_what_the_plan_opens_is_compared_with_what_each_member_lets_in():
    firewall = {"closed": [[VIP, 443]], "open": [[VIP, 8080]], "vrrp": [], "chain": "inet filter input", "unknown": ""}
    answers = {"member_info": lambda call: seen(int(call.on[-1]), [VIP] * (call.on == "lb1"), firewall=firewall)}
    known = {"pair_vips": [VIP], "pair_services": [WEB]}
    done = recorded_plays.run("status", {"pair": dict.fromkeys(NAMES, known)}, answers)
    assert [call.given["asks_firewall"] for call in done.of("member_info")] == [True, True]
    sentence = f"lb2 could not take over: Its firewall (chain inet filter input) lets in no client at port 443 of {VIP}"
    assert done.code == 2 and sentence in str(done.faults())
    done = recorded_plays.run("status", {"pair": dict.fromkeys(NAMES, {**known, "pair_firewall": False})}, answers)
    assert done.code == 0, done.faults()


@pytest.mark.parametrize("services", [[{"name": "web"}], "{{ nothing }}"])
def test_a_plan_that_cannot_be_made_keeps_the_status_from_nothing(services):
    done = asking(REACHED, {"tried": 5, "failed_attempts": 0, "failures": {}}, pair_services=services)
    assert done.code == 0 and f"{VIP} answers client (TLS at 443)." in str(done.said), done.faults()


def test_the_last_drill_is_read_where_its_report_is(tmp_path):
    (tmp_path / "drill.json").write_text('{"rows": [{"worst_ms": 12}], "faults": []}')
    _code, said = play(tmp_path, PAIR, "onprem.lb.status", "-e", "drill_report=~/drill.json")
    assert any("1 events, 12 ms at worst, as planned" in line for line in printed(said))
    (tmp_path / "other.json").write_text('{"rows": 3}')
    _code, said = play(tmp_path, PAIR, "onprem.lb.status", "-e", "drill_report=~/other.json")
    assert "is skipped: it is not the report of a drill." in said
    _code, said = play(tmp_path, PAIR, "onprem.lb.status", "-e", "drill_report=~/none.json")
    assert "last drill was" not in said


@pytest.mark.parametrize(
    "playbook, given, sentence",
    [
        (
            "status",
            "status_fromat=json",
            "status_fromat is not a variable of the playbook: did you mean status_format?",
        ),
        *((each, "pair_vipz=x", "pair_vipz is not a variable of the role: did you mean pair_vips?") for each in LIVING),
        ("status", "status_format=yaml", "status_format is 'yaml': one of text, json is required."),
        (
            "switchover",
            "switchover_too=lb2",
            "switchover_too is not a variable of the playbook: did you mean switchover_to?",
        ),
        (
            "maintenance",
            "maintenance_rebot=always",
            "maintenance_rebot is not a variable of the playbook: did you mean maintenance_reboot?",
        ),
        (
            "maintenance",
            "maintenance_reboot=1",
            "maintenance_reboot is '1': one of never, always, if_needed is",
        ),
        (
            "maintenance",
            "maintenance_members=lb9",
            "maintenance_members has 'lb9', which is not a member: choose from lb1",
        ),
        ("maintenance", "maintenance_members=lb1", "A maintenance would do nothing: set maintenance_packages, "),
        ("maintenance", "maintenance_tasks=~/none.yml", "maintenance_tasks is ~/none.yml, and there is no file "),
    ],
)
def test_a_wrong_variable_is_one_sentence_before_a_host_is_reached(tmp_path, playbook, given, sentence):
    code, said = play(tmp_path, PAIR, f"onprem.lb.{playbook}", "-e", given)
    assert code == 2 and sentence in said and "there_is_none" not in said


@pytest.mark.parametrize("playbook", ["status", "switchover", "maintenance"])
def test_a_tag_that_no_task_has_is_refused(tmp_path, playbook):
    code, said = play(tmp_path, PAIR, f"onprem.lb.{playbook}", "--tags", "verify")
    assert code == 2 and "verify" in said and "there_is_none" not in said


@pytest.mark.parametrize("given", [("switchover",), ("maintenance", "-e", "maintenance_reboot=always")])
def test_every_member_is_needed_before_one_changes(tmp_path, given):
    playbook, *arguments = given
    code, said = play(tmp_path, PAIR, f"onprem.lb.{playbook}", "--check", *arguments)
    assert code == 2 and "lb1 cannot be reached as root" in said and "Say what moves" not in said


def test_who_writes_reads_and_removes_the_record_of_what_holds_a_member_back_mean_the_same_files():
    members = yaml.safe_load((PLAYBOOKS / "vars" / "members.yml").read_text())
    assert members["__steps_no_record"] == [{"path": path, "state": "absent"} for path in held_back.PATHS.values()]
    removal = units.removal("pair", "")["others"]
    assert held_back.PATHS["switchover"] in [file["path"] for file in removal.files]
    assert str(Path(held_back.PATHS["maintenance"]).parent) in removal.leaves
