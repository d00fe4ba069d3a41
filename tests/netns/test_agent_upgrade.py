# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A new version of the router takes over from the running one on a real link, and no other host notices."""

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
NOT_AN_ARCHIVE = b"#!/usr/bin/env python3\nthis is no archive\n"


class ArchivedAgent(ReloadableAgent):
    """An agent that runs from one file, as it is deployed."""

    @property
    def archive(self):
        return self.folder / "agent.pyz"

    def prepare(self):
        super().prepare()
        self.install("1.0.0")

    def install(self, version="", content=b""):
        """Replace the archive atomically; the running process keeps its own."""
        modules = _archive.sources(str(AGENT))
        modules["__init__.py"] += f'VERSION = "{version}"\n'.encode()
        new = self.archive.with_suffix(".new")
        new.write_bytes(content or _archive.pack(modules))
        new.rename(self.archive)

    def command(self):
        return [sys.executable, "-I", str(self.archive), "vrrp", "--config", str(self.folder / "agent.json")]


@pytest.fixture
def archived(stage):
    """Return a function that starts an ArchivedAgent on the first member."""

    def start(*instances, **others):
        agent = ArchivedAgent(stage.link.lb1, stage.folder / "archived", list(instances))
        stage.agents.append(agent)
        if others:
            agent.write(**others)
        return stage.start(agent)

    return start


def upgrade_repeatedly(agent, times=UPGRADES):
    """Upgrade to several versions, one after the other. Each serves for a while."""
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


def gaps(advertisements):
    return [later[0] - earlier[0] for earlier, later in zip(advertisements, advertisements[1:])]


@pytest.fixture
def detector():
    with contextlib.closing(StallDetector()) as detector:
        yield detector


def untimely_gaps(advertisements, interval, limit, detector):
    """Return the gaps that are too short or too long, except those in which, or just before which, the machine stalled
    for half an interval."""
    times = [at for at, _priority in advertisements]
    gaps = zip([times[0], *times], times, times[1:])
    untimely = [gap for gap in gaps if not 0.4 * interval < gap[2] - gap[1] < limit]
    return [
        last - first
        for before, first, last in untimely
        if not any(end - begin > interval / 2 for begin, end in detector.stalls(before, last))
    ]


def persistent_state(agent):
    """Return the part of the status that must survive an upgrade."""
    front = agent.instance()
    kept = ("state", "since", "reason", "priority", "waiting_for", "held", "source", "transitions", "discarded")
    return {**{key: front[key] for key in kept}, "alive since": agent.report()["since"]}


def start_backup(stage, kind):
    link = stage.link
    backup = instance(link.lb2, priority=253)
    if kind == "agent":
        return stage.agent(link.lb2, backup)
    if not shutil.which("keepalived"):
        pytest.skip("not installed: keepalived")
    keepalived = Keepalived(link.lb2, stage.folder / "keepalived", [{**backup, "track": []}])
    stage.agents.append(keepalived)
    return stage.start(keepalived)


@pytest.mark.parametrize("kind", ["agent", "keepalived"])
def test_the_vip_stays_where_it_is_and_the_backup_is_silent(stage, archived, kind):
    agent = archived(instance(stage.link.lb1))
    start_backup(stage, kind)
    stage.wait_for_holders("lb1")
    before, begin = persistent_state(agent), time.time()
    upgrade_repeatedly(agent)
    assert persistent_state(agent) == before
    assert stage.address_changes(begin) == [] and stage.advertisements(begin, "lb2") == []
    assert {tuple(view.holders) for at, view in stage.recorder.views(VIP) if at > begin} <= {("lb1",)}
    # The last version resigns when it is stopped.
    agent.stop()
    stage.wait_for_holders("lb2")
    assert stage.advertisements(begin)[-1][1] == 0 and not os.path.exists(agent.socket)


# With 10 ms there is no Backup: it would take over whenever this machine stalls for three intervals.
@pytest.mark.parametrize(("interval", "limit"), [(INTERVAL, 2 * INTERVAL), (0.01, 0.029)])
def test_no_advertisement_is_missed(stage, archived, interval, limit, detector):
    agent = archived(instance(stage.link.lb1, advert_interval=interval))
    stage.wait_for_holders("lb1")
    stage.wait(stage.advertisements, "it does not advertise")
    before, begin = persistent_state(agent), time.time()
    upgrade_repeatedly(agent)
    assert persistent_state(agent) == before and stage.address_changes(begin) == []
    sent = stage.advertisements(begin)
    # An advertisement that a busy machine delays is not missed: a Backup takes over after three missed ones.
    assert untimely_gaps(sent, interval, limit, detector) == [], "one too many, or one too few"
    assert abs(statistics.median(gaps(sent)) - interval) < 0.1 * interval
    assert agent.instance()["sent"] >= len(sent)


def test_a_backup_takes_over_in_time_even_if_the_active_router_is_killed_during_its_upgrade(stage, archived):
    link = stage.link
    peer = stage.agent(link.lb2, instance(link.lb2))
    agent = archived(instance(link.lb1, priority=100))
    stage.wait_for_holders("lb2")
    before = persistent_state(agent)
    upgrade_repeatedly(agent, 2)
    assert persistent_state(agent) == before and stage.advertisements() == []
    agent.process.send_signal(signal.SIGUSR2)
    peer.kill()
    begin = time.time()
    stage.wait(lambda: stage.advertisements(begin), "it does not take over")
    assert 2 * INTERVAL < stage.advertisements(begin)[0][0] - begin < (3 + 156 / 256) * INTERVAL + 0.1
    until(lambda: len(agent.log().split("goes on from here")) == 4, "the new version does not take over")
    assert agent.process.wait() == 0, agent.log()


