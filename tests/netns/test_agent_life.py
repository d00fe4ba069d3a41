# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The agent's life on a real link: reloads, ends of every kind, what others do to its interface and its addresses.

Beside other programs than itself it is in test_interop.py.
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
import statistics
import subprocess
import time

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import addresses
from support.netns.links import VIP, VIP6, sh
from support.netns.stages import INTERVAL, instance
from support.waiting import LIMIT_S, until

OTHER_VIP = "192.0.2.101"


@pytest.fixture
def alone(stage):
    """The only agent, which is Active."""
    agent = stage.agent(stage.link.lb1, instance(stage.link.lb1))
    begun_with(stage, VIP)
    return agent


def begun_with(stage, address):
    """The first member holds it, its kernel has said so, and it has announced it for now.

    Of an IPv6 address Linux tells in a work queue, which on a busy machine may come after the first announcement.
    """
    stage.held_by("lb1", address=address)
    stage.wait(lambda: stage.moved(0.0, address) == ["added"], f"{address} did not simply come")
    stage.is_announced(0.0, times=addresses.BURST, address=address)


@pytest.fixture(params=[VIP, VIP6])
def lonely(request, stage):
    """The same in each family, with its address."""
    node = stage.link.lb1
    six = {"multicast": True, "peers": [], "addresses": [VIP6]} if request.param == VIP6 else {}
    agent = stage.agent(node, instance(node, **six))
    begun_with(stage, request.param)
    return agent, request.param


# --- reload -----------------------------------------------------------------------------------------------------


def gaps(said):
    return [later[0] - earlier[0] for earlier, later in zip(said, said[1:])]


def test_a_reload_takes_nothing_away_that_is_not_changed(stage, alone):
    begin = time.time()
    one, node = instance(stage.link.lb1), stage.link.lb1
    for others in ([instance(node, vrid=52, name="second", vip=OTHER_VIP)], []):
        alone.write([*others, {**one, "priority": 253}])
        alone.reload()
        stage.held_by(*["lb1"] * len(others), address=OTHER_VIP)
    stage.wait(lambda: stage.said(begin)[-1:] and stage.said(begin)[-1][1] == 253, "the new priority is not heard")
    assert stage.moved(begin) == []
    assert {priority for _at, priority in stage.said(begin)} <= {254, 253}
    assert (alone.instance()["state"], alone.instance()["transitions"]) == ("Active", 2)
    assert statistics.median(gaps(stage.said(begin))) < 2 * INTERVAL


def test_a_bad_file_changes_nothing_and_is_logged(stage, alone):
    begin = time.time()
    alone.write([instance(stage.link.lb1, vrid=300)])
    alone.reload()
    until(lambda: alone.report()["config_fault"], "the fault is not reported")
    assert "vrid is 300" in alone.report()["config_fault"]
    assert "vrid is 300" in alone.log()
    said = len(stage.said(begin))
    stage.wait(lambda: len(stage.said(begin)) > said + 3, "it does not advertise any more")
    assert stage.happened(begin) == []
    alone.write([instance(stage.link.lb1, vrid=51)])
    alone.reload()
    until(lambda: alone.report()["config_fault"] is None, "the fault is still reported")


# --- ends -------------------------------------------------------------------------------------------------------


def test_who_is_ended_gives_up_and_leaves_nothing_behind(stage, alone):
    begin = time.time()
    alone.stops()
    stage.held_by()
    assert stage.said(begin)[-1][1] == 0
    assert not os.path.exists(alone.socket)
    assert "goodbye" in alone.log()
    assert VIP not in stage.link.lb1.output("ip", "addr")


def test_who_was_killed_goes_on_with_what_it_left(stage, alone):
    alone.dies()
    begin = time.time()
    stage.start(alone)
    stage.wait(lambda: stage.said(begin), "it is not Active again")
    assert stage.moved(begin) == []
    assert stage.said(begin)[0][1] == 254
    # One interval and the skew after it began to listen, where one that finds nothing waits for three.
    answered = alone.report()["since"]
    assert stage.said(begin)[0][0] - answered < 3 * INTERVAL + 0.5


def test_who_was_killed_removes_at_once_what_another_has_taken(stage, alone):
    link = stage.link
    alone.dies()
    stage.agent(link.lb2, instance(link.lb2, priority=100))
    stage.wait(lambda: stage.said(member="lb2"), "the other one does not take over")
    begin = time.time()
    alone.write([instance(link.lb1, preempt=False)])
    stage.start(alone)
    stage.held_by("lb2")
    assert stage.said(begin) == []
    assert stage.moved(begin) == ["removed"]


def test_who_was_killed_while_it_waits_for_a_check_removes_what_another_has_taken(stage, alone):
    link = stage.link
    alone.dies()
    stage.agent(link.lb2, instance(link.lb2, priority=100))
    stage.wait(lambda: stage.said(member="lb2"), "the other one does not take over")
    check = {"name": "slow", "type": "script", "command": "/bin/sleep 1000", "timeout": 1000, "interval": 1000}
    alone.write([instance(link.lb1, track=["slow"])], checks=[check])
    stage.start(alone)
    stage.held_by("lb2")
    assert alone.instance()["waiting_for"] == ["slow"]


