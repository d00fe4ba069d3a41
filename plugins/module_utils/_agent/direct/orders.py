# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The orders that servers have, in a file, so that they outlast a restart and an upgrade. A reboot ends them."""

from __future__ import annotations

import json
import os
from typing import Any, Dict

from ..checks.outcome import in_words
from ..proxy.settings import ADMIN_STATES, READY

NAME = "orders.json"  # in the folder of the status socket

Orders = Dict[str, str]  # by SERVICE/SERVER; without those that are ready


class OrdersFile:
    """The file of one plane."""

    def __init__(self, status_socket: str, log: Any) -> None:
        self._path, self._log = os.path.join(os.path.dirname(status_socket), NAME), log

    def read(self) -> Orders:
        """Return what was written last; nothing if that cannot be read."""
        try:
            with open(self._path, encoding="utf-8") as file:
                return known(json.load(file))
        except (OSError, ValueError):
            return {}

    def write(self, orders: Orders) -> None:
        """Write them, and no half of them."""
        try:
            with open(f"{self._path}.new", "w", encoding="utf-8") as file:
                json.dump(orders, file)
            os.rename(f"{self._path}.new", self._path)
            self._log.cured("orders", "Orders survive a restart again.")
        except OSError as error:
            self._log.fault("orders", f"Orders will not survive a restart: {self._path}: {in_words(error)}.")


def known(data: Any) -> Orders:
    """Return the orders among data."""
    given = data if isinstance(data, dict) else {}
    return {key: order for key, order in given.items() if order in ADMIN_STATES and order != READY}
