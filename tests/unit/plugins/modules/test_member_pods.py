# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The module member_pods: it waits for a kubelet, which here is a test, and reloads what has not loaded its file."""

from __future__ import annotations

import threading

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import in_force, loaded_files
from ansible_collections.onprem.lb.plugins.modules import member_pods
from support.kubelets import BALANCER, ROUTER, Kubelet
from support.modules import refusal, run
from support.waiting import LIMIT_S


@pytest.fixture
def kubelet(tmp_path, monkeypatch):
    with Kubelet(tmp_path, monkeypatch) as started:
        yield started


def started(*names, **others):
    return {"pods": list(names), "state": "started", **others}


def test_a_pod_in_force_is_left_alone(kubelet):
    kubelet.starts(BALANCER, "haproxy.cfg")
    assert not run(member_pods, started(BALANCER))["changed"]


def test_it_waits_until_the_kubelet_has_started_a_pod(kubelet):
    kubelet.writes(BALANCER)
    kubelet_acts = threading.Timer(0.5, kubelet.starts, (BALANCER, "haproxy.cfg"))
    kubelet_acts.start()
    found = run(member_pods, started(BALANCER, wait=20))
    kubelet_acts.join()
    assert (found["changed"], found["pods"]) == (True, [BALANCER])


def test_a_pod_that_has_not_loaded_its_file_is_reloaded_and_goes_on(kubelet):
    kubelet.starts(BALANCER, "haproxy.cfg")
    pid = kubelet.pid(BALANCER)
    kubelet.config(BALANCER).write_text("of now")
    dry = run(member_pods, started(BALANCER), check=True)
    assert dry["pods"] == [BALANCER] and dry["diff"] == {
        "before": f"{BALANCER} has not loaded {kubelet.config(BALANCER)} since it changed.\n",
        "after": f"{BALANCER} is started.\n",
    }
    assert loaded_files.checksum(str(kubelet.config(BALANCER))) not in kubelet.record(BALANCER)
    assert run(member_pods, started(BALANCER, wait=20))["changed"]
    assert loaded_files.checksum(str(kubelet.config(BALANCER))) in kubelet.record(BALANCER)
    assert kubelet.pid(BALANCER) == pid


# Its worker is a process of its own. The first time that it is asked, it goes on with the worker of before.
REFUSES_ONCE = """\
asked=0
trap 'asked=$((asked + 1)); if [ $asked -gt 1 ]; then sleep 30 & workers="$workers $!"; fi' HUP
sleep 30 & workers=$!
trap 'kill $workers; exit' TERM; while :; do wait; done"""


def test_a_pod_that_goes_on_with_what_was_there_before_is_asked_again(kubelet, monkeypatch):
    monkeypatch.setattr(in_force, "WORKER_SLACK", 0.0)
    monkeypatch.setattr(member_pods, "RELOADED_WITHIN", 0.2)
    kubelet.starts(BALANCER, "haproxy.cfg", REFUSES_ONCE)
    kubelet.config(BALANCER).write_text("of now")
    assert run(member_pods, started(BALANCER, wait=LIMIT_S))["changed"]
    assert not run(member_pods, started(BALANCER))["changed"]


def test_a_pod_whose_program_does_not_run_yet_is_not_asked(kubelet, monkeypatch):
    """A signal that comes before its program is ready for one would end it."""
    kubelet.starts(BALANCER, "haproxy.cfg")
    kubelet.config(BALANCER).write_text("of now")
    monkeypatch.setattr(in_force.pod_programs, "children", lambda _first: [])
    before = kubelet.record(BALANCER)
    assert refusal(member_pods, started(BALANCER, wait=0.5)).startswith(f"{BALANCER} has not loaded")
    assert kubelet.record(BALANCER) == before


@pytest.mark.parametrize(
    "configuration, words",
    [("", f"{BALANCER} does not run."), ("another", f"{BALANCER} runs by another manifest.")],
)
def test_a_kubelet_that_does_not_act_is_named(kubelet, configuration, words):
    if configuration:
        kubelet.starts(BALANCER, "haproxy.cfg")
    kubelet.writes(BALANCER, configuration or "0")
    said = refusal(member_pods, started(BALANCER, wait=0.1))
    assert said == f"{words} It is so after 0.1 s: look at the kubelet's log, and at that of the pod's containers."


@pytest.mark.parametrize("state, left", [("stopped", [f".{ROUTER}.yaml"]), ("absent", [])])
def test_a_pod_that_is_not_to_run_has_ended_afterwards(kubelet, state, left):
    kubelet.starts(ROUTER, "keepalived.conf")
    asked = {"pods": [ROUTER], "state": state}
    dry = run(member_pods, asked, check=True)
    assert dry["pods"] == [ROUTER] and kubelet.manifest(ROUTER).exists()
    assert dry["diff"] == {"before": f"{ROUTER} is there.\n", "after": f"{ROUTER} is {state}.\n"}
    said = refusal(member_pods, {**asked, "wait": 0.1})
    assert said.startswith(f"{ROUTER} still runs after 0.1 s")
    kubelet.ends(ROUTER)
    run(member_pods, asked)
    assert [path.name for path in kubelet.manifest(ROUTER).parent.iterdir()] == left
    assert not run(member_pods, asked)["changed"]


def test_another_pod_is_refused(kubelet):
    said = refusal(member_pods, {"pods": ["../kube-apiserver"], "state": "absent"})
    assert "onprem-lb-balancer, onprem-lb-router" in said and "../kube-apiserver" in said