# --- what others do ---------------------------------------------------------------------------------------------


def test_an_address_that_is_deleted_by_hand_is_back_at_once_and_announced(stage, lonely):
    alone, vip = lonely
    away = []
    for _time in range(3):
        begin = time.time()
        stage.link.lb1.give_up(vip)
        stage.is_announced(begin, times=5, address=vip)
        stage.wait(lambda begin=begin: stage.moved(begin, vip) == ["removed", "added"], "it is not back")
        away.append(min(at for at, what in stage.happened(begin, vip) if what == "announced") - begin)
    assert statistics.median(away) < 0.1
    assert (alone.instance()["transitions"], alone.instance()["held"]) == (2, alone.instance()["addresses"])


def test_an_interface_that_goes_down_and_comes_back(stage, lonely):
    alone, vip = lonely
    node = stage.link.lb1
    node.ip("link", "set", "eth0", "down")
    stage.held_by(address=vip)
    assert alone.instance()["state"] == "Fault"
    begin = time.time()
    node.ip("link", "set", "eth0", "up")
    stage.held_by("lb1", address=vip)
    stage.is_announced(begin, address=vip)
    stage.wait(lambda: stage.said(begin), "it does not advertise")


def test_a_renamed_interface_has_no_address_of_ours_and_gets_it_back_with_its_name(stage, alone):
    node = stage.link.lb1
    node.ip("link", "set", "eth0", "down")
    node.ip("link", "set", "eth0", "name", "lan0")
    node.ip("link", "set", "lan0", "up")
    stage.held_by()
    until(lambda: alone.instance()["source"] is None, "it still believes in eth0")
    begin = time.time()
    node.ip("link", "set", "lan0", "down")
    node.ip("link", "set", "lan0", "name", "eth0")
    node.ip("link", "set", "eth0", "up")
    stage.held_by("lb1")
    stage.wait(lambda: stage.said(begin), "it does not advertise")


def test_a_resignation_is_sent_when_an_interface_is_renamed_while_it_is_up(stage, alone):
    begin = time.time()
    try:
        stage.link.lb1.ip("link", "set", "eth0", "name", "lan0")
    except subprocess.CalledProcessError:
        pytest.skip("this kernel renames no interface that is up")
    stage.held_by()
    assert stage.said(begin)[-1][1] == 0


def test_an_interface_that_is_made_anew_gets_the_address_back(stage, alone):
    node, link = stage.link.lb1, stage.link
    sh("ip", "-n", link.bridge, "link", "del", node.port)
    until(lambda: alone.instance()["state"] == "Fault", "it does not notice")
    begin = time.time()
    sh("ip", "-n", link.bridge, "link", "add", node.port, "type", "veth", "peer", "eth0", "netns", node.namespace)
    sh("ip", "-n", link.bridge, "link", "set", node.port, "master", "br0", "up")
    node.ip("link", "set", "eth0", "address", node.mac, "up")
    assert alone.instance()["state"] == "Fault"  # there is no address yet to send from
    node.ip("addr", "add", "192.0.2.1/24", "dev", "eth0")
    stage.held_by("lb1")
    stage.is_announced(begin)
    sent = alone.instance()["sent"]
    until(lambda: alone.instance()["sent"] > sent, "it does not advertise")


def test_an_address_to_send_from_that_is_gone_is_missed_at_once(stage, alone):
    """Its peer need not wait for three advertisements: the last one says so."""
    begin = time.time()
    stage.link.lb1.ip("addr", "del", "192.0.2.1/24", "dev", "eth0")
    stage.held_by()
    assert stage.said(begin)[-1][1] == 0
    stage.link.lb1.ip("addr", "add", "192.0.2.1/24", "dev", "eth0")
    stage.held_by("lb1")


def test_when_two_active_ones_meet_the_winner_has_the_last_word(stage):
    link = stage.link
    stage.agent(link.lb1, instance(link.lb1))
    stage.agent(link.lb2, instance(link.lb2, priority=100))
    stage.held_by("lb1")
    for _time in range(3):
        sh("ip", "-n", link.bridge, "link", "set", link.lb1.port, "nomaster")
        stage.held_by("lb1", "lb2")
        stage.wait(lambda: stage.view().believed == "lb2", "the second one is not announced")
        sh("ip", "-n", link.bridge, "link", "set", link.lb1.port, "master", "br0")
        stage.held_by("lb1")
        stage.wait(lambda: stage.view().believed == "lb1", "the winner is not announced")
        assert not stage.recorder.wait(lambda: stage.view().holders != ["lb1"], 0.5)
        assert stage.view().believed == "lb1"


# --- status and notify ------------------------------------------------------------------------------------------


