# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The agent on a real link: reloads, stops and crashes, and changes of its interface and its addresses by others.

test_interop.py tests it beside other VRRP routers.
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import time

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import addresses
from support.netns.links import VIP, VIP6, sh
from support.netns.stages import instance
from support.waiting import LIMIT_S, stays, until

OTHER_VIP = "192.0.2.101"
# Seconds between two Advertisements. A Backup takes over after three times as long, so that none does while this
# machine stalls. The priority of an owner makes a router Active at once.
SLOW, SLOWER, OWNER = 3, 10, 255


@pytest.fixture
def alone(stage):
    """The only agent, which is Active."""
    agent = stage.agent(stage.link.lb1, instance(stage.link.lb1))
    wait_until_announced(stage, VIP)
    return agent


def wait_until_announced(stage, address):
    """Wait until the first member holds the address, its kernel has reported that, and the announcements are over.

    Linux reports an IPv6 address from a work queue, on a busy machine after the first announcement.
    """
    stage.wait_for_holders("lb1", address=address)
    stage.wait(lambda: stage.address_changes(0.0, address) == ["added"], f"{address} was not added exactly once")
    stage.wait_for_announcement(0.0, times=addresses.BURST, address=address)


@pytest.fixture(params=[VIP, VIP6])
def family(request):
    """An address, and what an instance with it has in its family."""
    six = {"multicast": True, "peers": [], "addresses": [VIP6]}
    return request.param, six if request.param == VIP6 else {}


def start_slow_holder(stage):
    """Start an agent on the second member that becomes Active at once, and stays it."""
    link = stage.link
    stage.agent(link.lb2, instance(link.lb2, priority=OWNER, advert_interval=SLOW))
    stage.wait(lambda: stage.advertisements(member="lb2"), "the other one does not take over")


# --- reload -----------------------------------------------------------------------------------------------------


def test_a_reload_does_not_interrupt_an_instance_that_stays(stage, alone):
    begin = time.time()
    one, node = instance(stage.link.lb1), stage.link.lb1
    for others in ([instance(node, vrid=52, name="second", vip=OTHER_VIP)], []):
        alone.write([*others, {**one, "priority": 253}])
        alone.reload()
        stage.wait_for_holders(*["lb1"] * len(others), address=OTHER_VIP)
    stage.wait(lambda: [priority for _at, priority in stage.advertisements(begin)][-1:] == [253], "253 is not sent")
    assert stage.address_changes(begin) == []
    assert {priority for _at, priority in stage.advertisements(begin)} <= {254, 253}
    assert (alone.instance()["state"], alone.instance()["transitions"]) == ("Active", 2)


def test_a_bad_file_changes_nothing_and_is_logged(stage, alone):
    begin = time.time()
    alone.write([instance(stage.link.lb1, vrid=300)])
    alone.reload()
    until(lambda: alone.report()["config_fault"], "the fault is not reported")
    assert "vrid is 300" in alone.report()["config_fault"]
    assert "vrid is 300" in alone.log()
    sent = len(stage.advertisements(begin))
    stage.wait(lambda: len(stage.advertisements(begin)) > sent + 3, "it does not advertise any more")
    assert stage.events(begin) == []
    alone.write([instance(stage.link.lb1, vrid=51)])
    alone.reload()
    until(lambda: alone.report()["config_fault"] is None, "the fault is still reported")


# --- stops and crashes ------------------------------------------------------------------------------------------


def test_an_agent_that_is_stopped_resigns_and_leaves_nothing_behind(stage, alone):
    begin = time.time()
    alone.stop()
    stage.wait_for_holders()
    stage.wait_for_resignation(begin)
    assert not os.path.exists(alone.socket)
    assert "goodbye" in alone.log()
    assert VIP not in stage.link.lb1.output("ip", "addr")


def test_a_killed_agent_that_starts_again_adopts_its_addresses(stage, alone):
    """It waits for one interval and Skew_Time. For addresses that it does not find it waits for three intervals."""
    node = stage.link.lb1
    alone.kill()
    begin = time.time()
    alone.write([instance(node, vrid=52, name="second", vip=OTHER_VIP), instance(node)])
    stage.start(alone)
    stage.wait(lambda: stage.advertisements(begin, vrid=52), "the second one is not Active")
    stage.wait(lambda: stage.advertisements(begin), "it is not Active again")
    assert stage.address_changes(begin) == []
    assert stage.advertisements(begin)[0][1] == 254
    assert stage.advertisements(begin)[0] < stage.advertisements(begin, vrid=52)[0]


def test_a_killed_agent_that_starts_again_removes_addresses_that_another_router_holds(stage, alone):
    alone.kill()
    start_slow_holder(stage)
    begin = time.time()
    alone.write([instance(stage.link.lb1, preempt=False, advert_interval=SLOWER)])
    stage.start(alone)
    stage.wait_for_holders("lb2")
    assert stage.advertisements(begin) == []
    assert stage.address_changes(begin) == ["removed"]


