# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Keeps the kernel's table as it is wanted: each change is one transaction, and what others change is brought back.

A service that comes into the table has everything left to this host at first: see ``handover``. Not so where the kernel
has a table of an earlier run, or had one until somebody has removed it: there are connections of its servers then.
Where this host's connections cannot be read, no further service comes into use, and those in use are kept as wanted.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Collection, Dict, FrozenSet, Iterable, List, Optional

from ..runtime.loop import MILLION, Loop, Timer
from . import handover, rulesets
from .nft import Ended, has_table
from .rulesets import Place, Table
from .sockets import Connection

FIRST_DELAY, LAST_DELAY = MILLION, 30 * MILLION  # after a transaction that was refused
# A lost table is restored at once, this often, and then once an interval: two programs that keep changing it must not
# take all of a processor.
AT_ONCE, RESTORE_INTERVAL = 5, MILLION
UNREAD = "No service comes into use: the connections of this host's own programs cannot be read"

Connections = Callable[[Collection[Place]], Iterable[Connection]]


class Writer:
    """One table. What is wanted while a transaction is under way is written after it."""

    def __init__(
        self,
        loop: Loop,
        log: Any,
        nft: Any,
        changed: Callable[[], None],
        connections: Connections,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """
        :param nft: an nft.Nft
        :param changed: called when ``in_force``, ``fault`` or the table have changed
        :param connections: returns the connections that this host's own programs have at some places, or raises OSError
        """
        self._loop, self._log, self._nft, self._changed, self._wall = loop, log, nft, changed, wall
        self._connections = connections
        self._wanted: Optional[Table] = None
        self._tried: Optional[Table] = None  # what was wanted in the last transaction
        self._known: Optional[Table] = None  # what the kernel has; None: to be written as a whole
        self._inherits: Optional[bool] = None  # whether the kernel has a table of an earlier run; None: not asked yet
        self._cannot_keep = False  # whether nft has refused to keep what was noted
        self._settled: FrozenSet[Place] = frozenset()  # the places that do not leave everything to this host any more
        self._busy = False
        self._meddled = False  # whether another program has changed it since the last transaction began
        self._asked: Optional[int] = None  # since when something is wanted that is not under way
        self._since: Optional[int] = None  # the same of the transaction under way
        self._retry: Optional[Timer] = None
        self._paced = 0  # when the restorations so far would be over at one in each interval
        self._failures = 0
        self._waiting: List[Callable[[Optional[str]], None]] = []
        self.fault: Optional[str] = None  # why the last transaction was refused
        self.written_at: Optional[float] = None  # seconds since 1970
        self.took: Optional[int] = None  # from the moment when the last change was wanted
        self.counts: Dict[str, int] = {"transactions": 0, "whole": 0, "refused": 0, "restored": 0}

    @property
    def in_force(self) -> Optional[Table]:
        """The table that the kernel has, None if it has none, or another one, or one that leaves all to this host."""
        return None if self._known and self._known.settling else self._known

    @property
    def is_there(self) -> bool:
        """Whether the kernel has the table, or one of an earlier run."""
        return self.in_force is not None or bool(self._inherits)

    def want(self, table: Table) -> None:
        """Have the kernel have this table."""
        self._wanted = table
        if self._asked is None and table != (self._tried if self._busy else self._known):
            self._asked = self._loop.now()
        if not self._busy and (not self._retry or table != self._tried):
            self._write()

    def lost(self, why: str) -> None:
        """The kernel has another table, or none: write it as a whole.

        :param why: a sentence for the log
        """
        if self._wanted is None:
            return
        self._known, self._meddled = None, True
        self.counts["restored"] += 1
        now = self._loop.now()
        self._asked = now if self._asked is None else self._asked
        if not self._retry:
            self._log.warning(why)
            self._again(self._pause(now))
        self._changed()

    def _pause(self, now: int) -> int:
        """Return how long to wait before the table is restored."""
        at = max(now, self._paced - (AT_ONCE - 1) * RESTORE_INTERVAL)
        self._paced = max(self._paced, at) + RESTORE_INTERVAL
        return at - now

    def when_written(self, call: Callable[[Optional[str]], None]) -> None:
        """Call once the kernel has what is wanted now, or with why it has not."""
        self._waiting.append(call)
        if not self._busy:
            self._tell()

    def remove(self, done: Callable[[Ended], None]) -> None:
        """Remove the table, and write none any more."""
        self._wanted = None
        self._cancel_retry()
        self._nft.load(rulesets.removal(), done)

    def _write(self) -> None:
        if self._wanted is None:
            return
        if self._inherits is None:
            self._ask()
            return
        own = self._own(self._wanted)
        table, before = self._next(self._wanted, own is not None), self._known
        text = rulesets.change(before, table) if before else None
        if text == "":
            self._nothing_to_write(table)
            return
        self._cancel_retry()
        self._busy, self._meddled, self._tried = True, False, self._wanted
        self._since, self._asked = self._asked, None
        self.counts["whole"] += text is None
        keep = text is None and not self._cannot_keep and self._leaves(self._wanted)
        partly = text is not None or keep
        self._cannot_keep = keep  # unless the transaction succeeds
        text = rulesets.whole(table, keep) if text is None else text
        self._nft.load(text + handover.noted(table, own or ()), lambda ended: self._end(table, partly, ended))

    def _nothing_to_write(self, table: Table) -> None:
        self._known, self._asked = table, None
        if table.settling:  # what this host has cannot be read
            self._tried = self._wanted
            self._postpone(UNREAD)
            self._changed()
        self._tell()

    def _ask(self) -> None:
        """Find out whether the kernel has a table of an earlier run."""
        self._cancel_retry()
        self._busy, self._tried = True, self._wanted
        self._nft.list(["tables", "netdev"], self._take_tables)

    def _take_tables(self, ended: Ended) -> None:
        self._busy = False
        if ended.fault:
            self._fail(ended.fault)
            self._changed()
            self._tell()
        else:
            self._inherits = has_table(ended.output, "netdev", rulesets.BALANCER)
            self._changed()
            self._write()

    def _own(self, wanted: Table) -> Optional[Collection[Connection]]:
        """Return the connections that the kernel may not have noted; None if they cannot be read."""
        if self._known and not self._known.settling:
            return ()
        try:
            found = list(self._connections(wanted.sockets.keys()))
        except OSError as error:
            self._log.fault("connections", f"{UNREAD}: {error}.")
            return None
        self._log.cured("connections", "The connections of this host's own programs can be read again.")
        return found

    def _next(self, wanted: Table, may_settle: bool) -> Table:
        """Return the table on the way to the wanted one: itself unless some of its places come into use.

        :param may_settle: whether those that leave everything to this host may come into use now
        """
        if self._inherits:
            return wanted
        before = self._known.settling if self._known and may_settle else frozenset()
        return handover.settling(wanted, wanted.places.keys() - self._settled - before)

    def _leaves(self, wanted: Table) -> bool:
        """Whether the kernel notes connections that begin while a table is written: no list of sockets has them."""
        before = self._known.leaves if self._known else False
        return bool(self._inherits or before or (self._settled and wanted.leaves))

    def _end(self, table: Table, partly: bool, ended: Ended) -> None:
        self._busy = False
        self.counts["transactions"] += 1
        if ended.fault:
            self._refused(partly, ended.fault)
        else:
            self._accepted(table)
        self._changed()
        if self._wanted is not None and not self._retry and self._wanted != self._known:
            self._write()
        elif not self._busy:
            self._tell()

    def _accepted(self, table: Table) -> None:
        self._known, self._cannot_keep = None if self._meddled else table, False
        if table.settling:  # the table that is wanted follows at once
            self._asked = self._since if self._asked is None else self._asked
            return
        self._inherits, self._settled = False, frozenset(table.places)
        self._failures, self.fault, self.written_at = 0, None, self._wall()
        if self._since is not None:
            self.took = self._loop.now() - self._since
        self._log.cured("table", "The table is as it should be again.")

    def _refused(self, partly: bool, fault: str) -> None:
        self.counts["refused"] += 1
        self._asked = self._since
        was_settling = bool(self._known and self._known.settling)
        if partly:  # the kernel has another table than expected: the whole one does not depend on that
            self._known = None
        if not partly or was_settling:
            self._fail(fault)

    def _fail(self, fault: str) -> None:
        self._log.fault("table", f"The table cannot be written, and the kernel keeps what it has: {fault}")
        self._postpone(fault)

    def _postpone(self, fault: str) -> None:
        self._failures += 1
        self.fault = fault
        self._again(min(LAST_DELAY, FIRST_DELAY << min(self._failures - 1, 16)))

    def _again(self, delay: int) -> None:
        self._cancel_retry()
        self._retry = self._loop.after(delay, self._write_again)

    def _write_again(self) -> None:
        self._retry = None
        if not self._busy:
            self._write()

    def _cancel_retry(self) -> None:
        if self._retry:
            self._retry.cancel()
        self._retry = None

    def _tell(self) -> None:
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call(self.fault)
