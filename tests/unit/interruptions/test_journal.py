# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The moments at which runs are killed: each state of the hosts once, and every change in its middle."""

from __future__ import annotations

import json

from interruptions import journal
from interruptions.__main__ import Outcome, table
from interruptions.journal import Moment


def text(*tasks, ended=None):
    """Each task is (seconds since the start, name, hosts that it changes)."""
    lines = []
    for number, (at, name, changed) in enumerate(tasks, 1):
        lines.append({"task": number, "name": name, "at": at})
        lines += [{"task": number, "changed": host} for host in changed]
    if ended is not None:
        lines.append({"ended": ended, "changes": sum(len(task[2]) for task in tasks), "failed": []})
    return "".join(json.dumps(line) + "\n" for line in lines)


def test_each_state_of_the_hosts_is_interrupted_once_and_every_long_change_in_its_middle():
    read = journal.read(
        text(
            (0.0, "plan", ()),
            (1.0, "install", ("lb1", "lb2")),
            (5.0, "check", ()),
            (6.0, "read", ()),
            (7.0, "write", ("lb1",)),
            (7.5, "start", ("lb1",)),
            (8.5, "verify", ()),
            ended=9.0,
        )
    )
    assert journal.moments(read) == [
        Moment(2, 0.0, "install"),
        Moment(2, 2.0, "install"),
        Moment(3, 0.0, "check"),
        Moment(5, 0.0, "write"),
        Moment(6, 0.0, "start"),
        Moment(6, 0.5, "start"),
        Moment(7, 0.0, "verify"),
    ]
    assert (read.changes, read.failed) == (4, ())


def test_a_task_is_known_by_its_name_because_its_number_differs_between_runs():
    wave = ((1.0, "write", ("lb1",)), (2.0, "prove", ()))
    read = journal.read(text((0.0, "plan", ()), *wave, *wave, ended=9.0))
    assert [(moment.name, moment.time) for moment in journal.moments(read) if not moment.delay] == [
        *(("write", 1), ("prove", 1)),
        *(("write", 2), ("prove", 2)),
    ]


def test_a_run_that_failed_ends_at_its_first_failure_and_not_at_the_tasks_that_clean_up():
    failed = text((0.0, "plan", ()), (1.0, "verify", ()), (2.0, "unlock", ()))
    failed += json.dumps({"task": 2, "fails": "lb1", "why": "VIP 192.0.2.10 has\n0 holders."}) + "\n"
    failed += json.dumps({"task": 3, "fails": "lb2", "why": "later"}) + "\n"
    assert journal.read(failed).end == "verify on lb1: VIP 192.0.2.10 has 0 holders."
    assert journal.read(text((0.0, "plan", ()), (1.0, "install", ()))).end == "install"


def test_a_run_that_changes_nothing_has_no_moment():
    assert journal.moments(journal.read(text((0.0, "plan", ()), ended=1.0))) == []


def test_the_journal_of_a_killed_run_may_end_anywhere():
    whole = text((0.0, "plan", ()), (1.0, "install", ("lb1",)))
    for length in range(len(whole)):
        read = journal.read(whole[:length])
        assert read.changes is None and [task.name for task in read.tasks] in ([], ["plan"], ["plan", "install"])
    assert journal.read(whole).tasks[-1].changed == ("lb1",)


def test_a_sample_is_spread_evenly_and_none_means_all():
    every = [Moment(number, 0.0, "") for number in range(1, 13)]
    assert [moment.task for moment in journal.sample(every, 3)] == [3, 7, 11]
    assert [moment.task for moment in journal.sample(every, 1)] == [7]
    assert journal.sample(every, None) == journal.sample(every, 12) == journal.sample(every, 99) == every


def test_the_starts_of_tasks_can_be_all_that_is_interrupted():
    every = [Moment(task, delay, "") for task in (2, 3) for delay in (0.0, 0.7)]
    assert journal.starts(every) == [every[0], every[2]]


def test_the_parts_are_the_whole_and_a_task_is_in_one_of_them():
    every = [Moment(task, delay, "") for task in (2, 3, 5, 6, 9) for delay in (0.0, 0.7)]
    assert [moment.task for moment in journal.part(every, (2, 3))] == [3, 3, 9, 9]
    assert [moment.task for moment in journal.part(every, (3, 3))] == [5, 5]
    assert sorted(moment for number in (1, 2, 3) for moment in journal.part(every, (number, 3))) == every
    assert journal.part(every, (1, 1)) == every


def test_a_task_that_comes_once_for_each_member_is_interrupted_at_one_of_them_and_another_at_the_next():
    lines = [(at / 2, name, ("lb1",)) for at, name in enumerate(["write", "reload"] * 3)]
    read = journal.read(text(*lines, ended=3.0))
    chosen = journal.each_once(journal.moments(read), read)
    assert [(moment.task, moment.name) for moment in chosen] == [(1, "write"), (3, "write"), (4, "reload")]


def test_tasks_of_one_name_after_different_changes_are_different_moments():
    names = ["stop the others", "reload", "start", "reload"]
    read = journal.read(text(*((float(at), name, ("lb1",)) for at, name in enumerate(names)), ended=4.0))
    assert journal.each_once(journal.moments(read), read) == journal.moments(read)


def test_what_earlier_tables_have_repaired_is_left_out_as_often_as_it_stands_there():
    every = [
        Moment(5, 0.0, "Sole router | Stop"),
        Moment(5, 1.0, "Sole router | Stop"),
        Moment(6, 0.0, "Reload"),
        Moment(7, 0.0, "Sole router | Stop", 2),
    ]
    earlier = [
        Outcome("change", Moment(7, 0.0, "Sole router | Stop"), [], 1.0),
        Outcome("change", Moment(9, 1.3, "Sole router | Stop"), [], 1.0),
        Outcome("change", Moment(8, 0.0, "Reload"), ["two members held it"], 1.0),
        Outcome("remove", Moment(8, 0.0, "Reload"), [], 1.0),
    ]
    done = journal.repaired("\n".join(table(earlier)))
    assert journal.left(every, "change", done) == [every[2], every[3]]
    assert journal.left(every, "remove", done) == [every[0], every[1], every[3]]
    assert journal.left(every, "change", journal.repaired("")) == every
