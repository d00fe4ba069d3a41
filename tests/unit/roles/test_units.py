# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a layout opens the firewall, hands connections on, follows its cluster, and writes its other units."""

from __future__ import annotations

import json

import pytest
from support.recorded_hosts import host_info
from support.recorded_layouts import HOSTS, MEMBER, ROUTER, stage, undo

SETTLED = {name: {"__layout_undo": {"run": "", "role": "alone", "members": []}} for name in HOSTS["pair"]}
DIRECT, FOLLOW, POD = "onprem-lb-direct.service", "onprem-lb-follow.service", {"pods": {"x": 1}}
CORRECTION = "onprem-lb-down-file.service"  # has a test of its own
WAVE = {"members": ["lb1"], "proves": [], "hands_over": [], "is_proof": False}
NO_ROUTER, NO_BALANCER = (
    {"router": {**ROUTER, "instances": []}},
    {"balancer": {**MEMBER["balancer"], "services": "[]", "down_file": ""}},
)


def only(name, play, *modules):
    assert play.code == 0, play.faults()
    lines = [line for line in play.did(*modules) if CORRECTION not in line]
    return [line.partition(" ")[2] for line in lines if line.startswith(name)]


def configured(facts=SETTLED, **values):
    return stage("configure.yml", facts=facts, **{"__layout_waves": [], **values})


def paths(play, name="lb1"):
    """Return the files that are written or removed on a member."""
    assert play.code == 0, play.faults()
    return [file["path"] for call in play.of("config_files") if call.on == name for file in call.given.get("files", [])]


@pytest.mark.parametrize("active, member, opened", [(True, {}, 1), (False, {}, 0), (True, NO_ROUTER, 0)])
def test_a_firewall_is_opened_where_one_is_active_and_a_router_runs(active, member, opened):
    play = configured(member=member, __layout_host=host_info("lb1", firewall=active), settings={"down_file": ""})
    assert len(only("lb1", play, "firewall_openings")) == opened


@pytest.mark.parametrize("in_check", [True, False])
def test_an_opening_that_is_only_checked_is_no_change(in_check):
    answers = {"firewall_openings": {"changed": True}}
    play = stage("openings.yml", answers, __layout_only_checks=in_check)
    assert play.facts["lb1"]["__layout_openings"]["changed"] is not in_check


def test_what_raw_lines_of_haproxy_listen_on_is_opened_for_whom_they_name():
    peers = [{"port": 10000, "networks": ["192.0.2.2"]}]
    play = stage("openings.yml", __haproxy_ports=[7000, "514/udp"], __haproxy_restricted_ports=peers)
    given = [call.given for call in play.of("firewall_openings") if call.on == "lb1"]
    assert [{*each["ports"]} for each in given] == [{*MEMBER["firewall"]["ports"], 7000, "514/udp"}]
    assert [each["restricted_ports"] for each in given] == [[*MEMBER["firewall"]["restricted_ports"], *peers]]


def test_a_run_gives_heartbeats_on_the_way_and_before_it_verifies():
    signs = ["lb2 member_state announced", "lb1 member_state postponed", "lb2 member_state postponed"]
    assert configured(undo()).did("member_state") == signs
    assert configured(undo(), __layout_direct_somewhere=True).did("member_state") == signs * 3
    assert configured(__layout_direct_somewhere=True).did("member_state") == []


def test_the_record_of_the_members_is_json_that_the_next_run_reads():
    play = configured(plan={"record": {"lb1": ["192.0.2.1"], "version": "1.1.0"}})
    files = [file for call in play.of("config_files") for file in call.given.get("files", [])]
    (content,) = {file["content"] for file in files if file["path"] == "/etc/onprem-lb-pair-members.json"}
    assert json.loads(content) == {"lb1": ["192.0.2.1"], "version": "1.1.0"} and content.endswith("}\n")


def test_what_follows_the_cluster_stops_while_its_balancer_changes():
    host = host_info("lb1", active_units=[FOLLOW])
    assert only("lb1", configured(__layout_host=host), "systemd_service") == [f"systemd_service stopped {FOLLOW}"]
    assert only("lb1", configured(), "systemd_service") == []


@pytest.mark.parametrize("member, watched", [({}, True), (NO_BALANCER, False)])
def test_the_down_file_is_watched_where_there_is_a_balancer(member, watched):
    assert ("/etc/systemd/system/onprem-lb-down-file.path" in paths(configured(member=member))) is watched


