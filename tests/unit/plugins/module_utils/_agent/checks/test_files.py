# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The number in a file, seen as soon as it changes."""

from __future__ import annotations

import os

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks import files
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.files import File
from support.agent.loops import SECOND, Runs, run_until


@pytest.mark.parametrize(
    "content, value, detail",
    [
        (b"1", 1, ""),
        (b"0\n", 0, ""),
        (b" -20 \n\n", -20, ""),
        (b"+7", 7, ""),
        (b"999999999", 999999999, ""),
        (b"", 0, "empty"),
        (b"\n", 0, r"no number: b'\n'"),
        (b"up", 0, "no number: b'up'"),
        (b"1 2", 0, "no number: b'1 2'"),
        (b"1.5", 0, "no number: b'1.5'"),
        (b"1_0", 0, "no number: b'1_0'"),
        (b"0x10", 0, "no number: b'0x10'"),
        (b"9" * 5000, 0, "no number: b'99999999999999999999'"),
        ("\u0663".encode(), 0, r"no number: b'\xd9\xa3'"),
    ],
)
def test_what_is_no_number_counts_as_0_with_a_detail(tmp_path, no_leak, content, value, detail):
    file = tmp_path / "track"
    file.write_bytes(content)
    assert files.read(str(file)) == (value, detail)
    assert files.number(str(file)) == (not value, detail, 0, value, not detail)


def test_what_cannot_be_read_counts_as_0_too(tmp_path, no_leak):
    assert files.read(str(tmp_path / "none")) == (0, "no such file or directory")
    assert files.read(str(tmp_path)) == (0, "is a directory")
    os.mkfifo(str(tmp_path / "pipe"))
    assert files.read(str(tmp_path / "pipe")) == (0, "empty")


class Tracked:
    """A file check that is run when it says so, and never by itself."""

    def __init__(self, loop, path):
        self.loop, self.path = loop, path
        self.news = 0
        self.probe = File(loop, str(path), self._changed)
        self.runs = Runs(loop, self.probe)

    def _changed(self):
        self.news += 1
        self.runs.start()

    def value(self):
        return self.runs.outcomes[-1].value

    def becomes(self, value):
        run_until(self.loop, lambda: self.value() == value)


@pytest.fixture
def tracked(loop, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    tracked = Tracked(loop, folder / "track")
    yield tracked
    tracked.probe.stop()


def replace(path, text):
    """Write it as careful programs do."""
    new = path.with_suffix(".new")
    new.write_text(text, encoding="ascii")
    new.replace(path)


def test_it_is_up_while_the_number_is_0(tracked):
    tracked.path.write_text("0", encoding="ascii")
    assert tracked.runs.one().success
    tracked.path.write_text("1", encoding="ascii")
    outcome = tracked.runs.one()
    assert (outcome.success, outcome.value) == (False, 1)


def test_every_change_is_seen_at_once(tracked):
    """Made, written, appended to, replaced, removed, made again."""
    assert tracked.runs.one().detail == "no such file or directory"
    tracked.path.write_text("1", encoding="ascii")
    tracked.becomes(1)
    tracked.path.write_text("2", encoding="ascii")
    tracked.becomes(2)
    with tracked.path.open("a", encoding="ascii") as file:
        file.write("3")
    tracked.becomes(23)
    replace(tracked.path, "4")
    tracked.becomes(4)
    replace(tracked.path, "5")
    tracked.becomes(5)
    tracked.path.unlink()
    tracked.becomes(0)
    replace(tracked.path, "6")
    tracked.becomes(6)
    tracked.path.rename(tracked.path.with_name("elsewhere"))
    tracked.becomes(0)


def test_a_file_that_is_only_half_written_is_not_looked_at(tracked):
    """Between the moment when the writer empties it and the one when the number is there, it is no 0."""
    tracked.path.write_text("1", encoding="ascii")
    tracked.runs.one()
    with tracked.path.open("w", encoding="ascii") as file:
        emptied = tracked.loop.now()
        run_until(tracked.loop, lambda: tracked.loop.now() > emptied + SECOND // 50)
        file.write("2")
    tracked.becomes(2)
    assert [outcome.value for outcome in tracked.runs.outcomes] == [1, 2]


def test_a_change_of_its_neighbours_is_no_news(tracked):
    tracked.runs.one()
    for number in range(100):
        tracked.path.with_name(f"track{number}").write_text("1", encoding="ascii")
    late = tracked.loop.now() + SECOND // 50
    run_until(tracked.loop, lambda: tracked.loop.now() > late)
    assert tracked.news == 0


def test_what_a_link_leads_to_is_watched(tracked, tmp_path):
    target = tmp_path / "target"
    target.write_text("1", encoding="ascii")
    tracked.path.symlink_to(target)
    assert tracked.runs.one().value == 1
    target.write_text("2", encoding="ascii")
    tracked.becomes(2)
    replace(target, "3")
    tracked.becomes(3)
    tracked.path.unlink()
    tracked.becomes(0)
    tracked.path.symlink_to(target)
    tracked.becomes(3)
    tracked.path.rename(tracked.path.with_name("elsewhere"))
    tracked.becomes(0)


def test_a_folder_that_is_made_later_is_watched_from_the_next_run(tracked):
    tracked.path.parent.rmdir()
    assert not tracked.runs.one().value
    tracked.path.parent.mkdir()
    tracked.runs.one()
    tracked.path.write_text("1", encoding="ascii")
    tracked.becomes(1)


def test_a_folder_that_is_replaced_is_watched_again(tracked):
    tracked.runs.one()
    tracked.path.parent.rename(tracked.path.parent.with_name("gone"))
    tracked.path.parent.mkdir()
    tracked.path.write_text("1", encoding="ascii")
    tracked.becomes(1)


def test_without_inotify_the_runs_remain(tracked, monkeypatch):
    def too_many():
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(files, "Inotify", too_many)
    tracked.path.write_text("1", encoding="ascii")
    assert tracked.runs.one().value == 1
    tracked.path.write_text("2", encoding="ascii")
    assert tracked.runs.one().value == 2


def test_no_descriptors_remain(tracked, no_leak):
    for _again in range(3):
        tracked.runs.one()
        tracked.probe.stop()
