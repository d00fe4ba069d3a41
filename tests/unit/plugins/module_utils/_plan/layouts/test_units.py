# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rows of a layout's helper units: what each stage of a run writes, starts, stops and deletes for them."""

from __future__ import annotations

import json
import shlex
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.anycast import config as anycast
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import units
from ansible_collections.onprem.lb.plugins.module_utils._shared import engines, held_back, paths
from ansible_collections.onprem.lb.plugins.plugin_utils import templates

METRICS, DOWN = "/var/lib/prometheus/node-exporter/onprem-lb.prom", "/run/lb.down"
CONFIGS = {"haproxy": "/etc/haproxy/haproxy.cfg", "keepalived": "/etc/keepalived/keepalived.conf"}
FOLLOWED = {
    "config": {"path": "/etc/onprem-lb-follow/follow.json", "unit": paths.FOLLOWING},
    "credentials": [{"path": "/etc/onprem-lb-follow/token"}],
    "secrets": ["s3cret"],
}
PODS = {"pods": {"agent_image": "an-image"}}
NO_ROUTER, NO_BALANCER = {"router": {"instances": []}}, {"balancer": {"services": "[]", "down_file": ""}}
# By the row: the plan that wants it, and what else is given.
WANTED = {
    paths.WATCH: ({}, {}),
    paths.SHUTDOWN: ({}, {"shutdown_before": ["kubelet.service"]}),
    paths.FOLLOWING: ({"follow": {"hosts": {}}}, {"followed": FOLLOWED}),
    paths.ANSWERS: ({"questions": [{"name": "chk_api"}]}, {}),
    paths.METRICS: ({}, {"settings": {"metrics_file": METRICS, "down_file": DOWN}}),
}
GATE = {
    "vips": [{"name": "front", "address": "192.0.2.10", "track": ["down"]}],
    "checks": [{"name": "down", "type": "file", "file": DOWN}],
}
WANTED[paths.GATE] = ({"bgp": {"anycast": GATE}}, {})
WANTED[paths.QUIET] = ({"quiet": "always"}, {})
TLS = {"certificate": ["/etc/haproxy/a 100%'s.pem"], "ca": "", "crl": ""}
WITH_TLS = {"balancer": {"services": json.dumps([{"name": "web", "tls": TLS}]), "down_file": DOWN}}
RELOADS = {"metrics_file": "", "down_file": DOWN, "reload_certificates": "yes"}
WANTED[paths.RENEWAL] = (WITH_TLS, {"settings": RELOADS})
STAGES = ("first", "router", "last")
LATE = [name for name in WANTED if name not in (paths.WATCH, paths.QUIET)]


def about(plan=None, host=None, **given):
    """Return what the rows of a member are made of, which wants none but the watch."""
    member = {
        "engine": "native",
        "balancer": {"services": '[{"name": "web"}]', "down_file": DOWN},
        "router": {"instances": [{"name": "vip"}]},
        **dict.fromkeys(("pods", "follow"), {}),
        "questions": [],
        **(plan or {}),
    }
    found = {"existing_units": [], "held_back": {}, "missing_packages": [], **(host or {})}
    usual = {
        "prefix": "pair",
        "record": "{}\n",
        "settings": {"metrics_file": "", "down_file": DOWN},
        "shutdown_before": [],
        "configs": CONFIGS,
        "socket": "/run/haproxy/admin.sock",
        "followed": {},
        "agent": {"python": "/usr/bin/python3", "checksum": "9f86d081"},
        "dry": False,
    }
    return units.About(member, found, templates.render, **{**usual, **given})


def wanting(name, plan=None, host=None, **given):
    of_plan, others = WANTED[name]
    return units.by_stage(about({**of_plan, **(plan or {})}, host, **{**others, **given}))


def states(work):
    """Return the state of each unit, and of its file."""
    files = {file["path"]: file.get("state", "present") for file in work.files}
    return {unit["name"]: (unit["state"], files[paths.of_unit(unit["name"])]) for unit in work.units}


def text(work, name):
    return next(file["content"] for file in work.files if file["path"] == paths.of_unit(name))


