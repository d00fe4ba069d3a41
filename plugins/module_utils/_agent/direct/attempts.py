# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether what clients send to a server is answered: who gets an answer goes on, and who gets none begins again. Pure.

The proof of a path comes from a balancer's address, which a firewall may let in while it lets in no client. So clients
prove the rest. A server that none of them hears is named, and stays: those that begin may all be forged.
"""

from __future__ import annotations

from typing import Dict, Tuple

Key = Tuple[str, int, str]  # VIP, port, server's address
FEW = 5  # attempts, of which some clients' would go on


class Attempts:
    """What is known of the servers, from counts that are a second apart or more."""

    def __init__(self) -> None:
        self._waiting: Dict[Key, int] = {}  # attempts since anything else came
        self._unanswered: Dict[Key, int] = {}  # those that have had time to go on

    def count(self, key: Key, begun: int, went_on: int) -> None:
        """Take how many packets for a server begin a connection, and how many do not, since the last count."""
        if went_on:
            self._waiting.pop(key, None)
            self._unanswered.pop(key, None)
            return
        before = self._waiting.get(key, 0)
        self._waiting[key] = before + begun
        if before >= FEW:
            self._unanswered[key] = before

    def unanswered(self, key: Key) -> int:
        """Return how many attempts have led to nothing, 0 if some have, or if there were too few."""
        return self._unanswered.get(key, 0)
