# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The static pods of a host, whose containers are processes of these tests."""

from __future__ import annotations

import hashlib
import json
import os
import signal

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import facts, in_force, pod_programs, pods, processes
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader
from support import waiting
from support.kubelets import BALANCER, ROUTER, Kubelet
from support.programs import Programs


@pytest.fixture
def kubelet(tmp_path, monkeypatch):
    with Kubelet(tmp_path, monkeypatch) as started:
        yield started


def read(name):
    programs = Programs()
    return in_force.read(Reader(programs.run, programs.find), name)


def test_a_pod_that_has_loaded_its_file_is_in_force(kubelet):
    kubelet.starts(BALANCER, "haproxy.cfg")
    found = read(BALANCER)
    assert (found.active, found.unit_outdated, found.config) == (True, False, str(kubelet.config(BALANCER)))
    assert in_force.unloaded(BALANCER, found) == ""


def test_a_pod_without_a_process_does_not_run(kubelet):
    kubelet.writes(BALANCER)
    assert not read(BALANCER).active
    assert BALANCER not in pods.running()


def test_a_file_that_has_changed_is_not_loaded_until_the_pod_is_reloaded(kubelet):
    kubelet.starts(BALANCER, "haproxy.cfg")
    kubelet.config(BALANCER).write_text("of now")
    assert in_force.unloaded(BALANCER, read(BALANCER)) == (
        f"{BALANCER} has not loaded {kubelet.config(BALANCER)} since it changed."
    )
    pods.reload(BALANCER)
    waiting.until(lambda: not in_force.unloaded(BALANCER, read(BALANCER)))


def test_a_manifest_that_the_kubelet_has_not_read_since_it_changed_is_not_in_force(kubelet, monkeypatch):
    kubelet.starts(BALANCER, "haproxy.cfg")
    monkeypatch.setattr(in_force, "MANIFESTS", str(kubelet.folder / "manifests"))
    programs, path = Programs(), str(kubelet.manifest(BALANCER))
    reader = Reader(programs.run, programs.find)
    assert in_force.stale(reader, [(BALANCER, path)]) == []
    kubelet.writes(BALANCER, "89efcdab", "haproxy.cfg")
    assert in_force.stale(reader, [(BALANCER, path)]) == [f"The kubelet has not read {path} since it changed."]


def test_nothing_is_in_force_that_another_manifest_has_started(kubelet):
    kubelet.starts(BALANCER, "haproxy.cfg")
    kubelet.writes(BALANCER, "another")
    found = read(BALANCER)
    assert (found.active, found.unit_outdated, found.checksum) == (True, True, "")


def test_a_copy_of_the_first_process_is_none(kubelet):
    """It was taken for it, and SIGHUP ended it: what ends a program that stands still."""
    kubelet.starts(BALANCER, "haproxy.cfg")
    first = kubelet.pid(BALANCER)
    before = facts.children(first, facts.process_stats())
    copies = [pid for pid in before if processes.is_copy(pid)]
    assert len(copies) == 1 and processes.command("/proc", copies[0]) == processes.command("/proc", first)
    assert pods.running()[BALANCER].pid == first
    kubelet.config(BALANCER).write_text("of now")
    pods.reload(BALANCER)
    waiting.until(lambda: not in_force.unloaded(BALANCER, read(BALANCER)))
    assert facts.children(first, facts.process_stats()) == before


def test_a_haproxy_that_has_refused_the_new_file_goes_on_with_the_old_one(kubelet, monkeypatch):
    kubelet.starts(BALANCER, "haproxy.cfg")
    monkeypatch.setattr(in_force, "WORKER_SLACK", -10.0)  # as if its worker was older than the record
    found = read(BALANCER)
    assert (found.checksum, found.refused) == ("", True)


@pytest.mark.parametrize("loaded, is_loaded", [("of before", True), ("of long ago", False), (None, False)])
def test_what_a_program_of_the_agent_has_loaded_is_what_it_says(kubelet, monkeypatch, loaded, is_loaded):
    """It refuses a file with a fault, whatever the shell beside it records."""
    report = {"config_sha256": hashlib.sha256(loaded.encode()).hexdigest()} if loaded else {}
    monkeypatch.setattr(pod_programs.status_socket, "report_at", lambda _path, _daemon: report)
    kubelet.starts(BALANCER, "proxy.json")
    assert (in_force.unloaded(BALANCER, read(BALANCER)) == "") == is_loaded


def test_an_agents_router_says_which_of_its_instances_are_in_fault(kubelet, monkeypatch):
    instances = [{"name": "api", "state": "Fault", "reason": "eth0 is down"}, {"name": "ingress", "state": "Backup"}]
    monkeypatch.setattr(pod_programs.status_socket, "report_at", lambda _path, _daemon: {"instances": instances})
    kubelet.starts(ROUTER, "vrrp.json")
    assert read(ROUTER).in_fault == {"api": "eth0 is down"}


def test_what_the_other_engines_pod_of_this_name_would_read_is_not_stale(kubelet):
    kubelet.starts(BALANCER, "haproxy.cfg")
    path, other = str(kubelet.config(BALANCER)), kubelet.folder / "resources" / "proxy" / "proxy.json"
    reader = Reader(Programs().run, Programs().find)
    assert in_force.stale(reader, [(BALANCER, path), (BALANCER, str(other))]) == []
    other.parent.mkdir()
    other.write_text("of now")
    assert len(in_force.stale(reader, [(BALANCER, path), (BALANCER, str(other))])) == 1
    kubelet.config(BALANCER).unlink()
    assert len(in_force.stale(reader, [(BALANCER, path)])) == 1, "it goes on with what it has loaded"


