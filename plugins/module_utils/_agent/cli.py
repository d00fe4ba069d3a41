# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The agent's command line: `python3 agent.pyz COMMAND`, or `python3 -m _agent.cli COMMAND` beside this package.

Each command imports only what it needs: the daemons run for long and stay small.
"""

from __future__ import annotations

import sys
from typing import Any, List, Optional

from . import VERSION

GOOD, REFUSED = 0, 1  # and 2 for a wrong command line, which is argparse's
FORMATS = ("table", "json", "prometheus")
CONFIGURED = (
    ("vrrp", "be a VRRP router"),
    ("proxy", "balance TCP connections"),
    ("follow", "keep the servers of a balancer at the nodes of a cluster"),
    ("direct", "hand connections to servers that answer the clients themselves"),
    ("anycast", "have VIPs on lo while this host's balancer serves"),
    ("sidecar", "do for the pod of a VRRP router what systemd does for its unit"),
    ("check-config", "say what is wrong with a configuration of any of them"),
)
# Those that are started in the same way, and where each one's lifecycle is.
DAEMONS = {"proxy": "proxy.master", "follow": "follow", "direct": "direct", "anycast": "anycast"}
# Which modules show a report as a table and as metrics, by the key that only its daemon's has; otherwise it is VRRP's.
SHOWN = {
    "balancers": ("follow.show", "follow.show"),
    "table": ("direct.show", "direct.show"),
    "vips": ("anycast.show", "anycast.show"),
    "services": ("proxy.views.text", "proxy.views.metrics"),
}
VRRP = ("vrrp.show", "vrrp.show")


def main(arguments: Optional[List[str]] = None) -> int:
    """Return the exit code. Every refusal is a sentence on the standard error."""
    options = _parse(arguments)
    commands = {
        "vrrp": _vrrp,
        **dict.fromkeys(DAEMONS, _daemon),
        "direct-server": _direct_server,
        "sidecar": _sidecar,
        "check-config": _check_config,
        "status": _status,
        "server": _server,
        "metrics": _metrics,
        "resolver-keeper": _resolver_keeper,
        "certificates": _certificates,
    }
    return commands[options.command](options)


def _parse(arguments: Optional[List[str]]) -> Any:
    import argparse

    parser = argparse.ArgumentParser(prog="agent", description="The embedded agent of the collection onprem.lb.")
    parser.add_argument("--version", action="version", version=f"onprem.lb agent {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, purpose in CONFIGURED:
        command = commands.add_parser(name, help=purpose, description=f"{purpose}.".capitalize())
        command.add_argument("--config", metavar="FILE", required=True, help="the configuration, JSON")
    status = commands.add_parser("status", help="show what the agent does", description="Show what the agent does.")
    status.add_argument("--socket", metavar="PATH", help="where it answers, if not at a default path")
    status.add_argument("--format", choices=FORMATS, default=FORMATS[0])
    _add_server(commands)
    _add_direct_server(commands)
    _add_metrics(commands)
    purpose = "keep this host asking its own resolver"
    keeper = commands.add_parser("resolver-keeper", help=purpose, description=f"{purpose}.".capitalize())
    keeper.add_argument("--config", metavar="FILE", required=True, help="what the role resolver has written, JSON")
    _add_certificates(commands)
    return parser.parse_args(arguments)


def _add_certificates(commands: Any) -> None:
    purpose = "have haproxy load certificates that something else has renewed"
    keeper = commands.add_parser("certificates", help=purpose, description=f"{purpose}.".capitalize())
    keeper.add_argument("--config", metavar="FILE", required=True, help="haproxy's configuration")
    keeper.add_argument("--record", metavar="FILE", required=True, help="where its unit records what it has loaded")
    keeper.add_argument("--unit", required=True, help="haproxy's unit")
    keeper.add_argument("paths", metavar="PATH", nargs="+", help="a certificate's file, or a folder of them")


def _add_server(commands: Any) -> None:
    from .proxy.settings import ADMIN_STATES

    purpose = "take a server out of the service of the proxy or of the direct plane, or back"
    server = commands.add_parser("server", help=purpose, description=f"{purpose}.".capitalize())
    meanings = "drain: nothing new; maint: as if it were down; ready: as before"
    server.add_argument("order", choices=ADMIN_STATES, help=meanings)
    server.add_argument("server", metavar="SERVICE/SERVER")
    server.add_argument("--socket", metavar="PATH", help="where they answer, if not at a default path")


def _add_direct_server(commands: Any) -> None:
    purpose = "make this host a server of direct return, which answers the clients itself, or take that back"
    server = commands.add_parser("direct-server", help=purpose, description=f"{purpose}.".capitalize())
    orders = server.add_subparsers(dest="order", metavar="ORDER", required=True)
    applying = orders.add_parser("apply", help="put a configuration of the direct plane in force")
    applying.add_argument("--config", metavar="FILE", required=True, help="the configuration, JSON")
    orders.add_parser("remove", help="take back what was applied")


def _add_metrics(commands: Any) -> None:
    purpose = "show what Prometheus is told of this host, with the agent or with keepalived"
    metrics = commands.add_parser("metrics", help=purpose, description=f"{purpose}.".capitalize())
    metrics.add_argument("--file", metavar="PATH", help="keep it in this file, in the foreground, until SIGTERM")
    metrics.add_argument("--certificate", metavar="PATH", action="append", default=[], help="say when it expires")
    metrics.add_argument(
        "--haproxy-socket", metavar="PATH", default="", help="ask haproxy which certificates it serves"
    )
    metrics.add_argument("--drill", metavar="PATH", help="the record of the last drill, if not at its default path")


def _vrrp(options: Any) -> int:
    from .runtime import realtime

    realtime.schedule()  # a Backup does not wait for a busy host to load the rest; a refusal is logged later
    from .vrrp import config

    found = config.load(options.config)
    if found.faults:
        return _refuse(*found.faults)
    missing = _missing_privilege()
    if missing:
        return _refuse(missing)
    from .runtime.log import Log
    from .runtime.sd_notify import Notifier
    from .vrrp import lifecycle

    return lifecycle.main(options.config, found, Log(), Notifier())


def _module(name: str) -> Any:
    """Return a module of this package."""
    import importlib

    return importlib.import_module(f".{name}", __package__)


def _daemon(options: Any) -> int:
    import os

    environ = dict(os.environ)  # for upgrades: the notifier removes what is for this process alone
    found = _module(f"{options.command}.config").load(options.config)
    if found.faults:
        return _refuse(*found.faults)
    lifecycle = _module(f"{DAEMONS[options.command]}.lifecycle")
    from .runtime.log import Log
    from .runtime.sd_notify import Notifier

    return int(lifecycle.main(options.config, found, Log(), Notifier(), environ))


def _direct_server(options: Any) -> int:
    from .checks.outcome import in_words
    from .direct import config
    from .direct.server import command

    applied = config.load(options.config) if options.order == "apply" else None
    if applied and applied.faults:
        return _refuse(*applied.faults)
    try:
        command.apply(applied.settings) if applied else command.remove()
    except command.Refused as refused:
        return _refuse(str(refused))
    except OSError as error:
        return _refuse(f"the server cannot be changed: {in_words(error)}; it needs CAP_NET_ADMIN, or root.")
    return GOOD


def _sidecar(options: Any) -> int:
    from .sidecar import config

    found = config.load(options.config)
    if found.faults:
        return _refuse(*found.faults)
    from .sidecar import lifecycle

    return lifecycle.main(found.settings)


def _missing_privilege() -> Optional[str]:
    """Return which privilege is missing that the agent cannot do without, if any."""
    import socket

    from .net import linux
    from .vrrp.core import packet

    try:
        with socket.socket(socket.AF_INET, socket.SOCK_RAW, packet.PROTOCOL) as probe:
            probe.setsockopt(socket.SOL_SOCKET, linux.SO_RCVBUFFORCE, 65536)  # needs CAP_NET_ADMIN
    except PermissionError:
        return "the agent may not open raw sockets and set addresses: it needs CAP_NET_RAW and CAP_NET_ADMIN, or root."
    return None


def _check_config(options: Any) -> int:
    from .config import file, host, lines
    from .follow.config import kubeconfig

    text, faults = file.load(options.config)
    faults = faults or kubeconfig(text, options.config)
    if faults:
        return _refuse(*faults)
    parsed, faults = file.parse(text, options.config)
    if faults:
        return _refuse(*faults)
    kind, faults = file.kind(parsed, options.config)
    if faults:
        return _refuse(*faults)
    config = _module(f"{kind}.config")
    settings, faults = config.parse(text, options.config, host)
    if settings is None:
        return _refuse(*lines.numbered(text, faults))
    counts, notes = config.counts(settings), config.notes(settings, host.has_interface)
    _print("".join([f"{options.config} is good: {', '.join(counts)}.\n", *(f"Note: {note}\n" for note in notes)]))
    return GOOD


def _status(options: Any) -> int:
    """Ask the agent at a socket, or each one that has a socket at a default path."""
    import os

    from .anycast.settings import STATUS_SOCKET as ANYCAST
    from .config import reports
    from .direct.settings import STATUS_SOCKET as DIRECT
    from .follow.settings import STATUS_SOCKET as FOLLOW
    from .proxy.settings import Settings as Proxy
    from .runtime import status_socket
    from .vrrp.settings import Settings as Vrrp

    defaults = [Vrrp(()).status_socket, Proxy(()).status_socket]
    exit_code = GOOD
    there = [path for path in (*defaults, FOLLOW, DIRECT, ANYCAST) if os.path.exists(path)]
    for path in [options.socket] if options.socket else there or defaults:
        try:
            _print(_formatted(status_socket.fetch(path), options.format))
        except status_socket.Refused as refused:
            exit_code = _refuse(str(refused))
        except reports.STRANGE:
            exit_code = _refuse(f"{path}: the agent there is another version than {VERSION}: use --format json.")
    return exit_code


def _formatted(report: Any, form: str) -> str:
    import json
    import time

    if form == "json":
        return json.dumps(report, indent=2) + "\n"
    table, metrics = next((modules for key, modules in SHOWN.items() if key in report), VRRP)
    text = _module(metrics).prometheus(report) if form == "prometheus" else _module(table).table(report, time.time())
    return str(text)


def _server(options: Any) -> int:
    """Ask the plane at a socket, or each one that has a socket at a default path, until one knows the server."""
    import os

    from .direct.settings import STATUS_SOCKET as DIRECT
    from .proxy.master import admin
    from .proxy.settings import Settings
    from .runtime import status_socket

    usual = Settings(()).status_socket
    there = [path for path in (usual, DIRECT) if os.path.exists(path)]
    refusals = []
    for path in [options.socket] if options.socket else there or [usual]:
        try:
            _print(f"{admin.request(path, options.server, options.order)}\n")
            return GOOD
        except status_socket.Refused as refused:
            refusals.append(str(refused))
    return _refuse(*refusals)


def _metrics(options: Any) -> int:
    from .metrics import writer
    from .runtime.log import Log

    about = writer.Options(options.certificate, options.haproxy_socket, options.drill or writer.DRILL)
    if not options.file:
        _print(writer.Writer(about, writer.router, Log()).text())
        return GOOD
    try:
        writer.main(options.file, about, Log())
    except OSError as error:
        return _refuse(f"{options.file} cannot be written: {error.strerror}.")
    return GOOD


def _resolver_keeper(options: Any) -> int:
    from .resolver import keeper
    from .runtime.log import Log

    try:
        keeper.main(options.config, Log().warning)
    except (OSError, ValueError, TypeError) as error:
        return _refuse(f"{options.config} cannot be used: {error}.")
    return GOOD


def _certificates(options: Any) -> int:
    from .certificates import keeper
    from .runtime.log import Log

    keeper.main(keeper.Settings(options.config, options.record, options.unit, options.paths), Log())


def _print(text: str) -> None:
    """Print to the standard output.

    :raises SystemExit: it is full or closed; the standard error says so
    """
    import os

    if sys.stdout is None:  # it was closed before Python started
        raise SystemExit(_refuse("the output cannot be written: it is closed."))
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # at its exit Python writes what is left
        raise SystemExit(_refuse(f"the output cannot be written: {error.strerror}.")) from None


def _refuse(*sentences: str) -> int:
    for sentence in sentences if sys.stderr else ():
        sys.stderr.write(f"{sentence}\n")
    return REFUSED


if __name__ == "__main__":
    raise SystemExit(main())