@pytest.mark.parametrize("member, check, read", [({}, False, True), ({}, True, False), (NO_BALANCER, False, False)])
def test_the_down_file_is_true_before_a_router_tracks_it(member, check, read):
    play = configured(member=member, check=check, __layout_waves=[WAVE])
    called = [(call.on, call.module, call.given.get("name")) for call in play.calls]
    correction = ("lb1", "systemd_service", CORRECTION)
    assert (correction in called) is read
    assert not read or called.index(correction) < called.index(("lb1", "program", "keepalived_hook"))


@pytest.mark.parametrize("joining, started", [(["lb1"], True), ([], False)])
def test_the_router_of_a_member_that_joins_starts_at_last(joining, started):
    assert bool(only("lb1", configured(plan={"joining": joining}), "program")) is started
    assert only("lb1", configured(plan={"joining": joining}, member={"replaces": "agent"}), "program") == []


def test_members_whose_routers_would_not_hear_each_other_change_together():
    play = configured(plan={"routers_together": True})
    assert play.code == 0 and play.did("program") == ["lb1 program keepalived_hook", "lb2 program keepalived_hook"]
    assert configured().did("program") == []


def test_metrics_and_what_follows_are_set_up_where_they_are_wanted_and_removed_where_they_were():
    metrics, follow = "/etc/systemd/system/onprem-lb-metrics.service", f"/etc/systemd/system/{FOLLOW}"
    assert {metrics, follow} & {*paths(configured())} == set()
    host = host_info("lb1", existing_units=["onprem-lb-metrics.service", FOLLOW])
    removed = configured(__layout_host=host)
    assert {metrics, follow} <= {*paths(removed)} and only("lb1", removed, "program") == []
    written = configured(settings={"metrics_file": "/var/lib/m/x.prom"})
    assert metrics in paths(written) and only("lb1", written, "program") == ["program"]


ASKED = {"questions": [{"name": "chk_api", "file": "/run/chk_api.failing", "path": "/it's%20up"}]}
ASKS, HOOK = "/etc/systemd/system/onprem-lb-answers.service", "/usr/local/lib/onprem-lb-keepalived/hook"


def asking(play):
    """Return what becomes of the unit that asks the balancer: the state of its file, and of the unit."""
    assert play.code == 0, play.faults()
    calls = [call.given for call in play.of("config_files") if call.on == "lb1"]
    return [
        (file["state"], *(unit["state"] for unit in given["units"]))
        for given in calls
        for file in given.get("files", [])
        if file["path"] == ASKS
    ]


@pytest.mark.parametrize(
    "member, exists, wanted",
    [
        (ASKED, False, [("present", "started")]),
        ({**ASKED, "pods": {"x": 1}}, False, []),  # the sidecar asks
        ({**ASKED, "pods": {"x": 1}}, True, [("absent", "stopped")]),
        ({}, True, [("absent", "stopped")]),  # nothing is to be asked any more
        ({}, False, []),
    ],
    ids=["questions", "pods", "moved to pods", "no more questions", "never any"],
)
def test_what_a_plan_asks_is_asked_all_the_time(member, exists, wanted):
    units = ["onprem-lb-answers.service"] if exists else []
    assert asking(configured(member=member, __layout_host=host_info("lb1", existing_units=units))) == wanted


@pytest.mark.parametrize(
    "differs, runs, commands, restarts",
    [
        ([HOOK], True, [], True),
        ([HOOK], False, [], False),  # it has started with it
        ([HOOK], True, ["systemctl restart onprem-lb-answers.service"], False),
        (["/etc/keepalived/keepalived.conf"], True, [], False),
        ([], True, [], False),
    ],
)
def test_a_new_program_asks_from_then_on(differs, runs, commands, restarts):
    written = {"config_files": {"changed": False, "commands": commands}}
    host = host_info("lb1", active_units=["onprem-lb-answers.service"] if runs else [])
    play = configured(answers=written, member=ASKED, __keepalived_differs=differs, __layout_host=host)
    assert (only("lb1", play, "systemd_service") == ["systemd_service restarted onprem-lb-answers.service"]) is restarts


FOLLOWED = {"kubeconfig": "/etc/kubeconfig", "hosts": "/etc/hosts.d/nodes"}
FOUND = {
    "credentials": [{"path": "/etc/onprem-lb-follow/key"}],
    "secrets": ["s3cret"],
    "config": {"path": "/etc/follow.json"},
}
FOUND.update(named=["/etc/ca.crt"], faults=[])
WRITTEN = ["/etc/systemd/system/onprem-lb-follow.service", "/etc/onprem-lb-follow/key", "/etc/follow.json"]