@pytest.mark.parametrize("file, engine", [("keepalived.conf", "native"), ("vrrp.json", "agent")])
def test_the_engine_of_pods_is_that_of_their_manifests_also_where_they_are_stopped(kubelet, file, engine):
    assert pod_programs.engine() == ""
    kubelet.starts(ROUTER, file)
    (kubelet.folder / "resources" / "keepalived").mkdir(exist_ok=True)
    (kubelet.folder / "resources" / "keepalived" / "keepalived.conf").touch()  # a change that was interrupted
    assert pod_programs.engine() == engine
    pods.stop([ROUTER])
    assert pod_programs.engine() == engine


INSTANCE = """\
vrrp_instance {} {{
    interface eth0
    virtual_router_id 1
    priority 100
    virtual_ipaddress {{
        192.0.2.10
    }}
}}
"""
DUMP = """\
 VRRP Instance = api
   State = {api}
   Last transition = 12.5 (Thu Nov 26 02:00:00.5 2026)
 VRRP Instance = ingress
   State = MASTER
   Last transition = 13.0 (Thu Nov 26 02:00:01.0 2026)
"""


def keepalived(kubelet, monkeypatch, dump):
    """A keepalived that writes this when it is asked."""
    data = kubelet.folder / "data"
    monkeypatch.setattr(pod_programs, "DATA", str(data))
    (kubelet.folder / "dump").write_text(dump)
    kubelet.starts(
        ROUTER, "keepalived.conf", f"trap 'cp {kubelet.folder}/dump {data}' USR1; while :; do sleep 0.02; done"
    )
    kubelet.config(ROUTER).write_text("".join(map(INSTANCE.format, ("api", "ingress"))))


@pytest.mark.parametrize(
    "dump, in_fault",
    [
        (DUMP.format(api="BACKUP"), {}),
        (DUMP.format(api="FAULT"), {"api": ""}),
        ("", dict.fromkeys(("api", "ingress"), "keepalived does not say what it does")),
    ],
)
def test_keepalived_says_which_of_its_instances_are_in_fault(kubelet, monkeypatch, dump, in_fault):
    monkeypatch.setattr(pod_programs, "WRITES_WITHIN", 2.0 if dump else 0.1)
    keepalived(kubelet, monkeypatch, dump)
    assert read(ROUTER).in_fault == in_fault


def test_what_ends_a_router_that_stands_still_outlives_the_question(kubelet, monkeypatch):
    keepalived(kubelet, monkeypatch, DUMP.format(api="BACKUP"))
    first = pods.running()[ROUTER]
    before = facts.children(first.pid, facts.process_stats())
    assert len(before) == 2 and len(pod_programs.children(first)) == 1
    read(ROUTER)
    assert facts.children(first.pid, facts.process_stats()) == before


def test_nobody_asks_the_agent_by_the_signal_that_would_end_it(kubelet):
    """The manifests are keepalived's, and the kubelet has not looked yet."""
    kubelet.starts(ROUTER, "vrrp.json")
    (program,) = pod_programs.children(pods.running()[ROUTER])
    keepalived_conf = kubelet.folder / "resources" / "keepalived" / "keepalived.conf"
    keepalived_conf.parent.mkdir()
    keepalived_conf.write_text(INSTANCE.format("api"))
    reader = Reader(Programs().run, Programs().find)
    assert pod_programs.states(reader, pods.running()[ROUTER]) == {}
    assert pod_programs.children(pods.running()[ROUTER]) == [program]


@pytest.mark.parametrize("file, name", [("keepalived.conf", "native"), ("vrrp.json", "agent")])
def test_the_instances_are_those_of_the_engine_of_the_manifests_where_both_have_files(kubelet, file, name):
    kubelet.writes(ROUTER, file=file)
    kubelet.writes(BALANCER, file="haproxy.cfg")  # whose manifest was replaced first
    for folder, text in (
        ("keepalived/keepalived.conf", INSTANCE.format("native")),
        ("vrrp/vrrp.json", json.dumps({"instances": [{"name": "agent"}]})),
    ):
        path = kubelet.folder / "resources" / folder
        path.parent.mkdir(parents=True)
        path.write_text(text)
    found = pod_programs.instances(Reader(Programs().run, Programs().find))
    assert [each["name"] for each in found] == [name]


def test_a_stopped_pod_is_set_up_and_not_enabled_until_its_manifest_is_back(kubelet):
    kubelet.starts(BALANCER, "haproxy.cfg")
    kubelet.writes(ROUTER)
    pods.stop([ROUTER, BALANCER])
    assert (pods.enabled([ROUTER]), pods.own([ROUTER])) == ([], [ROUTER])
    assert pods.still_running([ROUTER, BALANCER], 0.1) == [BALANCER]
    kubelet.ends(BALANCER)
    assert pods.still_running([ROUTER, BALANCER], 5) == []
    pods.stop([ROUTER])
    assert pods.own([ROUTER]) == [ROUTER]


def test_a_removed_pod_leaves_no_manifest_of_either_name(kubelet):
    kubelet.writes(ROUTER)
    kubelet.writes(BALANCER)
    pods.stop([ROUTER])
    pods.remove([ROUTER, BALANCER])
    assert list(kubelet.manifest(ROUTER).parent.iterdir()) == []
    assert pods.own([ROUTER, BALANCER]) == []


def test_other_shells_are_no_pods(kubelet):
    kubelet.starts(BALANCER, "haproxy.cfg")
    first = pods.running()[BALANCER]
    assert first.pid == kubelet.pid(BALANCER) != os.getpid()
    os.kill(first.pid, signal.SIGTERM)
    waiting.until(lambda: BALANCER not in pods.running())
