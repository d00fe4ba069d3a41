# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A failure on purpose, and its undoing, both started by timers of the host itself.

The host's own systemd counts the time, so that the failure is undone when the drill is interrupted, and
also when the failure has cut the host off from whoever ordered it. The undo timer is armed before the
other.
"""

from __future__ import annotations

import datetime
import re
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import PROXY, VRRP, Daemon

PLAY = "onprem-lb-drill-play"
UNDO = "onprem-lb-drill-undo"
TABLE = "netdev onprem_lb_drill"
EVENTS = (
    "haproxy_killed",
    "haproxy_stopped",
    "haproxy_reloaded",
    "keepalived_killed",
    "keepalived_stopped",
    "host_cut",
)
# To delete a table that may be missing, without an error: add it first, in the same transaction.
DELETE_TABLE = f"add table {TABLE}; delete table {TABLE}"
# Linux takes nearly anything for a name; what this leaves out would need quoting twice, for the shell and
# for nft.
INTERFACE = re.compile(r"[A-Za-z0-9_.:@-]{1,15}")

Run = Callable[[Sequence[str]], Tuple[int, str, str]]


class Refused(Exception):
    """The event cannot be played here; the text is one sentence that says why."""


# What stands for haproxy and for keepalived on a host of each engine.
UNITS = {
    "native": {"haproxy": "haproxy.service", "keepalived": "keepalived.service"},
    "agent": {"haproxy": Daemon(PROXY).unit, "keepalived": Daemon(VRRP).unit},
}


class Script(NamedTuple):
    """What a failure is: the unit it needs, the command that plays it and the one that undoes it (or
    nothing)."""

    unit: str
    play: str
    undo: str
    cuts: bool = False  # the host off


def cut_rules(interface: str) -> str:
    """Drops every frame both ways. The netdev hooks see ARP and raw frames too, which an ``inet`` table
    does not: without them keepalived's announcements would still leave the host. First of all priorities
    (-500)."""
    where = f'device "{interface}" priority -500; policy drop;'
    chains = [f"add chain {TABLE} {hook} {{ type filter hook {hook} {where} }}" for hook in ("ingress", "egress")]
    return "; ".join([f"add table {TABLE}"] + chains)


def script_for(event: str, interface: str = "", own: Optional[Dict[str, str]] = None, engine: str = "native") -> Script:
    """Shell commands without ``$`` and ``%``, which systemd would expand.

    :param own: the commands of an event that is none of ours, ``{play, undo}``
    """
    if own:
        return Script("", _unexpanded(own["play"]), _unexpanded(own.get("undo", "")))
    if event == "host_cut":
        if not INTERFACE.fullmatch(interface):
            raise Refused(f"host_cut needs the interface to cut, and {interface!r} is not the name of one.")
        return Script("", f"nft '{cut_rules(interface)}'", f"nft '{DELETE_TABLE}'", cuts=True)
    program, _underscore, what = event.rpartition("_")
    unit = UNITS[engine].get(program, "")
    # Several kills within the start limit, and start alone would be refused.
    start = f"systemctl reset-failed {unit}; systemctl start {unit}"
    plays = {
        # Every process of the unit's control group at once: workers too, and those of an unfinished reload.
        "killed": Script(unit, f"systemctl kill --signal=KILL {unit}", start),
        "stopped": Script(unit, f"systemctl stop {unit}", start),
        "reloaded": Script(unit, f"systemctl reload {unit}", ""),
    }
    if event not in EVENTS:
        raise Refused(f"There is no event {event}; there are {', '.join(EVENTS)}, and any with a command of your own.")
    return plays[what]


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
    """One timer to set: its name, when it fires, and the command that sets it."""

    name: str
    in_s: float
    command: List[str]


def armings(event: str, script: Script, after_s: float, undo_after_s: float) -> List[TimerSpec]:
    """In the order in which they must be set: whatever interrupts us in between, nothing is left undone."""
    found = []
    if script.undo:
        at = after_s + undo_after_s
        found.append(TimerSpec(UNDO, at, arm_command(UNDO, at, script.undo, f"onprem.lb drill: undo {event}")))
    found.append(TimerSpec(PLAY, after_s, arm_command(PLAY, after_s, script.play, f"onprem.lb drill: {event}")))
    return found


def left_over(run: Run) -> List[str]:
    """The drill's timers that are still armed."""
    return [
        f"{name}.timer" for name in (PLAY, UNDO) if run(["systemctl", "is-active", "--quiet", f"{name}.timer"])[0] == 0
    ]


def clear(run: Run, have_nft: bool) -> List[str]:
    """Takes back an earlier drill: no more failure, then its undoing at once, then no more timer. Says what
    it found."""
    found = left_over(run)
    run(["systemctl", "stop", f"{PLAY}.timer", f"{PLAY}.service"])
    if f"{UNDO}.timer" in found:
        _done(run, ["systemctl", "start", f"{UNDO}.service"])
        run(["systemctl", "stop", f"{UNDO}.timer"])
    if have_nft and run(["nft", "list", "table", *TABLE.split()])[0] == 0:
        _done(run, ["nft", DELETE_TABLE])
        found.append(f"table {TABLE}")
    return found


def check(script: Script, interface: str, interfaces: Sequence[str], run: Run, have_nft: bool) -> None:
    """Refuses what could not be played, while nothing has happened yet."""
    if script.unit:
        _rc, out, _err = run(["systemctl", "show", "--property=LoadState,ActiveState", script.unit])
        state = dict(line.split("=", 1) for line in out.split() if "=" in line)
        if state.get("LoadState") != "loaded":
            raise Refused(f"There is no {script.unit} on this host.")
        if state.get("ActiveState") not in ("active", "reloading"):
            raise Refused(f"{script.unit} is not running ({state.get('ActiveState')}): it cannot fail.")
        return
    if not script.cuts:
        return
    if not have_nft:
        raise Refused("host_cut needs the command nft: install the package nftables.")
    # nft would not mind: a chain may wait for its interface.
    if interface not in interfaces:
        raise Refused(f"There is no interface {interface} on this host.")
    # Asks the kernel, changes nothing.
    rc, _out, err = run(["nft", "--check", cut_rules(interface)])
    if rc:
        raise Refused(f"host_cut needs Linux with the netdev egress hook (5.16 or later); nft says: {_first_line(err)}")


def arm(armed: Sequence[TimerSpec], run: Run) -> None:
    """Sets the timers; if one cannot be set, the others are taken back."""
    try:
        for arming in armed:
            _done(run, arming.command)
    except Refused:
        run(["systemctl", "stop", f"{PLAY}.timer", f"{UNDO}.timer"])
        raise


def _done(run: Run, command: Sequence[str]) -> None:
    rc, out, err = run(command)
    if rc:
        raise Refused(f"{command[0]} failed (exit code {rc}): {_first_line(err or out)}")


def _first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[0] if lines else "nothing"


def schedule(armed: Sequence[TimerSpec], now: float) -> Dict[str, Any]:
    """What the module returns: which units fire, and when, by the host's own clock."""
    plays: Optional[str] = None
    undone: Optional[str] = None
    for arming in armed:
        moment = datetime.datetime.fromtimestamp(now + arming.in_s, datetime.timezone.utc)
        text = moment.isoformat(timespec="milliseconds")
        plays, undone = (text, undone) if arming.name == PLAY else (plays, text)
    return {"units": [f"{arming.name}.timer" for arming in armed], "plays_at": plays, "undone_at": undone}
