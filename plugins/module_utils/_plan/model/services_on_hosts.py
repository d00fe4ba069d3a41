# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a host must be asked about the services of a layout: which names it resolves, and whether it has their files."""

from __future__ import annotations

import ipaddress
import json
from typing import Any

NESTED = ("servers", "routes")


def to_ask(settings: str) -> Any:
    """Return the services, as the user wrote them, without the servers that are named by their addresses.

    A host has nothing to say of those, which may be thousands.

    :param settings: of the layout, as JSON
    """
    return _without_addresses(json.loads(settings).get("services") or [])


def _without_addresses(given: Any) -> Any:
    if isinstance(given, list):
        return [_without_addresses(each) for each in given if not _is_address(each)]
    if isinstance(given, dict):
        return {key: _without_addresses(value) if key in NESTED else value for key, value in given.items()}
    return given


def _is_address(server: Any) -> bool:
    try:
        return bool(ipaddress.ip_address(str(server.get("address") if isinstance(server, dict) else server)))
    except ValueError:
        return False
