# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The roles of the resolver and of the server of direct return, played against recorded results."""

from __future__ import annotations

import pytest
from support.recorded_hosts import deployment, host_info
from support.recorded_plays import run, tasks_of

HOST = {"pair": {"lb1": {}}}
WROTE, KEPT = {"changed": True, "paths": ["/x"]}, {"changed": False, "paths": []}
RESOLVED, MANAGED = "/etc/systemd/resolved.conf.d/zz-onprem-lb.conf", "/etc/NetworkManager/conf.d/90-onprem-lb.conf"
RUNS, WATCHES = "onprem-lb-resolver.service", "onprem-lb-resolver-nodes.path"
KEEPS = "onprem-lb-resolver-keeper.service"
UNITS = [RUNS, WATCHES, KEEPS]
PLAN = {
    **{name: [] for name in ("faults", "warnings", "answers", "upstreams")},
    **dict.fromkeys(("resolved", "networkmanager", "resolv_conf", "keeper"), ""),
    "told": "resolv.conf",
    "address": "127.0.0.1",
    "supersedes": False,
    "in_force": True,
}
NAMES = {"os_family": "Debian", "resolved": False, "networkmanager": False, "resolved_before": {"a.invalid": []}}
RESOLVER = {
    **{
        f"__resolver_{name}": []
        for name in ("files", "named_files", "node_files", "corefile", "asked_files", "unknown", "packages")
    },
    "resolver_follows": False,
}


def resolver(file, answers=None, check=False, names=None, plan=None, host=None, groups=None, **values):
    found = {**NAMES, **(names or {})}
    known = {"__resolver_plan": {**PLAN, **(plan or {})}, "__resolver_names": found, **RESOLVER, **values}
    units = {f"{what}_units": UNITS for what in ("active", "enabled", "existing")}
    known["__resolver_host"] = host_info("lb1", **{**units, **(host or {})})
    usual = {"config_files": KEPT, "component_info": {"wrong": [], **found}, "host_info": known["__resolver_host"]}
    return run(
        tasks_of("resolver", file), groups or HOST, deployment(**{**usual, **(answers or {})}), check=check, **known
    )


def did(play, *modules):
    assert play.code == 0, play.faults()
    return [line.partition(" ")[2] for line in play.did(*modules)]


DIFFERS = {"changed": True, "paths": ["/etc/onprem-lb-resolver/dnsmasq.conf"], "stale": []}
OFF = {"active_units": [], "enabled_units": []}


def configured(differs=(), renamed=False, wrong=None, check=False, host=None, hosts=("lb1",)):
    """Configure resolvers.

    :param differs: the hosts whose resolver is to start with other files
    :param wrong: what a resolver does not answer, by host
    """

    def write(call):
        if call.given["files"] == [{"path": "config"}]:
            return DIFFERS if call.host in differs else KEPT
        return WROTE if renamed and call.given["files"] == [{"path": "names"}] else KEPT

    known = {"files": [{"path": "config"}], "named_files": [{"path": "names"}]}
    answers = {"config_files": write, "component_info": lambda call: {"wrong": (wrong or {}).get(call.host, [])}}
    groups = {"pair": {name: {} for name in hosts}}
    values = {f"__resolver_{name}": files for name, files in known.items()}
    return resolver("configure.yml", answers, check, host=host, groups=groups, **values)


def events(play):
    """Return which host wrote its configuration and had units run with it, was asked, or was reloaded."""
    words = {"component_info": "asked", "systemd_service": "reloads", "config_files": "starts"}
    words["member_state"] = "postponed"
    calls = [call for call in play.of(*words) if call.module != "config_files" or call.given.get("units")]
    return [f"{call.host} {words[call.module]}" for call in calls]


