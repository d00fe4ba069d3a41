# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last ten lines of a failed run say what failed first, whatever it was and whatever was printed after it.

`support.recorded_plays` judges that of each run that any test plays.
"""

from __future__ import annotations

import json
import subprocess
from types import SimpleNamespace

import pytest
from ansible_collections.onprem.lb.plugins.callback import failures
from ansible_collections.onprem.lb.plugins.plugin_utils.printed import TRACEBACK
from support import playbooks, recorded_plays
from support.recorded_hosts import PAIR, PAIR_VARIABLES, deployment, fresh_then_running
from support.recorded_plays import Play, run
from support.scope import FULL

EMPTY_LINE = {"msg": "first\n\n  second  ", "failed": True}
LOOP = {
    "msg": "One or more items failed",
    "results": ["a package", {"msg": "fine"}, {"failed": True, "msg": "b"}, {"unreachable": True, "msg": "c"}],
}


@pytest.mark.parametrize(
    "result, lines",
    [
        ({"msg": "no route"}, ["no route"]),
        ({"msg": ["one fault", "another"]}, ["one fault", "another"]),
        (EMPTY_LINE, ["first", "second"]),
        ({"msg": "non-zero return code", "stderr": "begin\n\nno file\n"}, ["non-zero return code", "begin", "no file"]),
        ({"msg": "MODULE FAILURE", "module_stderr": f"{TRACEBACK}\n  x\nKeyError"}, ["MODULE FAILURE", "KeyError"]),
        ({"msg": "non-zero return code", "stderr": "", "stdout": "no\n"}, ["non-zero return code", "no"]),
        ({"msg": "MODULE FAILURE", "module_stderr": "\n", "module_stdout": "no"}, ["MODULE FAILURE", "no"]),
        ({"msg": "no such file", "stderr": "no such file"}, ["no such file"]),
        ({"reason": "there is no tasks.yml"}, ["there is no tasks.yml"]),
        ({"censored": "the output has been hidden"}, [failures.HIDDEN]),
        ({"censored": "the output has been hidden", "results": [{"censored": "hidden"}]}, [failures.HIDDEN]),
        (LOOP, ["b", "c"]),
        ({**LOOP, "results": [{"failed": True, "msg": "b"}] * 2}, ["b"]),
        ({}, []),
    ],
)
def test_a_failure_has_its_own_words_or_those_of_its_items(result, lines):
    assert failures.words_of(result) == lines


@pytest.fixture
def printed(monkeypatch):
    """Returns what a run prints in the end whose hosts fail as given, each with the task and the words."""

    def of(*failed, failures_of=(), unreachable=(), ignored=False, callbacks=1, tolerated=()):
        each = [failures.CallbackModule() for _each in range(callbacks)]
        lines = []
        shown = SimpleNamespace(display=lambda text, **_given: lines.extend(text.splitlines()))
        for callback in each:
            monkeypatch.setattr(callback, "_display", shown)
            for host, task, words in failed:
                named = SimpleNamespace(get_name=lambda host=host: host)
                fields = {"ignore_unreachable": task in tolerated}
                given = {"_task": SimpleNamespace(_uuid=task, _parent=None), "_task_fields": fields}
                result = SimpleNamespace(_host=named, task_name=task, _result={"msg": words}, **given)
                if host in unreachable or task in tolerated:
                    callback.v2_runner_on_unreachable(result)
                else:
                    callback.v2_runner_on_failed(result, ignore_errors=ignored)
        for callback in each:
            callback.v2_playbook_on_stats(SimpleNamespace(failures=failures_of, dark=unreachable))
        return lines

    return of


def test_hosts_that_failed_alike_are_said_once_also_by_two_callbacks(printed):
    both = ("lb2", "Install", "no space left"), ("lb1", "Install", "no space left")
    assert printed(*both, failures_of=("lb1", "lb2"), callbacks=2) == [
        'lb1, lb2: failed at "Install":',
        "  no space left",
    ]


def test_an_unreachable_host_is_said_with_why(printed):
    assert printed(("lb1", "Read", "no route to host"), unreachable=("lb1",)) == [
        'lb1: unreachable at "Read":',
        "  no route to host",
    ]


def test_a_host_that_a_task_may_miss_is_not_the_cause(printed):
    read, judged = ("lb1", "Read the others", "no route to host"), ("lb1", "Judge", "a VIP is in use")
    assert printed(read, judged, failures_of=("lb1",), tolerated=("Read the others",)) == [
        'lb1: failed at "Judge":',
        "  a VIP is in use",
    ]


@pytest.mark.parametrize("case", [{}, {"failures_of": ("lb1",), "ignored": True}], ids=["rescued", "ignored"])
def test_what_was_rescued_or_ignored_is_not_said(printed, case):
    assert printed(("lb1", "Start", "it does not start"), **case) == []


def test_of_more_than_ten_lines_the_first_ones_stay(printed):
    hosts = tuple(f"lb{number}" for number in range(6))
    lines = printed(*((host, "Read", f"{host} is away") for host in hosts), failures_of=hosts)
    assert lines[:2] == ['lb0: failed at "Read":', "  lb0 is away"] and lines[8] == 'lb4: failed at "Read":'
    assert len(lines) == 10 and lines[9] == "  and 3 more lines, above the recap."


def test_ten_lines_are_all_said(printed):
    lines = printed(("lb1", "Judge", [f"fault {number}" for number in range(9)]), failures_of=("lb1",))
    assert len(lines) == 10 and lines[9] == "  fault 8"


def test_the_cause_comes_after_the_recap(tmp_path):
    """In one stream, as on a terminal and in a log of CI. One task judges the variables of all hosts."""
    groups = "[pair]\n" + "".join(f"lb{number}\n" for number in range(1, 13))
    command = [playbooks.PROGRAM, *playbooks.written(tmp_path, groups), "onprem.lb.pair"]
    own = {"ANSIBLE_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**playbooks.ENVIRONMENT, **own},
    )
    recap, cause = done.stdout.rpartition("PLAY RECAP")[2].strip().split("\n\n")
    assert done.returncode == 2 and recap.count("failed=1") == 1
    assert cause.startswith("lb1: failed at ") and "pair_vips is []: a list" in cause


FAIL = {"ansible.builtin.fail": {"msg": "rescued"}}
AT_LAST = {"ansible.builtin.fail": {"msg": "not rescued"}}
FINE = {"ansible.builtin.debug": {"msg": "fine"}}
RESCUED = {"block": [FAIL], "rescue": [FINE]}
BLOCKS = {
    "a rescue, and a failure after it": [RESCUED, AT_LAST],
    "a block in one with a rescue": [{"block": [{"block": [FAIL]}], "rescue": [FINE]}, AT_LAST],
    "a rescue that fails": [{"block": [FAIL], "rescue": [AT_LAST]}],
    "a rescue that fails in a block with a rescue": [
        {"block": [{"block": [FAIL], "rescue": [FAIL]}], "rescue": [FINE]},
        AT_LAST,
    ],
    "what fails in the end": [{"block": [FAIL], "rescue": [FINE], "always": [AT_LAST]}],
    "a rescue in the end of what failed": [{"block": [AT_LAST], "always": [RESCUED]}],
    "a file that is imported": [{"block": [{"ansible.builtin.import_tasks": "one.yml"}], "rescue": [FINE]}, AT_LAST],
    "a file that is included": [{"block": [{"ansible.builtin.include_tasks": "one.yml"}], "rescue": [FINE]}, AT_LAST],
    "one that is applied to": [
        {
            "block": [{"ansible.builtin.include_tasks": {"file": "one.yml", "apply": {"tags": "x"}}}],
            "rescue": [FINE],
        },
        AT_LAST,
    ],
    "another host's failure of the same task": [{**RESCUED, "when": "inventory_hostname == 'lb1'"}, AT_LAST],
}


@pytest.mark.parametrize("tasks", BLOCKS.values(), ids=BLOCKS)
def test_what_failed_first_and_was_not_rescued_is_the_cause(tmp_path, monkeypatch, tasks):
    (tmp_path / "one.yml").write_text(json.dumps([FAIL]))
    monkeypatch.setattr(recorded_plays, "PLAYBOOKS", tmp_path)
    (tmp_path / "own.yml").write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))
    play = run("own", {"pair": {"lb1": {}, "lb2": {}}})
    assert play.code and "  not rescued" in play.last_lines and "  rescued" not in play.last_lines


def plays(number=None):
    """Play the deployment of a pair of which one call fails, by its number."""

    def answer(play, call):
        if len(play.calls) != number:
            return known(play, call)
        play.calls.append(call)
        return {"failed": True, "msg": "it broke", "changed": False}

    known = Play.answer
    answers = deployment(host_info=fresh_then_running(missing_packages=["haproxy"]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Play, "answer", answer)
        return run("pair", PAIR, answers, **PAIR_VARIABLES)


def test_whatever_fails_in_a_deployment_is_in_the_last_lines():
    """In the quick scope three calls. What is ignored fails nothing, or the task that judges it says it."""
    calls = plays().calls
    three = [[call.module for call in calls].index(name) for name in ("apt", "config_files", "layout_info")]
    ended = 0
    for number in range(len(calls)) if FULL else three:
        play = plays(number)
        if play.code:
            ended += 1
            words = failures.HIDDEN if calls[number].hidden else "it broke"
            assert words in "\n".join(play.last_lines), calls[number]
    assert ended > 2
