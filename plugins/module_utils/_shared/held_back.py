# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The record on a member that is held back: a switchover or a maintenance has stopped its router on purpose. Pure.

A record is ``{to, since, by, during}``; a maintenance adds its ``work``, and the members that it has ``done``.
"""

from __future__ import annotations

from typing import Mapping, Sequence

SWITCHOVER, MAINTENANCE = "switchover", "maintenance"
PATHS = {
    SWITCHOVER: "/run/onprem-lb-switchover.json",  # a reboot removes it, and starts the router
    MAINTENANCE: "/var/lib/onprem.lb/maintenance.json",  # it outlasts a reboot, and the router is disabled
}
KEYS = ("to", "since", "by", "work", "done")


def why(record: Mapping[str, str]) -> str:
    """Say why the router of a member is stopped."""
    if record["during"] == MAINTENANCE:
        return f"its router is stopped since {record['since']}, when {record['by']} began its maintenance."
    return f"its router is stopped since {record['since']}, when {record['by']} handed the VIPs over to {record['to']}."


def off_lo(record: Mapping[str, str]) -> str:
    """Say why a member that announces its VIPs by BGP has none of them on lo."""
    return f"it is held back since {record['since']} by {record['by']}, as long as {PATHS[record['during']]} is there."


def mend(record: Mapping[str, str], silent: Sequence[str] = ()) -> str:
    """Say what lets the member take part again.

    :param silent: the members that cannot be reached, without which onprem.lb.site does not begin
    """
    site = f"onprem.lb.site{limit(silent)}"
    if record["during"] == SWITCHOVER:
        return f"onprem.lb.switchover -e switchover_back=true, {site} or a reboot of it brings it back."
    if silent:
        return (
            f"{site} brings it back at once; onprem.lb.maintenance goes on with it when {' and '.join(silent)} answers."
        )
    return f"onprem.lb.maintenance goes on with it, and {site} brings it back at once."


def limit(silent: Sequence[str]) -> str:
    """Return the option by which a run goes on without members that cannot be reached."""
    return f" --limit '!{':!'.join(silent)}'" if silent else ""