@pytest.mark.parametrize("renamed", [True, False])
def test_a_resolver_with_other_names_alone_reads_them_again_and_never_restarts(renamed):
    assert events(configured(renamed=renamed)) == ["lb1 starts", *["lb1 reloads"] * renamed, "lb1 asked"]
    assert events(configured(renamed=True, check=True)) == ["lb1 starts"]  # nothing, in check mode
    assert events(configured(renamed=True, host=OFF)) == ["lb1 starts", "lb1 asked"]


THREE = ("lb1", "lb2", "lb3")


def test_resolvers_restart_one_after_another_and_each_is_proved_before_the_next():
    play = configured(differs=THREE, hosts=THREE)
    turns = [event for name in THREE for event in (f"{name} starts", f"{name} asked")]
    assert play.code == 0 and events(play)[:6] == turns
    first = play.of("config_files")[0]
    assert first.check and not first.given.get("units")  # dnsmasq has judged the files of all before


def test_a_resolver_that_does_not_answer_after_its_turn_is_the_last_one_that_restarts():
    play = configured(differs=THREE, hosts=THREE, wrong={"lb1": ["api is unknown"]})
    assert play.code == 2 and {*events(play)} == {"lb1 starts", "lb1 asked"}


ANSWERS = [{"name": "any.apps.lab.example.com", "addresses": ["192.0.2.20", "192.0.2.21"]}]
ON_THE_WAY = {"config": "both", "names": "both", "server": "192.0.2.1", "answers": ANSWERS}


@pytest.mark.parametrize("wildcards", [True, False])
def test_on_the_way_resolvers_read_all_names_at_once_and_restart_one_after_another(wildcards):
    """An undo is armed by then, which has to wait for each of them."""

    def write(call):
        is_names = call.given["files"][0]["path"].endswith("/names")
        return WROTE if is_names else DIFFERS if wildcards else KEPT

    answers = {"config_files": write, "component_info": {"wrong": []}, "member_state": {"postponed": True}}
    undo = {"run": "1", "role": "alone", "after": 35, "settle": 5, "setting": "ipi_undo_after"}
    groups = {"pair": {name: {"__layout_every_host": []} for name in ("lb1", "lb2")}}
    plan = {"on_the_way": ON_THE_WAY}
    play = resolver("on_the_way.yml", answers, plan=plan, groups=groups, __layout_undo=undo)
    heartbeat = ["lb1 postponed", "lb2 postponed"]
    turns = [[*heartbeat, f"{name} starts", f"{name} asked"] for name in ("lb1", "lb2")]
    every = [*["lb1 reloads", "lb2 reloads"], *sum(turns, [])] if wildcards else ["lb1 reloads", "lb2 reloads"]
    assert play.code == 0 and events(play) == [*every, "lb1 asked", "lb2 asked"]


def test_where_no_resolver_runs_all_start_at_once():
    assert events(configured(differs=THREE, hosts=THREE, host=OFF))[:3] == [f"{name} starts" for name in THREE]


@pytest.mark.parametrize("follows, exists, files", [(True, True, 5), (True, False, 6), (False, False, 6)])
def test_names_that_follow_has_written_stay_as_they_are(follows, exists, files):
    play = resolver("configure.yml", {"stat": {"stat": {"exists": exists}}}, resolver_follows=follows)
    assert len(did(play, "config_files")) == files and len(did(play, "stat")) == follows


def test_the_resolver_is_waited_for_until_it_answers():
    late = {"wrong": ["api"]}
    assert len(resolver("configure.yml", {"component_info": [late, {}, {"wrong": []}]}).of("component_info")) == 3
    assert resolver("configure.yml", {"component_info": late}).code == 2
    assert resolver("configure.yml", {"component_info": {}}).code == 2


def test_a_host_that_resolves_less_than_before_is_asked_again_and_ends_the_run():
    lost = {"wrong": ["deb.debian.org is lost"]}
    found = resolver("tell.yml", {"component_info": [lost, {}, {"wrong": []}]})
    assert [call.given["resolver"]["before"] for call in found.of("component_info")] == [NAMES["resolved_before"]] * 3
    assert resolver("tell.yml", {"component_info": lost}).code == 2
    assert did(resolver("tell.yml", {"component_info": lost}, True), "component_info") == []
    assert did(resolver("tell.yml", names={"resolved_before": {}}), "component_info") == []


