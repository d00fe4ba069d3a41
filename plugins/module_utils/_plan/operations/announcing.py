# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the status says of VIPs that members announce by BGP: each of them all of its own, as long as it serves. Pure.

A member announces a VIP that it has on lo if a session of the VIP's family is established and has it. Of one whose FRR
hangs nobody knows.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

from ..._agent.metrics.sessions import ESTABLISHED, family_of
from ..._shared import markdown
from ..._shared.engines import FRR_UNIT
from ..._shared.paths import GATE
from .members import Layout, Member, problem
from .outside import SYMPTOMS, duration, listed

HEAD = ["member", "engine", "versions", "VIPs announced", "could serve", "servers up"]
SESSIONS = ["member", "router", "family", "state", "for", "VIPs out", "BFD"]
HEARD = "routers"  # what a firewall has to let in beside clients
CAPABLE = "could_serve"
MEMBER_KEYS = ("held", "announcing")
DRAINED = (
    "FRR drains it (bgp graceful-shutdown), so that routers prefer the other members: onprem.lb.switchover -e "
    "switchover_back=true or onprem.lb.site ends that."
)


def announces(member: Member, vip: str) -> Optional[bool]:
    """Return whether a member announces a VIP; None if nobody knows."""
    if member.problem:
        return None
    if vip not in member.held or not member.announcing:
        return False
    if not member.announcing["sessions_known"]:
        return None
    return any(session["announces"] for session in _sessions(member, vip))


def _sessions(member: Member, vip: str) -> List[Mapping[str, Any]]:
    """Return the sessions of a VIP's family."""
    return [each for each in member.announcing.get("sessions", []) if each["family"] == family_of(vip)]


def due(layout: Layout, member: Member) -> List[str]:
    """Return the VIPs that a member should announce: those of the plan and of its configuration.

    Without a plan one that has no such configuration should announce all of them.
    """
    if member.planned is None and not member.announcing:
        return layout.every_vip
    return list(dict.fromkeys([*(member.planned or ()), *member.addresses]))


def carried(member: Member) -> List[str]:
    """Return the VIPs that a member announces."""
    return [vip for vip in member.held if announces(member, vip)]


def count(layout: Layout, member: Member) -> str:
    """Return how many of its VIPs a member announces."""
    own = due(layout, member)
    return "unknown" if None in {announces(member, vip) for vip in own} else f"{len(carried(member))} of {len(own)}"


def vip_line(layout: Layout, vip: str) -> str:
    """Say which members announce a VIP."""
    by = [member.name for member in layout.read if announces(member, vip)]
    unknown = [member.name for member in layout.read if announces(member, vip) is None]
    unsure = f"; whether {listed(unknown)} {'do' if len(unknown) > 1 else 'does'} is not known" if unknown else ""
    return f"{vip} is announced by {listed(by) or 'nobody'}{unsure}."


def vip_fault(layout: Layout, vip: str) -> str:
    """Return a sentence if no member is known to announce a VIP."""
    found = [announces(member, vip) for member in layout.members]
    if any(found):
        return ""
    known = "is known to announce" if None in found or layout.left_out else "announces"
    return f"No member {known} {vip}: see 'Nobody announces the VIP' in {SYMPTOMS}."


def asks(layout: Layout, vip: str) -> bool:
    """Whether a host that is no member asks through a VIP: where FRR hangs, an answer says what it does not."""
    return any(announces(member, vip) is not False for member in layout.read)


def member_fault(layout: Layout, member: Member) -> str:
    """Say why a member does not announce what it should, or may soon not; '' if it does well."""
    if member.problem:
        return f"{member.name} {member.problem}"
    if not due(layout, member) and not member.announcing:
        return ""  # it is to announce nothing
    silent = [vip for vip in due(layout, member) if announces(member, vip) is False]
    unsure = [vip for vip in due(layout, member) if announces(member, vip) is None]
    of_vips = [line for vip in [*silent, *unsure] for line in _why(member, vip)]
    why = list(dict.fromkeys([*_of_member(member), *of_vips]))
    if silent:
        return f"{member.name} does not announce {listed(silent)}: {' '.join(why)}"
    if unsure:
        return f"Whether {member.name} announces {listed(unsure)} is not known: {' '.join(why)}"
    return f"{member.name} announces its VIPs, but: {' '.join(why)}" if why else ""


def _of_member(member: Member) -> Iterator[str]:
    """Yield what is wrong with the whole of it."""
    yield from member.reasons
    if member.announcing.get("drained"):
        yield DRAINED
    said = [vip["reason"] for vip in member.announcing.get("vips", [])]
    if said and not any(said) and not any(reason.startswith(GATE) for reason in member.reasons):
        yield f"{GATE} does not answer, so that no VIP is put on lo or taken away."
    yield from _partly(member)
    yield from member.announcing.get("problems", [])


def _partly(member: Member) -> Iterator[str]:
    """Yield which routers were sent only a part of the VIPs: nobody knows which, unless they are asked."""
    for session in member.announcing.get("sessions", []):
        here = [vip for vip in member.held if family_of(vip) == session["family"]]
        if session["announces"] and session["sent"] < len(here):
            yield f"FRR has sent {session['peer']} {session['sent']} of {len(here)} VIPs."