RUNS, ENDS = ("started", "present"), ("stopped", "absent")


@pytest.mark.parametrize("name", LATE)
def test_a_unit_that_is_wanted_runs_once_the_routers_do(name):
    found = wanting(name)
    stage = "router" if name == paths.GATE else "last"
    assert states(found[stage]) == {name: RUNS}
    assert name not in states(found["first"])


def test_the_down_file_is_watched_before_a_router_tracks_it():
    assert states(units.by_stage(about())["first"]) == {paths.WATCH: RUNS}
    without = {"balancer": {"services": '[{"name": "web"}]', "down_file": ""}}
    assert states(units.by_stage(about(without))["first"]) == {paths.WATCH: ENDS}
    assert states(units.by_stage(about(NO_BALANCER))["first"]) == {}


@pytest.mark.parametrize("name", LATE)
def test_a_member_that_never_had_a_unit_has_nothing_to_do_for_it(name):
    found = units.by_stage(about())
    assert [name in states(found[stage]) for stage in ("first", "last", "unused")] == [False] * 3
    assert found["compared"] == {**found["compared"], "others": [], "units": [paths.WATCH]}


@pytest.mark.parametrize("name", LATE)
def test_a_unit_that_is_not_wanted_any_more_stops_and_goes_at_once_or_with_the_router(name):
    given = {"settings": {"metrics_file": "", "down_file": DOWN}}
    found = units.by_stage(about(NO_ROUTER, {"existing_units": [name]}, **given))
    stages = [stage for stage in ("first", "last", "unused") if states(found[stage]).get(name) == ENDS]
    with_the_router = [paths.SHUTDOWN, paths.ANSWERS, paths.GATE]
    assert stages == (["unused"] if name in with_the_router else ["last"]), "what it relies on goes after it"


def test_a_member_is_quiet_about_lo_before_a_vip_is_there_and_until_the_last_one_has_gone():
    found = wanting(paths.QUIET, {"bgp": {"anycast": GATE}})
    assert states(found["first"])[paths.QUIET] == RUNS and paths.QUIET in found["compared"]["units"]
    assert not any(paths.QUIET in states(found[stage]) for stage in ("router", "last", "unused"))
    while_it_moves = wanting(paths.QUIET, {"quiet": "meanwhile"}, {"existing_units": [paths.GATE]})
    assert states(while_it_moves["first"])[paths.QUIET] == RUNS
    assert states(while_it_moves["unused"]) == {paths.GATE: ENDS, paths.QUIET: ENDS}
    left = units.by_stage(about(host={"existing_units": [paths.GATE, paths.QUIET]}))
    assert not any(paths.QUIET in states(left[stage]) for stage in ("first", "router", "last"))
    assert [*states(left["unused"])] == [paths.GATE, paths.QUIET]


def test_who_is_quiet_gets_its_settings_back_unless_somebody_has_changed_them(tmp_path):
    kernel = {"arp_ignore": "0", "arp_announce": "1"}
    for name, value in kernel.items():
        (tmp_path / name).write_text(value)
    unit = text(wanting(paths.QUIET)["first"], paths.QUIET)
    own = unit.replace(units.QUIET_FOLDER, str(tmp_path)).replace("/run/onprem-lb-quiet", str(tmp_path / "run"))
    (tmp_path / "run").mkdir()

    def ran(verb):
        for line in own.splitlines():
            key, _equals, command = line.partition("=")
            if key == verb:
                subprocess.run(shlex.split(command.lstrip("-")), check=True)
        return {name: (tmp_path / name).read_text().strip() for name in kernel}

    assert ran("ExecStart") == ran("ExecStart") == {"arp_ignore": "1", "arp_announce": "2"}
    (tmp_path / "arp_announce").write_text("0")
    assert ran("ExecStop") == {"arp_ignore": "0", "arp_announce": "0"}


@pytest.mark.parametrize("name", [paths.SHUTDOWN, paths.FOLLOWING, paths.ANSWERS, paths.GATE])
def test_in_pods_no_unit_does_what_a_pod_does(name):
    assert name not in states(wanting(name, PODS)["last"])