def test_everything_about_it_can_be_asked_at_its_socket(stage, alone):
    mode = os.stat(alone.socket).st_mode
    assert (stat.S_ISSOCK(mode), stat.S_IMODE(mode)) == (True, 0o660)
    report = alone.report()
    assert (report["pid"], report["config"]) == (alone.process.pid, str(alone.folder / "agent.json"))
    assert (report["config_fault"], report["limits"]) == (None, [])
    (front,) = report["instances"]
    wanted = {
        "state": "Active",
        "held": [f"{VIP}/32"],
        "source": "192.0.2.1",
        "received": 0,
        "transitions": 2,
        "waiting_for": [],
        "reason": "no Advertisement was heard",
        "discarded": {},
        "priority": {"configured": 254, "effective": 254, "because": []},
    }
    assert {key: front[key] for key in wanted} == wanted
    assert time.time() - LIMIT_S < front["since"] < time.time()


def test_a_second_agent_at_the_same_socket_does_not_disturb_the_first(stage, alone):
    begin = time.time()
    second = alone.spawn(alone.command())
    try:
        assert second.wait(LIMIT_S) == 1
    finally:
        second.kill()
        second.wait()
    assert f"another agent answers at {alone.socket}" in alone.log()
    said = len(stage.said(begin))
    stage.wait(lambda: len(stage.said(begin)) > said + 3, "it does not advertise any more")
    assert stage.happened(begin) == []
    assert alone.instance()["state"] == "Active"


NOTIFY = """#!/bin/sh
echo "$@" >> "{folder}/told"
"""


def test_notify_programs_get_the_arguments_that_keepalived_would_pass(stage, tmp_path):
    node = stage.link.lb1
    program = tmp_path / "tell"
    program.write_text(NOTIFY.format(folder=tmp_path))
    program.chmod(0o755)
    one = instance(node, notify=[str(program), "an argument"])
    group = {"name": "all", "instances": ["front"], "notify": str(program)}
    agent = stage.agent(node, one, sync_groups=[group])
    stage.held_by("lb1")
    agent.stops()
    notified = (tmp_path / "told").read_text().splitlines()
    assert sorted(notified) == sorted(
        [f"an argument INSTANCE front {state} 254" for state in ("BACKUP", "MASTER", "STOP")]
        + [f"GROUP all {state} 0" for state in ("BACKUP", "MASTER", "STOP")]
    )
    ours = [line.split()[4] for line in notified if line.startswith("an argument")]
    assert ours == ["BACKUP", "MASTER", "STOP"]


# --- checks -----------------------------------------------------------------------------------------------------


def test_a_process_that_dies_is_a_fault_and_the_other_one_takes_over(stage, tmp_path):
    link, name = stage.link, f"proxy{os.getpid()}"
    program = tmp_path / name
    shutil.copy(shutil.which("sleep"), program)
    check = {"name": "proxy", "type": "process", "process": name, "interval": 1}
    proxies = [subprocess.Popen([program, "1000"])]
    try:
        stage.agent(link.lb2, instance(link.lb2, priority=253))
        tracking = stage.agent(link.lb1, instance(link.lb1, track=["proxy"]), checks=[check])
        stage.held_by("lb1")
        begin = time.time()
        proxies[0].kill()
        stage.held_by("lb2")
        # Well before the next look at all processes, at the latest a second after the last one.
        removed = next(at for at, what in stage.happened(begin) if what == "removed")
        assert tracking.instance()["state"] == "Fault"
        assert tracking.report()["checks"][0]["up"] is False
        assert removed - begin < 1
        proxies.append(subprocess.Popen([program, "1000"]))
        stage.held_by("lb1")
    finally:
        for proxy in proxies:
            proxy.kill()
            proxy.wait()


def test_a_checks_process_that_is_killed_is_started_again_and_changes_nothing(stage, tmp_path):
    file = tmp_path / "load"
    file.write_text("0\n")
    check = {"name": "load", "type": "file", "file": str(file)}
    node = stage.link.lb1
    agent = stage.agent(node, instance(node, track=["load"]), checks=[check])
    stage.held_by("lb1")
    begin = time.time()
    (child,) = children_of(agent.process.pid)
    os.kill(child, signal.SIGKILL)
    until(lambda: [pid for pid in children_of(agent.process.pid) if pid != child], "it is not started again")
    file.write_text("1\n")
    stage.held_by()
    assert stage.moved(begin) == ["removed"]


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as children:
        return [int(child) for child in children.read().split()]


def test_who_is_killed_takes_its_checks_along(stage, tmp_path):
    node = stage.link.lb1
    check = {"name": "slow", "type": "script", "command": "/bin/sleep 1234", "timeout": 1000}
    agent = stage.agent(node, instance(node, track=["slow"]), checks=[check])
    (child,) = children_of(agent.process.pid)
    until(lambda: children_of(child), "the script does not run")
    (script,) = children_of(child)
    agent.dies()
    until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in (child, script)), "they live on")
