# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which variables have no effect because no member has their engine. That is said, and nothing is refused. Pure.

An inventory may set them for both engines, to switch between them: where the other engine's variable is set as well,
there is nothing to say.
"""

from __future__ import annotations

from typing import Any, Collection, Dict, Iterator, List, Mapping, Sequence, Set, Tuple

from ..._shared.engines import AGENT, HAPROXY, KEEPALIVED, NATIVE
from ..model import agent, haproxy, instances

KEYS: Mapping[str, Set[str]] = {
    HAPROXY: {*haproxy.TUNING, *haproxy.STATS_VARIABLES},
    KEEPALIVED: {*instances.DAEMON},
    AGENT: {*agent.SETTINGS},
}
ROLES: Mapping[str, Sequence[str]] = {NATIVE: (HAPROXY, KEEPALIVED), AGENT: (AGENT,)}
# What a layout reads with either engine: where the files of the other one are, and who runs the checks' programs.
EITHER = ("config_path", "script_user")


def sentences(members: List[Dict[str, Any]], used: Collection[str]) -> List[str]:
    """Return a sentence for each variable of an engine that no member has.

    :param members: as `planner` takes them
    :param used: the engines that members have
    """
    given = {name for member in members for name in member.get("role_variables", [])}
    if len({*used}) != 1:
        return []
    (engine,) = {*used}
    return [
        f"{name} has no effect with the engine {engine}: {f'set {instead} instead' if instead else 'leave it out'}."
        for name, instead in _idle(given, engine)
    ]


def _idle(given: Set[str], engine: str) -> Iterator[Tuple[str, str]]:
    """Yield each variable of the other engine's roles, with the one that counts instead of it, '' if there is none."""
    others = ROLES[AGENT if engine == NATIVE else NATIVE]
    for name in sorted(given):
        role, _separator, key = name.partition("_")
        if role not in others or key not in KEYS[role] or key in EITHER:
            continue
        same = [f"{each}_{key}" for each in ROLES[engine] if key in KEYS[each]]
        if not given.intersection(same):
            yield name, "".join(same[:1])