def test_what_moves_to_pods_goes_but_the_list_that_its_pod_reads_stays():
    found = wanting(paths.FOLLOWING, PODS, {"existing_units": [paths.FOLLOWING]})["last"]
    assert states(found) == {paths.FOLLOWING: ENDS}
    assert found.leaves == ["/usr/local/lib/onprem-lb-follow", "/etc/onprem-lb-follow"]
    gone = units.by_stage(about(host={"existing_units": [paths.FOLLOWING]}))["last"]
    assert gone.leaves == [*found.leaves, "/var/lib/onprem-lb-follow"]


def test_no_change_restarts_what_stops_the_router_and_no_run_waits_for_it():
    (unit,) = wanting(paths.SHUTDOWN)["last"].units
    assert (unit["on_change"], unit["wait"]) == ("unchanged", False), "its start waits for programs that need the VIP"


def test_what_follows_is_reloaded_for_its_configuration_and_restarted_for_a_new_version():
    work = wanting(paths.FOLLOWING)["last"]
    assert work.units == [{"name": paths.FOLLOWING, "state": "started", "on_change": "reloaded"}]
    assert [file["path"] for file in work.files[-3:]] == [
        paths.of_unit(paths.FOLLOWING),
        "/etc/onprem-lb-follow/token",
        "/etc/onprem-lb-follow/follow.json",
    ]
    assert (work.archives, work.secrets, work.leaves) == (["/usr/local/lib/onprem-lb-follow/agent.pyz"], ["s3cret"], [])
    assert "The agent's SHA-256 is 9f86d081." in text(work, paths.FOLLOWING)


@pytest.mark.parametrize(
    "engine, hosts, writes",
    [
        ("native", {}, "-/etc/haproxy -/run/haproxy.loaded"),
        ("agent", {}, "-/etc/onprem-lb-agent"),
        ("agent", {"path": "/x"}, "-/etc/onprem-lb-agent -/etc/onprem-lb-resolver"),
    ],
)
def test_what_follows_may_write_where_its_engine_reads_and_the_folders_are_there(engine, hosts, writes):
    work = wanting(paths.FOLLOWING, {"engine": engine, "follow": {"hosts": hosts}})["last"]
    assert f"\nReadWritePaths={writes}\n" in text(work, paths.FOLLOWING)
    made = [{"path": "/etc/onprem-lb-follow", "mode": "0700"}]
    assert work.folders == made + [{"path": "/etc/onprem-lb-resolver", "mode": "0755"}] * bool(hosts)


def test_each_question_is_one_word_of_the_command():
    questions = [{"name": "chk_api", "file": "/run/chk_api.failing", "path": "/it's%20up"}]
    unit = text(wanting(paths.ANSWERS, {"questions": questions})["last"], paths.ANSWERS)
    (line,) = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
    assert line.startswith(f"ExecStart={engines.HOOK} answers /etc/keepalived/keepalived.conf ")
    assert line.endswith("""'{"name": "chk_api", "file": "/run/chk_api.failing", "path": "/it\\'s%%20up"}'""")


@pytest.mark.parametrize("engine, socket", [("native", " --haproxy-socket /run/haproxy/admin.sock"), ("agent", "")])
def test_the_metrics_name_each_certificate_once_and_haproxys_socket(engine, socket):
    several = ["/etc/a b.pem", "/etc/certificates"]
    services = [{"tls": {"certificate": several[:1]}}, {"tls": None}, {"tls": {"certificate": several}}]
    plan = {"engine": engine, "balancer": {"services": json.dumps(services), "down_file": ""}}
    unit = text(wanting(paths.METRICS, plan)["last"], paths.METRICS)
    assert (
        "ExecStart=/usr/bin/python3 -I /usr/local/lib/onprem-lb-metrics/agent.pyz metrics "
        f"--file {METRICS}{socket} --certificate '/etc/a b.pem' --certificate /etc/certificates\n"
    ) in unit


