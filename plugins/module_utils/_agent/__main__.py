# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The agent's command line: `python3 agent.pyz COMMAND`, or `python3 -m _agent COMMAND` beside this package.

Only what a command needs is imported: the VRRP process lives long and is to stay small.
"""

from __future__ import annotations

import sys
from typing import Any, List, Optional

from . import VERSION

GOOD, REFUSED = 0, 1  # and 2 for a wrong command line, which is argparse's
FORMATS = ("table", "json", "prometheus")


def main(arguments: Optional[List[str]] = None) -> int:
    """Return the exit code. Every refusal is a sentence on the standard error."""
    given = _parse(arguments)
    return {"vrrp": _vrrp, "check-config": _check_config, "status": _status}[given.command](given)


def _parse(arguments: Optional[List[str]]) -> Any:
    import argparse

    parser = argparse.ArgumentParser(prog="agent", description="The embedded agent of the collection onprem.lb.")
    parser.add_argument("--version", action="version", version=f"onprem.lb agent {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, purpose in (("vrrp", "be a VRRP router"), ("check-config", "say what is wrong with a configuration")):
        command = commands.add_parser(name, help=purpose, description=f"{purpose}.".capitalize())
        command.add_argument("--config", metavar="FILE", required=True, help="the configuration, JSON")
    status = commands.add_parser("status", help="show what the agent does", description="Show what the agent does.")
    status.add_argument("--socket", metavar="PATH", help="where it answers, if not at the default path")
    status.add_argument("--format", choices=FORMATS, default=FORMATS[0])
    return parser.parse_args(arguments)


def _vrrp(given: Any) -> int:
    from . import config

    settings, faults = config.load(given.config)
    if settings is None:
        return _refuse(*faults)
    missing = _missing_right()
    if missing:
        return _refuse(missing)
    from .log import Log
    from .systemd import Notifier
    from .vrrp import life

    return life.main(given.config, settings, Log(), Notifier())


def _missing_right() -> Optional[str]:
    """Ask the kernel for what the agent cannot do without."""
    import socket

    from .vrrp import packet

    so_rcvbufforce = 33  # wants CAP_NET_ADMIN, and changes nothing here
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_RAW, packet.PROTOCOL) as probe:
            probe.setsockopt(socket.SOL_SOCKET, so_rcvbufforce, 65536)
    except PermissionError:
        return "the agent may not open raw sockets and set addresses: it wants CAP_NET_RAW and CAP_NET_ADMIN, or root."
    return None


def _check_config(given: Any) -> int:
    from . import config

    settings, faults = config.load(given.config)
    if settings is None:
        return _refuse(*faults)
    counts = (
        _count(settings.instances, "instance"),
        _count(settings.groups, "sync group"),
        _count(settings.checks, "check"),
    )
    sys.stdout.write(f"{given.config} is good: {', '.join(counts)}.\n")
    return GOOD


def _count(items: Any, name: str) -> str:
    return f"{len(items)} {name}{'' if len(items) == 1 else 's'}"


def _status(given: Any) -> int:
    from . import status
    from .vrrp.settings import Settings

    try:
        report = status.fetch(given.socket or Settings(()).status_socket)
    except status.Refused as refused:
        return _refuse(str(refused))
    sys.stdout.write(_shown(report, given.format))
    return GOOD


def _shown(report: Any, form: str) -> str:
    import json
    import time

    from . import show

    if form == "json":
        return json.dumps(report, indent=2) + "\n"
    return show.prometheus(report) if form == "prometheus" else show.table(report, time.time())


def _refuse(*sentences: str) -> int:
    for sentence in sentences:
        sys.stderr.write(f"{sentence}\n")
    return REFUSED


if __name__ == "__main__":
    raise SystemExit(main())