@pytest.mark.parametrize(
    "written, host, steps",
    [
        (WROTE, {}, ["restarted"]),
        (KEPT, {}, []),
        (KEPT, {"active_units": UNITS[:2]}, ["started"]),
        (KEPT, {"enabled_units": UNITS[:2]}, ["started"]),
    ],
    ids=["its files changed", "nothing changed", "stopped", "disabled"],
)
def test_the_keeper_restarts_or_starts_once_the_host_asks_the_resolver(written, host, steps):
    done = [f"systemd_service {step} {KEEPS}" for step in steps]
    play = resolver("tell.yml", {"config_files": [KEPT, written]}, plan=TELLS, host=host)
    assert did(play, "systemd_service", "resolv_conf") == ["resolv_conf present", *done]
    assert [call.given["enabled"] for call in play.of("systemd_service")] == [True for _step in steps]
    dry = resolver("tell.yml", {"config_files": [KEPT, written]}, True, plan=TELLS, host=host)
    assert did(dry, "systemd_service") == []


def test_the_keepers_unit_starts_its_agent_with_its_settings():
    """The unit has the agent's checksum, so that a new one is restarted."""
    settings, unit = resolver("tell.yml", plan={"keeper": "{}\n"}).of("config_files")[-1].given["files"]
    assert settings == {"path": "/etc/onprem-lb-resolver/keeper.json", "content": "{}\n"}
    assert unit["path"] == f"/etc/systemd/system/{KEEPS}" and unit["unit"] == KEEPS
    for part in ("-I /usr/local/lib/onprem-lb-resolver/agent.pyz resolver-keeper", settings["path"], "c0ffee"):
        assert part in unit["content"]


TELLS = {"resolved": "x", "networkmanager": "x", "resolv_conf": "x"}


@pytest.mark.parametrize(
    "names, told, in_force, steps",
    [
        ({"resolved": True}, [RESOLVED], True, ["systemd_service restarted systemd-resolved.service"]),
        ({"resolved": True}, [], False, ["systemd_service restarted systemd-resolved.service"]),
        ({"resolved": True}, [], True, []),
        ({}, [RESOLVED], True, []),
        ({"networkmanager": True}, [MANAGED], True, ["command"]),
        ({"networkmanager": True}, [], True, []),
        ({}, [MANAGED], True, []),
    ],
)
def test_who_is_in_charge_of_the_hosts_names_is_told_where_something_changed(names, told, in_force, steps):
    def answers():
        return {"config_files": [{"changed": bool(told), "paths": told}, KEPT]}

    play = resolver("tell.yml", answers(), names=names, plan={**TELLS, "in_force": in_force})
    assert did(play, "systemd_service", "command", "resolv_conf") == [*steps, "resolv_conf present"]
    dry = resolver("tell.yml", answers(), True, names, {**TELLS, "in_force": in_force})
    assert did(dry, "systemd_service", "command") == []


@pytest.mark.parametrize("family, module", [("Debian", "apt"), ("RedHat", "dnf")])
def test_dnsmasq_comes_and_goes_with_the_familys_own_package_manager(family, module):
    of = {"os_family": family, "missing_packages": ["dnsmasq"]}
    installed = resolver("install.yml", names={"os_family": family}, host=of)
    assert [call.module for call in installed.of("apt", "dnf")] == [module] and installed.said == []
    dry = resolver("install.yml", None, True, {"os_family": family}, host=of)
    assert did(dry, "apt", "dnf") == [] and dry.said == ["Would install dnsmasq."]
    answers = {"config_files": {"changed": True, "paths": []}, "command": {"stdout": ""}}
    own = {"os_family": family, "own_packages": ["dnsmasq"]}
    removed = resolver("remove.yml", answers, names={"os_family": family}, host=own)
    assert [line.split()[0] for line in did(removed, "apt", "dnf")] == [module]
    assert did(resolver("remove.yml", answers, names={"os_family": family}), "apt", "dnf") == []