def test_a_member_without_a_router_has_no_metrics():
    gone = wanting(paths.METRICS, NO_ROUTER, {"existing_units": [paths.METRICS]})["last"]
    assert states(gone) == {paths.METRICS: ENDS} and gone.leaves == ["/usr/local/lib/onprem-lb-metrics"]


@pytest.mark.parametrize("dry, missing, corrected", [(False, [], 1), (True, [], 1), (True, ["haproxy"], 0)])
def test_the_down_file_is_corrected_unless_nothing_is_installed_yet(dry, missing, corrected):
    files = units.by_stage(about(host={"missing_packages": missing}, dry=dry))["last"].files
    assert files.count({"path": DOWN, "content": "0\n"}) == corrected


def test_a_member_that_announces_is_let_go_with_its_gate_because_it_is_proved_before_the_next_one():
    stages = units.by_stage(about({"bgp": {"anycast": GATE}}, {"held_back": {"to": "lb2"}}))
    gone = {stage: [file["path"] for file in stages[stage].files if file.get("state") == "absent"] for stage in STAGES}
    records = [*held_back.PATHS.values()]
    assert gone["router"] == records and not {*records} & {*gone["first"], *gone["last"]}


@pytest.mark.parametrize("held_back, gone", [({"to": "lb2"}, 2), ({}, 0)])
def test_a_run_ends_a_switchover_and_a_maintenance(held_back, gone):
    files = units.by_stage(about(host={"held_back": held_back}))["last"].files
    assert [file.get("state") for file in files].count("absent") == gone


def test_a_member_that_loses_its_balancer_loses_its_down_file_and_the_watch():
    work = units.by_stage(about(NO_BALANCER))["unused"]
    assert work.files[0] == {"path": DOWN, "state": "absent", "own_only": True} and states(work) == {paths.WATCH: ENDS}
    assert units.by_stage(about())["unused"].files == []


def test_what_a_run_compares_is_what_it_would_write():
    found = wanting(paths.ANSWERS, **WANTED[paths.SHUTDOWN][1])
    written = [*found["first"].files, *found["last"].files]
    assert all(file in written for file in found["compared"]["files"])
    assert found["compared"]["units"] == [paths.WATCH, paths.SHUTDOWN, paths.ANSWERS]
    assert wanting(paths.METRICS)["compared"]["others"] == [paths.METRICS]


def test_a_removal_leaves_no_unit_and_no_file_of_the_rows():
    """What follows the cluster stops before the balancer whose files it writes."""
    made = [wanting(name) for name in WANTED]
    removal = units.removal("pair", DOWN)
    gone = {file["path"]: file["state"] for work in removal.values() for file in work.files}
    leaves = tuple(path for work in removal.values() for path in work.leaves)
    written = [file["path"] for found in made for stage in ("first", "router", "last") for file in found[stage].files]
    assert {path for path in written if gone.get(path) != "absent" and not path.startswith(leaves)} == set()
    ended = {unit["name"]: unit["state"] for work in removal.values() for unit in work.units}
    assert ended == dict.fromkeys(WANTED, "stopped")
    assert [unit["name"] for unit in removal["balancer"].units] == [paths.GATE, paths.FOLLOWING]


def gate_unit(*types):
    checks = [{"name": f"check-{kind}", "type": kind} for kind in types]
    found = wanting(paths.GATE, {"bgp": {"anycast": {**GATE, "checks": checks}}})["router"]
    return set(text(found, paths.GATE).splitlines())


def test_the_health_gate_reads_what_the_plan_says_and_a_restart_leaves_the_vips():
    work = wanting(paths.GATE)["router"]
    (config,) = [file for file in work.files if file["path"] == "/etc/onprem-lb-agent/anycast.json"]
    assert json.loads(config["content"]) == GATE and (config["mode"], config["unit"]) == ("0600", paths.GATE)
    assert anycast.parse(config["content"])[1] == []
    assert work.archives == ["/usr/local/lib/onprem-lb-anycast/agent.pyz"]
    assert work.units == [{"name": paths.GATE, "state": "started", "on_change": "reloaded"}]
    lines = gate_unit("file")
    assert "RestartKillSignal=SIGUSR1" in lines and not [line for line in lines if line.startswith("ExecStopPost")]
    assert {"Restart=always", "StartLimitIntervalSec=0", "RuntimeDirectoryPreserve=restart"} <= lines


