# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The latest result of each check, and since when it is so."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple

from ..net import links
from .checks_process import Result
from .settings import INTERFACE, Check

NOT_KNOWN = {"up": None, "since": None, "value": 0, "detail": "", "known": False}  # of a check without a result so far


class CheckState(NamedTuple):
    """``since`` is in seconds since 1970."""

    result: Result
    since: float


class CheckResults(Dict[str, CheckState]):
    """By the check's name. A check without a result so far is not in it."""

    def __init__(self, wall: Callable[[], float]) -> None:
        super().__init__()
        self._wall = wall

    def record(self, result: Result) -> None:
        self[result.name] = CheckState(result, self._wall())

    def keep(self, checks: Iterable[Check]) -> None:
        """Forget the results of all other checks."""
        for name in self.keys() - {check.name for check in checks}:
            del self[name]

    def of_interfaces(self, checks: Iterable[Check], known: links.Links) -> List[Result]:
        """Return the results of checks of interfaces that differ from the latest ones."""
        found = [of_interface(check, known) for check in checks if check.type == INTERFACE]
        return [each for each in found if each.name not in self or self[each.name].result != each]


def of_interface(check: Check, known: links.Links) -> Result:
    """Check an interface in this process, where its changes are known, and not in the checks process."""
    link = known.named(check.interface)
    detail = "" if link and link.up else f"interface {check.interface} is {'down' if link else 'not there'}"
    return Result(check.name, not detail, 0, detail)


def report(checks: Iterable[Check], states: Mapping[str, CheckState]) -> List[Dict[str, Any]]:
    """Return what a daemon reports of its checks.

    :param states: of each check that has a result
    """
    known = {name: {**state.result._asdict(), "since": state.since} for name, state in states.items()}
    return [{**known.get(check.name, NOT_KNOWN), "name": check.name, "type": check.type} for check in checks]
