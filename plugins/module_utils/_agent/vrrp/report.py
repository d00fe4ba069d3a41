# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The report on instances, groups and checks; docs/agent.md describes the fields."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional

from ..checks.settings import Check
from . import links, settings
from .check_results import CheckState
from .router import Router

NOT_KNOWN = {"up": None, "since": None, "value": 0, "detail": ""}  # of a check without a result so far


def build(
    applied: settings.Settings,
    routers: Mapping[str, Router],
    groups: Mapping[str, str],
    checks: Mapping[str, CheckState],
    known: links.Links,
    now: int,
) -> Dict[str, Any]:
    """
    :param groups: the state of each sync group
    :param checks: the state of each check that has a result
    """
    return {
        "instances": [_instance(router, applied, known, now) for router in routers.values()],
        "groups": [
            {"name": each.name, "instances": list(each.instances), "state": groups[each.name]}
            for each in applied.groups
        ],
        "checks": [_check(check, checks.get(check.name)) for check in applied.checks],
    }


def _instance(router: Router, applied: settings.Settings, known: links.Links, now: int) -> Dict[str, Any]:
    group = settings.group_of(applied, router.name)
    return router.report(known.held(router.addresses), group.name if group else None, now)


def _check(check: Check, found: Optional[CheckState]) -> Dict[str, Any]:
    known = {**found.result._asdict(), "since": found.since} if found else NOT_KNOWN
    return {**known, "name": check.name, "type": check.type}
