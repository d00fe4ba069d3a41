# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the sidecar does for a keepalived that was killed, or that has yielded."""

from __future__ import annotations

import os

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.log import Log
from ansible_collections.onprem.lb.plugins.module_utils._agent.sidecar import router
from ansible_collections.onprem.lb.plugins.module_utils._agent.sidecar.config import Router
from support.agent.loops import run_until

CONFIG = "/etc/keepalived/keepalived.conf"


@pytest.fixture
def resigned_for(monkeypatch):
    """The configurations of the keepaliveds that were resigned for."""
    found = []
    monkeypatch.setattr(router.resignation, "main", lambda path: found.append(path) or 0)
    return found


@pytest.fixture
def told(monkeypatch, tmp_path):
    """The file with the instances whose peers were told, by processes of their own."""
    file = tmp_path / "told"

    def tell(path, name):
        with file.open("a") as opened:
            opened.write(f"{path} {name}\n")
        return 0

    monkeypatch.setattr(router.peers, "main", tell)
    return file


@pytest.fixture
def watch(loop, tmp_path):
    settings = Router(str(tmp_path / "held"), CONFIG, notify_fifo=str(tmp_path / "changes"))
    watch = router.RouterWatch(loop, settings, Log(os.open(os.devnull, os.O_WRONLY)))
    watch.held, watch.changes = tmp_path / "held", tmp_path / "changes"
    return watch


def hold(path):
    descriptor = os.open(path, os.O_RDWR)
    os.write(descriptor, b"started\n")
    return descriptor


def test_a_keepalived_that_ends_is_resigned_for(watch, loop, resigned_for):
    watch.start()
    resigned_for.clear()
    holder = hold(watch.held)
    run_until(loop, lambda: watch.runs)
    assert resigned_for == []
    os.close(holder)
    run_until(loop, lambda: resigned_for == [CONFIG])
    assert not watch.runs


def test_what_one_left_that_ended_while_nobody_looked_is_removed_at_the_start(watch, resigned_for):
    watch.start()
    assert resigned_for == [CONFIG]


@pytest.mark.parametrize("kind", ["keepalived", "agent", ""])
def test_what_stands_still_is_ended_if_it_is_a_vrrp_router(loop, tmp_path, monkeypatch, kind, resigned_for):
    """Beside a gate, what does not read its sockets is the router of somebody else."""
    watching = []
    monkeypatch.setattr(router.Standstill, "start", lambda self: watching.append(self.__class__))
    settings = Router(str(tmp_path / "held"), **({kind: CONFIG} if kind else {}))
    router.RouterWatch(loop, settings, Log(os.open(os.devnull, os.O_WRONLY))).start()
    assert bool(watching) is bool(kind)
    assert resigned_for == ([CONFIG] if kind == "keepalived" else [])


def test_a_keepalived_that_runs_already_keeps_its_vips(watch, resigned_for):
    os.mkfifo(watch.held)
    holder = hold(watch.held)
    watch.start()
    assert watch.runs and resigned_for == []
    os.close(holder)


@pytest.mark.usefixtures("resigned_for")
def test_the_peers_of_an_instance_that_has_yielded_are_told(watch, loop, told):
    watch.start()
    keepalived = os.open(watch.changes, os.O_RDWR)
    os.write(keepalived, b'INSTANCE "api" MASTER 254\nINSTANCE "api" BACKUP 254\nGROUP "all" BACKUP 0\n')
    run_until(loop, lambda: told.exists() and told.read_text())
    assert told.read_text() == f"{CONFIG} api\n"
    os.close(keepalived)


def test_an_agent_needs_neither(loop, tmp_path, resigned_for):
    watch = router.RouterWatch(loop, Router(str(tmp_path / "held")), Log(os.open(os.devnull, os.O_WRONLY)))
    watch.start()
    os.close(hold(tmp_path / "held"))
    run_until(loop, lambda: not watch.runs)
    assert resigned_for == []
