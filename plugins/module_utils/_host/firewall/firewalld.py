# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""firewalld: rich rules with a priority of ours, permanent and at run time.

Why not a service definition for the ports: a new definition reaches the running firewall only through
`firewall-cmd --reload`, which throws away whatever the administrator, podman or docker set at run time only.
Rich rules take effect at once, as many as needed in one call, and their priority marks them as ours.
The priority is positive, so that an administrator's own deny or reject rule still comes first.
"""

from __future__ import annotations

import re
from typing import Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from ansible_collections.onprem.lb.plugins.module_utils._host.firewall.model import (
    Action,
    FirewallError,
    Host,
    Opening,
    Plan,
    Run,
    as_peer,
    ask,
    in_order,
)

PRIORITY = 1120

OURS = re.compile(
    rf'rule priority="{PRIORITY}" (?:port port="(?P<port>\d+)" protocol="tcp"'
    r'|family="ipv[46]" source address="(?P<peer>[^"]+)" protocol value="vrrp") accept'
)

Held = Dict[str, Set[Opening]]
"""Our openings in each zone."""


class Zones(NamedTuple):
    held: Held
    interfaces: Dict[str, str]
    default: str


def is_running(host: Host) -> bool:
    code, out, _err = host.run(["firewall-cmd", "--state"])
    return code == 0 and out.strip() == "running"


def plan(host: Host, wanted: Sequence[Opening], interface: Optional[str] = None) -> Plan:
    runtime = parse_zones(ask(host, "firewall-cmd", "--list-all-zones"))
    permanent = parse_zones(ask(host, "firewall-cmd", "--permanent", "--list-all-zones"))
    target: Held = {}
    if wanted:
        target[_zone(host, runtime, interface)] = set(wanted)
    # Both lists first gain, then lose, so that a moved opening is never shut in between.
    actions: List[Action] = []
    for verb, new_side in (("add", True), ("remove", False)):
        for scope, held in ((["--permanent"], permanent.held), ([], runtime.held)):
            old, new = (held, target) if new_side else (target, held)
            actions += _calls(scope, verb, old, new)
    before = describe(runtime.held, permanent.held, next(iter(target), ""))
    after = [str(opening) for opening in in_order(wanted)]
    return Plan("firewalld", after, before, after, actions)


def rich_rule(opening: Opening) -> str:
    """Exactly as firewalld prints it back."""
    if opening.peer:
        family = "ipv6" if opening.family == "ip6" else "ipv4"
        match = f'family="{family}" source address="{opening.peer}" protocol value="vrrp"'
    else:
        match = f'port port="{opening.port}" protocol="tcp"'
    return f'rule priority="{PRIORITY}" {match} accept'


def parse_zones(text: str) -> Zones:
    """Read `firewall-cmd --list-all-zones`: a zone per paragraph, its name at the margin."""
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
    if match.group("port"):
        return Opening(port=int(match.group("port")))
    peer = as_peer(match.group("peer"))
    return Opening(peer=peer) if peer else None


def _zone(host: Host, runtime: Zones, interface: Optional[str]) -> str:
    """An interface that is in no zone is treated by firewalld as in the default zone."""
    zone = runtime.interfaces.get(interface or "") or runtime.default
    zone = zone or ask(host, "firewall-cmd", "--get-default-zone").strip()
    if not zone:
        raise FirewallError("firewalld names no default zone.")
    return zone


def _calls(scope: List[str], verb: str, old: Held, new: Held) -> List[Action]:
    """One call a zone for everything that `new` has and `old` has not."""
    calls: List[Action] = []
    for zone in sorted(new):
        missing = in_order(new[zone] - old.get(zone, set()))
        if missing:
            options = [f"--{verb}-rich-rule={rich_rule(opening)}" for opening in missing]
            calls.append(Run(tuple(["firewall-cmd"] + scope + ["--zone=" + zone] + options)))
    return calls


def describe(runtime: Held, permanent: Held, zone: str) -> List[str]:
    """What is open because of us; a remark where it is not where, or not as lasting as, it ought to be."""
    entries: List[Tuple[Opening, str]] = []
    for name in sorted(set(runtime) | set(permanent)):
        now, later = runtime.get(name, set()), permanent.get(name, set())
        for opening in now | later:
            remark = "" if name == zone or not zone else f" in zone {name}"
            if opening not in later:
                remark += " until the next reload"
            elif opening not in now:
                remark += " from the next reload"
            entries.append((opening, remark))
    order = in_order({opening for opening, _remark in entries})
    entries.sort(key=lambda entry: order.index(entry[0]))
    return ["{}{}".format(*entry) for entry in entries]
