# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds what makes a test depend on how fast the machine is: upper bounds on durations, and sleeps.

Reads the source of tests. A value is *measured* if it comes from a clock of the machine: a call of one, a variable that
was assigned from one, a function of the same file that returns one, the duration of an outcome. In tests with real
sockets a value is also known by its name, such as `outage_ms` or `at`, because records of the network carry such times.

An upper bound compares a measured value with one that was not measured. Two moments may be compared: that is an order.
"""

from __future__ import annotations

import ast
import re
from typing import Iterator, List, NamedTuple, Set

CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "time", "time_ns", "thread_time", "times"}
CLOCK_MODULES = {"time", "os"}
OUTCOME = "duration"  # an attribute: how long a check has taken
REPORT = "report"  # what the tested program has measured, as tests call it
LIMIT = "LIMIT_S"  # `support.waiting.LIMIT_S`, the one bound: it never came
MOMENTS = re.compile(r"(.*_)?(at|began|begin|end|since)")
SPANS = re.compile(r"(.*_)?(ms|seconds|elapsed|took|lasted|waited|slowest|longest|outage|overlap|gaps?|duration)")
SMALLER = (ast.Lt, ast.LtE)
GREATER = (ast.Gt, ast.GtE)
CONTAINERS = (ast.Set, ast.List, ast.Dict)
# Calls that fail when their time is up. A number there is a bound as well.
WAITS = {"communicate", "create_connection", "get", "join", "result", "run", "select", "settimeout", "until", "wait"}
TIMEOUTS = {"timeout", "limit"}
ENOUGH_S = 60  # a time-out of more bounds nothing on a slow machine


class Found(NamedTuple):
    line: int
    what: str


def find(source: str, names: bool = False) -> List[Found]:
    """Return each upper bound and each sleep in the source of a test.

    :param names: values with the name of a duration are measured, too
    """
    module = _Module(ast.parse(source), names)
    measures = names or any(each in source for each in (*(f"{clock}(" for clock in CLOCKS), f".{OUTCOME}"))
    bounds = module.bounds() if measures else ()
    return sorted({*bounds, *module.sleeps(), *module.timeouts()})


class _Module:
    def __init__(self, tree: ast.Module, names: bool) -> None:
        self.tree, self.names = tree, names
        self.functions: Set[str] = set()  # those that return a measured value
        self.timed: Set[str] = set()  # the variables that a clock itself gave
        self.limits = {LIMIT, *_derived(tree)}
        nodes = list(ast.walk(tree))
        self.scopes = [node for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
        self.calls = [node for node in nodes if isinstance(node, ast.Call)]

    def _learn(self) -> bool:
        """Find functions that return a measured value; return whether there were new ones."""
        before = len(self.functions)
        for scope in self.scopes:
            returned = [node.value for node in ast.walk(scope) if isinstance(node, ast.Return) and node.value]
            variables = self._variables(scope) if returned else set()
            if any(self._measured(value, variables) for value in returned):
                self.functions.add(scope.name)
        return len(self.functions) > before

    def _variables(self, scope: ast.AST) -> Set[str]:
        """Return the variables of a function that are assigned a measured value."""
        found: Set[str] = set()
        for _turn in range(3):  # a variable may be assigned from a later one in a loop
            for node in ast.walk(scope):
                targets = node.targets if isinstance(node, ast.Assign) else []
                if isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr)):
                    targets = [node.target]
                if targets and node.value is not None and self._measured(node.value, found):
                    given = {name.id for each in targets for name in ast.walk(each) if isinstance(name, ast.Name)}
                    found |= given
                    if any(isinstance(each, ast.Call) and _is_clock(each.func) for each in ast.walk(node.value)):
                        self.timed |= given
        return found

    def _measured(self, value: ast.AST, variables: Set[str]) -> bool:
        return any(self._is_measured(node, variables) for node in ast.walk(value))

    def _is_measured(self, node: ast.AST, variables: Set[str]) -> bool:
        if isinstance(node, ast.Call):
            return _is_clock(node.func) or _name(node.func) in self.functions
        if isinstance(node, ast.Name) and node.id in variables:
            return True
        if isinstance(node, ast.Attribute) and node.attr == OUTCOME:
            return True
        return self.names and bool(MOMENTS.fullmatch(_name(node)) or SPANS.fullmatch(_name(node)))

    def bounds(self) -> Iterator[Found]:
        while self._learn():
            pass
        for scope in [self.tree, *self.scopes]:
            variables = self._variables(scope)
            for node in ast.walk(scope):
                test = node.test if isinstance(node, ast.Assert) else None
                for compare in ast.walk(test) if test is not None else ():
                    if isinstance(compare, ast.Compare):
                        yield from self._judge(compare, variables)

    def _judge(self, compare: ast.Compare, variables: Set[str]) -> Iterator[Found]:
        sides = [compare.left, *compare.comparators]
        for left, operation, right in zip(sides, compare.ops, sides[1:]):
            smaller, larger = (right, left) if isinstance(operation, GREATER) else (left, right)
            bounds = isinstance(operation, SMALLER + GREATER) or _is_approximate(larger)
            if bounds and self._measured(smaller, variables) and not self._may_bound(larger, smaller, variables):
                yield Found(compare.lineno, f"an upper bound on a duration: {ast.unparse(compare)}")

    def _may_bound(self, larger: ast.AST, smaller: ast.AST, variables: Set[str]) -> bool:
        """Whether a value was measured by the test as well, is the one limit, or is no time.

        What a record names a span may be a forecast as well as a measurement, so it bounds nothing but figures of the
        same record. A report has measurements alone.
        """
        nodes = list(ast.walk(larger))
        if self.limits & set(map(_name, nodes)) or any(
            isinstance(node, (ast.Set, ast.List, ast.Dict)) for node in nodes
        ):
            return True
        spans = self.names and any(SPANS.fullmatch(_name(node)) for node in nodes)
        own = bool(_roots(larger) & {*_roots(smaller), *self.timed, REPORT})
        return self._measured(larger, variables) and (own or not spans)

    def sleeps(self) -> Iterator[Found]:
        for node in self.calls:
            if _name(node.func) == "sleep" and ast.unparse(node.func) in ("time.sleep", "sleep"):
                yield Found(node.lineno, f"a sleep: {ast.unparse(node)}")
            if _stops_later(node):
                yield Found(node.lineno, f"a sleep of a loop: {ast.unparse(node)}")

    def timeouts(self) -> Iterator[Found]:
        for node in self.calls:
            if _name(node.func) not in WAITS:
                continue
            given = [word.value for word in node.keywords if word.arg in TIMEOUTS]
            given += node.args if _name(node.func) in ("join", "settimeout", "wait") else []
            given += node.args[3:] if _name(node.func) == "select" else []
            for value in given:
                if isinstance(value, ast.Constant) and _is_time(value.value) and 0 < value.value < ENOUGH_S:
                    yield Found(node.lineno, f"a time-out that a slow machine reaches: {ast.unparse(node)}")


def _derived(tree: ast.Module) -> Set[str]:
    """Return the names of the one limit in other units: those derived here, and `LIMIT` of tests/support."""
    found: Set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Assign) and LIMIT in map(_name, ast.walk(node.value)):
            found |= {_name(target) for target in node.targets}
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("support."):
            found |= {"LIMIT"} & {alias.name for alias in node.names}
    return found


def _stops_later(call: ast.Call) -> bool:
    """Whether a call lets a loop run for a fixed time."""
    stops = _name(call.func) == "after" and [_name(each) for each in call.args[1:]] == ["stop"]
    return stops and isinstance(call.args[0], ast.Constant) and bool(call.args[0].value)


def _is_clock(function: ast.AST) -> bool:
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return function.value.id in CLOCK_MODULES and function.attr in CLOCKS
    return isinstance(function, ast.Name) and function.id in CLOCKS - {"time", "times"}


def _is_approximate(value: ast.AST) -> bool:
    return isinstance(value, ast.Call) and _name(value.func) == "approx"


def _name(node: ast.AST) -> str:
    """Return the last name of an expression: that of a variable, an attribute, or a key."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return ""


def _roots(value: ast.AST) -> Set[str]:
    return {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}


def _is_time(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
