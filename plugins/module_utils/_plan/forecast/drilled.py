# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the last drills measured, beside each bound of a forecast. Pure."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping

from ..model import drill_records
from ..model.plan import Plan
from . import forecast

Outages = List[Dict[str, Any]]


def table(plan: Dict[str, Any], drafted: Plan, outages: Outages, kept: drill_records.Kept) -> List[str]:
    """Return the forecast in lines, with what was measured, and what the records have that is not shown.

    :param plan: as `forecast.table` takes it
    """
    measured = beside(drafted, outages, kept)
    return [*forecast.table(plan, measured), *_left_out(drafted, measured, kept)]


def beside(drafted: Plan, outages: Outages, kept: drill_records.Kept) -> Outages:
    """Return the lines of a forecast, each with what was measured as ``drilled``, where something was."""
    holders = {vip.address: _holders(drafted, vip.order) for vip in drafted.vips}
    return [{**line, **_drilled(line, holders[line["vip"]], kept)} for line in outages]


def _holders(drafted: Plan, names: List[str]) -> Dict[str, str]:
    """Return the members of a VIP with their engines. No drill is for static pods."""
    return {name: "" if drafted.members[name].pods else drafted.members[name].engine for name in names}


def _drilled(line: Mapping[str, Any], holders: Mapping[str, str], kept: drill_records.Kept) -> Dict[str, str]:
    found = drill_records.measured(kept, drill_records.Subject(line["vip"], line["event"], holders, line["outage_ms"]))
    return {"drilled": found.words} if found else {}


def _left_out(drafted: Plan, outages: Outages, kept: drill_records.Kept) -> List[str]:
    shown = {line["vip"] for line in outages if "drilled" in line}
    found = {vip.address: drill_records.others(kept, vip.address, vip.address in shown) for vip in drafted.vips}
    return [*(f"{vip}: {text}" for vip, text in found.items() if text), *kept.unread]
