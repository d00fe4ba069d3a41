# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock of a host: taken by one run, respected by the others, and replaced only where that was seen before."""

from __future__ import annotations

import fcntl
import json
import os
import threading

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.write import lock
from ansible_collections.onprem.lb.plugins.module_utils._host.write.lock import Refused, Taken
from support.waiting import LIMIT_S


def run_of(pid, boot="one", purpose="a drill", **more):
    known = {"controller": "bastion", "boot": boot, "pid": pid, "started": "77", "user": "anna"}
    return {**known, "purpose": purpose, "since": "noon", **more}


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "onprem-lb.lock")


def holder(path):
    """Return whose lock it is, as a run sees it that has none."""
    return lock.take(path, run_of(9999)).held_by


def test_one_run_takes_it_and_another_learns_who_has_it(path):
    assert lock.take(path, run_of(1)) == Taken(None, True)
    for other in (run_of(2), run_of(1, "another"), run_of(1, started="78")):
        assert lock.take(path, other) == Taken(run_of(1), False)
        lock.release(path, other)
    assert holder(path) == run_of(1)


def test_a_run_may_take_it_again_for_what_it_does_next(path):
    lock.take(path, run_of(1))
    assert lock.take(path, run_of(1, purpose="a deployment", controller="renamed")) == Taken(None, False)
    assert holder(path)["purpose"] == "a deployment"


def test_a_released_lock_leaves_nothing_and_the_next_run_takes_it(path, tmp_path):
    lock.take(path, run_of(1))
    lock.release(path, run_of(1))
    assert not list(tmp_path.iterdir())
    lock.release(path, run_of(1))
    assert not list(tmp_path.iterdir())
    assert lock.take(path, run_of(2)).is_new


def test_only_the_record_that_was_seen_is_replaced(path):
    lock.take(path, run_of(1))
    assert lock.take(path, run_of(3), replaced=run_of(2)).held_by == run_of(1)
    assert lock.take(path, run_of(3), replaced=run_of(1)) == Taken(None, True)
    assert lock.take(path, run_of(4), replaced=run_of(1)).held_by == run_of(3)


@pytest.mark.parametrize(
    "text",
    [
        *("{", "[]", "\0\0", "\udcff", "[" * 100_000, '"\\ud800"', "{}"),
        json.dumps(run_of(1, user="\x1b]0;title")),
        json.dumps(run_of(1, user="x" * 500)),
        json.dumps(run_of(1, user="\ud800")),
        json.dumps(run_of(10**20)),
        json.dumps(run_of("1")),
        json.dumps(run_of(1, controller={"a": 1})),
        json.dumps(run_of(1, more=1)),
        json.dumps(run_of(1)) + " " * 5000,
    ],
)
def test_a_record_that_no_run_writes_is_a_lock_that_only_breaking_removes(path, tmp_path, text):
    (tmp_path / "onprem-lb.lock").write_bytes(text.encode(errors="surrogateescape"))
    assert lock.take(path, run_of(1)).held_by == {}
    assert lock.take(path, run_of(1), replaced={}) == Taken(None, True)
    assert holder(path) == run_of(1)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/etc/passwd", path)])
def test_what_is_no_file_is_refused_at_once(path, make):
    make(path)
    with pytest.raises((Refused, OSError)):
        lock.take(path, run_of(1))


def test_no_user_but_root_can_open_it(path):
    lock.take(path, run_of(1))
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_a_process_that_never_lets_go_is_named_after_a_while(path, monkeypatch):
    monkeypatch.setattr(lock, "TAKES_S", 0.2)
    lock.take(path, run_of(1))
    with open(path, "rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(Refused, match="held .* open for 0.2 s"):
            lock.release(path, run_of(1))
    assert holder(path) == run_of(1)


@pytest.mark.parametrize("is_there_again", [True, False])
def test_a_file_that_is_removed_between_its_opening_and_its_lock_is_nobodys(path, monkeypatch, is_there_again):
    """Another run releases the lock in that moment, and a third one may take it."""
    lock.take(path, run_of(1))
    flock = fcntl.flock

    def late(file, how):
        monkeypatch.setattr(lock.fcntl, "flock", flock)
        lock.release(path, run_of(1))
        if is_there_again:
            lock.take(path, run_of(3))
        flock(file, how)

    monkeypatch.setattr(lock.fcntl, "flock", late)
    taken = lock.take(path, run_of(2), replaced=run_of(1))
    assert taken == (Taken(run_of(3)) if is_there_again else Taken(None, True))
    assert holder(path) == run_of(3 if is_there_again else 2)


def test_of_many_runs_that_take_it_at_once_while_others_release_it_one_wins(path):
    """Each of them takes the lock until it has it, and none of them has it while another one does."""
    holding, most, done = [], [], []

    def run(pid):
        for _turn in range(20):
            while not lock.take(path, run_of(pid)).is_new:
                pass
            holding.append(pid)
            most.append(len(holding))
            holding.remove(pid)
            lock.release(path, run_of(pid))
        done.append(pid)

    threads = [threading.Thread(target=run, args=(pid,)) for pid in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert set(most) == {1} and sorted(done) == [1, 2, 3, 4]


def test_of_many_runs_that_replace_a_dead_one_at_once_one_wins(path):
    lock.take(path, run_of(1))
    start, winners = threading.Barrier(8), []

    def replace(pid):
        start.wait()
        if lock.take(path, run_of(pid), replaced=run_of(1)).is_new:
            winners.append(pid)

    threads = [threading.Thread(target=replace, args=(pid,)) for pid in range(2, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [holder(path)["pid"]] == winners
