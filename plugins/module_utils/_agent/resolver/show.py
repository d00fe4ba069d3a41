# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the keeper has found, for people and for Prometheus. Pure."""

from __future__ import annotations

import json
from typing import Any, Dict, List

from ..runtime.prometheus import Metric, exposition, of_report

PREFIX = "onprem_lb_resolver"
STATE = "/run/onprem-lb-resolver/state.json"
METRICS = (
    Metric("host_asks", "Whether the host asks its own resolver.", of_report(lambda r: bool(r["asked"]))),
    # Where no other name server answers, the resolver is not to blame.
    Metric(
        "forwards", "Whether it answers where its name servers do.", of_report(lambda r: r["forwards"] is not False)
    ),
)


def load(text: str) -> Dict[str, Any]:
    """Return the state that the keeper has written; nothing if it has not, or not this one."""
    try:
        state = json.loads(text)
        return state if {"answers", "asked", "forwards", "problem"} <= {*state} else {}
    except (ValueError, TypeError):
        return {}


def prometheus(state: Dict[str, Any]) -> str:
    return exposition(PREFIX, METRICS, state) if state else ""


def problems(state: Dict[str, Any]) -> List[str]:
    """Return a sentence for each thing that is not as it should be."""
    found = [state["problem"]] if state.get("problem") else []
    if state.get("answers") is False:
        found.append("the resolver does not answer, so the host asks the name servers of before.")
    elif state.get("forwards") is False:
        found.append("the resolver does not answer for names of others, although their name servers do.")
    return found
