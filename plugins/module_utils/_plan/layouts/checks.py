# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What else than its balancer a member must have to hold a VIP: a gateway that answers, a script, a URL, an interface.

Pure. Every member checks for itself. Scripts and interfaces are tracked as `model.instances` describes it.
"""

from __future__ import annotations

import ipaddress
import math
import re
from typing import Any, Collection, Dict, Iterator, List, Mapping, NamedTuple
from urllib.parse import urlsplit

from ..._agent.config.schema import Faults, Field, address, integer, place_of, read, same_names, word
from ..._shared.engines import AGENT
from ..model import url_checks, values
from ..model.instances import SCRIPT

GATEWAY, SCRIPT_OF_USER, URL, INTERFACE = KINDS = ("gateway", "script", "url", "interface")
CHECK = {
    "name": Field(word),
    GATEWAY: Field(address),
    SCRIPT_OF_USER: Field(values.program),
    URL: Field(url_checks.url),
    INTERFACE: Field(values.interface),
    "weight": Field(integer(-253, 253, "a weight"), 0),
    "interval": SCRIPT["interval"],
    "timeout": SCRIPT["timeout"]._replace(default=None),  # the interval
    "rise": SCRIPT["rise"],
    "fall": SCRIPT["fall"]._replace(default=3),  # a single ping that is lost says nothing
}
OF_SCRIPTS = ("name", "interval", "timeout", "rise", "fall")  # an interface is known by its own name, at once
PACKAGES = {"ping": "iputils-ping on Debian and Ubuntu, iputils elsewhere", "curl": "curl"}
NO_NAME = re.compile(r"[^A-Za-z0-9.:_-]+")


class Check(NamedTuple):
    """One check, with every default filled in."""

    name: str
    kind: str
    target: str
    weight: int
    interval: float
    timeout: float
    rise: int
    fall: int

    @property
    def is_interface(self) -> bool:
        return self.kind == INTERFACE

    @property
    def tracked(self) -> Dict[str, Any]:
        return {"name": self.name, "weight": self.weight}

    @property
    def script(self) -> Dict[str, Any]:
        """The script that keepalived runs, and the agent; not of an interface."""
        same = {key: getattr(self, key) for key in OF_SCRIPTS}
        if self.kind == URL:
            return {**same, "any_of": [[self.target]]}
        ping = f"/usr/bin/ping -n -q -c 1 -W {math.ceil(self.timeout)} {self.target}"
        return {**same, "command": ping if self.kind == GATEWAY else self.target}

    def program(self, engine: str) -> str:
        """Return the program that it takes and that no role installs with an engine; '' if there is none."""
        asks_a_name = self.kind == URL and not url_checks.agent_check([[self.target]])
        return "ping" if self.kind == GATEWAY else "curl" if asks_a_name and engine == AGENT else ""

    @property
    def is_of_all(self) -> bool:
        """Whether its target is one that all members share, so that it may fail on all of them at once."""
        if self.kind == URL:
            return not _is_this_host(urlsplit(self.target).hostname or "")
        return self.kind == GATEWAY


def read_checks(given: Any, place: str, reserved: Collection[str], faults: Faults) -> List[Check]:
    """Return the checks, and append what is wrong with them.

    :param reserved: the names that the layout itself gives to what it tracks
    """
    if not isinstance(given, list):
        faults.append(f"{place} is {given!r}: a list is wanted.")
        return []
    found = []
    for at, item in enumerate(given):
        where = place_of(place, at, item)
        wrong: Faults = []
        fields = read(CHECK, item, where, wrong)
        wrong = wrong or list(_contradictions(fields, item, where, reserved))
        faults.extend(wrong)
        if not wrong:
            found.append(_check(fields))
    faults.extend(same_names([check._asdict() for check in found], place))
    return found


def _check(fields: Mapping[str, Any]) -> Check:
    kind = next(kind for kind in KINDS if fields[kind])
    target = fields[kind]
    times = {key: fields[key] for key in ("weight", "interval", "rise", "fall")}
    name = fields["name"] or (target if kind == INTERFACE else f"{kind}-{_short(kind, target)}")
    return Check(name=name, kind=kind, target=target, timeout=fields["timeout"] or fields["interval"], **times)


def _short(kind: str, target: str) -> str:
    """Return what a check is called by: its target, or the name of its program, in letters that keepalived takes."""
    text = target.split()[0].rpartition("/")[2] if kind == SCRIPT_OF_USER else target.partition("://")[2] or target
    return NO_NAME.sub("-", text).strip("-")


def _contradictions(
    fields: Mapping[str, Any], given: Mapping[str, Any], place: str, reserved: Collection[str]
) -> Iterator[str]:
    kinds = [kind for kind in KINDS if fields[kind]]
    if len(kinds) != 1:
        choice = ", ".join(KINDS)
        yield (
            f"{place} has {' and '.join(kinds)}: make each a check of its own."
            if kinds
            else f"{place} has nothing to check: give it one of {choice}."
        )
        return
    for key in OF_SCRIPTS if fields[INTERFACE] else ():
        if given.get(key) is not None:
            yield f"{place}.{key} is for the other kinds, the kernel itself watches an interface: leave it out."
    if fields["name"] in reserved:
        yield f"{place}.name is {fields['name']!r}, which the layout itself uses: choose another."
    if fields[GATEWAY] and ipaddress.ip_address(fields[GATEWAY]).is_link_local:
        yield f"{place}.gateway is {fields[GATEWAY]}, which may be on every link: name another address of it."


def of_own_addresses(checks: List[Check], place: str, own: Mapping[str, str]) -> Faults:
    """Refuse a gateway that is a member's own address or a VIP, which answers whatever the network does.

    :param own: whose each address is
    """
    return [
        f"{place} ({check.name}).gateway is {check.target}, {own[check.target]}: name a host outside the pair."
        for check in checks
        if check.kind == GATEWAY and check.target in own
    ]


def of_carriers(checks: List[Check], place: str, carriers: Collection[str]) -> Faults:
    """Refuse an interface that is tracked without a check, because it carries every VIP.

    :param carriers: the interfaces of the VIPs on all members
    """
    return [
        f"{place} ({check.name}) is the interface of every VIP, which is always tracked: leave it out."
        for check in checks
        if check.is_interface and set(carriers) == {check.target}
    ]


def missing_programs(checks: List[Check], host: Mapping[str, Any], engine: str, place: str) -> Faults:
    """Return which programs the checks need and a host lacks.

    :param host: as `host_info` returns it
    """
    needed = [(check, check.program(engine)) for check in checks]
    return [
        f"{program} is missing, which {place} ({check.name}) needs: install {PACKAGES[program]}."
        for check, program in needed
        if program in host.get("missing_programs", [])
    ]


def at_once(checks: List[Check], place: str, in_group: bool) -> List[str]:
    """Return a warning for each check that takes the VIPs from all members, where its target fails for all of them.

    :param in_group: whether the VIPs are in a sync group, in which no weight counts
    """
    mend = "." if in_group else ": a weight such as -50 lets one keep them."
    return [
        f"{place} ({check.name}): while {check.target} answers none of the members, none of them holds the VIPs{mend}"
        for check in checks
        if check.is_of_all and not check.weight
    ]


def watched(moved: Mapping[str, List[str]], own: Collection[str]) -> Dict[str, Dict[str, Any]]:
    """Return each check's failure, as `forecast.forecast` takes it.

    :param moved: the instances that it moves, by the check's name
    :param own: what else the layout tracks
    """
    return {
        name: {
            "instances": instances,
            "fatal": [f"{name}_failed"],
            "harmless": {},
            "blind_trackers": [*own, *(other for other in moved if other != name)],
            "failure": f"the check {name} fails",
        }
        for name, instances in moved.items()
    }


def _is_this_host(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
