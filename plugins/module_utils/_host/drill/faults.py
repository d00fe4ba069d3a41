# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Injects a failure and reverts it; timers of the host itself start both.

The host's own systemd counts the time, so the failure is reverted even if the drill is interrupted or the failure has
cut the host off from the controller. The timer that reverts is armed first.
"""

from __future__ import annotations

import datetime
import ipaddress
import re
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from ..._shared.engines import DIRECT, HAPROXY, KEEPALIVED, UNITS, Daemon
from ..._shared.events import (
    BOTH_RELOADED,
    CONNTRACK_FULL,
    DIRECT_DOWN,
    DISK_FULL,
    EVENTS,
    HOST_CUT,
    HOST_REBOOTED,
    LINK_FLAPPING,
    ON_SERVER,
    PORT_DOWN,
    ROUTER_GONE,
    SLOW_BACKEND,
    STRANGER_WITH_VIP,
    VRRP_LOST,
)
from ..read.balancer import Server
from ..read.reader import Run, show
from . import announced, backend, conntrack, disk, lost_server, ports, stranger
from .script import Refused, Script, first_line

INJECT = "onprem-lb-drill-inject"
REVERT = "onprem-lb-drill-revert"
TABLE = "netdev onprem_lb_drill"
# To delete a table that may be missing, without an error: add it first, in the same transaction.
DELETE_TABLE = f"add table {TABLE}; delete table {TABLE}"
# Linux allows nearly any name; one with other characters than these would need quoting twice, for the shell and for
# nft.
INTERFACE = re.compile(r"[A-Za-z0-9_.:@-]{1,15}")


def cut_rules(*interfaces: str) -> str:
    """Return the rules that drop every frame in both directions, before all other rules (priority -500).

    The netdev hooks see ARP and raw frames too. An ``inet`` table does not, and keepalived's announcements would still
    leave the host.
    """
    chains = [
        f'add chain {TABLE} {hook}{number or ""} {{ type filter hook {hook} device "{interface}" priority -500; '
        "policy drop; }"
        for number, interface in enumerate(interfaces)
        for hook in ("ingress", "egress")
    ]
    return "; ".join([f"add table {TABLE}"] + chains)


def loss_rules(interface: str) -> str:
    """Return the rules that drop the Advertisements that leave the host, and nothing else."""
    chain = f'{TABLE} egress {{ type filter hook egress device "{interface}" priority -500; policy accept; }}'
    drops = [f"add rule {TABLE} egress {header} 112 drop" for header in ("ip protocol", "ip6 nexthdr")]
    return "; ".join([f"add table {TABLE}", f"add chain {chain}", *drops])


RULES = (HOST_CUT, VRRP_LOST)
LINKS = (PORT_DOWN, LINK_FLAPPING)
ON_INTERFACE = (*RULES, *LINKS, STRANGER_WITH_VIP)
SHORTEST_FLAP = 0.01  # seconds


class Target(NamedTuple):
    """Where an event happens.

    :ivar interface: of the VIPs
    :ivar vrrp_interface: on which the members advertise, if that is another one
    :ivar flap_seconds: how long a link that flaps is down, and then up
    :ivar uids: the users that the balancer connects as, for servers that are slow
    :ivar vip: the address that a stranger has
    :ivar disks: the file systems that are full
    :ivar server: the one that is lost, as `lost_server.lost` takes it
    :ivar known: the servers of the balancer
    :ivar router: the one that is gone
    :ivar announces: whether BGP carries the VIPs, so that no router of VRRP runs
    """

    interface: str = ""
    engine: str = "native"
    port: Optional[ports.Port] = None  # what is known of the interface, for an event that takes its link away
    flap_seconds: float = 1.0
    uids: Sequence[int] = ()
    vip: str = ""
    disks: Sequence[disk.Disk] = ()
    server: Mapping[str, Any] = {}
    known: Sequence[Server] = ()
    router: announced.Router = announced.Router("", "", "")
    announces: bool = False
    vrrp_interface: str = ""

    @property
    def interfaces(self) -> Sequence[str]:
        return [name for name in (self.interface, self.vrrp_interface) if name]

    @property
    def units(self) -> Sequence[str]:
        """Those that have to start at boot."""
        units = UNITS[self.engine]
        return (units.balancer, *announced.FOR_BGP) if self.announces else units


NOWHERE = Target()


def script_for(event: str, target: Target = NOWHERE, own: Optional[Dict[str, str]] = None) -> Script:
    """Return the shell commands of an event, without ``$`` and ``%``, which systemd would expand.

    :param own: the commands of a user's own event, ``{inject, revert}``
    """
    if own:
        return Script((), _unexpanded(own["inject"]), _unexpanded(own.get("revert", "")))
    if event not in EVENTS:
        raise Refused(f"There is no event {event}; there are {', '.join(EVENTS)}, and any with a command of your own.")
    if event in ON_INTERFACE:
        return _on_interface(event, target)
    if event == HOST_REBOOTED:
        return Script(target.units, "systemctl reboot", "", boots=True)
    if event == ROUTER_GONE:
        return announced.router_gone(target.router, checked_address(event, target.vip), TABLE, DELETE_TABLE)
    if event in announced.SIMPLE:
        return announced.SIMPLE[event]()
    if event == SLOW_BACKEND:
        return backend.slow(UNITS[target.engine].balancer, target.uids)
    if event in ON_SERVER:
        return lost_server.lost(event, UNITS[target.engine].balancer, target.server, target.known)
    if event == CONNTRACK_FULL:
        return conntrack.full()
    if event == DISK_FULL:
        return disk.full(target.disks)
    return _on_units(event, target.engine)


def refuse_name(event: str, interface: str) -> None:
    """Refuse an interface that the shell or nft could misread."""
    if not INTERFACE.fullmatch(interface):
        raise Refused(f"{event} needs an interface, and {interface!r} is not the name of one.")


def checked_address(event: str, address: str, what: str = "vip") -> str:
    """Return an address as it is written in a command.

    :raises Refused: it is none
    """
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        raise Refused(f"{event} needs {what}, and {address!r} is not an address.") from None


def _on_interface(event: str, target: Target) -> Script:
    interface = target.interface
    for each in target.interfaces or [interface]:
        refuse_name(event, each)
    if event in RULES:
        is_cut = event == HOST_CUT
        rules = cut_rules(*target.interfaces) if is_cut else loss_rules(target.vrrp_interface or interface)
        return Script((), f"nft '{rules}'", f"nft '{DELETE_TABLE}'", rules)
    if event == STRANGER_WITH_VIP:
        return Script((), *stranger.arrives(interface, checked_address(event, target.vip), f"{INJECT}.service"))
    port = target.port or ports.Port(interface)
    if event == PORT_DOWN:
        return ports.down(port)
    return ports.flapping(port, target.flap_seconds, f"{INJECT}.service")


def _on_units(event: str, engine: str) -> Script:
    if event == BOTH_RELOADED:
        return Script(UNITS[engine], f"systemctl reload {' '.join(UNITS[engine])}", "")
    program, _underscore, what = (DIRECT, "", "stopped") if event == DIRECT_DOWN else event.rpartition("_")
    unit = {**dict(zip((HAPROXY, KEEPALIVED), UNITS[engine])), DIRECT: Daemon(DIRECT).unit}[program]
    # After several kills within the start limit `start` alone would be refused.
    start = f"systemctl reset-failed {unit}; systemctl start {unit}"
    scripts = {
        # Every process of the unit's control group at once: workers too, and those of an unfinished reload.
        "killed": Script((unit,), f"systemctl kill --signal=KILL {unit}", start),
        # A watchdog may have killed it meanwhile.
        "hung": Script(
            (unit,), f"systemctl kill --signal=STOP {unit}", f"systemctl kill --signal=CONT {unit}; {start}"
        ),
        "stopped": Script((unit,), f"systemctl stop {unit}", start),
        "reloaded": Script((unit,), f"systemctl reload {unit}", ""),
    }
    return scripts[what]


def _unexpanded(command: str) -> str:
    return command.replace("%", "%%").replace("$", "$$")


def arm_command(name: str, after_s: float, command: str, description: str) -> List[str]:
    return [
        "systemd-run",
        "--quiet",
        "--collect",
        f"--unit={name}",
        f"--description={description}",
        f"--on-active={round(after_s * 1000)}ms",
        "--timer-property=AccuracySec=1ms",
        "--service-type=oneshot",
        "/bin/sh",
        "-c",
        command,
    ]


class TimerSpec(NamedTuple):
    """A timer to arm: its name, in how many seconds it fires, and the command that arms it."""

    name: str
    in_s: float
    command: List[str]


def timers(event: str, script: Script, after_s: float, revert_after_s: float) -> List[TimerSpec]:
    """Return the timers in the order in which to arm them: no interruption leaves a failure that nothing reverts."""
    found = []
    if script.revert:
        at = after_s + revert_after_s
        found.append(TimerSpec(REVERT, at, arm_command(REVERT, at, script.revert, f"onprem.lb drill: revert {event}")))
    found.append(TimerSpec(INJECT, after_s, arm_command(INJECT, after_s, script.inject, f"onprem.lb drill: {event}")))
    return found


def left_over(run: Run) -> List[str]:
    """Return the drill's timers that are still armed."""
    return [
        f"{name}.timer"
        for name in (INJECT, REVERT)
        if run(["systemctl", "is-active", "--quiet", f"{name}.timer"])[0] == 0
    ]


