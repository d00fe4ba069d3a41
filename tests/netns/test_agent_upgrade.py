# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A new version of the router takes over from the running one, on a real link: nobody there can tell."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import statistics
import struct
import sys
import time

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy import archive as _archive
from support.netns.agents import Keepalived
from support.netns.links import VIP
from support.netns.stages import INTERVAL, ReloadableAgent, instance
from support.netns.stalls import StallDetector
from support.paths import AGENT
from support.waiting import until

pytestmark = pytest.mark.timed
UPGRADES = 5
NONE = b"#!/usr/bin/env python3\nthis is no archive\n"


class ArchivedAgent(ReloadableAgent):
    """An agent that is one file, as it is deployed."""

    @property
    def archive(self):
        return self.folder / "agent.pyz"

    def prepare(self):
        super().prepare()
        self.install("0.1.0")

    def install(self, version="", content=b""):
        """Put a version in its place as a whole: the running one goes on with its own."""
        modules = _archive.sources(str(AGENT))
        modules["__init__.py"] += f'VERSION = "{version}"\n'.encode()
        new = self.archive.with_suffix(".new")
        new.write_bytes(content or _archive.pack(modules))
        new.rename(self.archive)

    def command(self):
        return [sys.executable, "-I", str(self.archive), "vrrp", "--config", str(self.folder / "agent.json")]


@pytest.fixture
def archived(stage):
    """Returns what starts one on the first member."""

    def start(*instances, **others):
        agent = ArchivedAgent(stage.link.lb1, stage.folder / "archived", list(instances))
        stage.agents.append(agent)
        if others:
            agent.write(**others)
        return stage.start(agent)

    return start


def upgrade_repeatedly(agent, times=UPGRADES):
    """Several versions, one after the other; a moment between them in which each has to do on its own."""
    pids = [agent.process.pid]
    for number in range(1, times + 1):
        version = f"0.1.{number}"
        agent.install(version)
        agent.upgrade()
        assert (agent.report()["version"], agent.report()["config_fault"]) == (version, None)
        pids.append(agent.process.pid)
        sent = agent.instance()["sent"]
        if agent.instance()["state"] == "Active":
            until(lambda sent=sent: agent.instance()["sent"] > sent + 3, "it does not advertise any more")
    assert len(set(pids)) == times + 1
    return agent


def gaps(said):
    return [later[0] - earlier[0] for earlier, later in zip(said, said[1:])]


@pytest.fixture
def detector():
    with contextlib.closing(StallDetector()) as made:
        yield made


def untimely(said, interval, most, detector):
    """The gaps that are wrong, unless the machine stood still for half an interval then, or since the one before."""
    moments = [at for at, _priority in said]
    gaps = zip([moments[0], *moments], moments, moments[1:])
    wrong = [gap for gap in gaps if not 0.4 * interval < gap[2] - gap[1] < most]
    return [
        last - first
        for before, first, last in wrong
        if not any(end - begin > interval / 2 for begin, end in detector.pauses(before, last))
    ]


def lasting(agent):
    """What does not change with the version, nor with time."""
    front = agent.instance()
    kept = ("state", "since", "reason", "priority", "waiting_for", "held", "source", "transitions", "discarded")
    return {**{key: front[key] for key in kept}, "alive since": agent.report()["since"]}


def started_beside(stage, kind):
    link = stage.link
    theirs = instance(link.lb2, priority=253)
    if kind == "agent":
        return stage.agent(link.lb2, theirs)
    if not shutil.which("keepalived"):
        pytest.skip("not installed: keepalived")
    other = Keepalived(link.lb2, stage.folder / "keepalived", [{**theirs, "track": []}])
    stage.agents.append(other)
    return stage.start(other)


@pytest.mark.parametrize("kind", ["agent", "keepalived"])
def test_the_vip_stays_where_it_is_and_the_backup_is_silent(stage, archived, kind):
    agent = archived(instance(stage.link.lb1))
    started_beside(stage, kind)
    stage.wait_for_holders("lb1")
    before, begin = lasting(agent), time.time()
    upgrade_repeatedly(agent)
    assert lasting(agent) == before
    assert stage.address_changes(begin) == [] and stage.advertisements(begin, "lb2") == []
    assert {tuple(view.holders) for at, view in stage.recorder.views(VIP) if at > begin} <= {("lb1",)}
    # And as it goes on, it ends: in good order.
    agent.stop()
    stage.wait_for_holders("lb2")
    assert stage.advertisements(begin)[-1][1] == 0 and not os.path.exists(agent.socket)


