# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What else than its balancer a member must have to hold a VIP: a gateway that answers, a script, a URL, an interface.

Pure. Every member checks for itself. Scripts and interfaces are tracked as `model.instances` describes it. Which VIPs
depend on which check is in `checked_vips`.
"""

from __future__ import annotations

import ipaddress
import math
import re
from typing import Any, Collection, Dict, Iterator, List, Mapping, NamedTuple
from urllib.parse import urlsplit

from ..._agent.config.schema import Faults, Field, address, integer, parted, place_of, read, same_names, shown_of, word
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
    vips: str = ""  # the role of the VIPs that depend on it; '' for all

    @property
    def is_interface(self) -> bool:
        return self.kind == INTERFACE

    @property
    def dependents(self) -> str:
        """The VIPs that depend on it, in words."""
        return f"{self.vips} VIPs".lstrip()

    @property
    def tracked(self) -> Dict[str, Any]:
        return {"name": self.name, "weight": self.weight}

    @property
    def script(self) -> Dict[str, Any]:
        """The script that keepalived runs, and the agent; not of an interface."""
        same = {key: getattr(self, key) for key in OF_SCRIPTS}
        if self.kind == URL:
            return {**same, "any_of": [[self.target]]}
        seconds = math.ceil(self.timeout)  # keepalived and ping count whole ones
        ping = f"/usr/bin/ping -n -q -c 1 -W {seconds} {self.target}"
        return {**same, "timeout": seconds, "command": ping if self.kind == GATEWAY else self.target}

    def program(self, engine: str) -> str:
        """Return the program that it takes and that no role installs with an engine; '' if there is none."""
        if engine != AGENT:  # its packages are installed
            return ""
        asks_a_name = self.kind == URL and not url_checks.agent_check([[self.target]])
        return "ping" if self.kind == GATEWAY else "curl" if asks_a_name else ""

    @property
    def is_of_all(self) -> bool:
        """Whether its target is one that all members share, so that it may fail on all of them at once."""
        if self.kind == URL:
            return not _is_this_host(urlsplit(self.target).hostname or "")
        return self.kind == GATEWAY


def read_checks(
    schema: Mapping[str, Field], given: Any, place: str, reserved: Collection[str], faults: Faults
) -> List[Check]:
    """Return the checks, and append what is wrong with them.

    :param schema: CHECK, with what the layout adds
    :param reserved: the names that the layout itself gives to what it tracks
    """
    if not isinstance(given, list):
        faults.append(f"{place} is {shown_of('script', given)}: a list is required.")
        return []
    found = []
    for at, item in enumerate(given):
        where = place_of(place, at, item)
        wrong: Faults = []
        fields = read(schema, item, where, wrong)
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
    timeout, vips = fields["timeout"] or fields["interval"], fields.get("vips") or ""
    return Check(name=name, kind=kind, target=target, timeout=timeout, vips=vips, **times)


def _short(kind: str, target: str) -> str:
    """Return what a check is called by: its target, or the name of its program, in letters that keepalived takes."""
    begin, _rest = parted(kind, target)
    text = begin.rpartition("/")[2] if kind == SCRIPT_OF_USER else begin.partition("://")[2] or target
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
            yield (
                f"{place}.{key} has no effect on an interface check, because the kernel watches the interface: "
                "leave it out."
            )
    if fields["name"] in reserved:
        yield f"{place}.name is {fields['name']!r}, which the layout itself uses: choose another."
    if fields[GATEWAY] and ipaddress.ip_address(fields[GATEWAY]).is_link_local:
        yield f"{place}.gateway is {fields[GATEWAY]}, which may be on every link: name another address of it."


def _is_this_host(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