def clear(run: Run, have_nft: bool, folders: Sequence[str] = ()) -> List[str]:
    """Clean up after an earlier drill and return what was left: inject nothing more, revert now, remove the timers.

    :param folders: where a full disk may have been left, by a host that was rebooted meanwhile
    """
    found = left_over(run)
    run(["systemctl", "stop", f"{INJECT}.timer", f"{INJECT}.service"])
    if f"{REVERT}.timer" in found:
        _done(run, ["systemctl", "start", f"{REVERT}.service"])
        run(["systemctl", "stop", f"{REVERT}.timer"])
    for table, delete in ((TABLE, DELETE_TABLE), (backend.TABLE, backend.DELETE_TABLE)):
        if have_nft and run(["nft", "list", "table", *table.split()])[0] == 0:
            _done(run, ["nft", delete])
            found.append(f"table {table}")
    for file in map(disk.file_in, folders):
        if run(["test", "-e", file])[0] == 0:
            _done(run, ["rm", "--force", file])
            found.append(file)
    return found


def check(script: Script, named: Sequence[str], interfaces: Sequence[str], run: Run, have_nft: bool) -> None:
    """Refuse a failure that cannot be injected here, before anything has changed.

    :param named: the interfaces where it happens
    :param interfaces: those of this host
    """
    for unit in script.units:
        state = show(run, [unit], ["LoadState", "ActiveState", "UnitFileState"])[0]
        if state.get("LoadState") != "loaded":
            raise Refused(f"There is no {unit} on this host.")
        if state.get("ActiveState") not in ("active", "reloading"):
            raise Refused(f"{unit} is not running ({state.get('ActiveState')}): it cannot fail.")
        if script.boots and state.get("UnitFileState") != "enabled":
            raise Refused(f"{unit} does not start at boot ({state.get('UnitFileState')}): enable it.")
    # nft accepts a chain for an interface that does not exist yet.
    missing = [name for name in named if name not in interfaces]
    if missing:
        raise Refused(f"There is no interface {missing[0]} on this host.")
    if not script.rules:
        return
    if not have_nft:
        raise Refused("The event needs the command nft: install the package nftables.")
    # This asks the kernel and changes nothing.
    rc, _out, err = run(["nft", "--check", script.rules])
    if rc:
        raise Refused(f"The event needs {script.needs}; nft says: {first_line(err)}")


def arm(specs: Sequence[TimerSpec], run: Run) -> None:
    """Arm the timers; if one cannot be armed, remove the others."""
    try:
        for timer in specs:
            _done(run, timer.command)
    except Refused:
        run(["systemctl", "stop", f"{INJECT}.timer", f"{REVERT}.timer"])
        raise


def _done(run: Run, command: List[str]) -> None:
    rc, out, err = run(command)
    if rc:
        raise Refused(f"{command[0]} failed (exit code {rc}): {first_line(err or out)}")


def schedule(specs: Sequence[TimerSpec], now: float) -> Dict[str, Any]:
    """Return which units fire, and when, by the host's own clock."""
    utc = datetime.timezone.utc
    fires = {spec.name: datetime.datetime.fromtimestamp(now + spec.in_s, utc) for spec in specs}
    times = {name: at.isoformat(timespec="milliseconds") for name, at in fires.items()}
    return {
        "units": [f"{name}.timer" for name in times],
        "injected_at": times.get(INJECT),
        "reverted_at": times.get(REVERT),
    }
