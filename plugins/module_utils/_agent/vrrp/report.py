# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The report on instances, groups and checks; docs/agent.md describes the fields."""

from __future__ import annotations

from typing import Any, Dict, Mapping

from ..checks import results
from . import links, settings
from .router import Router


def build(
    applied: settings.Settings,
    routers: Mapping[str, Router],
    groups: Mapping[str, str],
    checks: Mapping[str, results.CheckState],
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
        "checks": results.report(applied.checks, checks),
    }


def _instance(router: Router, applied: settings.Settings, known: links.Links, now: int) -> Dict[str, Any]:
    group = settings.group_of(applied, router.name)
    return router.report(known.held(router.addresses), group.name if group else None, now)
