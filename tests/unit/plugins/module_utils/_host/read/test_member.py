# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read of a member without a plan: with both engines, and where something keeps it from taking over."""

from __future__ import annotations

import json
import pathlib
import socket
import time
import types

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.keepalived import conf as keepalived_conf
from ansible_collections.onprem.lb.plugins.module_utils._host.read import (
    balancer,
    facts,
    held_back,
    in_force,
    member,
    pod_programs,
    starting,
)
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader
from support.direct.reports import REPORT as PLANE
from support.follow.reports import REPORT
from support.kubelets import BALANCER, ROUTER, Kubelet
from support.paths import GOLDEN
from support.programs import Programs

VIP, STRANGER = "192.0.2.10", "02:00:00:00:00:63"
INSTANCE = f"vip-{VIP}"
RECORD = {"to": "lb2", "since": "2026-01-31 12:00 UTC", "by": "anna", "work": "", "done": ""}
FOLLOW, DIRECT = "onprem-lb-follow.service", "onprem-lb-direct.service"
ROUTERS = frozenset({"keepalived.service", "onprem-lb-vrrp.service"})
GATE = "onprem-lb-anycast.service"
BGP = ("frr.service", GATE)
STATISTICS = "# pxname,svname,status,\nweb,app1,UP,\nweb,app2,DOWN,\n"
MASTER, FAULT = f"({INSTANCE}) Entering MASTER STATE", f"({INSTANCE}) Entering FAULT STATE"


class Host:
    """A member with either engine; its attributes are what a test changes."""

    def __init__(self, folder, engine):
        self.folder, self.engine = folder, engine
        self.stopped = set()
        self.disabled = set()
        self.follows = self.has_plane = self.announces = False
        self.log = [MASTER]
        self.statistics = STATISTICS
        self.reports = {
            "onprem-lb-vrrp": {
                "version": "1.0.0",
                "instances": [{"name": INSTANCE, "state": "Active", "since": time.time() - 60.5, "reason": "why"}],
            },
            "onprem-lb-proxy": {"version": "1.0.0", "services": [{"name": "web", "servers": []}]},
        }
        self.addresses = [VIP, "192.0.2.1"]
        for name in ("pair.lb1.keepalived.conf", "pair.haproxy.cfg", "pair.lb1.agent-vrrp.json"):
            text = (GOLDEN / name).read_text()
            text = text.replace("/run/haproxy.down", str(folder / "down"))
            (folder / name).write_text(text.replace("/run/onprem-lb-", f"{folder}/onprem-lb-"))
        for track_file in ("down", "onprem-lb-haproxy_answers.failing"):
            (folder / track_file).write_text("0\n")

    @property
    def programs(self):
        return Programs(
            {
                "ip": lambda _words: (0, json.dumps([self._link()]), ""),
                "systemctl": self._systemctl,
                "journalctl": lambda words: (0, "\n".join(map(self._line(words), self.log)), ""),
                "haproxy": "HAProxy version 2.6.12-1+deb12u1 2023/12/16 - https://haproxy.org/\n",
                "keepalived": (0, "", "Keepalived v2.2.7 (01/16,2022)\n"),
            }
        )

    def _link(self):
        infos = [{"local": address, "prefixlen": 24} for address in self.addresses]
        return {"ifname": "eth0", "address": "02:00:00:00:00:01", "addr_info": infos}

    def _systemctl(self, words):
        units = [word for word in words if word.endswith(".service")]
        state = {unit: "inactive" if unit in self.stopped or not self.is_there(unit) else "active" for unit in units}
        shown = [
            f"Id={unit}\nActiveState={state[unit]}\nUnitFileState={self._file_state(unit)}\n"
            "MainPID=0\nInvocationID=5e1f\n"
            for unit in units
        ]
        return 0, "\n".join(shown), ""

    def _file_state(self, unit):
        return "disabled" if unit in self.disabled or not self.is_there(unit) else "enabled"

    def is_there(self, unit):
        if unit == FOLLOW:
            return self.follows
        if unit == DIRECT:
            return self.has_plane
        if unit in BGP:
            return self.announces and unit == GATE
        if unit in ROUTERS and self.announces:
            return False
        return unit.startswith("onprem-lb") == (self.engine == "agent")

    @staticmethod
    def _line(words):
        if "--output=cat" in words:
            return str
        micros = int((time.time() - 60.5) * 1e6)
        return lambda message: json.dumps({"__REALTIME_TIMESTAMP": str(micros), "MESSAGE": message})

    def read(self, vips=(), record="", **others):
        programs = self.programs
        return member.read(Reader(programs.run, programs.find), list(vips), record, **others)

    def served(self):
        programs = self.programs
        return member.beside.plane(Reader(programs.run, programs.find))


