# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The sessions that wait for a slot of a server, the oldest first."""

from __future__ import annotations

from typing import Any, Deque, Dict


class Queue(Deque[Any]):
    """Of sessions; see ``session``."""

    longest = 0  # how many there were at most

    def add(self, session: Any) -> None:
        self.append(session)
        self.longest = max(self.longest, len(self))

    def counts(self) -> Dict[str, int]:
        """Return what HAProxy calls qcur and qmax."""
        return {"qcur": len(self), "qmax": self.longest}