@pytest.mark.parametrize("hosts, folders", [("/etc/hosts.d/nodes", 2), ("", 1)])
def test_what_follows_gets_its_credentials_and_the_folder_of_the_names_it_writes(hosts, folders):
    member = {"follow": {**FOLLOWED, "hosts": hosts}}
    play = stage("units.yml", member=member, __layout_followed=FOUND)
    assert [path for path in paths(play) if "follow" in path] == WRITTEN
    assert only("lb1", play, "file") == ["file directory"] * folders


def test_no_kubeconfig_is_shown_and_what_it_names_is_looked_for():
    answers = {"slurp": {"content": "s3cret"}, "command": {"rc": 1, "failed": True, "stdout_lines": [], "msg": "stat"}}
    play = stage("follow_check.yml", answers, member={"follow": FOLLOWED}, __layout_followed=FOUND)
    assert play.code == 0 and [call.hidden for call in play.of("slurp")] == [True, True]
    assert not any("s3cret" in text for text in play.shown) and len(play.did("command")) == 2
    dry = stage("follow_check.yml", answers, check=True, member={"follow": FOLLOWED}, __layout_followed=FOUND)
    assert [call.check for call in dry.of("command")] == [False, False]


def test_a_kubeconfig_that_names_no_file_or_is_missing_is_judged_by_the_next_task():
    found = {**FOUND, "named": [], "faults": ["there is no kubeconfig"]}
    play = stage(
        "follow_check.yml",
        {"slurp": {"failed": True, "msg": "not found"}},
        __layout_followed=found,
        member={"follow": FOLLOWED},
    )
    assert play.code == 2 and play.faults() == [["there is no kubeconfig"]] and play.did("command") == []


PLANE = {"direct": {"path": "/etc/onprem-lb-direct/d.json"}, "direct_server": {}}


def direct(active=(), enabled=(), changed=(), check=False, member=None):
    """Set the plane up on a member where some of its files change."""

    def config_files(call):
        return {"changed": any(part in str(call.given) for part in changed), "paths": []}

    host = host_info("lb1", active_units=list(active), enabled_units=list(enabled))
    answers = {
        "config_files": config_files,
        "program": {"changed": "agent" in changed, "python": "p", "checksum": "c"},
    }
    values = {
        "member": {**PLANE, **(member or {})},
        "__layout_host": host,
        "__layout_direct_files": [{"path": "/unit"}],
        "__layout_undo": {"run": ""},
    }
    return stage("direct.yml", answers, check=check, **values)


@pytest.mark.parametrize(
    "given, steps",
    [
        ({}, ["systemd_service started onprem-lb-direct.service"]),
        ({"active": [DIRECT], "enabled": [DIRECT]}, []),
        ({"active": [DIRECT]}, ["systemd_service started onprem-lb-direct.service"]),
        (
            {"active": [DIRECT], "enabled": [DIRECT], "changed": ["d.json"]},
            ["systemd_service reloaded onprem-lb-direct.service"],
        ),
        ({"active": [DIRECT], "enabled": [DIRECT], "changed": ["agent"]}, ["command"]),
        ({"active": [DIRECT], "enabled": [DIRECT], "changed": ["/unit"]}, ["systemd_service", "command"]),
        ({"changed": ["agent"]}, ["systemd_service started onprem-lb-direct.service"]),
        ({"check": True, "changed": ["agent", "/unit"]}, []),
        ({"check": True, "active": [DIRECT], "changed": ["agent"]}, []),
    ],
)
def test_a_plane_starts_or_is_reloaded_or_hands_its_table_to_its_new_version(given, steps):
    assert only("lb1", direct(**given), "systemd_service", "command") == steps


@pytest.mark.parametrize(
    "check, engine, missing, made",
    [(False, "native", ["haproxy"], True), (True, "native", ["haproxy"], False), (True, "agent", [], True)],
)
def test_a_member_of_a_plane_is_a_server_itself_once_its_programs_are_there(check, engine, missing, made):
    server = {"direct_server": {"interface": "eth0", "services": []}, "engine": engine}
    values = {"member": {**PLANE, **server}, "__layout_host": host_info("lb1", missing_packages=missing)}
    seen = {"faults": [], "differences": [], "obstacles": {}}
    play = stage(
        "direct.yml",
        {"component_info": seen},
        check=check,
        __layout_direct_files=[],
        __layout_undo={"run": ""},
        __direct_server_settings={},
        __direct_server_files=[],
        __direct_server_unknown=[],
        **values,
    )
    assert play.code == 0 and bool(play.did("component_info")) is made
    assert direct().did("component_info") == []