@pytest.fixture(params=["native", "agent"])
def engine(request):
    return request.param


@pytest.fixture
def host(tmp_path, monkeypatch, engine):
    made = Host(tmp_path, engine)
    configs = {
        "haproxy.service": "pair.haproxy.cfg",
        "keepalived.service": "pair.lb1.keepalived.conf",
        "onprem-lb-vrrp.service": "pair.lb1.agent-vrrp.json",
    }
    monkeypatch.setattr(member, "CONFIGS", {unit: str(tmp_path / name) for unit, name in configs.items()})
    monkeypatch.setattr(facts, "is_ours", made.is_there)
    monkeypatch.setattr(facts, "listeners", list)
    monkeypatch.setattr(in_force, "unloaded", lambda _unit, _daemon: "")
    monkeypatch.setattr(in_force, "report_of", lambda daemon: made.reports.get(daemon.program, {}))
    monkeypatch.setattr(in_force, "record_of", lambda program: str(tmp_path / f"{program}.loaded"))
    monkeypatch.setattr(balancer, "ask", lambda _path: made.statistics)
    monkeypatch.setattr(Reader, "answering", lambda _self, vips, _wait, _addresses: {vip: [STRANGER] for vip in vips})
    paths = {during: str(tmp_path / f"{during}.json") for during in ("switchover", "maintenance")}
    monkeypatch.setattr(held_back.in_force, "__defaults__", (paths,))
    return made


def test_what_was_replaced_since_a_program_has_loaded_it_is_told_by_itself(host, monkeypatch):
    monkeypatch.setattr(in_force, "replaced", lambda unit, _daemon: f"{unit} has not." if "proxy" in unit else "")
    found = host.read()
    assert found["stale"] == []
    assert found["replaced"] == [f"{unit} has not." for unit in [found["balancer"]] if "proxy" in unit]


def test_its_programs_are_asked_whether_they_would_start_again_on_request_alone(host, engine, monkeypatch):
    monkeypatch.setattr(starting, "faults", lambda _reader, units: [f"{unit} would not." for unit in units])
    assert host.read()["would_not_start"] == []
    units = {"native": ("haproxy", "keepalived"), "agent": ("onprem-lb-proxy", "onprem-lb-vrrp")}[engine]
    assert host.read(asks_start=True)["would_not_start"] == [f"{unit}.service would not." for unit in units]


def test_its_firewall_is_asked_about_the_ports_of_its_balancer_on_request_alone(host, engine, monkeypatch):
    program = {"native": "haproxy", "agent": "onprem-lb-proxy"}[engine]
    monkeypatch.setattr(member, "is_own", lambda each, _program: each["program"] == program)
    found = [{"address": address, "port": port, "program": program} for address, port in (("0.0.0.0", 80), (VIP, 443))]
    monkeypatch.setattr(facts, "listeners", lambda: [*found, {"address": "0.0.0.0", "port": 22, "program": "sshd"}])
    monkeypatch.setattr(
        facts, "reachable", lambda _targets, _timeout: []
    )  # by its own host, which its firewall may refuse
    monkeypatch.setattr(member.let_in, "read", lambda _reader, ports, _instances: ports[VIP])
    assert host.read([VIP])["firewall"] == {} and host.read([VIP], asks_firewall=True)["firewall"] == [80, 443]