@pytest.mark.parametrize(
    "names, told, steps",
    [
        ({"resolved": True}, [RESOLVED], 1),
        ({"networkmanager": True}, [MANAGED], 2),
        ({}, [RESOLVED, MANAGED], 0),
        ({"resolved": True, "networkmanager": True}, [], 0),
    ],
)
def test_the_host_asks_its_name_servers_of_before_again(names, told, steps):
    answers = {"config_files": {"changed": bool(told), "paths": told}}
    play = resolver("remove.yml", answers, names=names, __resolver_still_recorded=[])
    assert len(did(play, "systemd_service", "command")) == steps
    assert (
        did(resolver("remove.yml", answers, True, names, __resolver_still_recorded=[]), "systemd_service", "command")
        == []
    )


@pytest.mark.parametrize("lacks", [True, False])
def test_a_resolver_is_set_up_or_removed(lacks):
    play = resolver(
        "main.yml",
        {"config_files": WROTE},
        plan={"warnings": ["no A record"]},
        host={"missing_packages": ["dnsmasq"]},
        __resolver_lacks_dnsmasq=lacks,
    )
    assert len(did(play, "apt")) == lacks and play.said == [["no A record"]]
    quiet = resolver("main.yml", {"config_files": WROTE}, __resolver_lacks_dnsmasq=False)
    assert quiet.code == 0 and quiet.said == []
    removed = resolver("main.yml", {"config_files": WROTE}, resolver_state="absent", __resolver_still_recorded=[])
    assert did(removed, "resolv_conf") == ["resolv_conf absent"]
    gone = [each["path"] for call in removed.of("config_files") for each in call.given["files"]]
    assert {f"/etc/systemd/system/{unit}" for unit in UNITS} <= {*gone}


UNIT = "onprem-lb-direct-server.service"
SEEN = {"faults": [], "differences": []}


def server(answers=None, check=False, file="main.yml", **values):
    given = {"__direct_server_settings": {}, "__direct_server_files": [], "__direct_server_unknown": [], **values}
    usual = {"config_files": KEPT, "component_info": SEEN, "program": {"checksum": "c", "python": "p"}}
    return run(tasks_of("direct_server", file), HOST, deployment(**{**usual, **(answers or {})}), check=check, **given)


@pytest.mark.parametrize(
    "differs, written, runs, steps",
    [
        (True, KEPT, True, ["reloaded"]),
        (False, WROTE, True, ["started"]),
        (False, KEPT, True, []),
        (False, KEPT, False, ["started"]),
    ],
)
def test_a_server_is_put_in_force_where_something_differs(differs, written, runs, steps):
    answers = {"config_files": written, "component_info": [{**SEEN, "differences": ["x"] * differs}, SEEN]}
    values = {"__direct_server_differs": differs, "__direct_server_runs": runs}
    play = server(answers, **values)
    assert [line.split()[1] for line in did(play, "systemd_service")] == steps and bool(play.said) is differs
    assert did(server({"config_files": written}, True, **values), "systemd_service") == []


def test_a_server_that_is_not_in_force_in_the_end_fails():
    values = {"__direct_server_differs": False, "__direct_server_runs": True}
    play = server({"component_info": [SEEN, {**SEEN, "differences": ["no VIP on lo"]}]}, **values)
    assert play.code == 2 and play.faults() == [["no VIP on lo"]]


def test_a_server_is_removed_without_being_set_up():
    play = server(direct_server_state="absent")
    assert play.code == 0 and [call.module for call in play.calls] == ["config_files"]