def test_it_removes_them_even_while_it_waits_for_the_first_result_of_a_check(stage, alone):
    alone.kill()
    start_slow_holder(stage)
    check = {"name": "slow", "type": "script", "command": "/bin/sleep 1000", "timeout": 1000, "interval": 1000}
    alone.write([instance(stage.link.lb1, track=["slow"])], checks=[check])
    stage.start(alone)
    stage.wait_for_holders("lb2")
    assert alone.instance()["waiting_for"] == ["slow"]


# --- changes by others ------------------------------------------------------------------------------------------


def test_an_address_that_is_deleted_by_hand_is_back_and_announced_before_the_next_advertisement(stage, family):
    """The kernel reports the change. No timer is due before the next Advertisement."""
    address, changes = family
    node = stage.link.lb1
    agent = stage.agent(node, instance(node, priority=OWNER, advert_interval=SLOWER, **changes))
    wait_until_announced(stage, address)
    for _time in range(3):
        begin = time.time()
        node.release(address)
        stage.wait_for_announcement(begin, times=5, address=address)
        stage.wait(lambda begin=begin: stage.address_changes(begin, address) == ["removed", "added"], "it is not back")
        announced = min(at for at, kind in stage.events(begin, address) if kind == "announced")
        assert [at for at, _priority in stage.advertisements(begin) if at < announced] == []
    assert (agent.instance()["transitions"], agent.instance()["held"]) == (1, agent.instance()["addresses"])


def test_an_agent_whose_interface_is_down_is_in_fault_and_recovers_with_it(stage, family):
    vip, changes = family
    node = stage.link.lb1
    agent = stage.agent(node, instance(node, **changes))
    wait_until_announced(stage, vip)
    node.ip("link", "set", "eth0", "down")
    stage.wait_for_holders(address=vip)
    until(lambda: agent.instance()["state"] == "Fault", "it is not in FAULT")
    begin = time.time()
    node.ip("link", "set", "eth0", "up")
    stage.wait_for_holders("lb1", address=vip)
    stage.wait_for_announcement(begin, address=vip)
    stage.wait(lambda: stage.advertisements(begin), "it does not advertise")


def test_a_renamed_interface_loses_the_address_and_gets_it_back_with_its_name(stage, alone):
    node = stage.link.lb1
    node.ip("link", "set", "eth0", "down")
    node.ip("link", "set", "eth0", "name", "lan0")
    node.ip("link", "set", "lan0", "up")
    stage.wait_for_holders()
    until(lambda: alone.instance()["source"] is None, "it still has the source of eth0")
    begin = time.time()
    node.ip("link", "set", "lan0", "down")
    node.ip("link", "set", "lan0", "name", "eth0")
    node.ip("link", "set", "eth0", "up")
    stage.wait_for_holders("lb1")
    stage.wait(lambda: stage.advertisements(begin), "it does not advertise")


def test_a_resignation_is_sent_when_an_interface_is_renamed_while_it_is_up(stage, alone):
    begin = time.time()
    try:
        stage.link.lb1.ip("link", "set", "eth0", "name", "lan0")
    except subprocess.CalledProcessError:
        pytest.skip("this kernel does not rename an interface that is up")
    stage.wait_for_holders()
    stage.wait_for_resignation(begin)


def test_a_new_interface_of_the_same_name_gets_the_address(stage, alone):
    node, link = stage.link.lb1, stage.link
    sh("ip", "-n", link.bridge, "link", "del", node.port)
    until(lambda: alone.instance()["state"] == "Fault", "it is not in FAULT")
    begin = time.time()
    sh("ip", "-n", link.bridge, "link", "add", node.port, "type", "veth", "peer", "eth0", "netns", node.namespace)
    sh("ip", "-n", link.bridge, "link", "set", node.port, "master", "br0", "up")
    node.ip("link", "set", "eth0", "address", node.mac, "up")
    assert alone.instance()["state"] == "Fault"  # it has no source address yet
    node.ip("addr", "add", "192.0.2.1/24", "dev", "eth0")
    stage.wait_for_holders("lb1")
    stage.wait_for_announcement(begin)
    sent = alone.instance()["sent"]
    until(lambda: alone.instance()["sent"] > sent, "it does not advertise")


def test_an_agent_that_loses_its_source_address_resigns_at_once(stage, alone):
    begin = time.time()
    stage.link.lb1.ip("addr", "del", "192.0.2.1/24", "dev", "eth0")
    stage.wait_for_holders()
    stage.wait_for_resignation(begin)
    stage.link.lb1.ip("addr", "add", "192.0.2.1/24", "dev", "eth0")
    stage.wait_for_holders("lb1")