def test_a_member_that_serves_is_described_the_same_with_both_engines(host, engine):
    found = host.read([f"{VIP}/24", {"address": "192.0.2.20"}])
    assert (found["engine"], found["unable"], found["held_back"]) == (engine, [], {})
    assert found["balancer"] == {"native": "haproxy.service", "agent": "onprem-lb-proxy.service"}[engine]
    assert found["instances"] == [
        {
            "name": INSTANCE,
            "interface": "eth0",
            "addresses": [VIP],
            "priority": 254,
            "preempt": True,
            "source": "192.0.2.1",
            "peers": ["192.0.2.2"],
            "state": "Active",
        }
    ]
    assert found["held"] == [{"address": VIP, "seconds": 60}]
    assert found["answering"] == {VIP: [STRANGER], "192.0.2.20": [STRANGER]} and found["macs"] == ["02:00:00:00:00:01"]
    assert found["versions"] in ({"haproxy": "2.6.12", "keepalived": "2.2.7"}, {"agent": "1.0.0"})


def test_a_stopped_unit_is_a_reason_with_its_name(host, engine):
    units = {"native": ("haproxy", "keepalived"), "agent": ("onprem-lb-proxy", "onprem-lb-vrrp")}[engine]
    host.stopped = {f"{unit}.service" for unit in units}
    host.reports = {}
    assert host.read()["unable"] == [f"{unit}.service does not run." for unit in units]


def test_a_fault_is_a_reason_with_its_cause(host, engine):
    host.log = [MASTER, "VRRP_Script(alive) failed (exited with status 1)", FAULT]
    host.reports["onprem-lb-vrrp"]["instances"][0]["state"] = "Fault"
    why = {"native": "script alive failed (exited with status 1)", "agent": "why"}[engine]
    found = host.read()
    assert found["unable"] == [f"{INSTANCE} is in FAULT: {why}."] and found["instances"][0]["state"] == "Fault"
    assert found["held"] == [{"address": VIP, "seconds": None}]


def test_a_down_file_is_a_reason(host):
    (host.folder / "down").write_text("1\n")
    assert host.read()["unable"] == [f"{host.folder / 'down'} says 1, that the balancer is down."]


def test_a_balancer_that_hangs_beside_keepalived_is_a_reason(host):
    path = "/run/onprem-lb-haproxy_answers.failing"
    said = [*member.unable({}, member.Own(), {path: "1"}, {})]
    assert said == [f"{path} says 1, that the check haproxy_answers fails."]


@pytest.mark.parametrize("engine", ["native"], indirect=True)
@pytest.mark.parametrize("leave", [pathlib.Path.unlink, lambda file: file.write_text("")], ids=["missing", "empty"])
def test_a_check_that_nobody_asks_is_a_reason(host, leave):
    path = host.folder / "onprem-lb-haproxy_answers.failing"
    assert host.read()["unable"] == []
    leave(path)
    (said,) = host.read()["unable"]
    assert said.startswith(f"{path} says nothing, so nobody knows whether the check haproxy_answers succeeds: ")


@pytest.mark.parametrize("engine", ["agent"], indirect=True)
def test_an_agents_check_that_lowers_the_priority_is_a_reason(host):
    failing = {"up": False, "detail": "no answer within 0.5 s"}
    others = [{"name": "of the user", **failing}, {"name": "haproxy_answers", "up": True}]
    host.reports["onprem-lb-vrrp"]["checks"] = others
    assert host.read()["unable"] == []
    host.reports["onprem-lb-vrrp"]["checks"] = [*others, {"name": "haproxy_answers", **failing}]
    assert host.read()["unable"] == ["The check haproxy_answers fails: no answer within 0.5 s."]


def test_a_balancer_that_does_not_answer_is_a_reason(host, engine):
    host.statistics = None
    host.reports.pop("onprem-lb-proxy")
    where = {"native": "haproxy does not answer at /run/haproxy/admin.sock.", "agent": "the agent's balancer does not"}
    (reason,) = host.read()["unable"]
    assert reason.startswith(where[engine])


