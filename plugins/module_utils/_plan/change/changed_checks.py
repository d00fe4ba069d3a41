# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The user's checks whose definition a run changes: each is run once before anything is written. Pure.

A router takes a check that it gets with a reload for one that succeeds until it has failed `fall` times. So whoever
changes a check to one that fails learns of it after the run, from all members at once. Hence two proofs: the check is
run as its router would run it, and after the change the run waits until a router would have found it failing.

What depends on a single run, and on a member in whatever state, is judged with care:

- One that puts a member into FAULT is refused. No run ends well with a member in FAULT, so nothing is lost by it.
- Where the check that runs there fails as well, the change makes nothing worse: that is a warning.
- One with a weight moves a VIP to a better member, or lets it stay: a warning.
- A member whose router does not run has no VIP to lose, and a check may ask for what the run sets up: a warning.
- But one that fails on every member with a router is refused in any case. It cannot be meant.
"""

from __future__ import annotations

import math
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Sequence

from ..._shared import quoting
from ..._shared.definitions import digest
from ..._shared.engines import AGENT, ROUTERS
from ..forecast.cluster import hang_detection
from ..model.agent import script_check
from ..model.instances import keepalived_timeout, read_scripts
from ..model.plan import MemberPlan

KILLED = 3.0  # seconds that keepalived, which ends a script by SIGTERM first, and the reload may take beside


def changed(host: Mapping[str, Any], member: MemberPlan, names: Iterable[str]) -> List[Dict[str, Any]]:
    """Return the checks of a member that its router runs otherwise so far, or not at all.

    Each is ``{name, run, weight, lives, judged}``: how `layout_info` runs it, whether a router runs that it would
    concern, and after how many seconds that router has found it failing if it fails.

    :param host: as `host_info` returns it
    :param names: of the user's checks; the layout's own are about what the run itself sets up
    """
    user = host.get("script_user", "root")
    own = {*names}
    scripts = [each for each in read_scripts(member.router.scripts, "", []) if each["name"] in own]
    known: Mapping[str, str] = host.get("checks", {}).get(member.engine, {})
    lives = bool({*ROUTERS} & {*host.get("active_units", [])}) and bool(host.get("instances"))
    weights = _weights(member)
    return [
        {
            "name": script["name"],
            "run": _run(script, member.engine, user),
            "weight": weights.get(script["name"], 0),
            "lives": lives,
            "judged": hang_detection(script["interval"], math.ceil(script["timeout"]), script["fall"]) + KILLED,
        }
        for script in scripts
        if known.get(script["name"]) != digest(_definition(script, member.engine, user))
    ]


def _run(script: Mapping[str, Any], engine: str, user: str) -> Dict[str, Any]:
    """Return a script as the option `checks` of `layout_info` takes it; nothing where the agent needs no program."""
    if engine == AGENT and script_check(dict(script))["type"] != "script":
        return {}
    # keepalived counts whole seconds.
    times = {"timeout": math.ceil(script["timeout"]), "user": script["user"] or user}
    return {**{key: script[key] for key in ("name", "command")}, **times}


def _weights(member: MemberPlan) -> Dict[str, int]:
    return {item["name"]: item["weight"] for each in member.router.instances for item in each["track_scripts"]}


def _definition(script: Mapping[str, Any], engine: str, user: str) -> Dict[str, Any]:
    """Return a script as it would stand in its router's configuration."""
    if engine == AGENT:
        check = script_check(dict(script))
        return {"user": user, **check} if check["type"] == "script" else check
    return {
        **{key: script[key] for key in ("name", "interval", "rise", "fall")},
        "command": quoting.keepalived_command(script["command"])[1:-1],
        "timeout": keepalived_timeout(script),
        "user": script["user"] or user,
    }


def judged(checks: Sequence[Mapping[str, Any]]) -> float:
    """Return after how many seconds a router has found each of the checks failing that fails, and given up on it."""
    return max((check["judged"] for check in checks), default=0.0)


class _Failure(NamedTuple):
    """A check that has failed on a member."""

    member: str
    check: Mapping[str, Any]
    why: str
    before: str  # what is known of the check of that name that runs there, if that fails, too


def tried(plans: Sequence[Mapping[str, Any]], tries: Iterable[Sequence[Any]], prefix: str) -> Dict[str, List[str]]:
    """Return ``{faults, lines}``: why the run is refused, and what else a user should know.

    :param plans: each as data
    :param tries: ``[name, what `layout_info` returned]`` of each host
    :param prefix: of the layout's variables
    """
    results = {name: found.get("checks") or {} for name, found in tries}
    faults, lines = [], []
    for plan in plans:
        failures = [*_failures(plan, results)]
        for failure in failures:
            same = {each.member for each in failures if each.check["name"] == failure.check["name"]}
            everywhere = same >= _running(plan, failure.check["name"]) and failure.check["lives"]
            said = f"{failure.member}: {prefix}_checks ({failure.check['name']}) {failure.why}"
            if everywhere or _is_fatal(failure):
                faults.append(f"{said}. {_mend(failure, everywhere)}")
            else:
                lines.append(f"{said}. {_meaning(failure)}")
    return {"faults": faults, "lines": lines}


def _failures(plan: Mapping[str, Any], results: Mapping[str, Mapping[str, Any]]) -> Iterable[_Failure]:
    for name, member in plan["members"].items():
        for check in member["checks"]:
            found = results.get(name, {}).get(check["name"], {})
            if name in results and check["run"] and not found:
                found = {"fault": "was to run once, and there is no result of it"}
            if found.get("fault"):
                yield _Failure(name, check, found["fault"], found.get("before", ""))


def _running(plan: Mapping[str, Any], check: str) -> set:
    """Return the members that have a check, and whose router runs; also those that this run leaves as they are."""
    found = set()
    for name, member in plan["members"].items():
        idle = any(each["name"] == check and not each["lives"] for each in member["checks"])
        if not idle and any(each["name"] == check for each in member["router"]["scripts"]):
            found.add(name)
    return found


def _is_fatal(failure: _Failure) -> bool:
    return bool(failure.check["lives"] and not failure.check["weight"] and not failure.before)


def _mend(failure: _Failure, everywhere: bool) -> str:
    effect = "It fails on every member" if everywhere else f"With it {failure.member} would be in FAULT"
    return (
        f"{effect}, so nothing has changed. Fix what it checks, or the check. A check that depends on what this run "
        "sets up must be added in a later run."
    )


def _meaning(failure: _Failure) -> str:
    if failure.before:
        return f"The check that runs there fails too, so {failure.member} could not take over before either."
    if failure.check["weight"]:
        return f"Its weight of {failure.check['weight']} counts there."
    return f"Unless it succeeds once this run is finished, {failure.member} could not take over."
