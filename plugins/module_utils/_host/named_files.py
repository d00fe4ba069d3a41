# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether the programs, folders and certificates that a role's variables name are fit for use on this host.

The variables are as the user wrote them. What is wrong with them whichever host they are for is the plan's to say.
"""

from __future__ import annotations

import os
import shlex
from typing import Any, Dict, Iterator, List, Optional, Tuple

from .._agent.config import host
from .._agent.config.schema import place_of

ROOT = "root"


def unfit(named: Dict[str, Any]) -> List[Dict[str, str]]:
    """Return ``{key, value, wrong}`` of each that is not fit; ``wrong`` follows "KEY is VALUE: ".

    :param named: ``notify``, the ``script_user`` that runs it, ``down_file``, ``services``, and ``programs``, each a
        ``{key, command, user}``; each may be missing
    """
    found = [
        *((one["key"], one["command"], _notify(one["command"], one["user"])) for one in named.get("programs") or ()),
        ("notify", named.get("notify"), _notify(named.get("notify"), named.get("script_user") or ROOT)),
        ("down_file", named.get("down_file"), _down_file(named.get("down_file"))),
        *((key, path, host.authorities(path)) for key, path in _authorities(named.get("services"))),
    ]
    return [{"key": key, "value": str(value), "wrong": wrong} for key, value, wrong in found if wrong]


def _notify(command: Any, user: str) -> Optional[str]:
    try:
        program = shlex.split(command)[0] if isinstance(command, str) and command.startswith("/") else ""
    except ValueError:
        return None
    return host.program(program, user) if program else None


def _down_file(path: Any) -> Optional[str]:
    """A unit writes it as root, so that its folder must be there, and be root's."""
    if not isinstance(path, str) or not path.startswith("/"):
        return None
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        return f"there is no folder {folder}, so that the balancer could not start: create it, or name a file in /run."
    return host.exposed(folder, ROOT)


def _authorities(services: Any) -> Iterator[Tuple[str, str]]:
    for at, service in enumerate(services if isinstance(services, list) else []):
        check = service.get("check") if isinstance(service, dict) else None
        path = check.get("ca") if isinstance(check, dict) else None
        if isinstance(path, str) and path.startswith("/"):
            yield f"{place_of('services', at, service)}.check.ca", path
