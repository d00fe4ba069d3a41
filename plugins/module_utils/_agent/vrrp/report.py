# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the daemon says of its instances, groups, checks and sockets; docs/agent.md has the fields."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Mapping

from ..checks.settings import Check
from . import links, settings
from .router import Router
from .transport import InterfaceSocket

NOT_KNOWN = {"up": None, "since": None, "value": 0, "detail": ""}  # of a check without a result so far


def build(
    wanted: settings.Settings,
    routers: Mapping[str, Router],
    groups: Mapping[str, str],
    found: Mapping[str, Any],
    known: links.Links,
    ears: Iterable[InterfaceSocket],
) -> Dict[str, Any]:
    """
    :param groups: the state of each sync group
    :param found: what each check has found, a ``daemon.Found``
    """
    return {
        "instances": [_instance(router, wanted, known) for router in routers.values()],
        "groups": [
            {"name": each.name, "instances": list(each.instances), "state": groups[each.name]} for each in wanted.groups
        ],
        "checks": [_check(check, found.get(check.name)) for check in wanted.checks],
        "links": [{"interface": ear.interface, "family": ear.family, "discarded": ear.discarded} for ear in ears],
    }


def _instance(router: Router, wanted: settings.Settings, known: links.Links) -> Dict[str, Any]:
    together = settings.group_of(wanted, router.name)
    held = known.held(router.instance.interface, router.instance.addresses)
    return router.report(held, together.name if together else None)


def _check(check: Check, found: Any) -> Dict[str, Any]:
    known = {**found.result._asdict(), "since": found.since} if found else NOT_KNOWN
    return {**known, "name": check.name, "type": check.type}
