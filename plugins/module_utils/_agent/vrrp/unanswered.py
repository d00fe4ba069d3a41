# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Asks again for the MACs that the kernel asks for in vain, once a router has taken over.

While the link was down the balancer's checks went on, so the kernel asks for the servers once a second. A link that is
back lets a router take over at once, but the kernel's next question may come a second later. Until then the balancer
can answer nobody.
"""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Tuple

from ..net.netlink import Link
from ..runtime.loop import Loop
from .router import Router

MAX_QUESTIONS = 64  # at once, on one link


class Unanswered:
    """Asks once for all routers that take over at the same moment, of which there may be 255."""

    def __init__(self, loop: Loop, network: Any) -> None:
        self._loop, self._network = loop, network
        self._due: Dict[Tuple[int, int], Tuple[Link, str]] = {}  # by the link's index and the family

    def ask(self, router: Router) -> None:
        """Ask on the link of a router, after what is to be done now."""
        link, source = router.egress.link, router.egress.source
        if not (link and source):
            return
        if not self._due:
            self._loop.after(0, self._ask)
        self._due[link.index, router.instance.family] = (link, source)

    def _ask(self) -> None:
        due, self._due = self._due, {}
        with contextlib.suppress(OSError):  # the kernel asks again by itself
            neighbours = self._network.netlink.unanswered()
            for (index, family), (link, source) in due.items():
                ours = [each.address for each in neighbours if each.index == index and _family(each.address) == family]
                for address in ours[:MAX_QUESTIONS]:
                    self._network.ask(link, source, address)


def _family(address: str) -> int:
    return 6 if ":" in address else 4
