# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Numbers, durations and tables as text. Pure."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

UNITS = ("", "k", "M", "G", "T", "P")


def columns(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [tuple(heads), *(tuple(row) for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(heads))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def heading(report: Dict[str, Any], now: float) -> str:
    """Return the line about the process that a report comes from."""
    uptime = ago(report["since"], now)
    return f"{report['agent']} {report['version']}, process {report['pid']}, up {uptime}, {report['config']}"


def problems(report: Dict[str, Any]) -> List[str]:
    """Return what is wrong with the process that a report comes from."""
    fault = report["config_fault"]
    refused = [f"The last change of the configuration was refused: {fault}"] if fault else []
    return refused + [f"Not available: {missing}." for missing in report["limits"]]


def ago(moment: Optional[float], now: float) -> str:
    """How long ago, in its largest unit and the next: 3d 4h, 5m 10s."""
    if moment is None:
        return "-"
    rest = max(0, int(now - moment))
    days, hours, minutes = rest // 86400, rest // 3600 % 24, rest // 60 % 60
    if days:
        return f"{days}d {hours}h"
    if hours:
        return f"{hours}h {minutes}m"
    return f"{minutes}m {rest % 60}s" if minutes else f"{rest}s"


def span(seconds: float) -> str:
    """A short time: 0.4 ms, 12 ms, 1.5 s."""
    number, unit = (seconds, "s") if seconds >= 0.9995 else (1000 * seconds, "ms")
    return f"{number:.0f} {unit}" if number >= 9.95 else f"{number:.1f} {unit}"


def short(number: float) -> str:
    """A number with its significant digits: 950, 1.2k, 34M."""
    return "".join(_scaled(number))


def size(number: float) -> str:
    """Bytes: 950 B, 1.2 kB, 34 MB."""
    return " ".join(_scaled(number)) + "B"


def _scaled(number: float) -> Tuple[str, str]:
    unit = 0
    while number >= 999.5 and unit < len(UNITS) - 1:
        number /= 1000
        unit += 1
    whole = number >= 9.95 or number == int(number)
    return (f"{number:.0f}" if whole else f"{number:.1f}"), UNITS[unit]
