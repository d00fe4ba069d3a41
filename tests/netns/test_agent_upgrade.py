# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A new version of the router takes over from the running one on a real link, and no other host notices."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import struct
import time
from functools import partial

import pytest
from support.netns.agents import Keepalived
from support.netns.links import VIP
from support.netns.namespaces import inside
from support.netns.stages import instance
from support.netns.upgrades import archived_agent, persistent_state, upgrade_repeatedly, wait_until_it_advertises
from support.waiting import until

UPGRADES = 3
# Seconds between two Advertisements beside a Backup. It takes over after three times as long, so that none does while
# this machine stalls.
SLOW = 4
NOT_AN_ARCHIVE = b"#!/usr/bin/env python3\nthis is no archive\n"


@pytest.fixture
def archived(stage):
    """Return a function that starts an ArchivedAgent on the first member."""
    return partial(archived_agent, stage)


def start_backup(stage, kind):
    link = stage.link
    backup = instance(link.lb2, priority=253, advert_interval=SLOW)
    if kind == "agent":
        return stage.agent(link.lb2, backup)
    if not shutil.which("keepalived"):
        pytest.skip("not installed: keepalived")
    keepalived = Keepalived(link.lb2, stage.folder / "keepalived", [{**backup, "track": []}])
    stage.agents.append(keepalived)
    return stage.start(keepalived)


@pytest.mark.parametrize("kind", ["agent", "keepalived"])
def test_the_vip_stays_where_it_is_and_the_backup_is_silent(stage, archived, kind):
    agent = archived(instance(stage.link.lb1, priority=255, advert_interval=SLOW))
    start_backup(stage, kind)
    stage.wait_for_holders("lb1")
    before, begin = persistent_state(agent), time.time()
    upgrade_repeatedly(agent, UPGRADES)
    assert persistent_state(agent) == before
    assert stage.address_changes(begin) == [] and stage.advertisements(begin, "lb2") == []
    assert {tuple(view.holders) for at, view in stage.recorder.views(VIP) if at > begin} <= {("lb1",)}
    # The last version resigns when it is stopped.
    agent.stop()
    stage.wait_for_holders("lb2")
    stage.wait_for_resignation(begin)
    assert not os.path.exists(agent.socket)


def test_an_upgrade_changes_nothing_with_a_hundred_advertisements_a_second(stage, archived):
    """There is no Backup: it would take over whenever this machine stalls for three intervals."""
    agent = archived(instance(stage.link.lb1, advert_interval=0.01))
    stage.wait_for_holders("lb1")
    before, begin = persistent_state(agent), time.time()
    upgrade_repeatedly(agent, UPGRADES)
    assert persistent_state(agent) == before and stage.address_changes(begin) == []
    assert {priority for _at, priority in stage.advertisements(begin)} == {254}
    stage.wait(lambda: agent.instance()["sent"] >= len(stage.advertisements(begin)), "it counts too few")


def test_a_backup_that_has_been_upgraded_takes_over_even_if_the_active_router_is_killed_meanwhile(stage, archived):
    link, interval = stage.link, 4  # the peer may stand still for twelve seconds, and be heard again in time
    peer = stage.agent(link.lb2, instance(link.lb2, priority=255, advert_interval=interval))
    agent = archived(instance(link.lb1, priority=100, advert_interval=interval))
    stage.wait_for_holders("lb2")
    stage.wait(lambda: stage.advertisements(member="lb2"), "the peer does not advertise")
    before = persistent_state(agent)
    upgrade_repeatedly(agent, 2)
    assert persistent_state(agent) == before and stage.advertisements() == []
    agent.process.send_signal(signal.SIGUSR2)
    peer.kill()
    stage.wait(stage.advertisements, "it does not take over")
    last, first = stage.advertisements(member="lb2")[-1][0], stage.advertisements()[0][0]
    assert first - last > (3 + 156 / 256) * interval - 0.001  # Active_Down_Interval
    until(lambda: len(agent.log().split("takes over from here")) == 4, "the new version does not take over")
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
        wait_until_it_advertises(agent)
    assert persistent_state(agent) == before
    upgrade_repeatedly(agent, 1)
    assert stage.address_changes(begin) == []


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
    stage.wait(lambda: [sent[1] for sent in stage.advertisements(begin)][-1:] == [200], "the priority is the old one")
    assert stage.address_changes(begin) == []
    stage.wait_for_resignation(begin, vrid=52)


NOTIFY = """#!/bin/sh
echo "$@" >> "{folder}/notified"
"""
CHECK = """#!/bin/sh
test -e "{folder}/works" || {{ echo "failed" >> "{folder}/failures"; exit 1; }}
"""


def write_program(path, text):
    path.write_text(text.format(folder=path.parent))
    path.chmod(0o755)
    return str(path)


def lines(path):
    return path.read_text().splitlines() if path.exists() else []


def test_an_upgrade_notifies_no_program_and_checks_go_on(stage, archived, tmp_path):
    """The first failure of a check after an upgrade counts as one failure, as without it."""
    program = write_program(tmp_path / "notify", NOTIFY)
    works, fall = tmp_path / "works", 15
    works.touch()
    command = write_program(tmp_path / "check", CHECK)
    check = {"name": "works", "type": "script", "command": command, "interval": 0.2, "fall": fall, "timeout": 60}
    one = instance(stage.link.lb1, notify=program, track=["works"])
    group = {"name": "all", "instances": ["front"], "notify": program}
    agent = archived(one, checks=[check], sync_groups=[group])
    stage.wait_for_holders("lb1")
    notified = tmp_path / "notified"
    until(lambda: len(lines(notified)) == 4, "the programs are not run")
    begin, checks = time.time(), agent.report()["checks"]
    upgrade_repeatedly(agent, 2)
    assert agent.report()["checks"] == checks and agent.instance()["waiting_for"] == []
    works.unlink()
    upgrade_repeatedly(agent, 1)
    stage.wait(lambda: stage.address_changes(begin) == ["removed"], "the check has no effect")
    assert len(lines(tmp_path / "failures")) >= fall
    until(lambda: len(lines(notified)) == 6, "the programs are not run any more")
    assert sorted(line.split()[2] for line in lines(notified)[4:]) == ["FAULT", "FAULT"]


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

    def receive_but(self, *unwanted):
        return [each for each in self.receive() if each != unwanted]

    def close(self):
        self._socket.close()


def test_the_old_process_reports_the_main_process_to_systemd_and_the_new_one_feeds_the_watchdog(
    stage, archived, monkeypatch, tmp_path
):
    with inside(stage.link.lb1.namespace):
        stage.link.lb1.set_sysctl("unix/max_dgram_qlen", 1000)  # for as long as this test reads nothing
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
            sent = []
            until(lambda sent=sent, old=old: sent.extend(systemd.receive_but(old, "WATCHDOG=1")) or len(sent) > 1)
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
    stage.wait_for_resignation(0.0)
    until(lambda: not stage.link.lb1.processes_inside(), "a process still runs")
