# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Chooses the VRIDs of a cluster or a pair. Pure and deterministic: every member comes to the same choice.

Clusters that share a VRID on one link are one Virtual Router (RFC 9568, 5.2.3), and each obeys the other's
advertisements. OpenShift derives its VRIDs from the cluster's name, with a checksum that has only 225 results, so
clusters do clash: 2 on a link with a probability of 1.4 %, 10 with 46 %. IPv4 and IPv6 are separate on the wire, but a
VIP has one VRID for both.
"""

from __future__ import annotations

import zlib
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from .._agent.config.schema import Faults, Field, integer, one_of, read, shown, text

FIRST, LAST = 1, 255  # RFC 9568, 5.2.3
# The VRIDs that OpenShift's checksum cannot give: each half of it is 0 to 14, and 1 is added at the end.
POOL = (*range(16, 240, 16), *range(240, LAST + 1))
STRATEGIES = ("openshift", "pool")
ON_CONFLICT = ("fail", "next")

VRID = integer(FIRST, LAST, "a VRID")
TAKEN = {"vrid": Field(VRID, required=True), "by": Field(text, "somebody else")}
CURRENT = {
    "openshift": {"api": Field(VRID), "ingress": Field(VRID)},
    "pool": {"pair": Field(VRID)},
}
ROLES = {"api": "the API of cluster {}", "ingress": "the ingress of cluster {}", "pair": "the pair {}"}

Held = Dict[int, List[str]]


class Claim(NamedTuple):
    """A VRID that a cluster or a pair would have if no other had it."""

    owner: str
    role: str
    vrid: int

    @property
    def title(self) -> str:
        return ROLES[self.role].format(self.owner)


class Choice(NamedTuple):
    """The VRIDs by role: ``api`` and ``ingress``, or ``pair``. With faults there are none.

    ``conflicts`` has a sentence for each other router that has, or would have, a wanted VRID; sorted.
    """

    vrids: Dict[str, int]
    conflicts: List[str]
    faults: Faults


def openshift(name: Any) -> Dict[str, int]:
    """Return the VRIDs ``{api, ingress}`` that OpenShift itself gives to a cluster of this name.

    :raises ValueError: if no cluster can be called so
    """
    if not isinstance(name, str):
        raise ValueError(f"The cluster's name is {shown(name)}, which is not text: put it in quotes.")
    if not name:
        raise ValueError("The cluster's name is empty: give the name from its install-config.")
    if "." in name:
        # OpenShift's own bootstrap host and masters disagree on the VRIDs of such a name.
        raise ValueError(f"The cluster's name is '{name}', with a dot: give the bare name, without its domain.")
    # If both were equal OpenShift would add 1 to the second. They never are: after the same name the two endings change
    # the checksum by different amounts.
    return {role: _fletcher8(_encoded(f"{name}-{role}")) + 1 for role in ("api", "ingress")}


def _encoded(name: str) -> bytes:
    try:
        return name.encode()
    except UnicodeEncodeError:
        raise ValueError(f"The name {name!r} has a character that is not valid Unicode: write it again.") from None


def _fletcher8(data: bytes) -> int:
    low = high = 0
    for byte in data:
        low = ((low + byte) & 0xFF) % 15
        high = ((high + low) & 0xFF) % 15
    return high << 4 | low


def _claims(names: Iterable[Any]) -> List[Claim]:
    """Return what each cluster gets from its name, in an order that does not depend on that of the names."""
    found = {name: openshift(name) for name in names}
    return [Claim(name, role, vrid) for name in sorted(found) for role, vrid in found[name].items()]


def choose(
    name: Any,
    strategy: str,
    taken: Any,
    current: Any = None,
    on_conflict: str = "fail",
    clusters: Iterable[Any] = (),
) -> Choice:
    """Choose the VRIDs of a cluster or a pair. Never raises: what is wrong is in the choice's faults.

    :param strategy: ``openshift``, the two VRIDs that the cluster's name gives; or ``pool``, one of those that no
        cluster's name gives
    :param taken: the VRIDs of others, each ``{vrid, by}`` or just the number
    :param current: what this cluster or pair has already, ``{api, ingress}``, ``{pair}`` or a number. It is kept
        while no other has it, so that a running pair never changes.
    :param on_conflict: ``fail``, or ``next`` for the next free one. A pair that does not run yet takes a free one from
        the pool with either.
    :param clusters: the names of the others in the inventory. With ``next``, of two that clash the one whose name
        comes first in the alphabet keeps its VRID, so that not both move; one that is in use precedes all.
    """
    faults = _unknown_words(strategy, on_conflict)
    if faults:
        return Choice({}, [], faults)
    held = _read_taken(taken, faults)
    current = _read_current(current, strategy, faults)
    if faults:
        return Choice({}, [], faults)
    try:
        others = _claims(other for other in clusters if strategy == "pool" or other != name)
        if strategy == "pool":
            return _from_pool(name, held, current["pair"], on_conflict, others)
        return _by_name(name, held, current, on_conflict, others)
    except ValueError as error:
        return Choice({}, [], [str(error)])


def _unknown_words(strategy: Any, on_conflict: Any) -> Faults:
    words = (("strategy", strategy, STRATEGIES), ("on_conflict", on_conflict, ON_CONFLICT))
    answers = [(place, value, one_of(*known)(value)[1]) for place, value, known in words]
    return [f"{place} is {shown(value)}: {wrong}" for place, value, wrong in answers if wrong]


def _read_taken(given: Any, faults: Faults) -> Held:
    held: Held = {}
    if not isinstance(given, (list, tuple)):
        faults.append(f"taken is {shown(given)}: a list is required.")
        return held
    for at, item in enumerate(given):
        entry = read(TAKEN, item if isinstance(item, dict) else {"vrid": item}, f"taken[{at}]", faults)
        if entry["vrid"]:
            held.setdefault(entry["vrid"], []).append(entry["by"])
    return held


def _read_current(given: Any, strategy: str, faults: Faults) -> Dict[str, Optional[int]]:
    if strategy == "pool" and not isinstance(given, dict):
        given = {"pair": given}
    return read(CURRENT[strategy], {} if given is None else given, "current", faults)


def _by_name(
    name: Any, held: Held, current: Mapping[str, Optional[int]], on_conflict: str, others: List[Claim]
) -> Choice:
    claims = [Claim(name, role, current[role] or vrid) for role, vrid in openshift(name).items()]
    in_use = any(current.values())
    conflicts = _conflicts(claims, [*claims, *others], held)
    if conflicts and on_conflict == "fail":
        fix = "free it there" if in_use else "take another name"
        return Choice({}, conflicts, [f"{found[:-1]}: {fix}, or set on_conflict to next." for found in conflicts])
    order = [*claims, *others] if in_use else sorted([*claims, *others], key=lambda claim: claim.owner)
    assigned = _assign(order, held)
    return Choice({claim.role: assigned[claim.owner, claim.role] for claim in claims}, conflicts, [])


def _assign(claims: List[Claim], held: Held) -> Dict[Tuple[str, str], int]:
    """Return the VRID of each claim, or the next free one above it. One that another claims is not free."""
    wanted = {claim.vrid for claim in claims}
    assigned: Dict[Tuple[str, str], int] = {}
    for claim in claims:
        vrid: Optional[int] = claim.vrid
        if vrid in held or vrid in assigned.values():
            unavailable = {*held, *wanted, *assigned.values()}
            upwards = [*range(claim.vrid + 1, LAST + 1), *range(FIRST, claim.vrid)]
            vrid = next((free for free in upwards if free not in unavailable), None)
        if vrid is None:
            raise ValueError(f"Every VRID is taken, and {claim.title} needs one: use another link.")
        assigned[claim.owner, claim.role] = vrid
    return assigned


def _from_pool(name: Any, held: Held, current: Optional[int], on_conflict: str, others: List[Claim]) -> Choice:
    if not isinstance(name, str) or not name:
        raise ValueError(f"The pair's name is {shown(name)}: a string that is not empty is required.")
    # Not hash(), which Python salts in every process.
    start = zlib.crc32(_encoded(name)) % len(POOL)
    candidates = [*([current] if current else []), *POOL[start:], *POOL[:start]]
    unavailable = {*held, *(claim.vrid for claim in others)}
    free = next((vrid for vrid in candidates if vrid not in unavailable), None)
    tried = candidates[: candidates.index(free)] if free else candidates
    conflicts = [found for vrid in tried for found in _conflicts([Claim(name, "pair", vrid)], others, held)]
    if current and free != current and on_conflict == "fail":
        clashes = _conflicts([Claim(name, "pair", current)], others, held)
        return Choice({}, clashes, [f"{found[:-1]}: free it there, or set on_conflict to next." for found in clashes])
    if free is None:
        raise ValueError(f"All {len(POOL)} VRIDs of the pool are taken, and the pair {name} needs one: give it a VRID.")
    return Choice({"pair": free}, conflicts, [])


def _conflicts(claims: List[Claim], all_claims: List[Claim], held: Held) -> List[str]:
    """Return a sentence for each other router that has a wanted VRID."""
    found: List[str] = []
    for claim in claims:
        holders = sorted(set(held.get(claim.vrid, [])))
        holders += [other.title for other in all_claims if other.vrid == claim.vrid and other != claim]
        found.extend(f"VRID {claim.vrid} of {claim.title} is taken by {holder}." for holder in holders)
    return found
