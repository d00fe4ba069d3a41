# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""For how long a VIP may go unserved, whatever the plan says. Pure; runs on the controller."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping


def over(rows: List[Dict[str, Any]], own_budgets: Mapping[str, float]) -> List[str]:
    """Return a sentence for each row of a report that was over its budget, or of which nobody knows that."""
    return [
        f"{row['vip']}, {row['event']}: {_cost(row)}, {_variable(row, own_budgets)} is {row['budget_ms']:g} ms"
        f"{': set drill_send to something that the service answers' if row['unserved_ms'] is None else ''}."
        for row in rows
        if row["budget_ms"] and (row["unserved_ms"] is None or row["unserved_ms"] > row["budget_ms"])
    ]


def _cost(row: Dict[str, Any]) -> str:
    if row["unserved_ms"] is None:
        return f"for how long the VIP was not served is not measured ({row['asks']})"
    return f"the VIP was not served for {row['unserved_ms']:g} ms"


def of(event: str, budget: float, own_budgets: Mapping[str, float]) -> float:
    """Return the budget of an event in milliseconds; 0 is none."""
    own = own_budgets.get(event)
    return float((budget if own is None else own) or 0)


def _variable(row: Dict[str, Any], own_budgets: Mapping[str, float]) -> str:
    return f"drill_budgets.{row['event']}" if row["event"] in own_budgets else "drill_budget"
