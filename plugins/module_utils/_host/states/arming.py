# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Arms, postpones and cancels the undo of a member: a timer of the host itself, which no controller needs to reach.

A record says what is due. It survives a reboot, and so does the unit: a member that boots with an undo armed returns to
its old state before its router starts.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import time
from typing import List, NamedTuple, Optional, Sequence

from .. import interpreter
from ..read.reader import Run, show
from ..records import DUE, RETURNED, UNDO, WRITTEN, due, forget, has_returned, read, write
from . import undoing
from .snapshot import ROUTERS

PROGRAM = f"{UNDO}/undo.pyz"
NAME = "onprem-lb-undo"
UNITS = "/etc/systemd/system"
WANTS = f"{UNITS}/multi-user.target.wants"
BLOCKS = "/run/systemd/system"  # where a router's start is blocked; a reboot ends that
BOOT_ID = "/proc/sys/kernel/random/boot_id"
ANNOUNCED = f"/run/{NAME}.announced"  # when a heartbeat was announced, by the clock that systemd's timers have

TIMER = """\
# Managed by Ansible, onprem.lb.layout.
[Unit]
Description=Return of this member to its previous settings, unless a run confirms the new ones
# Every heartbeat starts it anew, and some follow each other within seconds.
StartLimitIntervalSec=0

[Timer]
OnActiveSec={seconds:.0f}s
AccuracySec=100ms
"""
SERVICE = """\
# Managed by Ansible, onprem.lb.layout.
[Unit]
Description=Return of this member to its previous settings, which no run has confirmed
ConditionPathExists={due}
After=network-online.target
# At boot this comes first, but for FRR, which starts before the network. It announces nothing before the last of these.
Before=haproxy.service keepalived.service onprem-lb-proxy.service onprem-lb-vrrp.service onprem-lb-anycast.service
StartLimitIntervalSec=0

[Service]
Type=notify
ExecStart={command}
Restart=on-failure
RestartSec=2s
# It ends between two steps, and not within one.
TimeoutStopSec=60s
KillMode=mixed

[Install]
WantedBy=multi-user.target
"""
BLOCKING = f"""\
# Managed by Ansible, onprem.lb.layout.
[Unit]
# Until {NAME}.service has seen that this router disagrees with none on its link.
Description=VRRP router, which {NAME}.service starts; onprem.lb.site does so, too
AssertPathExists=!{DUE}
"""


class Refused(Exception):
    """The undo cannot be armed, postponed or confirmed; the message is a sentence."""


class Late(Refused):
    """A heartbeat came when the member had begun to return."""


class Due(NamedTuple):
    """An undo: the run that armed it, the state to return to, and how."""

    run: str
    id: str
    role: str
    after: float  # seconds without a heartbeat of the controller
    settle: float
    boot: str = ""
    first: Sequence[str] = ()  # the addresses of the member that is the first one


def boot_id() -> str:
    with open(BOOT_ID, encoding="ascii") as file:
        return file.read().strip()


def target(wanted: Due) -> str:
    """Return the state to return to: that of before an interrupted run, if this one has taken over what it had armed.

    :raises Refused: if the member has returned since the run began
    """
    if has_returned():
        raise Refused("This member has returned to its previous settings while the run was planned: repeat the run.")
    return str(due().get("id", wanted.run))


