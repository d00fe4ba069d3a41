# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a run says of the time between what its members run and its plan. Pure."""

from __future__ import annotations

from typing import Any, Collection, Dict, List, Mapping, Tuple

from ..._shared import held_back, paths
from ..forecast.forecast import SWITCH_MS
from ..members.hosts import carried
from ..model.plan import MemberPlan
from .changes import HARMLESS, MOVES, SPLITS
from .transition import Way
from .turns import Row, Turn, rows

# What becomes of the VIP if a setting of a class changes, in the words of the table.
WORDS = {HARMLESS: "harmless", MOVES: "moves the VIP", SPLITS: "splits while members differ"}


def on_the_way(given: List[Turn], way: Way) -> List[str]:
    """Return the table of what happens between the old settings and the new ones; none where nothing changes."""
    lines, alone = [], way.sole_router
    if alone:
        lines.append(
            f"During the transition, settings that all members share change, so for some 10 s only {alone}'s router "
            "runs. No other member can take over then."
        )
    everybody = tuple(turn.name for turn in given if turn.is_changed)
    tables: Dict[Tuple[str, ...], List[str]] = {}
    for vip, own in rows(given, alone, [] if way.routers_together else way.order).items():
        tables.setdefault(tuple(_text(row, everybody) for row in own), []).append(vip)
    for texts, vips in tables.items():
        lines += [f"{', '.join(vips)} during the transition to the new settings:", *texts]
    return lines


def _text(row: Row, everybody: Tuple[str, ...]) -> str:
    values = row.after if row.before == row.after else f"{row.before} -> {row.after}"
    gone = round(row.gone * 1000 + SWITCH_MS) if row.kind == MOVES or row.gone else 0
    where = "" if row.members == everybody else f", on {', '.join(row.members)}"
    return f"  {row.label:<20} {values:<24} at most {gone:>5} ms   {WORDS[row.kind]}{where}"


def handovers(planned: Mapping[str, MemberPlan], order: Collection[Any]) -> List[str]:
    """Return a sentence for each holder that hands its VIPs over before its own change.

    :param order: of the members; without one there is no other that could take over
    """
    return [
        f"During the transition, {name}'s change stops {member.interrupted}, so it first hands its VIPs over to a "
        "member that has been verified by then."
        for name, member in planned.items()
        if order and member.interrupted
    ]


def given_up(members: List[Dict[str, Any]], vips: Collection[str]) -> List[str]:
    """Return a sentence for each VIP that is lost with the keepalived.conf of others.

    :param members: as in `planner`
    :param vips: the addresses in the plan
    """
    return [
        f"{member['name']}: VIP {vip} is in its keepalived.conf but not in the plan, so this member gives it up."
        for member in members
        if member["host"].get("takeover", {}).get("keepalived", {}).get("keep")
        for vip in sorted(
            {vip for each in member["host"].get("instances", []) for vip in carried(each)}.difference(vips)
        )
    ]


def statements_lost(members: List[Dict[str, Any]], prefix: str, known: Collection[str]) -> List[str]:
    """Return a sentence for each statement that is lost with the keepalived.conf of others.

    :param members: as in `planner`
    :param prefix: of the layout's variables
    :param known: the layout's variables, without the prefix
    """
    found: Dict[Tuple[str, str], List[str]] = {}
    for member in members:
        for what, variable in member["host"].get("takeover", {}).get("keepalived", {}).get("lost", []):
            found.setdefault((what, variable), []).append(member["name"])
    return [
        f"{', '.join(names)}: keepalived.conf has {what}, which is lost with the adoption: "
        f"{_replacement(variable, prefix, known)}."
        for (what, variable), names in found.items()
    ]


def _replacement(variable: str, prefix: str, known: Collection[str]) -> str:
    if variable in known:
        return f"set {prefix}_{variable} to keep what it does"
    return f"add its lines to {variable}" if variable.startswith("keepalived_") else "no variable replaces it"


def members_let_go(members: List[Dict[str, Any]]) -> List[str]:
    """Return a sentence for each member that a switchover or a maintenance holds back.

    :param members: as in `planner`
    """
    return [_let_go(member) for member in members if member["host"].get("held_back")]


def _let_go(member: Dict[str, Any]) -> str:
    record = member["host"]["held_back"]
    announces = paths.GATE in member["host"].get("existing_units", [])
    why = held_back.off_lo(record) if announces else held_back.why(record)
    becomes = "It announces its VIPs again." if announces else "It is started, and takes over what it prefers."
    return f"{member['name']}: {why} {'--limit leaves it so.' if member.get('outside_limit') else becomes}"