# At 10 ms there is no backup: it would take over whenever this machine stands still for three of its intervals.
@pytest.mark.parametrize(("interval", "most"), [(INTERVAL, 2 * INTERVAL), (0.01, 0.029)])
def test_no_advertisement_is_missed(stage, archived, interval, most, detector):
    agent = archived(instance(stage.link.lb1, advert_interval=interval))
    stage.wait_for_holders("lb1")
    stage.wait(stage.advertisements, "it does not advertise")
    before, begin = lasting(agent), time.time()
    upgrade_repeatedly(agent)
    assert lasting(agent) == before and stage.address_changes(begin) == []
    said = stage.advertisements(begin)
    # One that a busy machine delays is none that is missed; nobody believes in silence before three are.
    assert untimely(said, interval, most, detector) == [], "one too many, or one too few"
    assert abs(statistics.median(gaps(said)) - interval) < 0.1 * interval
    assert agent.instance()["sent"] >= len(said)


def test_a_backup_takes_over_in_time_also_when_the_active_one_dies_meanwhile(stage, archived):
    link = stage.link
    peer = stage.agent(link.lb2, instance(link.lb2))
    agent = archived(instance(link.lb1, priority=100))
    stage.wait_for_holders("lb2")
    before = lasting(agent)
    upgrade_repeatedly(agent, 2)
    assert lasting(agent) == before and stage.advertisements() == []
    agent.process.send_signal(signal.SIGUSR2)
    peer.kill()
    begin = time.time()
    stage.wait(lambda: stage.advertisements(begin), "it does not take over")
    assert 2 * INTERVAL < stage.advertisements(begin)[0][0] - begin < (3 + 156 / 256) * INTERVAL + 0.1
    until(lambda: len(agent.log().split("goes on from here")) == 4, "the new one does not come")
    assert agent.process.wait() == 0, agent.log()


def test_a_version_that_is_none_leaves_the_old_one_in_service_and_the_next_may_come(stage, archived):
    agent = archived(instance(stage.link.lb1))
    stage.wait_for_holders("lb1")
    before, begin, pid = lasting(agent), time.time(), agent.process.pid
    for fault in (NONE, NONE * 30_000, b"raise SystemExit(3)"):
        said = agent.log().count("does not take over")
        agent.install(content=fault)
        agent.process.send_signal(signal.SIGUSR2)
        until(lambda said=said: agent.log().count("does not take over") > said, "nothing is said of it")
        assert "it has ended" in agent.report()["config_fault"]
        assert (agent.report()["pid"], agent.report()["version"]) == (pid, "0.1.0")
    assert lasting(agent) == before
    upgrade_repeatedly(agent, 1)
    assert stage.address_changes(begin) == [] and max(gaps(stage.advertisements(begin))) < 2 * INTERVAL


def test_a_configuration_that_the_new_version_refuses_leaves_the_old_one_in_service(stage, archived):
    agent = archived(instance(stage.link.lb1))
    stage.wait_for_holders("lb1")
    pid = agent.process.pid
    agent.write([instance(stage.link.lb1, vrid=300)])
    agent.process.send_signal(signal.SIGUSR2)
    until(lambda: agent.report()["config_fault"], "nothing is said of it")
    assert "vrid is 300" in agent.log() and agent.report()["pid"] == pid
    assert agent.instance()["state"] == "Active"


def test_another_configuration_comes_with_the_new_version(stage, archived):
    node, other = stage.link.lb1, "192.0.2.101"
    agent = archived(instance(node), instance(node, vrid=52, name="second", vip=other))
    stage.wait_for_holders("lb1")
    stage.wait_for_holders("lb1", address=other)
    begin = time.time()
    agent.write([instance(node, priority=200)])
    upgrade_repeatedly(agent, 1)
    stage.wait_for_holders(address=other)
    stage.wait(lambda: stage.advertisements(begin)[-1][1] == 200, "the priority is the old one")
    assert stage.address_changes(begin) == []
    assert stage.advertisements(begin, vrid=52)[-1][1] == 0


