# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Says what becomes, or became, of a change that no run has confirmed."""

from __future__ import annotations

from typing import Any, Mapping

from .. import records

JOURNAL = "journalctl -u onprem-lb-undo"


def read() -> str:
    """Return what this member does, after its name; '' where every change is confirmed."""
    try:
        return sentence(records.due(), records.returned())
    except ValueError as damaged:
        return f"does not know what becomes of its last change: {damaged} Remove this file, and run onprem.lb.site."


def sentence(due: Mapping[str, Any], returned: Mapping[str, Any]) -> str:
    """Return what a member does, after its name; '' where every change is confirmed.

    :param due: the record of the undo that is armed or under way
    :param returned: the record of the return that has begun, or is over
    """
    if due and not returned:
        return (
            f"returns to what it ran before {due['id']} once it has heard of no run for {due['after']:g} s, unless "
            "onprem.lb.site confirms the change."
        )
    if due:
        waits = f": {returned['waits']}" if returned.get("waits") else ""
        return (
            f"is returning to what it ran before {due['id']}{waits}. Its router starts on its own, and cannot be "
            f"started by hand ({JOURNAL}). The next run of onprem.lb.site repairs that too."
        )
    if returned.get("stays") and returned.get("kept") == records.WHOLE:
        return (
            f"has stayed as it was and not returned to what it ran before {returned['id']}: {returned['stays']} "
            f"({JOURNAL}). The next run of onprem.lb.site repairs that."
        )
    if returned:
        kept = returned.get("kept") or "its router"
        stays = [f", but for {kept}: {returned['stays']}"] if returned.get("stays") else []
        if returned.get("others"):
            stays.append(f", but for {returned['others']}, which somebody else has changed since")
        return (
            f"has returned to what it ran before {returned['id']}, at {returned.get('at', 'an unknown time')}"
            f"{''.join(stays)} ({JOURNAL}). The next run of onprem.lb.site repairs that."
        )
    return ""
