# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The lifecycle of the direct plane on a host: from its start to SIGTERM, with reloads between."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional

from .. import VERSION
from ..checks import server
from ..checks.checks_process import Callbacks, ChecksProcess, Result
from ..checks.outcome import in_words
from ..config.file import Found
from ..net.netlink import Netlink
from ..net.nftables import Changes, Lost, TableName
from ..proxy.master import admin
from ..runtime import lifecycle, status_socket
from ..runtime.log import Log
from ..runtime.loop import MILLION, Earliest
from ..runtime.sd_notify import Notifier
from . import config, report, sockets
from .down_file import DownFile
from .macs import Macs
from .nft import Ended, Nft
from .orders import OrdersFile
from .packets import Packets
from .plane import Edge, Plane
from .prober import Prober
from .rulesets import BALANCER
from .settings import Settings
from .wire import Wire
from .writer import Writer

CHECKS_NAME = "direct-checks"
OWN = TableName("netdev", BALANCER)
COUNT_INTERVAL = 10 * MILLION  # what is counted between this and the next time is lost with a flushed table
FRESH = MILLION  # how old counters may be that a report has
FLUSHED = (
    "Another program has changed or removed the table: it is being restored. Configure firewalls to load only their "
    "own tables."
)


class Lifecycle(lifecycle.Lifecycle):
    """One run of the direct plane."""

    version = VERSION

    def __init__(self, path: str, log: Log, notifier: Notifier, environ: Mapping[str, str]) -> None:
        super().__init__(path, log, notifier, environ)
        self._ready = self._kept = False
        self._packets = Packets()
        self._down_file = DownFile(self.loop, log)
        self._next_count, self._counted_at = Earliest(self.loop, self._count), 0

    def run(self, found: Found) -> None:
        """Run until SIGTERM. Raises status_socket.Refused, and OSError without the privilege to do so."""
        self.text, settings = found.text, found.settings
        checks = ChecksProcess(
            self.loop,
            Callbacks(self._take_result, self.log.warning, self._take_run),
            CHECKS_NAME,
            server.serve_unprivileged,
        )
        checks.start()
        try:
            self._open(settings, checks)
            self._watch_signals()
            self.plane.apply(settings)
            self._repeat_orders()
            self._feed_watchdog()
            self.loop.run()
        finally:
            checks.stop()
        self.log.info(f"The direct plane has ended; its table {'stays' if self._kept else 'is removed'}.")

    def _open(self, settings: Settings, checks: ChecksProcess) -> None:
        self._nft, self._lister = Nft(self.loop, settings.nft), Nft(self.loop, settings.nft)
        self._changes = Changes()
        self._writer = Writer(self.loop, self.log, self._nft, self._table_changed, sockets.connections)
        self._macs = Macs(self.loop, self.log, Netlink(), self._link_changed)
        self._prober = Prober(self.loop, Wire(), self._paths_changed)
        self.plane = Plane(Edge(self.loop, self.log, checks, self._macs, self._writer, self._prober))
        self._status = self._open_status_socket(settings.status_socket)
        self._down_file.use(settings.down_file)
        self._orders = OrdersFile(settings.status_socket, self.log)
        self.loop.watch(self._changes.fileno(), self._take_changes)

    def stop(self) -> None:
        """Have the VIP move, then remove the table; a second call does not wait."""
        if self.stopping:
            self._remove()
            return
        self.stopping = True
        self.notifier.stopping()
        self._down_file.give_up()
        pause = self.plane.settings.stop_pause
        self.log.info(f"Stopping: the table is removed in {pause / MILLION:g} s, when the VIP has moved.")
        self.loop.after(pause, self._remove)

    def upgrade(self) -> None:
        """End, and leave the table: the service manager starts the version that is installed now, which replaces it."""
        if self.stopping:
            return
        self.stopping = self._kept = True
        self.notifier.stopping()
        self._close()

    def _remove(self) -> None:
        def removed(ended: Ended) -> None:
            if ended.fault:
                self.log.fault("removal", f"The table is still there: {ended.fault}")
            self._close()

        self.plane.stop()
        self.loop.forget(self._changes.fileno())
        self._writer.remove(removed)

    def _close(self) -> None:
        self.plane.stop()
        self._macs.close()
        self._prober.close()
        self.loop.forget(self._changes.fileno())
        self._changes.close()
        self._status.close()
        self.loop.stop()

    # -- the configuration

    def _read(self) -> Found:
        return config.load(self.path)

    def _use(self, settings: Settings) -> List[str]:
        faults = self._unchangeable(settings)
        if faults:
            return faults
        self._nft.program = self._lister.program = settings.nft
        self.plane.apply(settings)
        self._down_file.use(settings.down_file)
        return []

    def _unchangeable(self, settings: Settings) -> List[str]:
        """Return what settings change that a reload cannot."""
        faults = []
        if settings.status_socket != self._status.path:
            faults.append(f"status_socket is {settings.status_socket!r}: it can only be changed by a restart.")
        before = {service.balanced.name: service.buckets for service in self.plane.settings.services}
        for service in settings.services:
            name, wanted = service.balanced.name, service.buckets
            if before.get(name, wanted) != wanted:
                faults.append(
                    f"{name} has {wanted} buckets, and {before[name]} are in force: with another number half of its "
                    "connections would be lost, so keep that, or restart when there are few."
                )
        return faults

    # -- events

    def _take_result(self, result: Result) -> None:
        self.plane.health.take_result(result)
        self.plane.update()

    def _take_run(self, run: Any) -> None:
        self.plane.health.take_run(run)

    def _take_changes(self, _events: int) -> None:
        try:
            others = OWN in self._changes.tables(self._nft.pids)
        except Lost:
            others = True
        if others:
            self._writer.lost(FLUSHED)

    def _paths_changed(self) -> None:
        self.plane.update()

    def _link_changed(self, other: bool) -> None:
        self.plane.changed_link(other)
        self._table_changed()

    def _table_changed(self) -> None:
        """The table is there, or it is not."""
        if self.stopping:
            return
        self._down_file.report(self.plane.is_there)
        if self.plane.in_force is not None and not self._ready:
            self._ready = True
            self._notify_ready()
            self.log.info(f"onprem.lb {VERSION} hands connections on by {self.path}.")
            self._count()

    def _notify_ready(self) -> None:
        """Report that the plane serves; until then ``_table_changed`` will."""
        if self._ready:
            super()._notify_ready()

    # -- the status

    def report(self) -> Dict[str, Any]:
        return {**self.describe(), **report.build(self.plane, self._packets, self._down_file.is_up)}

    def _open_status_socket(self, path: str) -> status_socket.UnixSocketServer:
        answer = admin.answers(
            lambda: self._send_report,
            self._obey,
            lambda done: self._writer.when_written(lambda fault: done(bool(fault))),
            self._reload_for,
            lambda _late: f"The table is not changed yet: {self._writer.fault}",
        )
        return status_socket.UnixSocketServer(self.loop, path, answer)

    def _obey(self, request: Any) -> admin.Reply:
        found = admin.execute(self.plane.health, request)
        if "done" in found:
            self._orders.write(self.plane.health.orders())
        return found

    def _repeat_orders(self) -> None:
        """Give the servers the orders that they had in an earlier run."""
        for key, order in self._orders.read().items():
            if key in self.plane.health:
                self.plane.health.command(key, order)

    def _send_report(self, reply: Callable[[bytes], None]) -> None:
        def counted() -> None:
            reply(status_socket.document(self.report()))

        if self.loop.now() - self._counted_at < FRESH:
            counted()
        else:
            self._count(counted)

    def _reload_for(self, done: Callable[[Optional[str]], None]) -> None:
        self.reload()
        done("the plane is stopping." if self.stopping else self.reload_error)

    def _count(self, then: Optional[Callable[[], None]] = None) -> None:
        """Read the counters, and call when that is done; again after a while."""
        table = self.plane.in_force
        self._next_count.after(COUNT_INTERVAL)

        def listed(ended: Ended) -> None:
            self._counted_at = self.loop.now()
            if table and not ended.fault:
                self._packets.take(ended.output, table)
                self.plane.report_clients(self._packets)
            if then:
                then()

        if table:
            self._lister.list(["counters", "table", *OWN], listed)
        elif then:
            then()


def main(path: str, found: Found, log: Log, notifier: Notifier, environ: Mapping[str, str]) -> int:
    """Run the direct plane; return the exit code."""
    try:
        Lifecycle(path, log, notifier, environ).run(found)
    except status_socket.Refused as refused:
        log.fault("start", str(refused))
        return 1
    except OSError as error:
        log.fault(
            "start", f"The plane cannot be started: {in_words(error)}; it needs CAP_NET_ADMIN and CAP_NET_RAW, or root."
        )
        return 1
    return 0