def test_a_switchover_explains_the_stopped_router_and_is_forgotten_once_it_runs(host, engine):
    (host.folder / "switchover.json").write_text(json.dumps(RECORD))
    assert host.read()["held_back"] == {}
    host.stopped = ROUTERS
    found = host.read()
    assert (found["held_back"], found["unable"]) == ({"during": "switchover", **RECORD}, [])
    host.stopped |= {"haproxy.service", "onprem-lb-proxy.service"}
    host.reports = {}
    assert [reason.split(".")[0] for reason in host.read()["unable"]] == [
        {"native": "haproxy", "agent": "onprem-lb-proxy"}[engine]
    ]


def test_a_maintenance_explains_a_router_that_is_disabled_and_not_one_that_has_failed_since(host):
    (host.folder / "maintenance.json").write_text(json.dumps(RECORD))
    host.stopped = ROUTERS
    found = host.read()
    assert found["held_back"] == {} and len(found["unable"]) == 1
    host.disabled = ROUTERS
    assert host.read()["held_back"] == {"during": "maintenance", **RECORD}


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_a_damaged_record_is_none(host, text):
    (host.folder / "switchover.json").write_text(text)
    host.stopped = ROUTERS
    assert host.read()["held_back"] == {}


def test_a_member_that_does_not_preempt_says_so(host):
    for path in (host.folder / "pair.lb1.keepalived.conf", host.folder / "pair.lb1.agent-vrrp.json"):
        text = path.read_text().replace("    advert_int 1", "    nopreempt\n    advert_int 1")
        path.write_text(text.replace('"preempt": true', '"preempt": false'))
    assert host.read()["instances"][0]["preempt"] is False


def test_a_vip_on_another_interface_than_vrrps_is_said_to_be_there(host):
    for path in (host.folder / "pair.lb1.keepalived.conf", host.folder / "pair.lb1.agent-vrrp.json"):
        text = path.read_text().replace("192.0.2.10/32 dev eth0", "192.0.2.10/32 dev eth1")
        path.write_text(text.replace('"192.0.2.10/32"', '"192.0.2.10/32 dev eth1"'))
    (found,) = host.read()["instances"]
    assert (found["interface"], found["addresses"], found["carriers"]) == ("eth0", [VIP], {VIP: "eth1"})


def test_why_a_balancer_does_not_follow_its_cluster(host):
    host.reports["onprem-lb-follow"] = REPORT
    assert host.read()["not_following"] == [], "which it was not asked to do"
    host.follows = True
    without = "Nodes without an address of their own that can be a server's are not servers: c."
    assert host.read()["not_following"] == [without, "it is away."]
    host.reports["onprem-lb-follow"] = {**REPORT, "without_address": [], "balancers": []}
    assert host.read()["not_following"] == []
    del host.reports["onprem-lb-follow"]
    assert host.read()["not_following"] == [f"{FOLLOW} does not answer."]
    host.stopped = {FOLLOW}
    assert host.read()["not_following"] == [f"{FOLLOW} does not run."]


def test_why_clients_of_direct_return_get_no_answer_or_fewer_servers(host):
    host.reports["onprem-lb-direct"] = PLANE
    assert host.read()["direct"] == [], "which it does not have"
    host.has_plane = True
    idle = "these servers get no new connections: api/b (down)."
    assert host.read()["direct"] == [idle]
    (service,) = PLANE["services"]
    fault = {**service["servers"][0], "path_fault": "a does not answer for 192.0.2.100."}
    table = {"table": {**PLANE["table"], "in_force": False, "fault": "nft says no."}}
    host.reports["onprem-lb-direct"] = {**PLANE, **table, "services": [{**service, "servers": [fault]}]}
    assert host.read()["direct"] == [
        "the table on eth0 is not there: nft says no.",
        "api/a does not answer for 192.0.2.100.",
    ]
    host.reports["onprem-lb-direct"] = {**PLANE, "services": [{**service, "new_connections": "host"}]}
    assert host.read()["direct"] == [], "it leaves new connections to this host's programs"
    del host.reports["onprem-lb-direct"]
    assert host.read()["direct"] == [f"{DIRECT} does not answer."]
    host.stopped = {DIRECT}
    assert host.read()["direct"] == [f"{DIRECT} does not run."]


