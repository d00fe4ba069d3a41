# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The checks of a report as a table and as a metric. Pure."""

from __future__ import annotations

from typing import Iterable, Sequence

from ..runtime.prometheus import Metric, Report, Sample
from ..runtime.text_table import ago, columns

WORDS = {True: "up", False: "down", None: "not known yet"}


def table(checks: Sequence[Report], now: float) -> str:
    heads = ("CHECK", "TYPE", "RESULT", "SINCE", "DETAIL")
    rows = [
        (check["name"], check["type"], WORDS[check["up"]], ago(check["since"], now), check["detail"])
        for check in checks
    ]
    return columns(heads, rows)


def _states(report: Report) -> Iterable[Sample]:
    for check in report["checks"]:
        if check["up"] is not None:
            yield {"check": check["name"], "type": check["type"]}, check["up"]


UP = Metric("check_up", "Whether a check succeeds; absent until it is known.", _states)