@pytest.mark.parametrize(
    "types, capabilities, proc",
    [
        (["file", "http"], "CAP_NET_ADMIN", True),
        (["file", "process"], "CAP_NET_ADMIN", False),
        (["script"], "CAP_NET_ADMIN CAP_SETUID CAP_SETGID CAP_KILL", False),
    ],
)
def test_the_health_gate_may_do_what_its_checks_need(types, capabilities, proc):
    lines = gate_unit(*types)
    assert f"CapabilityBoundingSet={capabilities}" in lines
    assert ("ProtectProc=invisible" in lines, "MemoryDenyWriteExecute=yes" in lines) == (proc, "script" not in types)


def test_a_member_without_a_router_has_metrics_of_its_health_gate():
    plan = {**NO_ROUTER, "bgp": {"anycast": GATE}}
    found = wanting(paths.METRICS, plan)
    assert (states(found["router"]), states(found["last"])) == ({paths.GATE: RUNS}, {paths.METRICS: RUNS})
    own = text(found["last"], paths.METRICS).splitlines()
    assert "After=frr.service onprem-lb-anycast.service" in own
    assert "CapabilityBoundingSet=CAP_DAC_OVERRIDE CAP_AUDIT_WRITE" in own, "vtysh signs in with PAM"
    of_router = text(wanting(paths.METRICS, {})["last"], paths.METRICS).splitlines()
    assert "CapabilityBoundingSet=CAP_DAC_OVERRIDE" in of_router and "Description=Metrics of the VRRP router" in str(
        of_router
    )


def test_a_member_that_announces_no_vip_any_more_keeps_nothing_of_the_health_gate():
    work = units.by_stage(about(host={"existing_units": [paths.GATE]}))["unused"]
    assert states(work) == {paths.GATE: ENDS} and work.leaves == ["/usr/local/lib/onprem-lb-anycast"]
    assert [file["state"] for file in work.files if file["path"].endswith("anycast.json")] == ["absent"]


def test_a_removal_deletes_the_file_that_a_user_names_only_if_it_is_ours():
    gone = [each for each in units.removal("pair", "/etc/passwd")["others"].files if each["path"] == "/etc/passwd"]
    assert gone == [{"path": "/etc/passwd", "state": "absent", "own_only": True}]


CERTIFICATES_COMMAND = (
    "/usr/local/lib/onprem-lb-certificates/agent.pyz certificates --config /etc/haproxy/haproxy.cfg "
    r"--record /run/haproxy.loaded --unit haproxy.service -- '/etc/haproxy/a 100%%\'s.pem'"
)


def test_certificates_are_looked_at_by_a_unit_that_reloads_haproxy_alone():
    work = wanting(paths.RENEWAL)["last"]
    (command,) = [line for line in text(work, paths.RENEWAL).splitlines() if line.startswith("ExecStart=")]
    assert command.endswith(CERTIFICATES_COMMAND)
    assert wanting(paths.RENEWAL)["compared"]["units"] == [paths.WATCH, paths.RENEWAL]


@pytest.mark.parametrize(
    "plan, settings",
    [
        ({}, {"reload_certificates": False}),
        ({"engine": "agent"}, {}),
        (PODS, {}),
        (NO_BALANCER, {}),
        ({"balancer": {"services": '[{"name": "web", "tls": null}]', "down_file": DOWN}}, {}),
    ],
    ids=["not wanted", "agent", "pods", "no services", "no TLS"],
)
def test_no_certificates_are_watched_where_nobody_reads_them_or_nobody_wants_that(plan, settings):
    found = wanting(paths.RENEWAL, plan, {"existing_units": [paths.RENEWAL]}, settings={**RELOADS, **settings})
    assert states(found["last"])[paths.RENEWAL] == ENDS
