# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A daemon that has addresses: they matter more than a report on them, and only one daemon may have them."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from . import lifecycle, status_socket

NO_STATUS = "status reports"  # what there is not without a status socket


class Lifecycle(lifecycle.Lifecycle):
    """Serves without its status socket if it must, until a reload can open it."""

    status_socket: Optional[status_socket.StatusServer] = None

    def report(self) -> Dict[str, Any]:
        raise NotImplementedError

    def _lacks(self, missing: str) -> None:
        self.missing_privileges.append(missing)
        self.log.warning(missing)

    def _open_status_socket(self, path: str) -> None:
        """Open it, or serve without it.

        :raises InUse: there is another daemon, which has the same addresses
        """
        try:
            self.status_socket = status_socket.StatusServer(self.loop, path, self.report)
        except status_socket.InUse:
            raise
        except status_socket.Refused as refused:
            self._lacks(f"{NO_STATUS}: {str(refused).rstrip('.')}")

    def _move_status_socket(self, path: str) -> List[str]:
        """Answer at another path, or return why that is not possible and go on at the old one."""
        if self.status_socket and self.status_socket.path == path:
            return []
        try:
            new = status_socket.StatusServer(self.loop, path, self.report)
        except status_socket.Refused as refused:
            if self.status_socket or isinstance(refused, status_socket.InUse):
                return [str(refused)]
            return []  # there was none before either: a new configuration need not wait for it
        if self.status_socket:
            self.status_socket.close()
        self.status_socket = new
        self.missing_privileges = [each for each in self.missing_privileges if not each.startswith(NO_STATUS)]
        return []