def test_what_the_plane_serves_is_read_for_the_next_plan(host):
    host.reports["onprem-lb-direct"] = PLANE
    assert host.served() == [], "it has none"
    host.has_plane = True
    (service,) = host.served()
    assert (service["name"], service["bind"], service["port"]) == ("api", ["192.0.2.100"], 6443)
    assert service["new_connections"] == "servers"
    assert service["servers"] == [
        {"name": "a", "address": "192.0.2.1", "serves": True},
        {"name": "b", "address": "192.0.2.2", "serves": False},
    ]
    last = {**PLANE["services"][0]["servers"][0], "state": "down"}
    host.reports["onprem-lb-direct"] = {**PLANE, "services": [{**PLANE["services"][0], "servers": [last]}]}
    assert host.served()[0]["servers"][0]["serves"] is False, "it is kept for want of another"
    host.stopped = {DIRECT}
    assert host.served() == []


def test_a_plane_that_is_down_is_called_that(host):
    values = {member.DIRECT_DOWN: "1", "/run/haproxy.down": "0"}
    assert [*member.unable({}, member.Own(), values, {})] == [
        f"{member.DIRECT_DOWN} says 1, that the direct plane is down."
    ]


def test_why_a_balancer_in_a_pod_does_not_follow_its_cluster(host, monkeypatch):
    pod, reports = "onprem-lb-follow", {"/proc/7/root/run/onprem-lb-follow/status.sock": REPORT}
    running = {pod: member.pods.First(7, "", "/run/onprem-lb-follow/held")}
    monkeypatch.setattr(member.pods, "own", lambda names: [name for name in names if name == pod])
    monkeypatch.setattr(member.pods, "running", lambda: running)
    monkeypatch.setattr(pod_programs.status_socket, "report_at", lambda path, _daemon: reports.get(path, {}))
    assert "it is away." in host.read()["not_following"]
    reports.clear()
    assert host.read()["not_following"] == [f"{pod} does not answer."]
    running.clear()
    assert host.read()["not_following"] == [f"{pod} does not run."]


def test_the_members_of_the_last_run_are_read(host, tmp_path):
    (tmp_path / "members.json").write_text('{"lb1": ["192.0.2.1"]}')
    assert host.read(record=str(tmp_path / "members.json"))["members"] == {"lb1": ["192.0.2.1"]}
    assert host.read()["members"] == {}


@pytest.mark.parametrize("engine", ["none"], indirect=False)
def test_a_host_without_an_engine_says_what_to_run(host, monkeypatch):
    monkeypatch.setattr(facts, "is_ours", lambda _unit: False)
    found = host.read([VIP])
    assert (found["engine"], found["instances"], found["unable"]) == ("", [], [member.NOT_SET_UP])
    assert found["held"] == [{"address": VIP, "seconds": None}]


def listening(address, port, program="haproxy"):
    return {"address": address, "port": port, "program": program, "runs_in": ""}


def test_the_ports_are_those_at_which_the_balancer_answers_through_the_vips():
    sockets = [
        listening("0.0.0.0", 443),
        listening("::", 443),
        listening(VIP, 80),
        listening("127.0.0.1", 9000),
        listening("0.0.0.0", 22, "sshd"),
    ]
    assert member.ports(sockets, "native", [VIP], "") == [80, 443]
    assert member.ports(sockets, "", [VIP], "") == []


def test_a_port_counts_for_the_vips_at_which_the_balancer_listens():
    sockets = [listening("0.0.0.0", 443), listening(VIP, 80), listening("192.0.2.99", 22, "sshd")]
    vips = [VIP, "192.0.2.99"]
    found = {VIP: [80, 443], "192.0.2.99": [443]}
    assert member.ports_of_vips(sockets, "native", vips, [80, 443]) == found
    assert member.ports_of_vips(sockets, "native", vips, [80]) == {VIP: [80], "192.0.2.99": []}
    assert member.ports_of_vips(sockets, "", vips, []) == {VIP: [], "192.0.2.99": []}


