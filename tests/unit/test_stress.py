# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make stress`: a busy machine on which random groups of test processes stand still."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest
import stress
from support.marks import as_root
from support.waiting import stays, until

COUNTS = "import sys, time\nwhile True: sys.stdout.write('.'); sys.stdout.flush(); time.sleep(0.001)"


@pytest.fixture
def counting(tmp_path):
    """A marked process that writes into a file all the time."""
    output = tmp_path / "output"
    with output.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", COUNTS], stdout=file, env={**os.environ, stress.MARK: "it"}, start_new_session=True
        )
    until(lambda: output.stat().st_size)
    yield process.pid, output
    process.kill()
    process.wait()


def first(seed):
    return list(itertools.islice(stress.freezes(seed), 200))


def test_the_seed_decides_when_how_many_and_for_how_long():
    assert first(1) == first(1) != first(2)


def test_a_freeze_lasts_up_to_three_seconds_and_some_take_the_whole_machine():
    drawn = first(1)
    assert all(0.2 <= freeze.lasts <= 3 and 0 <= freeze.share <= 1 for freeze in drawn)
    assert {freeze.share == 1 for freeze in drawn} == {True, False}


def test_only_processes_with_the_mark_are_found(counting):
    assert stress.marked("it") == [counting[0]]
    assert os.getpid() not in stress.marked("it")


@as_root
def test_a_frozen_process_does_nothing_until_it_is_thawed_and_is_where_it_was(counting):
    pid, output = counting
    group = stress.Cgroup(f"onprem-lb-test-{os.getpid()}")
    where = Path(f"/proc/{pid}/cgroup").read_text()
    try:
        group.freeze([pid])
        until(lambda: "frozen 1" in (group.folder / "cgroup.events").read_text())
        size = output.stat().st_size
        stays(lambda: output.stat().st_size == size, 0.2)
        group.thaw()
        until(lambda: output.stat().st_size > size)
        assert Path(f"/proc/{pid}/cgroup").read_text() == where
    finally:
        group.close()
    assert not group.folder.exists()


@as_root
@pytest.mark.parametrize("code", [0, 3])
def test_a_round_has_the_exit_code_of_the_tests_and_leaves_nothing(code, capfd):
    started = f"import os, sys; print(os.environ[{stress.MARK!r}]); sys.exit({code})"
    assert stress.run(1, [sys.executable, "-c", started]) == code
    mark = capfd.readouterr().out.split()[0]
    assert stress.marked(mark) == [] and not list(Path("/sys/fs/cgroup").rglob(f"*stress-{mark}"))


@as_root
def test_a_signal_lets_the_tests_of_a_round_end_by_themselves(tmp_path):
    cleaned = tmp_path / "cleaned"
    tests = f"trap 'touch {cleaned}; exit 1' TERM; echo $PPID > {tmp_path}/ready; while :; do sleep 0.01; done"
    body = f"import sys, stress; stress.run = lambda *_: run(1, ['sh', '-c', {tests!r}]); sys.exit(stress.main())"
    command = [sys.executable, "-c", f"from stress import run; {body}"]
    folder = Path(stress.__file__).parent
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL) as stressed:
        until((tmp_path / "ready").exists)
        stressed.terminate()
    assert stressed.returncode == 143 and cleaned.exists()


def test_without_root_it_says_so(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(sys, "argv", ["stress.py"])
    with pytest.raises(SystemExit, match="only root can"):
        stress.main()


def test_a_round_that_fails_ends_the_run(monkeypatch):
    seeds = []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(sys, "argv", ["stress.py", "--seed", "7"])
    monkeypatch.setattr(stress, "run", lambda seed, _command: seeds.append(seed) or len(seeds) // 2)
    assert (stress.main(), seeds) == (1, [7, 8])