@pytest.mark.parametrize("prefix, units, removed", [("ipi", [DIRECT], 3), ("ipi", [], 1), ("pair", [DIRECT], 2)])
def test_a_plane_that_goes_stops_and_takes_the_server_that_it_made_along(prefix, units, removed):
    host = host_info("lb1", existing_units=units, active_units=units)
    play = stage("direct_absent.yml", layout_definition={"prefix": prefix, "verify": True}, __layout_host=host)
    lines = only("lb1", play, "systemd_service", "config_files")
    assert len(lines) == removed and (lines[0] == f"systemd_service stopped {DIRECT}") is bool(units)


@pytest.mark.parametrize("names", [["lb2"], []])
def test_a_router_that_waits_for_static_pods_takes_over_once_they_have_ended(names):
    host = host_info("lb1", static_pods=[{"manifest": "/m.yaml", "program": "keepalived"}])
    play = configured(plan={"waiting": names}, __layout_host=host)
    lines = only("lb2", play, "static_pod", "command", "systemd_service")
    waits = ["systemd_service", "static_pod", "command", "systemd_service started keepalived.service"]
    assert lines == (waits if names else ["static_pod"])
    assert play.of("static_pod")[0].given["addresses"] == []
    dry = configured(plan={"waiting": names}, __layout_host=host, check=True)
    assert "systemd_service started keepalived.service" not in only("lb2", dry, "systemd_service")


PODS = {"files": [{"path": "/p"}], "secrets": [], "pods": ["onprem-lb-router"], "archive": "/agent.pyz", "faults": []}


@pytest.mark.parametrize("changed, waits", [(True, False), (False, True)])
def test_a_dry_run_waits_only_for_pods_that_stay_as_they_are(changed, waits):
    answers = {"config_files": {"changed": changed, "paths": []}}
    play = stage("routers/start_pods.yml", answers, check=True, member=POD, __layout_pods=PODS)
    assert only("lb1", play, "member_pods") == ["member_pods started"] * waits


@pytest.mark.parametrize(
    "active, changes, stops",
    [(["onprem-lb-follow"], True, True), ([], True, False), (["onprem-lb-follow"], False, False)],
)
def test_the_pod_that_follows_stops_while_its_balancer_changes(active, changes, stops):
    host = host_info("lb1", active_units=active)
    play = stage("routers/start_pods.yml", member=POD, __layout_pods=PODS, __layout_host=host, __layout_changes=changes)
    assert only("lb1", play, "member_pods") == ["member_pods stopped"] * stops + ["member_pods started"]


@pytest.mark.parametrize("differ, checked", [(["/p"], 1), ([], 0)])
def test_only_pods_that_differ_are_checked_and_never_count_as_changed(differ, checked):
    play = stage("check_more.yml", member=POD, __layout_pods=PODS, __layout_pods_differ=differ)
    assert play.code == 0 and [call.check for call in play.of("config_files") if call.on == "lb1"] == [True] * checked
    assert play.facts["lb1"]["__layout_pods_checked"]["changed"] is False


def test_what_the_programs_of_pods_could_not_do_is_refused():
    play = stage("check_more.yml", member=POD, __layout_pods={**PODS, "faults": ["no image"]}, __layout_pods_differ=[])
    assert play.code == 2 and play.faults() == [["no image"]]


def test_a_router_that_a_node_gives_up_is_stopped_by_no_unit_before_the_others_are_proved():
    """The stop of the unit for a shutdown stops the router, so it waits for the stage after the verification."""
    host = host_info("lb1", existing_units=["onprem-lb-shutdown.service"], active_units=["keepalived.service"])
    values = {"member": NO_ROUTER, "__layout_host": host, "settings": {"down_file": ""}}
    shutdown = "/etc/systemd/system/onprem-lb-shutdown.service"
    assert shutdown not in paths(configured(**values))
    play = stage("unused.yml", **values)
    assert paths(play) == [shutdown]
    assert only("lb1", play, "systemd_service", "config_files")[0] == "systemd_service stopped keepalived.service"
