# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The agent's paths and systemd units on a host: two daemons, each with its own user and configuration. Pure."""

from __future__ import annotations

import shlex
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from ..._shared import quoting
from ..._shared.engines import NATIVE, PROXY, UNITS, VRRP, Daemon


class Paths(NamedTuple):
    """The agent's paths on the host; tests use others."""

    library: str = "/usr/local/lib/onprem-lb-agent"
    configuration: str = "/etc/onprem-lb-agent"
    units: str = "/etc/systemd/system"

    @property
    def link(self) -> str:
        """The symbolic link to the current version."""
        return f"{self.library}/agent.pyz"

    def archive(self, digest: str) -> str:
        """Return the path of a version. Each has its own, because a running version continues to read its file."""
        return f"{self.library}/agent-{digest[:16]}.pyz"

    def program(self, daemon: Daemon) -> str:
        """Return the symbolic link to Python from which the process gets its name."""
        return f"{self.library}/{daemon.program}"

    def config(self, daemon: Daemon) -> str:
        return f"{self.configuration}/{daemon.name}.json"

    def unit(self, daemon: Daemon) -> str:
        return f"{self.units}/{daemon.unit}"

    @property
    def unfinished(self) -> str:
        """The mark that exists during a run, and after one that was interrupted."""
        return f"{self.configuration}/.unfinished"


class Options(NamedTuple):
    """What else the proxy's unit does; see the role's variables of the same names."""

    down_file: str = ""
    stop_pause: float = 0.2
    start_commands: Tuple[str, ...] = ()
    stop_commands: Tuple[str, ...] = ()


def unit(daemon: Daemon, config: Dict[str, Any], paths: Paths, options: Options) -> str:
    """Return the text of a daemon's unit."""
    parts = _vrrp(config) if daemon.name == VRRP else _proxy(config, options)
    command = f"{paths.program(daemon)} -I {paths.link}"
    file = paths.config(daemon)
    lines = [
        "# Managed by Ansible, onprem.lb.agent: changes made here are lost.",
        "[Unit]",
        f"Description={parts.description} of onprem.lb",
        "Wants=network-online.target",
        f"After={' '.join(['network-online.target', *parts.after])}",
        "# However often it dies, it is started again.",
        "StartLimitIntervalSec=0",
        "",
        "[Service]",
        "Type=notify",
        *([f"User={parts.user}"] if parts.user else []),
        f"ExecStart={command} {daemon.name} --config {file}",
        "# `systemctl reload` fails, with the reason, where the file has a fault.",
        f"ExecReload={command} check-config --config {file}",
        "ExecReload=/bin/kill -HUP $MAINPID",
        "Restart=always",
        "RestartSec=250ms",
        "WatchdogSec=10s",
        "# SIGTERM is for the main process alone; it ends the others itself.",
        "KillMode=mixed",
        f"TimeoutStopSec={config.get('stop_within', 8) + 2:g}s",  # more than the proxy itself waits for its sessions
        "# When memory runs out, the kernel ends other processes first.",
        "OOMScoreAdjust=-900",
        f"RuntimeDirectory={daemon.program}",
        "RuntimeDirectoryMode=0750",
        *parts.service,
        *SANDBOX,
        *parts.privileges,
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    ]
    return "\n".join(lines) + "\n"


class _UnitParts(NamedTuple):
    """The parts in which the units differ."""

    description: str
    user: str
    after: Tuple[str, ...]
    service: Sequence[str]
    privileges: Sequence[str]


SANDBOX = (
    "NoNewPrivileges=yes",
    "ProtectSystem=strict",
    "PrivateTmp=yes",
    "PrivateDevices=yes",
    "PrivateMounts=yes",
    "RemoveIPC=yes",
    "ProtectControlGroups=yes",
    "ProtectKernelModules=yes",
    "ProtectKernelTunables=yes",
    "ProtectKernelLogs=yes",
    "ProtectClock=yes",
    "ProtectHostname=yes",
    "RestrictNamespaces=yes",
    "RestrictSUIDSGID=yes",
    "LockPersonality=yes",
    "SystemCallArchitectures=native",
    "SystemCallFilter=@system-service",
    "SystemCallErrorNumber=EPERM",
)

