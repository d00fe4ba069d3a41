# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each automation does when it does not know: docs/last-one.md has the table, and this requires it to be whole.

A row names the tests that play it. Those that no other file has are here.
"""

from __future__ import annotations

import ast
import fnmatch
import functools
import re
from pathlib import Path

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.change import order
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import answers
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from support.documents import headings
from support.paths import DOCS, MODULE_UTILS, ROLES, ROOT
from support.plans.transitions import living

PAGE = DOCS / "last-one.md"
AUTOMATIONS = [
    "The undo of an unproved change",
    "The undo where VIPs are announced by BGP",
    "A run's own stops",
    "A rollback",
    "A restore",
    "A switchover",
    "The start of a router that a switchover holds back",
    "A maintenance",
    "A member that announces by BGP leaves",
    "Follow, which gives a balancer the nodes of its cluster",
    "The resolver",
    "Direct return",
    "The health gate of an anycast VIP",
    "The resignation for a killed keepalived",
    "An adoption",
    "The balancer's check",
    "The check of a balancer's servers",
    "The user's own checks",
    "A reload for a renewed certificate",
]
UNKNOWNS = [
    "a peer is silent",
    "a peer is stopped",
    "a peer is out of reach",
    "a peer is older",
    "this host is late",
    "a list is empty, short or stale",
    "a file is not understood",
    "a clock has jumped",
]
CELLS = [(automation, unknown) for automation in AUTOMATIONS for unknown in UNKNOWNS]
TEST = re.compile(r'\[\d+\]\(\.\./(tests/(?:unit|netns)/[\w/]*test_\w+\.py) "(test_\w+)"\)')


def table():
    """Return the sentence and the tests of each cell of the page."""
    found = {}
    for section in re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]:
        automation, _line, rest = section.partition("\n")
        for line in re.findall(r"^\| (?!when |-)(.+) \|$", rest, re.MULTILINE):
            unknown, sentence, tests = line.split(" | ")
            assert (automation, unknown) not in found, f"{automation}: {unknown} twice"
            found[automation, unknown] = sentence, tests
    return found


@functools.lru_cache(maxsize=None)
def collected(file: Path):
    """Return the tests that pytest finds in a file: its functions, and no other code in it."""
    body = ast.parse(file.read_text()).body
    return {each.name for each in body if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))}


def test_each_automation_has_a_section_and_each_section_every_unknown():
    assert [heading for heading, level in headings(PAGE) if level == 2] == AUTOMATIONS
    assert list(table()) == CELLS


@pytest.mark.parametrize("cell", CELLS, ids=": ".join)
def test_each_cell_says_what_happens_and_names_tests_that_there_are(cell):
    sentence, links = table()[cell]
    assert re.fullmatch(r"[A-Z].{20,}\.", sentence)
    tests = TEST.findall(links)
    assert tests and ", ".join(f'[{at}](../{file} "{name}")' for at, (file, name) in enumerate(tests, 1)) == links
    for file, name in tests:
        assert (ROOT / file).is_file() and name in collected(ROOT / file), f"{file}::{name}"


def test_no_cell_says_what_another_one_says():
    """A sentence that fits two cells is of none."""
    told = [re.sub(r"\W+", " ", sentence.lower()) for sentence, _tests in table().values()]
    assert sorted({one for one in told if told.count(one) > 1}) == []


# -- what is played here


def test_nobody_hands_over_to_a_member_that_does_not_answer():
    """Its haproxy has to stop for the run, and nobody is known to be able to take over."""
    members = living(to_engine="auto")
    recorded = {each["name"]: [f"{each['name']}.example", each["host"]["addresses"][1]["address"]] for each in members}
    takeover = {"haproxy": {"stop": True}, "keepalived": {"stop": False}}
    members[0]["host"].update(takeover=takeover, members=recorded)
    answering = as_data(_pair.plan(members))
    assert [wave.hands_over for wave in order.waves([answering], ["lb1"])] == [[], ["lb1"]]
    members[1].update(host=None, silent=True, outside_limit=True, address="lb2.example")
    plan = _pair.plan(members)
    assert plan.faults == [] and "lb2 does not answer" in plan.warnings[0]
    assert [wave.hands_over for wave in order.waves([as_data(plan)], ["lb1"])] == [[]]


def test_a_keepalived_that_was_killed_is_started_again_however_often():
    unit = (ROLES / "keepalived/templates/unit.conf.j2").read_text()
    assert {"Restart=always", "RestartSec=250ms", "StartLimitIntervalSec=0"} <= {*unit.splitlines()}


def test_who_asks_the_balancer_is_started_again_and_leaves_no_verdict_behind():
    """keepalived takes a track file that is not there for 0; one that hangs is ended by systemd's watchdog."""
    unit = (ROLES / "layout/templates/answers.service.j2").read_text()
    assert {"WatchdogSec=30s", "Restart=always", "StartLimitIntervalSec=0"} <= {*unit.splitlines()}
    # By a pattern: systemd has loaded the new unit when the old process ends, and that may have asked something else.
    (pattern,) = re.findall("^ExecStopPost=/bin/sh -c 'rm -f (.+)'$", unit, re.MULTILINE)
    assert fnmatch.fnmatch(answers.FILE.format("chk_of_before"), pattern)