def unproved(member: Member, vip: str) -> List[str]:
    """Return why not every router of a member is known to send it what is for a VIP; [] if each of them may."""
    if member.problem:
        return [f"It {member.problem}"]
    drained = [DRAINED] * bool(member.announcing.get("drained"))
    if not announces(member, vip):
        why = [*member.unable, *drained, *_why(member, vip)]
        return why or [f"It does not announce {vip}."]
    own, here = _sessions(member, vip), [each for each in member.held if family_of(each) == family_of(vip)]
    down = [f"No session with {each['peer']} ({each['state']})." for each in own if each["state"] != ESTABLISHED]
    short = [
        f"FRR has sent {each['peer']} {each['sent']} of {len(here)} VIPs."
        for each in own
        if each["state"] == ESTABLISHED and each["sent"] < len(here)
    ]
    return [*member.unable, *drained, *down, *short]


def _why(member: Member, vip: str) -> Iterator[str]:
    """Yield why a member does not announce a VIP, where that is not a reason for the whole of it."""
    if not member.announcing:
        yield from ["VRRP moves its VIPs."] if member.seen.get("router") else []
    elif vip not in member.held:
        yield from _of_gate(member, vip)
    elif member.announcing["silent"]:
        stopped = any(reason.startswith(FRR_UNIT) for reason in member.reasons)
        yield from [] if stopped else [member.announcing["silent"]]
    else:
        yield from _of_sessions(member, vip)


def _of_gate(member: Member, vip: str) -> Iterator[str]:
    """Yield why its gate has not put a VIP on lo. Checks that fail, and what holds it back, are among the reasons."""
    said = next((each for each in member.announcing["vips"] if each["address"] == vip), None)
    if said is None:
        yield f"{vip} is not in its configuration."
    elif said["reason"] == "serves":
        yield f"The kernel has not taken {vip} on lo."
    elif said["reason"] == "not_known":
        yield f"Nothing is added while something is {said['detail']}."
    elif said["reason"] and not member.reasons:
        yield f"{said['detail']}."


def _of_sessions(member: Member, vip: str) -> Iterator[str]:
    sessions = _sessions(member, vip)
    without = [f"{each['peer']} {each['state']}" for each in sessions if each["state"] != ESTABLISHED]
    unsent = [each["peer"] for each in sessions if each["state"] == ESTABLISHED]
    if not sessions:
        yield f"FRR has no session for {family_of(vip)}."
    elif unsent:
        yield f"FRR sends no VIP to {listed(unsent)}."
    else:
        yield f"No session is established ({'; '.join(without)})."


def unannounced(vip: str, answers: Sequence[Mapping[str, Any]]) -> List[str]:
    """Return a sentence for each member that does not announce a VIP to each of its routers, or of which nobody knows.

    :param answers: what `member_info` returned of each, which is its ``item``
    """
    found = []
    for seen in answers:
        wrong = problem(dict(seen), "unable")
        member = Member(seen["item"], "", {} if wrong else dict(seen), wrong)
        why = [wrong] if wrong else [*_not_everywhere(member, vip)]
        found += [" ".join([member.name, *why])] if why else []
    return found


def _not_everywhere(member: Member, vip: str) -> Iterator[str]:
    """Yield why some router would not send to a member what another one no longer gets."""
    silent = [f"{each['peer']} ({each['state']})" for each in _sessions(member, vip) if not each["announces"]]
    if not announces(member, vip):
        yield from [f"does not announce {vip}:", *_of_member(member), *_why(member, vip)]
    elif member.announcing.get("drained"):
        yield from [f"announces {vip} as the last choice:", DRAINED]
    elif silent:
        yield f"does not announce {vip} to {listed(silent)}, whose clients may have no other path."


def lines(layout: Layout) -> List[str]:
    """Return the sessions as a table, and what is remarkable and no fault."""
    rows = [_session_row(member.name, each) for member in layout.read for each in member.announcing.get("sessions", [])]
    return [*markdown.table([SESSIONS, *rows])] * bool(rows) + [*_remarks(layout)]


def _session_row(name: str, session: Mapping[str, Any]) -> List[str]:
    seconds = session["seconds"]
    return [
        name,
        session["peer"],
        session["family"],
        session["state"],
        "never up" if seconds is None else duration(seconds),
        str(session["sent"]),
        session["bfd"] or "none",
    ]


def _remarks(layout: Layout) -> Iterator[str]:
    for member in layout.read:
        own = [session for vip in carried(member) for session in _sessions(member, vip)]
        down = list(dict.fromkeys(session["peer"] for session in own if session["state"] != ESTABLISHED))
        if down:
            yield f"{member.name} has no session with {listed(down)}; other routers have its VIPs."
        for each in member.announcing.get("vips", []):
            if each["elsewhere"]:
                yield f"{member.name} has {each['address']} on {listed(each['elsewhere'])} as well."
    for vip in layout.every_vip:
        for mac in layout.strangers(vip):
            yield f"Another host ({mac}) answers for {vip} on a link of the members."


def vip_data(layout: Layout, vip: str) -> Dict[str, Any]:
    return {
        "address": vip,
        "announced_by": [member.name for member in layout.members if announces(member, vip)],
        "unknown": [member.name for member in layout.members if announces(member, vip) is None],
    }


def differences(layout: Layout) -> List[str]:
    """Return which members were set up for VRRP."""
    return [
        f"{member.name} was set up for VRRP ({member.seen['router']}), and the inventory has BGP."
        for member in layout.read
        if member.seen.get("router")
    ]