def arm(run: Run, wanted: Due, program: bytes) -> None:
    """Arm the undo. Its record comes last but for the timer, so that a boot in between finds all of it or nothing."""
    write_file(PROGRAM, program, 0o700)
    command = shlex.join([interpreter.lasting(), "-I", PROGRAM])
    write_file(f"{UNITS}/{NAME}.service", SERVICE.format(due=DUE, command=command).encode())
    seconds = undoing.delay(wanted.role, wanted.after, wanted.settle)
    write_file(f"{UNITS}/{NAME}.timer", TIMER.format(seconds=seconds).encode())
    os.makedirs(WANTS, mode=0o755, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.symlink(f"{UNITS}/{NAME}.service", f"{WANTS}/{NAME}.service")
    write(DUE, wanted._replace(boot=boot_id())._asdict())
    for command_line in (["systemctl", "daemon-reload"], ["systemctl", "restart", f"{NAME}.timer"]):
        _must(run, command_line)


def announce() -> None:
    """Record that a heartbeat is on its way; see `undoing.is_in_time`."""
    write_file(ANNOUNCED, f"{time.monotonic()}\n".encode())


def postpone(run: Run, wanted: Due, program: bytes) -> bool:
    """Let the timer begin anew: the controller lives.

    :returns: False if the heartbeat took too long. The member keeps the time that it has, and another heartbeat
        may be announced until then
    :raises Refused: if the undo has begun, or is over. It then begins again, because the run may have changed something
    """
    _require_armed(run, wanted, program)
    if not undoing.is_in_time(wanted.role, wanted.after, wanted.settle, _since_announced()):
        return False
    _must(run, ["systemctl", "restart", f"{NAME}.timer"])
    _require_armed(run, wanted, program)  # its time may have come before that
    return True


def confirm(run: Run, wanted: Optional[Due], program: bytes) -> None:
    """Disarm the undo of a run whose change is proved.

    :param wanted: None where this run has armed none
    :raises Refused: as `postpone`
    """
    if wanted:
        _require_armed(run, wanted, program)
        run(["systemctl", "stop", f"{NAME}.timer"])
        _require_armed(run, wanted, program)  # its time may have come before that
    if due():
        end(run)


def abandon(run: Run, wanted: Due, program: bytes) -> None:
    """Let the member return, because the run has failed. One that has returned already may have been changed since."""
    if has_returned() and not due():
        _begin_again(run, wanted, program)


def take_over(run: Run) -> None:
    """Postpone what an interrupted run has armed, for the run that mends it.

    An undo that has begun is ended after its step. A router that it keeps stopped stays so, and may be started. A sign
    of life that took too long changes nothing: if the member has returned when the run arms, that refuses to go on.
    """
    found = due()
    if begun(run):
        end(run)
    elif found and undoing.is_in_time(found["role"], found["after"], found["settle"], _since_announced()):
        _must(run, ["systemctl", "restart", f"{NAME}.timer"])


def end(run: Run) -> None:
    """Disarm the undo."""
    run(["systemctl", "stop", f"{NAME}.timer", f"{NAME}.service"])
    clear(run)


def clear(run: Run) -> None:
    """Remove what belongs to one undo. Its record goes first."""
    own = [
        DUE,
        WRITTEN,
        f"{WANTS}/{NAME}.service",
        f"{UNITS}/{NAME}.timer",
        f"{UNITS}/{NAME}.service",
        PROGRAM,
        ANNOUNCED,
    ]
    for path in [*own, *(_block_of(unit) for unit in ROUTERS)]:
        forget(path)
    run(["systemctl", "stop", f"{NAME}.timer"])  # it stays active once it has elapsed
    run(["systemctl", "daemon-reload"])


def block(run: Run) -> None:
    """Let no start of a router succeed: not that of a run either, which goes on too late."""
    for unit in ROUTERS:
        write_file(_block_of(unit), BLOCKING.encode())
    _must(run, ["systemctl", "daemon-reload"])


def unblock(run: Run) -> None:
    for unit in ROUTERS:
        forget(_block_of(unit))
    _must(run, ["systemctl", "daemon-reload"])


def _block_of(unit: str) -> str:
    return f"{BLOCKS}/{unit}.d/{NAME}.conf"


def begun(run: Run) -> bool:
    """Whether the undo has begun, and is not over."""
    state = show(run, [f"{NAME}.service"], ["ActiveState"])[0].get("ActiveState")
    return state in ("activating", "active", "deactivating")


def _require_armed(run: Run, wanted: Due, program: bytes) -> None:
    # The program needs a moment until it records that it has begun.
    if due().get("run") == wanted.run and not has_returned() and not begun(run):
        return
    _begin_again(run, wanted, program)
    seconds = undoing.delay(wanted.role, wanted.after, wanted.settle)
    raise Late(
        f"For {seconds:g} s no heartbeat of the run came in time, so this member returns to its previous settings."
    )


def _begin_again(run: Run, wanted: Due, program: bytes) -> None:
    """Begin the undo now. It may be over, and the run may have changed something since."""
    if not due():
        returned = read(RETURNED)
        again = wanted._replace(id=returned.get("id", wanted.run), first=returned.get("first", ()))
        arm(run, again, program)
    _must(run, ["systemctl", "restart", "--no-block", f"{NAME}.service"])


def _since_announced() -> Optional[float]:
    with contextlib.suppress(OSError, ValueError), open(ANNOUNCED, encoding="ascii") as file:
        return time.monotonic() - float(file.read())
    return None


def write_file(path: str, content: bytes, mode: int = 0o644) -> None:
    os.makedirs(os.path.dirname(path), mode=0o700 if path.startswith(UNDO) else 0o755, exist_ok=True)
    with open(f"{path}.new", "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.rename(f"{path}.new", path)


def _must(run: Run, command: List[str]) -> None:
    code, out, err = run(command)
    if code:
        raise Refused(f"{' '.join(command)} failed: {' '.join((err or out).split())} (exit code {code})")