def test_a_port_at_which_nothing_accepts_a_connection_is_none():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and does not listen
        good, silent = server.getsockname()[1], bound.getsockname()[1]
        sockets = [listening("0.0.0.0", good), listening("0.0.0.0", silent), listening(VIP, 80)]
        assert member.ports(sockets, "native", [VIP], "127.0.0.1") == sorted([80, good])


def test_its_own_address_is_that_of_its_routers_link():
    own = member.Own(instances=[{"interface": "eth0", "addresses": [VIP]}])
    found = [
        {"address": address, "interface": link}
        for address, link in (("127.0.0.1", "lo"), ("fe80::1", "eth0"), (VIP, "eth0"), ("192.0.2.1", "eth0"))
    ]
    assert member.own_address(found, own) == "192.0.2.1" and member.own_address(found[:3], own) == ""


def test_a_member_in_pods_says_who_is_active_and_what_does_not_run(tmp_path, monkeypatch):
    with Kubelet(tmp_path, monkeypatch) as kubelet:
        kubelet.starts(ROUTER, "keepalived.conf")
        kubelet.writes(BALANCER)
        kubelet.config(ROUTER).write_text((GOLDEN / "ipi-default.keepalived.conf").read_text())
        names = [each["name"] for each in keepalived_conf.instances(kubelet.config(ROUTER).read_text())]
        monkeypatch.setattr(pod_programs, "states", lambda *_args: dict.fromkeys(names, ("Active", 1.0)))
        found = member.read(Reader(*_programs(Host(tmp_path, "native"))), [])
    assert (found["engine"], found["router"], found["balancer"]) == ("native", ROUTER, BALANCER)
    assert {each["name"]: each["state"] for each in found["instances"]} == dict.fromkeys(names, "Active")
    assert found["unable"] == [f"{BALANCER} does not run."]


def test_a_member_whose_pods_are_the_agents_says_what_its_daemons_report(tmp_path, monkeypatch):
    host = Host(tmp_path, "agent")
    monkeypatch.setattr(
        pod_programs.status_socket, "report_at", lambda path, _daemon: host.reports[path.split("/")[-2]]
    )
    with Kubelet(tmp_path, monkeypatch) as kubelet:
        kubelet.starts(ROUTER, "vrrp.json")
        kubelet.writes(BALANCER, file="proxy.json")
        kubelet.config(ROUTER).write_text((GOLDEN / "pair.lb1.agent-vrrp.json").read_text())
        running = member.pods.running()
        monkeypatch.setattr(member.pods, "running", lambda: dict.fromkeys((ROUTER, BALANCER), running[ROUTER]))
        found = member.read(Reader(*_programs(host)), [])
    assert (found["engine"], found["versions"]) == ("agent", {"agent": "1.0.0"})
    assert [(each["name"], each["state"]) for each in found["instances"]] == [(INSTANCE, "Active")]
    assert found["servers"]["total"] == 0 and "does not answer" not in " ".join(found["unable"])


def _programs(host):
    return host.programs.run, host.programs.find


def test_a_balancer_that_does_not_say_which_servers_are_up_is_named_beside_the_services_without_one(monkeypatch):
    own = member.Own(servers=[("web", "a", "down")], silent="haproxy does not answer at /run/x.")
    monkeypatch.setattr(member, "_own", lambda _reader: ("native", [], {}, own))
    sentences = ["No server of web is up (0 of 1), so its clients get no answer.", "haproxy does not answer at /run/x."]
    assert member.unserved(None, 1) == sentences


@pytest.mark.parametrize(
    "checked, says", [(2, "No server of web is up (0 of 1)"), (9, "Whether a server of web is up")]
)
def test_a_balancer_that_has_just_started_is_asked_until_its_first_checks_have_ended(monkeypatch, checked, says):
    looks = iter(range(100))

    def own(_reader):
        state = "down" if next(looks) >= checked else balancer.NEW
        return "native", [], {}, member.Own(servers=[("web", "a", state)])

    clock = iter(range(100))
    monkeypatch.setattr(member, "_own", own)
    monkeypatch.setattr(
        member, "time", types.SimpleNamespace(monotonic=lambda: next(clock), sleep=lambda _seconds: None)
    )
    (sentence,) = member.unserved(None, 5)
    assert sentence.startswith(says)