# For addresses, raw sockets and realtime scheduling.
VRRP_CAPABILITIES = ("CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_SYS_NICE", "CAP_IPC_LOCK")
# Programs of the user's may compile their code when they run; the daemons do not.
NO_NEW_CODE = "MemoryDenyWriteExecute=yes"
# What a router without programs need not be able to do. Its checks drop their capabilities with capset, which is among
# @privileged, and real-time scheduling is among @resources.
WITHOUT_PROGRAMS = ("SystemCallFilter=~@privileged", "SystemCallFilter=capset", NO_NEW_CODE)
# To run programs as other users, and to end them.
SCRIPT_CAPABILITIES = ("CAP_SETUID", "CAP_SETGID", "CAP_KILL")


def _vrrp(config: Dict[str, Any]) -> _UnitParts:
    """Return the router's part. It runs as root only if it has programs to run, because they run as other users."""
    if runs_programs(config):
        # A unit without a user runs as root. With User=root systemd 257 would drop CAP_SETUID.
        user, privileges = "", [f"CapabilityBoundingSet={' '.join(VRRP_CAPABILITIES + SCRIPT_CAPABILITIES)}"]
    else:
        user, own = Daemon(VRRP).program, " ".join(VRRP_CAPABILITIES)
        privileges = [f"CapabilityBoundingSet={own}", f"AmbientCapabilities={own}", *WITHOUT_PROGRAMS]
    return _UnitParts(
        description="VRRP router",
        user=user,
        # At boot the balancer starts first, so that the first check finds it.
        after=(Daemon(PROXY).unit, UNITS[NATIVE].balancer),
        service=(),
        privileges=(
            *privileges,
            "UMask=0077",
            "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK AF_PACKET",
            "ProtectHome=read-only",
            *([] if _may_see_processes(config) else ["ProtectProc=invisible"]),
        ),
    )


def runs_programs(config: Dict[str, Any]) -> bool:
    """Whether a VRRP configuration names scripts or programs to notify."""
    notified = [*config.get("instances", ()), *config.get("sync_groups", ())]
    return any(each.get("notify") for each in notified) or any(
        check.get("type") == "script" for check in config.get("checks", ())
    )


def _may_see_processes(config: Dict[str, Any]) -> bool:
    """Whether a check or a program looks for other users' processes."""
    return runs_programs(config) or any(check.get("type") == "process" for check in config.get("checks", ()))


FILES_PER_SESSION = 6  # two sockets, and two pipes while much is spliced


def _proxy(config: Dict[str, Any], options: Options) -> _UnitParts:
    files = FILES_PER_SESSION * int(config.get("maxconn", 10000)) + 1024
    return _UnitParts(
        description="TCP balancer",
        user=Daemon(PROXY).program,
        after=(),
        service=(f"LimitNOFILE={files}", *_commands(options)),
        privileges=(
            "CapabilityBoundingSet=CAP_NET_BIND_SERVICE",
            "AmbientCapabilities=CAP_NET_BIND_SERVICE",
            "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6",
            "RestrictRealtime=yes",
            NO_NEW_CODE,
            "ProtectHome=yes",
            "ProtectProc=invisible",
            "ProcSubset=pid",
        ),
    )


def _commands(options: Options) -> List[str]:
    """Return the commands that run once the proxy serves, before it stops, and after it has ended in any way."""
    lines = [f"ExecStartPost={_run(command)}" for command in options.start_commands]
    lines += [f"ExecStop={_run(command)}" for command in options.stop_commands]
    lines += [f"ExecStopPost={_run(command)}" for command in options.stop_commands]
    if options.down_file:
        # The router tracks this file: the VIP leaves before the proxy stops, and at once when the proxy dies.
        file, pause = shlex.quote(options.down_file), options.stop_pause
        lines += [
            f"ExecStartPost=+{quoting.systemd_shell(f'echo 0 > {file}')}",
            f"ExecStop=+{quoting.systemd_shell(f'echo 1 > {file}; sleep {pause:g}')}",
            f"ExecStopPost=+{quoting.systemd_shell(f'echo 1 > {file}')}",
        ]
    return lines


def option_faults(options: Options) -> List[str]:
    """Return a sentence for each option that a unit cannot have."""
    given = [("down_file", options.down_file)] if options.down_file else []
    given += [("start_commands", command) for command in options.start_commands]
    given += [("stop_commands", command) for command in options.stop_commands]
    found = []
    for name, text in given:
        try:
            quoting.systemd_command(text if name != "down_file" else f"/bin/true {shlex.quote(text)}")
        except quoting.Unquotable as error:
            found.append(f"options.{name} has {text!r}: {error}")
    return found


def _run(command: str) -> str:
    """Return a command that runs as root outside the sandbox and may fail."""
    return "-+" + quoting.systemd_command(command)
