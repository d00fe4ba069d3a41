# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where a balancer goes on listening on the way back to a state: new before old, as in a run. Pure.

The router's checks, what asks beside keepalived and the redirect of the API's VIPs change after the balancer. So it
first listens at the ports of the state and at those of now. Once whoever asks has changed, it drops those of now.
"""

from __future__ import annotations

import json
import re
from typing import Any, Callable, Dict, List, Mapping

from ..._shared.engines import AGENT, CONFIGS, HAPROXY, NATIVE, UNITS
from .snapshot import File, Snapshot

MEANWHILE = "-meanwhile"  # after the name of what only the present settings have
_BOUND = re.compile(r"^\s+(?:bind|stats socket) \S+:(\d+)(?= |$)")
_SECTION = re.compile(r"^(?=\S)", re.MULTILINE)


def steps(now: Snapshot, then: Snapshot) -> List[Snapshot]:
    """Return what a member becomes, one after the other; the last one is the state."""
    first = then._replace(files=_with_ports(now, then), openings=[*dict.fromkeys([*then.openings, *now.openings])])
    return [then] if first.files == then.files else [first, then]


def _with_ports(now: Snapshot, then: Snapshot) -> List[File]:
    """Return the files of the state; a balancer that runs now and then listens at its ports of now as well."""
    balancers: Dict[str, Callable[[str, str], str]] = {}
    for engine, path, merged in (
        (NATIVE, then.configs.get(HAPROXY, ""), _haproxy),
        (AGENT, CONFIGS[UNITS[AGENT].balancer], _agent),
    ):
        unit = UNITS[engine].balancer
        if all(unit in each.units and each.units[unit].active for each in (now, then)):
            balancers[path] = merged
    before = {file.path: file.content for file in now.files if file.path in balancers}
    return [
        file._replace(content=_merged(balancers[file.path], before[file.path], file.content))
        if file.path in before
        else file
        for file in then.files
    ]


def _merged(merged: Callable[[str, str], str], now: bytes, then: bytes) -> bytes:
    """Return the configuration of both; that of the state where one of the two is no text, or is damaged."""
    if now == then:
        return then
    try:
        return merged(now.decode(), then.decode()).encode()
    except (AttributeError, LookupError, TypeError, ValueError):
        return then


def _haproxy(now: str, then: str) -> str:
    """Return the configuration of then, with each socket of now at a port that it lacks."""
    taken = {found[1] for found in map(_BOUND.match, then.splitlines()) if found}
    sections = {each.partition("\n")[0]: each for each in _SECTION.split(then) if each}
    for section in filter(None, _SECTION.split(now)):
        name, _newline, rest = section.partition("\n")
        lines = [(line, _BOUND.match(line)) for line in rest.splitlines(keepends=True)]
        more = "".join(line for line, bound in lines if bound and bound[1] not in taken)
        if more and name.startswith("listen "):  # which answers at a path of its own
            kept = "".join(line for line, bound in lines if not bound or bound[1] not in taken)
            sections[name + MEANWHILE] = f"\n{name}{MEANWHILE}\n{kept}"
        elif more and name in sections:
            own, _newline, body = sections[name].partition("\n")
            sections[name] = f"{own}\n{more}{body}"
    return "".join(sections.values())


def _agent(now: str, then: str) -> str:
    """Return the configuration of then, with the services and monitors of now at ports that it lacks."""
    before, after = json.loads(now), json.loads(then)
    services = _more(before, after, "services")
    known = {each["name"] for each in after["services"]}
    monitors = [each for each in _more(before, after, "monitors") if known.issuperset(each.get("at_least", {}))]
    if not services + monitors:
        return then
    return json.dumps(
        {
            **after,
            "services": [*after["services"], *services],
            "monitors": [*after.get("monitors", []), *monitors],
        }
    )


def _more(now: Mapping[str, Any], then: Mapping[str, Any], kind: str) -> List[Dict[str, Any]]:
    taken = {each["port"] for each in [*then["services"], *then.get("monitors", [])]}
    return [
        {**each, "name": f"{each['name']}-{each['port']}"} for each in now.get(kind, []) if each["port"] not in taken
    ]
