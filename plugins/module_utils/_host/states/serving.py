# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a member that announces its VIPs by BGP must not give up on the way back to a state. Pure.

Each member serves by itself, and none can ask whether another one does: a router does not say whom else it has a path
to. So each takes itself for the last one that serves. While it has a VIP on lo and a session, or may have, it returns
to nothing but what served that VIP when the run began, it ends no session that is established, and has its gate check
nothing else. Once it has returned it has to serve still: otherwise it goes forth again.

A member that serves nobody has nothing to give up, and returns wholly.

So that others serve meanwhile, one member returns after all the others have, or have gone forth again: it has the role
``first`` of `undoing`, whose heartbeats no member can outlast, and the others have ``other``.
"""

from __future__ import annotations

import json
from typing import Any, Collection, Dict, List, NamedTuple, Optional

from ..._shared import paths
from ..._shared.engines import AGENT, FRR_UNIT, NATIVE, UNITS
from ..read import frr_text
from . import undoing
from .snapshot import ANNOUNCING, SETS_UP, Snapshot

SERVING_UNITS = (UNITS[NATIVE].balancer, UNITS[AGENT].balancer, *ANNOUNCING)
NOBODY_BEFORE = "it served nobody for certain when the run began, and no other member can be asked whether it serves"


class Seen(NamedTuple):
    """What a member finds of itself.

    :ivar on_lo: the addresses of lo; None if they cannot be read
    :ivar established: the routers to which there is a session; None if FRR runs and does not say it
    :ivar running: the configuration that FRR runs
    """

    on_lo: Optional[Collection[str]] = None
    established: Optional[Collection[str]] = None
    running: str = ""


def concerns(now: Snapshot, then: Snapshot) -> bool:
    """Whether VIPs are announced, and no router of VRRP is beside that."""
    gates = any(name in each.units for each in (now, then) for name in ANNOUNCING)
    return gates and not (now.has_router or then.has_router)


def served(now: Snapshot, seen: Seen) -> List[str]:
    """Return the VIPs that this member serves, or may serve as far as it is known."""
    if seen.established is not None and not seen.established:
        return []
    vips = _checks_of_vips(now)
    if vips is None:
        return ["its VIPs"]  # whichever they are
    return [vip for vip in vips if seen.on_lo is None or vip in seen.on_lo]


def certain(now: Snapshot, seen: Seen) -> List[str]:
    """Return the VIPs that this member serves for certain."""
    return [vip for vip in served(now, seen) if seen.established and vip in (seen.on_lo or ())]


def reason_to_stay(now: Snapshot, then: Snapshot, seen: Seen) -> str:
    """Return why nothing of this member may return; '' if it may, but for what `reason_of_frr` keeps."""
    serves = served(now, seen)
    if not serves:
        return ""
    before, after = _checks_of_vips(then), _checks_of_vips(now)
    if not then.served:
        return NOBODY_BEFORE
    if before is None or after is None:
        return f"{paths.GATE_CONFIG} cannot be read, {'now' if after is None else 'as it was before'}"
    unserved = [vip for vip in serves if vip in before and vip not in then.served]
    if unserved:
        return f"it did not serve {', '.join(unserved)} when the run began"
    others = [vip for vip in serves if vip in before and before[vip] != after[vip]]
    if others:
        return f"it serves {', '.join(others)} with other checks than before, which may ask for what would be gone"
    new = [vip for vip in before if vip not in after]
    if new and reason_of_frr(now, then, seen):
        return f"{reason_of_frr(now, then, seen)}, and FRR announces no {', '.join(new)} as it is"
    return ""


def reason_of_frr(now: Snapshot, then: Snapshot, seen: Seen) -> str:
    """Return why FRR has to go on as it is, with its files; '' if it may return."""
    if not served(now, seen) or _frr(now) == _frr(then):
        return ""
    if seen.established is None:
        return "FRR does not say which sessions it has"
    text = _frr(then).get(paths.FRR_CONFIG, b"").decode(errors="replace")
    ended = [peer for peer in frr_text.resets(text, seen.running) if peer in seen.established]
    return f"the session with {', '.join(ended)} is established, and would end" if ended else ""


def lost(vips: Collection[str], seen: Seen) -> List[str]:
    """Return which of these VIPs this member serves no longer, for certain."""
    if seen.established is not None and not seen.established:
        return sorted(vips)
    return sorted(vip for vip in vips if seen.on_lo is not None and vip not in seen.on_lo)


def of_both(vips: Collection[str], then: Snapshot) -> List[str]:
    """Return those VIPs that a state has, too: one that the run has brought goes with the run."""
    before = _checks_of_vips(then) or {}
    return [vip for vip in vips if vip in before]


def compared(then: Snapshot, serves: Collection[str]) -> Dict[str, Any]:
    """Return what a rollback to a state has to know of a member.

    :param serves: the VIPs that it serves now, for certain
    """
    could_serve = then.announces and then.could_serve
    conf = _frr(then).get(paths.FRR_CONFIG, b"").decode(errors="replace")
    return {
        "now": [*serves],
        "vips": [*(_checks_of_vips(then) or {})] if could_serve else [],
        "sessions": frr_text.peers(conf) if could_serve else [],
        "units": [name for name, unit in then.units.items() if unit.active and name in SERVING_UNITS],
    }


def is_without_frr(now: Snapshot) -> bool:
    """Whether FRR is not set up here, or does not run, as systemd says."""
    if FRR_UNIT in now.units:
        return not now.units[FRR_UNIT].active
    return not SETS_UP[FRR_UNIT] <= {file.path for file in now.files}


def proof_s(settle: float) -> float:
    """Return for how many seconds a member that has returned shows whether it serves still.

    Twice that, and the return before it, fits between the others and the ``first``, however late a heartbeat was.
    """
    return (settle + undoing.LATER_S / 2) / 2 - undoing.RETURN_S


def _frr(snapshot: Snapshot) -> Dict[str, bytes]:
    return {file.path: file.content for file in snapshot.files if file.path in paths.FRR_FILES}


def _checks_of_vips(snapshot: Snapshot) -> Optional[Dict[str, List[Any]]]:
    """Return the checks that each VIP tracks; None if that cannot be read."""
    text = next((file.content for file in snapshot.files if file.path == paths.GATE_CONFIG), b"")
    if not text and not snapshot.announces:
        return {}
    try:
        config = json.loads(text)
        known = {check["name"]: check for check in config.get("checks", [])}
        return {vip["address"]: [known[name] for name in vip["track"]] for vip in config["vips"]}
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