# Who asks for the time of day. What most of them get is only shown, or is in a log.
TIMES_OF_DAY = {
    "_agent/anycast/keeper.py: Dependencies",
    "_agent/cli.py: _formatted",
    "_agent/direct/writer.py: __init__",
    "_agent/follow/lifecycle.py: _change",
    "_agent/follow/lifecycle.py: _connected",
    "_agent/follow/lifecycle.py: _trouble",  # whether a sentence says that a certificate has expired
    "_agent/metrics/frr.py: metrics",
    "_agent/metrics/writer.py: text",
    "_agent/net/sockets.py: _age",  # how old a message is: it counts as new where the clock may have been set
    "_agent/proxy/master/master.py: start",
    "_agent/proxy/master/server_states.py: Dependencies",
    "_agent/proxy/master/workers.py: _start",
    "_agent/runtime/lifecycle.py: __init__",
    "_agent/vrrp/daemon.py: Dependencies",
    "_agent/vrrp/router.py: __init__",
    "_host/drill/prober.py: probe",
    "_host/read/announcing.py: held",  # since when, as the gate says and FRR
    "_host/read/announcing.py: shown",
    "_host/read/bgp.py: sessions",  # since when, as FRR says for how long
    "_host/read/expiry.py: _now",  # whether a certificate is refused that is not served yet
    "_host/read/in_force.py: age_of",  # whether a daemon that is neither router nor balancer is restarted for its unit
    "_host/read/member.py: held",
    "_host/read/reader.py: package_lists_are_fresh",  # whether apt reads its lists before it installs
    "_host/states/undo.py: main",
}
CLOCKS = ("time", "datetime")
WALL = {("time", name) for name in ("time", "time_ns", "localtime", "gmtime", "ctime", "strftime")}
WALL |= {(of, name) for of in ("datetime", "date") for name in ("now", "utcnow", "today")}


def asks(node):
    """Whether a piece of code names a clock that can be set, also under another name."""
    if isinstance(node, ast.Attribute):
        return (getattr(node.value, "id", getattr(node.value, "attr", "")), node.attr) in WALL
    imported = [
        (getattr(node, "module", ""), each) for each in getattr(node, "names", []) if isinstance(each, ast.alias)
    ]
    return any((of, each.name) in WALL or (each.asname and each.name in CLOCKS) for of, each in imported)


def times_of_day(file: Path):
    """Yield each function of a file that asks for the time of day."""

    def visit(node, inside):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            inside = node.name
        if asks(node):
            yield f"{file.relative_to(MODULE_UTILS)}: {inside}"
        for child in ast.iter_child_nodes(node):
            yield from visit(child, inside)

    return visit(ast.parse(file.read_text()), "")


def test_no_automation_decides_by_the_time_of_day():
    found = {each for file in MODULE_UTILS.rglob("*.py") for each in times_of_day(file)}
    assert found == TIMES_OF_DAY
