# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A router ends with its addresses in place, another version of it starts on a real link, and no other host notices."""

from __future__ import annotations

import os
import shutil
import time
from functools import partial

import pytest
from support.netns.agents import Keepalived
from support.netns.links import VIP
from support.netns.stages import instance
from support.netns.upgrades import archived_agent, persistent_state, upgrade_repeatedly
from support.waiting import until

UPGRADES = 2
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
    agent = archived(instance(stage.link.lb1, advert_interval=SLOW))
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


def without_a_handler(modules):
    """What 1.0.0 has none for either. Its own upgrade was another: to a process that it started itself."""
    text = modules["vrrp/lifecycle.py"]
    modules["vrrp/lifecycle.py"] = text.replace(b"signal.SIGUSR1: self.upgrade, ", b"")
    assert modules["vrrp/lifecycle.py"] != text


def test_the_last_release_ends_by_the_same_signal_and_leaves_its_addresses(stage, archived):
    agent = archived(instance(stage.link.lb1, advert_interval=SLOW))
    agent.install("1.0.0", change=without_a_handler)
    agent.upgrade()
    stage.agent(stage.link.lb2, instance(stage.link.lb2, priority=253, advert_interval=SLOW))
    stage.wait(lambda: agent.instance()["state"] == "Active", "it does not find its addresses")
    begin = time.time()
    upgrade_repeatedly(agent, 1)
    assert stage.address_changes(begin) == [] and stage.advertisements(begin, "lb2") == []
    assert 0 not in {priority for _at, priority in stage.advertisements(begin)}


def test_a_backup_that_has_been_upgraded_takes_over_even_if_the_active_router_is_killed_meanwhile(stage, archived):
    link, interval = stage.link, 1
    peer = stage.agent(link.lb2, instance(link.lb2, priority=255, advert_interval=interval))
    agent = archived(instance(link.lb1, priority=100, advert_interval=interval))
    stage.wait_for_holders("lb2")
    stage.wait(lambda: stage.advertisements(member="lb2"), "the peer does not advertise")
    begin = time.time()
    agent.leave()
    peer.kill()
    agent.start()
    stage.wait(lambda: stage.advertisements(begin), "it does not take over")
    last, first = stage.advertisements(member="lb2")[-1][0], stage.advertisements(begin)[0][0]
    assert first - last > (3 + 156 / 256) * interval - 0.001  # Active_Down_Interval


def test_a_version_that_does_not_start_leaves_the_vip_to_the_backup_until_a_good_one_follows(stage, archived):
    agent = archived(instance(stage.link.lb1))
    stage.agent(stage.link.lb2, instance(stage.link.lb2, priority=253))
    stage.wait_for_holders("lb1")
    agent.install(content=NOT_AN_ARCHIVE)
    agent.leave()
    agent.launch()
    assert agent.process.wait() != 0
    stage.wait(lambda: stage.view().announcer == "lb2", "the Backup does not serve")
    agent.install("0.1.1")
    agent.start()
    stage.wait_for_holders("lb1")
    stage.wait(lambda: stage.view().announcer == "lb1", "it is not announced")


def test_a_file_that_names_less_is_reloaded_first_and_the_new_version_goes_on(stage, archived):
    node, other = stage.link.lb1, "192.0.2.101"
    agent = archived(instance(node), instance(node, vrid=52, name="second", vip=other))
    stage.wait_for_holders("lb1")
    stage.wait_for_holders("lb1", address=other)
    begin = time.time()
    agent.write([instance(node, priority=200)])
    agent.reload()
    stage.wait_for_holders(address=other)
    upgrade_repeatedly(agent, 1)
    stage.wait(lambda: [sent[1] for sent in stage.advertisements(begin)][-1:] == [200], "the priority is the old one")
    assert stage.address_changes(begin) == []
    stage.wait_for_resignation(begin, vrid=52)


NOTIFY = """#!/bin/sh
echo "$@" >> "{folder}/notified"
"""


def write_program(path, text):
    path.write_text(text.format(folder=path.parent))
    path.chmod(0o755)
    return str(path)


def lines(path):
    return path.read_text().splitlines() if path.exists() else []


def test_the_programs_are_notified_once_more_and_checks_go_on(stage, archived, tmp_path):
    program = write_program(tmp_path / "notify", NOTIFY)
    works = tmp_path / "works"
    works.touch()
    check = {"name": "works", "type": "script", "command": f"/usr/bin/test -e {works}", "interval": 0.2, "timeout": 60}
    one = instance(stage.link.lb1, notify=program, track=["works"])
    group = {"name": "all", "instances": ["front"], "notify": program}
    agent = archived(one, checks=[check], sync_groups=[group])
    stage.wait_for_holders("lb1")
    notified = tmp_path / "notified"
    until(lambda: len(lines(notified)) == 4, "the programs are not run")
    first, begin = lines(notified), time.time()
    upgrade_repeatedly(agent, 1)
    until(lambda: len(lines(notified)) == 8, "the programs are not run again")
    assert sorted(lines(notified)[4:]) == sorted(first) and stage.address_changes(begin) == []
    works.unlink()
    stage.wait(lambda: stage.address_changes(begin) == ["removed"], "the check has no effect")