def test_when_two_active_agents_meet_the_winner_announces_last(stage):
    link = stage.link
    stage.agent(link.lb1, instance(link.lb1, priority=OWNER, advert_interval=2))
    stage.agent(link.lb2, instance(link.lb2, priority=100, advert_interval=2))
    stage.wait_for_holders("lb1")
    for _time in range(2):
        sh("ip", "-n", link.bridge, "link", "set", link.lb1.port, "nomaster")
        stage.wait_for_holders("lb1", "lb2")
        stage.wait(lambda: stage.view().announcer == "lb2", "the second one is not announced")
        sh("ip", "-n", link.bridge, "link", "set", link.lb1.port, "master", "br0")
        stage.wait_for_holders("lb1")
        stage.wait(lambda: stage.view().announcer == "lb1", "the winner is not announced")
        stays(lambda: (stage.view().holders, stage.view().announcer) == (["lb1"], "lb1"), 0.5)


# --- status and notify ------------------------------------------------------------------------------------------


def test_the_status_socket_is_for_root_and_its_group_and_reports_the_instance(stage, alone):
    mode = os.stat(alone.socket).st_mode
    assert (stat.S_ISSOCK(mode), stat.S_IMODE(mode)) == (True, 0o660)
    report = alone.report()
    assert (report["pid"], report["config"]) == (alone.process.pid, str(alone.folder / "agent.json"))
    assert (report["config_fault"], report["limits"]) == (None, [])
    (front,) = report["instances"]
    expected = {
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
    assert {key: front[key] for key in expected} == expected
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
    sent = len(stage.advertisements(begin))
    stage.wait(lambda: len(stage.advertisements(begin)) > sent + 3, "it does not advertise any more")
    assert stage.events(begin) == []
    assert alone.instance()["state"] == "Active"


NOTIFY = """#!/bin/sh
echo "$@" >> "{folder}/notified"
"""


def test_notify_programs_get_the_arguments_that_keepalived_would_pass(stage, tmp_path):
    node = stage.link.lb1
    program = tmp_path / "notify"
    program.write_text(NOTIFY.format(folder=tmp_path))
    program.chmod(0o755)
    one = instance(node, notify=[str(program), "an argument"])
    group = {"name": "all", "instances": ["front"], "notify": str(program)}
    agent = stage.agent(node, one, sync_groups=[group])
    stage.wait_for_holders("lb1")
    agent.stop()
    notified = (tmp_path / "notified").read_text().splitlines()
    assert sorted(notified) == sorted(
        [f"an argument INSTANCE front {state} 254" for state in ("BACKUP", "MASTER", "STOP")]
        + [f"GROUP all {state} 0" for state in ("BACKUP", "MASTER", "STOP")]
    )
    ours = [line.split()[4] for line in notified if line.startswith("an argument")]
    assert ours == ["BACKUP", "MASTER", "STOP"]


# --- checks -----------------------------------------------------------------------------------------------------


def test_a_tracked_process_that_ends_is_a_fault_and_the_other_agent_takes_over(stage, tmp_path):
    link, name = stage.link, f"proxy{os.getpid()}"
    program = tmp_path / name
    shutil.copy(shutil.which("sleep"), program)
    check = {"name": "proxy", "type": "process", "process": name}
    proxies = [subprocess.Popen([program, "1000"])]
    try:
        one = instance(link.lb1, priority=OWNER, advert_interval=SLOW, track=["proxy"])
        tracking = stage.agent(link.lb1, one, checks=[{**check, "interval": 10 * LIMIT_S}])
        stage.wait_for_holders("lb1")
        stage.agent(link.lb2, instance(link.lb2, priority=253, advert_interval=SLOW))
        proxies[0].kill()
        # The kernel reports the end of a process: the check's next run is far away.
        stage.wait_for_holders("lb2")
        assert tracking.instance()["state"] == "Fault"
        assert tracking.report()["checks"][0]["up"] is False
        proxies.append(subprocess.Popen([program, "1000"]))
        tracking.write(checks=[{**check, "interval": 1}])
        tracking.reload()
        stage.wait_for_holders("lb1")
    finally:
        for proxy in proxies:
            proxy.kill()
            proxy.wait()


def test_a_killed_checks_process_is_restarted_and_moves_no_address(stage, tmp_path):
    file = tmp_path / "load"
    file.write_text("0\n")
    check = {"name": "load", "type": "file", "file": str(file)}
    node = stage.link.lb1
    agent = stage.agent(node, instance(node, track=["load"]), checks=[check])
    stage.wait_for_holders("lb1")
    begin = time.time()
    (child,) = children_of(agent.process.pid)
    os.kill(child, signal.SIGKILL)
    until(lambda: [pid for pid in children_of(agent.process.pid) if pid != child], "it is not started again")
    file.write_text("1\n")
    stage.wait_for_holders()
    assert stage.address_changes(begin) == ["removed"]


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as children:
        return [int(child) for child in children.read().split()]


def test_the_checks_end_with_a_killed_agent(stage, tmp_path):
    node = stage.link.lb1
    check = {"name": "slow", "type": "script", "command": "/bin/sleep 1234", "timeout": 1000}
    agent = stage.agent(node, instance(node, track=["slow"]), checks=[check])
    (child,) = children_of(agent.process.pid)
    until(lambda: children_of(child), "the script does not run")
    (script,) = children_of(child)
    agent.kill()
    until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in (child, script)), "they still run")
