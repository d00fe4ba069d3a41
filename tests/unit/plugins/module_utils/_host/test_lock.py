# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock of a host: taken by one run, respected by the others, and replaced only where that was seen before."""

from __future__ import annotations

import threading

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host import lock


def run_of(pid, machine="bastion", purpose="a drill"):
    return {"machine": [machine], "pid": pid, "started": "77", "purpose": purpose}


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "onprem-lb.lock")


def test_one_run_takes_it_and_another_learns_who_has_it(path):
    assert lock.take(path, run_of(1)) is None
    for other in (run_of(2), run_of(1, "laptop"), {**run_of(1), "started": "78"}):
        assert lock.take(path, other) == run_of(1)
        assert not lock.release(path, other)
    assert lock.read(path) == run_of(1)


def test_a_run_may_take_it_again_for_what_it_does_next(path):
    lock.take(path, run_of(1))
    assert lock.take(path, run_of(1, purpose="a deployment")) is None
    assert lock.read(path)["purpose"] == "a deployment"


def test_a_released_lock_leaves_nothing_and_the_next_run_takes_it(path, tmp_path):
    lock.take(path, run_of(1))
    assert lock.release(path, run_of(1)) and not list(tmp_path.iterdir())
    assert not lock.release(path, run_of(1))
    assert lock.take(path, run_of(2)) is None


def test_only_the_record_that_was_seen_is_replaced(path):
    lock.take(path, run_of(1))
    assert lock.take(path, run_of(3), replaced=run_of(2)) == run_of(1)
    assert lock.take(path, run_of(3), replaced=run_of(1)) is None
    assert lock.take(path, run_of(4), replaced=run_of(1)) == run_of(3)


@pytest.mark.parametrize("text", ["", "{", "[]", "\0\0", "\udcff"])
def test_a_record_that_cannot_be_understood_is_a_lock_that_only_breaking_removes(path, tmp_path, text):
    (tmp_path / "onprem-lb.lock").write_bytes(text.encode(errors="surrogateescape"))
    assert lock.take(path, run_of(1)) == {}
    assert lock.take(path, run_of(1), replaced={}) is None
    assert lock.read(path) == run_of(1)


def test_of_many_runs_that_replace_a_dead_one_at_once_one_wins(path):
    lock.take(path, run_of(1))
    start, winners = threading.Barrier(8), []

    def replace(pid):
        start.wait()
        if lock.take(path, run_of(pid), replaced=run_of(1)) is None:
            winners.append(pid)

    threads = [threading.Thread(target=replace, args=(pid,)) for pid in range(2, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [lock.read(path)["pid"]] == winners
