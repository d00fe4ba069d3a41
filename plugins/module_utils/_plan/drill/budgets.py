# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""For how long a VIP may go unserved, whatever the plan says. Pure; runs on the controller."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping


def over(rows: List[Dict[str, Any]], budget: float, own_budgets: Mapping[str, float]) -> List[str]:
    """Return a sentence for each event that was over its budget.

    :param rows: of a report
    :param budget: in milliseconds, of every event that has none of its own; 0 is no budget
    """
    return [
        f"{row['vip']}, {row['event']}: the VIP was not served for {row['unserved_ms']:g} ms, {variable} is {limit:g} ms."
        for row in rows
        for variable, limit in [_limit(row["event"], budget, own_budgets)]
        if limit and row["unserved_ms"] > limit
    ]


def _limit(event: str, budget: float, own_budgets: Mapping[str, float]) -> Any:
    """Return the budget of an event, after the variable that it comes from."""
    own = own_budgets.get(event)
    return ("drill_budget", float(budget or 0)) if own is None else (f"drill_budgets.{event}", float(own))
