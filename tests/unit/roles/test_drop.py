# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""New before old in a run: the balancer listens for everybody, then the redirect changes, and the old ports go last."""

from __future__ import annotations

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from support import keywords
from support.paths import ROLES
from support.recorded_hosts import host_info
from support.recorded_layouts import HOSTS, MEMBER, RUN, stage
from support.roles import variables_of

SETTLED = {name: {"__layout_undo": {"run": "", "role": "alone", "members": []}} for name in HOSTS["pair"]}
REDIRECT = "/etc/onprem-lb/api-redirect.nft"
FOLLOW = "onprem-lb-follow.service"
BOTH = {
    "balancer": {**MEMBER["balancer"], "answer_port": 9555, "also_answers": [9444]},
    "firewall": {**MEMBER["firewall"], "ports": [443, 9445]},
}
FOLLOWED = {"credentials": [], "secrets": [], "config": {"path": "/etc/onprem-lb-follow/follow.json"}}
# What the tasks of the role haproxy write, of the variables that a member has at that time.
CONFIG = {
    "path": "/haproxy.cfg",
    "content": trust_as_template("{{ __layout_for_now.balancer.also_answers | default([]) }}"),
}


def of_member(**values):
    return {"meanwhile": BOTH, **values}


def opened(play):
    assert play.code == 0, play.faults()
    return [call.given["ports"] for call in play.of("firewall_openings") if call.on == "lb1"]


def contents(play):
    assert play.code == 0, play.faults()
    files = [file for call in play.of("config_files") if call.on == "lb1" for file in call.given.get("files", [])]
    return [file["content"] for file in files if file["path"] == CONFIG["path"]]


@pytest.mark.parametrize("check, written", [(False, [9444]), (True, [])])
def test_until_the_run_is_proved_a_member_has_what_is_still_asked_and_a_check_shows_the_end_alone(check, written):
    host = host_info("lb1", firewall=True)
    values = {"member": of_member(), "__layout_host": host, "__haproxy_files": [CONFIG]}
    waves = [{"members": ["lb1", "lb2"], "proves": [], "hands_over": []}]
    play = stage(
        "routers/wave.yml",
        facts={name: {**each, "__layout_wave": waves[0]} for name, each in SETTLED.items()},
        check=check,
        **values,
    )
    assert contents(play) == [written]
    (ports,) = opened(stage("openings.yml", check=check, **values))
    assert ports == ([443] if check else [443, 9445])


def test_what_nobody_asks_any_more_is_dropped_and_the_firewall_closed_for_it():
    host = host_info("lb1", firewall=True)
    values = {"__haproxy_host": {**host, "enabled_units": ["haproxy.service"]}, "__haproxy_files": [CONFIG]}
    play = stage("drop.yml", member=of_member(), __layout_host=host, __layout_has_moved=True, **values)
    assert contents(play) == [[]]
    assert opened(play) == [[443]]
    names = [call.module for call in play.calls if call.on == "lb1"]
    assert names.index("config_files") < names.index("firewall_openings"), "a port that is served stays open"


@pytest.mark.parametrize("follow, said", [({}, []), ({"hosts": []}, [f"stopped {FOLLOW}"])])
def test_what_follows_the_cluster_writes_no_balancer_beside_the_drop(follow, said):
    values = {"__layout_followed": FOLLOWED}
    play = stage("drop.yml", member=of_member(follow=follow), __layout_has_moved=True, **values)
    assert play.code == 0, play.faults()
    lines = [line for line in play.did("systemd_service") if line.startswith("lb1") and FOLLOW in line]
    assert [line.partition("systemd_service ")[2] for line in lines] == said
    started = [call for call in play.of("config_files") if call.on == "lb1" and FOLLOW in str(call.given.get("units"))]
    assert len(started) == len(said)


def test_what_follows_the_cluster_starts_again_where_the_drop_fails():
    follows = {"__layout_followed": FOLLOWED}
    values = {**follows, "__layout_host": host_info("lb1", firewall=True)}
    failing = {"firewall_openings": {"failed": True, "msg": "no nft"}}
    play = stage("drop.yml", failing, member=of_member(follow={"hosts": []}), __layout_has_moved=True, **values)
    assert play.code != 0
    assert [call for call in play.of("config_files") if call.on == "lb1" and FOLLOW in str(call.given.get("units"))]


def test_the_balancer_in_a_pod_drops_them_as_well():
    pods = {"files": [], "secrets": [], "pods": ["onprem-lb-balancer"], "archive": "/agent.pyz"}
    play = stage("drop.yml", member=of_member(pods={"x": 1}), __layout_has_moved=True, __layout_pods=pods)
    assert play.code == 0, play.faults()
    assert [call.given["pods"] for call in play.of("member_pods") if call.on == "lb1"] == [["onprem-lb-balancer"]]


@pytest.mark.parametrize("checksum, turns", [("", ["redirect", "haproxy"]), ("5b1f", ["haproxy", "redirect"])])
def test_the_redirect_leads_to_another_port_once_the_balancer_listens_there(checksum, turns):
    host = host_info("lb1", files={REDIRECT: {"checksum": checksum, "mode": "0644", "stale": []}})
    play = stage(
        "configure.yml",
        facts=SETTLED,
        member={"balancer": {**MEMBER["balancer"], "redirect": {"vips": [], "ports": {}}, "down_file": ""}},
        settings={"down_file": ""},
        __layout_host=host,
        __layout_waves=[{"members": ["lb1", "lb2"], "proves": [], "hands_over": [], "is_proof": False}],
        __haproxy_files=[CONFIG],
        __ipi_redirect_path=REDIRECT,
        __ipi_files=[{"path": REDIRECT, "content": "x"}],
        __ipi_tables=[],
        __ipi_guard_state="absent",
    )
    assert play.code == 0, play.faults()
    found = [
        {REDIRECT: "redirect", CONFIG["path"]: "haproxy"}.get(file["path"])
        for call in play.of("config_files")
        if call.on == "lb1"
        for file in call.given.get("files", [])
    ]
    assert [each for each in found if each] == turns


@pytest.mark.parametrize(
    "armed, proved, drops", [(RUN, RUN, True), (RUN, "", False), ("", "", True), (None, "", False)]
)
def test_nothing_is_dropped_that_an_undo_would_need(armed, proved, drops):
    (block,) = DataLoader().load_from_file(str(ROLES / "layout/tasks/present.yml"), trusted_as_template=True)
    (task,) = [each for each in block["block"] if each.get("ansible.builtin.include_tasks") == "drop.yml"]
    known = {
        **variables_of("layout"),
        "__layout_stages": ["configure", "verify"],
        "ansible_check_mode": False,
        "__layout_me": {"meanwhile": BOTH},
        **({"__layout_undo": {"run": armed}} if armed is not None else {}),
        **({"__layout_proved": proved} if proved else {}),
    }
    assert holds(task["when"], known) is drops
    for other in ({"ansible_check_mode": True}, {"__layout_me": {"meanwhile": None}}, {"__layout_stages": ["verify"]}):
        assert not holds(task["when"], {**known, **other})


def holds(conditions, variables):
    templar = Templar(loader=DataLoader(), variables=variables)
    found = []
    for condition in conditions:
        found.append(templar.evaluate_conditional(condition))
        keywords.note(condition, str(found[-1]))
    return all(found)
