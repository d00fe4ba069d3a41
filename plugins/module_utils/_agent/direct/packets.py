# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How many packets each server got, and what for, from the counters of a table that may be written anew. Pure."""

from __future__ import annotations

import json
from typing import Dict, Mapping, Sequence

from .attempts import Attempts, Key
from .rulesets import Table


class Packets:
    """Sums up what nft has counted at several moments."""

    def __init__(self) -> None:
        self._totals: Dict[Key, int] = {}
        self.attempts = Attempts()
        self._counted: Dict[str, int] = {}  # by the last list, of each counter

    def take(self, listed: str, table: Table) -> None:
        """Add what a list in JSON has more than the last one.

        :param table: the one that the list is of
        """
        counted = _counters(listed)
        got, begun = self._more(counted, table.counters), self._more(counted, table.attempts)
        for key, more in got.items():
            self._totals[key] = self._totals.get(key, 0) + more
            self.attempts.count(key, begun.get(key, 0), more - begun.get(key, 0))
        self._counted = counted

    def _more(self, counted: Mapping[str, int], counters: Mapping[str, Sequence[Key]]) -> Dict[Key, int]:
        found = {}
        for name in counted.keys() & counters.keys():
            before, number = self._counted.get(name, 0), counted[name]
            more = number - before if number >= before else number  # the table was written anew meanwhile
            found.update(dict.fromkeys(counters[name], more))
        return found

    def of(self, vip: str, port: int, server: str) -> int:
        return self._totals.get((vip, port, server), 0)

    def unanswered(self, vip: str, port: int, server: str) -> int:
        return self.attempts.unanswered((vip, port, server))


def _counters(listed: str) -> Dict[str, int]:
    try:
        items = [item.get("counter", {}) for item in json.loads(listed)["nftables"]]
        return {item["name"]: item["packets"] for item in items if item}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}