NOTIFY = """#!/bin/sh
echo "$@" >> "{folder}/told"
"""


def test_an_upgrade_notifies_no_program_and_checks_go_on(stage, archived, tmp_path):
    """A check that fails right after a renewal has failed once, as it would have before."""
    program, works = tmp_path / "tell", tmp_path / "works"
    program.write_text(NOTIFY.format(folder=tmp_path))
    program.chmod(0o755)
    works.write_text("")
    check = {"name": "works", "type": "script", "command": f"/usr/bin/test -e {works}", "interval": 0.2, "fall": 15}
    one = instance(stage.link.lb1, notify=str(program), track=["works"])
    group = {"name": "all", "instances": ["front"], "notify": str(program)}
    agent = archived(one, checks=[check], sync_groups=[group])
    stage.wait_for_holders("lb1")
    notified = tmp_path / "told"
    until(lambda: notified.exists() and len(notified.read_text().splitlines()) == 4, "they are not notified")
    begin, checks = time.time(), agent.report()["checks"]
    upgrade_repeatedly(agent, 2)
    assert agent.report()["checks"] == checks and agent.instance()["waiting_for"] == []
    works.unlink()
    upgrade_repeatedly(agent, 1)
    assert agent.instance()["state"] == "Active" and stage.address_changes(begin) == []
    stage.wait(lambda: stage.address_changes(begin) == ["removed"], "the check counts for nothing")
    until(lambda: "FAULT" in notified.read_text(), "they are not notified any more")
    assert len(notified.read_text().splitlines()) in (5, 6)


class Systemd:
    """Hears what its services say, and who says it."""

    def __init__(self, path):
        self.path = str(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._socket.bind(self.path)
        self._socket.setblocking(False)

    def hears(self):
        """[(pid, message)] since it last listened."""
        found = []
        with contextlib.suppress(BlockingIOError):
            while True:
                data, ancillary, _flags, _source = self._socket.recvmsg(500, socket.CMSG_SPACE(12))
                pid = next(struct.unpack("=iII", each)[0] for _level, kind, each in ancillary if kind == 2)
                found.append((pid, data.decode()))
        return found

    def close(self):
        self._socket.close()


def test_the_old_process_reports_the_main_process_to_systemd_and_the_new_one_feeds_the_watchdog(
    stage, archived, monkeypatch, tmp_path
):
    systemd = Systemd(tmp_path / "notify")
    # Of this the router's own process must not be meant, or it would never be fed.
    monkeypatch.setenv("NOTIFY_SOCKET", systemd.path)
    monkeypatch.setenv("WATCHDOG_USEC", "400000")
    try:
        agent = archived(instance(stage.link.lb1))
        stage.wait_for_holders("lb1")
        for _each in range(2):
            old = agent.process.pid
            systemd.hears()
            upgrade_repeatedly(agent, 1)
            heard = [(pid, said) for pid, said in systemd.hears() if said != "WATCHDOG=1" or pid != old]
            assert heard[0][0] == old and heard[0][1].startswith("RELOADING=1")
            assert heard[1] == (old, f"MAINPID={agent.process.pid}\nREADY=1\nWATCHDOG=1")
            fed = []
            until(lambda fed=fed: fed.extend(systemd.hears()) or len(fed) > 2, "the watchdog is not fed")
            assert set(fed) == {(agent.process.pid, "WATCHDOG=1")}
        agent.stop()
        assert (agent.process.pid, "STOPPING=1") in systemd.hears()
    finally:
        systemd.close()


def test_a_router_stopped_during_an_upgrade_ends_and_so_does_the_new_process(stage, archived):
    agent = archived(instance(stage.link.lb1))
    stage.wait_for_holders("lb1")
    agent.process.send_signal(signal.SIGUSR2)
    agent.stop()
    stage.wait_for_holders()
    assert stage.advertisements()[-1][1] == 0
    until(lambda: not stage.link.lb1.processes_inside(), "somebody lives on")