def test_a_broken_version_leaves_the_old_one_in_service_and_a_good_one_can_follow(stage, archived):
    agent = archived(instance(stage.link.lb1))
    stage.wait_for_holders("lb1")
    before, begin, pid = persistent_state(agent), time.time(), agent.process.pid
    for content in (NOT_AN_ARCHIVE, NOT_AN_ARCHIVE * 30_000, b"raise SystemExit(3)"):
        refusals = agent.log().count("does not take over")
        agent.install(content=content)
        agent.process.send_signal(signal.SIGUSR2)
        until(lambda count=refusals: agent.log().count("does not take over") > count, "the log does not report it")
        assert "it has ended" in agent.report()["config_fault"]
        assert (agent.report()["pid"], agent.report()["version"]) == (pid, "1.0.0")
    assert persistent_state(agent) == before
    upgrade_repeatedly(agent, 1)
    assert stage.address_changes(begin) == [] and max(gaps(stage.advertisements(begin))) < 2 * INTERVAL


def test_a_configuration_that_the_new_version_refuses_leaves_the_old_one_in_service(stage, archived):
    agent = archived(instance(stage.link.lb1))
    stage.wait_for_holders("lb1")
    pid = agent.process.pid
    agent.write([instance(stage.link.lb1, vrid=300)])
    agent.process.send_signal(signal.SIGUSR2)
    until(lambda: agent.report()["config_fault"], "the fault is not reported")
    assert "vrid is 300" in agent.log() and agent.report()["pid"] == pid
    assert agent.instance()["state"] == "Active"


def test_the_new_version_uses_the_changed_configuration(stage, archived):
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
echo "$@" >> "{folder}/notified"
"""


def test_an_upgrade_notifies_no_program_and_checks_go_on(stage, archived, tmp_path):
    """The first failure of a check after an upgrade counts as one failure, as without it."""
    program, works = tmp_path / "notify", tmp_path / "works"
    program.write_text(NOTIFY.format(folder=tmp_path))
    program.chmod(0o755)
    works.write_text("")
    check = {"name": "works", "type": "script", "command": f"/usr/bin/test -e {works}", "interval": 0.2, "fall": 15}
    one = instance(stage.link.lb1, notify=str(program), track=["works"])
    group = {"name": "all", "instances": ["front"], "notify": str(program)}
    agent = archived(one, checks=[check], sync_groups=[group])
    stage.wait_for_holders("lb1")
    notified = tmp_path / "notified"
    until(lambda: notified.exists() and len(notified.read_text().splitlines()) == 4, "the programs are not run")
    begin, checks = time.time(), agent.report()["checks"]
    upgrade_repeatedly(agent, 2)
    assert agent.report()["checks"] == checks and agent.instance()["waiting_for"] == []
    works.unlink()
    upgrade_repeatedly(agent, 1)
    assert agent.instance()["state"] == "Active" and stage.address_changes(begin) == []
    stage.wait(lambda: stage.address_changes(begin) == ["removed"], "the check has no effect")
    until(lambda: "FAULT" in notified.read_text(), "the programs are not run any more")
    assert len(notified.read_text().splitlines()) in (5, 6)


class Systemd:
    """Receives the messages of sd_notify(3), and their senders."""

    def __init__(self, path):
        self.path = str(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._socket.bind(self.path)
        self._socket.setblocking(False)

    def receive(self):
        """Return [(pid, message)] since the last call."""
        messages = []
        with contextlib.suppress(BlockingIOError):
            while True:
                data, ancillary, _flags, _source = self._socket.recvmsg(500, socket.CMSG_SPACE(12))
                pid = next(struct.unpack("=iII", each)[0] for _level, kind, each in ancillary if kind == 2)
                messages.append((pid, data.decode()))
        return messages

    def close(self):
        self._socket.close()


def test_the_old_process_reports_the_main_process_to_systemd_and_the_new_one_feeds_the_watchdog(
    stage, archived, monkeypatch, tmp_path
):
    systemd = Systemd(tmp_path / "notify")
    # Without WATCHDOG_PID, which would name one process: the watchdog is for the service.
    monkeypatch.setenv("NOTIFY_SOCKET", systemd.path)
    monkeypatch.setenv("WATCHDOG_USEC", "400000")
    try:
        agent = archived(instance(stage.link.lb1))
        stage.wait_for_holders("lb1")
        for _each in range(2):
            old = agent.process.pid
            systemd.receive()
            upgrade_repeatedly(agent, 1)
            sent = [(pid, message) for pid, message in systemd.receive() if message != "WATCHDOG=1" or pid != old]
            assert sent[0][0] == old and sent[0][1].startswith("RELOADING=1")
            assert sent[1] == (old, f"MAINPID={agent.process.pid}\nREADY=1\nWATCHDOG=1")
            later = []
            until(lambda later=later: later.extend(systemd.receive()) or len(later) > 2, "the watchdog is not fed")
            assert set(later) == {(agent.process.pid, "WATCHDOG=1")}
        agent.stop()
        assert (agent.process.pid, "STOPPING=1") in systemd.receive()
    finally:
        systemd.close()


def test_a_router_stopped_during_an_upgrade_ends_and_so_does_the_new_process(stage, archived):
    agent = archived(instance(stage.link.lb1))
    stage.wait_for_holders("lb1")
    agent.process.send_signal(signal.SIGUSR2)
    agent.stop()
    stage.wait_for_holders()
    assert stage.advertisements()[-1][1] == 0
    until(lambda: not stage.link.lb1.processes_inside(), "a process still runs")
