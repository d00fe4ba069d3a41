# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""firewalld: rich rules with a priority of our own, permanent and at run time.

The ports get no service definition, because a new definition reaches the running firewall only through
`firewall-cmd --reload`, which discards what the administrator, podman or docker set at run time only. Rich rules take
effect at once, as many as needed in one call, and their priority marks them as ours. It is positive, so that an
administrator's own deny or reject rule still comes first.
"""

from __future__ import annotations

import re
from typing import Collection, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from .model import TCP, Action, ChangeSet, FirewallError, Opening, Run, as_source, in_order, output_of
from .system import Host

PRIORITY = 1120
UNIT = "firewalld.service"
MISSING = 127  # as Host.run has it

OURS = re.compile(
    rf'rule priority="{PRIORITY}" (?:family="ipv[46]" source address="(?P<source>[^"]+)" )?'
    r'(?:port port="(?P<port>\d+)" protocol="(?P<protocol>tcp|udp)"|protocol value="vrrp") accept'
)

Held = Dict[str, Set[Opening]]  # our openings in each zone


class Zones(NamedTuple):
    held: Held
    interfaces: Dict[str, str]
    default: str


def is_running(host: Host) -> bool:
    """Return whether it runs.

    :raises FirewallError: its unit does, and it does not answer: it would go on refusing what is to be let in
    """
    code, out, err = host.run(["firewall-cmd", "--state"])
    if code == 0 and out.strip() == "running":
        return True
    if code != MISSING and host.run(["systemctl", "is-active", UNIT])[0] == 0:
        said = " ".join((err or out).strip().splitlines()[-1:]) or f"exit code {code}"
        raise FirewallError(
            f"{UNIT} is active, and `firewall-cmd --state` does not say that it runs ({said}): restart it."
        )
    return False


def plan(host: Host, wanted: Sequence[Opening], interfaces: Sequence[str] = (), keep: bool = False) -> ChangeSet:
    runtime = parse_zones(output_of(host, "firewall-cmd", "--list-all-zones"))
    permanent = parse_zones(output_of(host, "firewall-cmd", "--permanent", "--list-all-zones"))
    target: Held = {}
    if wanted:
        target = {_zone(host, runtime, interface): set(wanted) for interface in interfaces or [""]}
    for held in (permanent.held, runtime.held) if keep else ():
        for zone, openings in held.items():
            target[zone] = target.get(zone, set()) | openings
    # Add to both lists before removing from them, so that a moved opening is never closed in between.
    actions: List[Action] = []
    for verb, new_side in (("add", True), ("remove", False)):
        for scope, held in ((["--permanent"], permanent.held), ([], runtime.held)):
            old, new = (held, target) if new_side else (target, held)
            actions += _calls(scope, verb, old, new)
    before, after = describe(runtime.held, permanent.held, target), describe(target, target, target)
    return ChangeSet("firewalld", [str(opening) for opening in in_order(wanted)], before, after, actions)


def rich_rule(opening: Opening) -> str:
    """Return the rule of an opening, exactly as firewalld prints it."""
    family = "ipv6" if opening.family == "ip6" else "ipv4"
    source = f'family="{family}" source address="{opening.source}" ' if opening.source else ""
    what = 'protocol value="vrrp"' if opening.is_vrrp else f'port port="{opening.port}" protocol="{opening.protocol}"'
    return f'rule priority="{PRIORITY}" {source}{what} accept'


def parse_zones(text: str) -> Zones:
    """Read `firewall-cmd --list-all-zones`: a paragraph for each zone, with its name not indented."""
    held: Held = {}
    interfaces: Dict[str, str] = {}
    zone = default = ""
    for line in text.splitlines():
        if line[:1].strip():
            zone, _space, flags = line.partition(" ")
            # Only firewalld 2 marks the default zone here.
            default = zone if "default" in flags else default
            continue
        entry = line.strip()
        if entry.startswith("interfaces:"):
            interfaces.update((name, zone) for name in entry.split()[1:])
        opening = _opening(entry)
        if opening:
            held.setdefault(zone, set()).add(opening)
    return Zones(held, interfaces, default)


def _opening(entry: str) -> Optional[Opening]:
    match = OURS.fullmatch(entry)
    if not match:
        return None
    source = as_source(match.group("source") or "")
    if match.group("source") and not source:
        return None
    found = Opening(int(match.group("port") or 0), source, match.group("protocol") or TCP)
    return found if found.port or source else None


def _zone(host: Host, runtime: Zones, interface: str) -> str:
    """Return the zone of an interface. firewalld treats one that is in none as in the default zone."""
    zone = runtime.interfaces.get(interface) or runtime.default
    zone = zone or output_of(host, "firewall-cmd", "--get-default-zone").strip()
    if not zone:
        raise FirewallError("firewalld names no default zone.")
    return zone


def _calls(scope: List[str], verb: str, old: Held, new: Held) -> List[Action]:
    """Return one call for each zone, for all that `new` has and `old` does not have."""
    calls: List[Action] = []
    for zone in sorted(new):
        missing = in_order(new[zone] - old.get(zone, set()))
        if missing:
            options = [f"--{verb}-rich-rule={rich_rule(opening)}" for opening in missing]
            calls.append(Run(tuple(["firewall-cmd"] + scope + ["--zone=" + zone] + options)))
    return calls


def describe(runtime: Held, permanent: Held, zones: Collection[str]) -> List[str]:
    """Return our openings, with a remark on each that is not both permanent and active, and its zone.

    :param zones: those that are to have openings; a single one is not named
    """
    entries: List[Tuple[Opening, str]] = []
    for name in sorted(set(runtime) | set(permanent)):
        now, later = runtime.get(name, set()), permanent.get(name, set())
        for opening in now | later:
            remark = f" in zone {name}" if zones and list(zones) != [name] else ""
            if opening not in later:
                remark += " until the next reload"
            elif opening not in now:
                remark += " from the next reload"
            entries.append((opening, remark))
    order = in_order({opening for opening, _remark in entries})
    entries.sort(key=lambda entry: order.index(entry[0]))
    return ["{}{}".format(*entry) for entry in entries]
