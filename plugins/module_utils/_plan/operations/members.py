# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The members of a pair or a cluster, as `member_info` has read them. Pure.

A playbook gives each host of its play as ``{name, members, vips, engine, reach, seen}``: its name in the inventory, the
names of all members of its pair or cluster, the inventory's VIPs as a user writes them, the engine that the inventory
wants, how clients reach the VIPs, and what the task returned there.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..._shared import held_back, membership

BGP = "bgp"
NO_CAUSE = "Ansible gives no reason, and more with -vvv"
BEFORE_THE_CAUSE = re.compile(r"(?:Task failed: )?(?:.*? (?:via|over) ssh: )?")  # what Ansible begins with


class Member(NamedTuple):
    """One member that the play asked."""

    name: str
    engine_wanted: str
    seen: Dict[str, Any]  # as `member_info` returns it
    problem: str = ""  # why it could not be read; `seen` is then empty
    silent: Sequence[str] = ()  # the members beside it that cannot be reached
    closed: str = ""  # what its firewall refuses although the plan opens it
    planned: Optional[Sequence[str]] = None  # the VIPs that the plan has it announce by BGP, if there is one

    @property
    def held(self) -> List[str]:
        return [each["address"] for each in self.seen.get("held", [])]

    @property
    def announcing(self) -> Dict[str, Any]:
        """What it announces by BGP; {} where VRRP moves its VIPs."""
        return dict(self.seen.get("announcing", {}))

    @property
    def addresses(self) -> List[str]:
        """The VIPs of its configuration."""
        of_router = [address for instance in self.seen.get("instances", []) for address in instance["addresses"]]
        return [*of_router, *(vip["address"] for vip in self.announcing.get("vips", []))]

    @property
    def held_back(self) -> Dict[str, str]:
        """The record of what holds it back."""
        return dict(self.seen.get("held_back", {}))

    @property
    def unable(self) -> List[str]:
        """Why it could not take over now, as far as it was read."""
        record = self.held_back
        if not record:
            return list(self.seen.get("unable", []))
        why = held_back.off_lo(record) if self.announcing else held_back.why(record)
        return [f"{why} {held_back.mend(record, self.silent)}", *self.seen.get("unable", [])]

    @property
    def reasons(self) -> List[str]:
        """The same, and why it could not do so once its programs have to start again."""
        return [*self.unable, *filter(None, [self.closed]), *self.seen.get("would_not_start", [])]

    @property
    def unloaded(self) -> List[str]:
        """What its router has not loaded. Its VIPs are read from the file, so nobody knows which ones it could hold."""
        router = self.seen.get("router", "")
        return [line for line in self.seen.get("stale", []) if line.startswith(f"{router} ")]

    @property
    def fault(self) -> str:
        """A sentence that says why it cannot be counted on; '' if it can."""
        if self.problem:
            return f"{self.name} {self.problem}"
        return f"{self.name} could not take over: {' '.join(self.reasons)}" if self.reasons else ""

    def ports_of(self, vip: str) -> List[int]:
        """Return the ports at which its balancer answers at a VIP, if it holds that."""
        return list(self.seen.get("ports_of_vips", {}).get(vip, []))

    def election(self, vip: str) -> Dict[str, Any]:
        """Return the ``priority`` and ``preempt`` with which it takes part in the election for a VIP; {} if not."""
        instances: List[Dict[str, Any]] = self.seen.get("instances", [])
        return next((instance for instance in instances if vip in instance["addresses"]), {})


class Layout(NamedTuple):
    """One pair or cluster."""

    names: List[str]  # of all members, in the inventory's order
    members: List[Member]  # those that were asked
    vips: List[str]  # of the inventory
    reach: str = ""  # of the inventory, BGP or VRRP

    @property
    def read(self) -> List[Member]:
        return [member for member in self.members if not member.problem]

    @property
    def left_out(self) -> List[str]:
        """The members that the play does not have."""
        asked = {member.name for member in self.members}
        return [name for name in self.names if name not in asked]

    @property
    def configured(self) -> List[str]:
        """The VIPs of the members' configurations."""
        return list(dict.fromkeys(vip for member in self.members for vip in member.addresses))

    @property
    def every_vip(self) -> List[str]:
        """The VIPs of the inventory, and those of the members' configurations."""
        return list(dict.fromkeys([*self.vips, *self.configured]))

    def holders(self, vip: str) -> List[str]:
        """Return the names of the members that hold a VIP."""
        return [member.name for member in self.members if vip in member.held]

    def by_priority(self, vip: str) -> List[str]:
        """Return the names of the members that take part in the election for a VIP, the preferred one first."""
        ranked = [(-member.election(vip)["priority"], member.name) for member in self.members if member.election(vip)]
        return [name for _priority, name in sorted(ranked)]

    def first(self, vip: str, names: Sequence[str]) -> List[str]:
        """Return which of these take a VIP that nobody holds: among equal ones that is whoever advertises first."""
        able = [name for name in self.by_priority(vip) if name in names]
        priorities = {member.name: member.election(vip).get("priority") for member in self.members}
        return [name for name in able if priorities[name] == priorities[able[0]]]

    def preempts(self, name: str, vip: str, holders: Sequence[str]) -> bool:
        """Whether a member takes a VIP from those that hold it: with preemption, and a higher priority than theirs."""
        elections = {member.name: member.election(vip) for member in self.members}
        own, theirs = elections[name], [elections[each].get("priority", 0) for each in holders]
        return bool(own.get("preempt")) and all(own["priority"] > each for each in theirs)

    @property
    def former(self) -> List[str]:
        """The members that those of the inventory know and the inventory lacks: their routers may run."""
        known = membership.former(
            self.names,
            [address for member in self.read for address in member.seen.get("addresses", [])],
            [member.seen.get("members", {}) for member in self.read],
            [instance for member in self.read for instance in member.seen.get("instances", [])],
        )
        return list(dict.fromkeys(name for name, _addresses in known))

    def strangers(self, vip: str) -> List[str]:
        """Return the hardware addresses of the other hosts that answer for a VIP."""
        own = {mac for member in self.read for mac in member.seen["macs"]}
        return sorted({mac for member in self.read for mac in member.seen["answering"].get(vip, [])} - own)


def layouts(given: List[Dict[str, Any]]) -> List[Layout]:
    """Return the pairs and clusters of the hosts of a play."""
    found: Dict[Any, List[Dict[str, Any]]] = {}
    for host in given:
        found.setdefault(tuple(host["members"]), []).append(host)
    return [
        Layout(list(names), _members(hosts), addresses_of(hosts[0]["vips"]), hosts[0].get("reach", ""))
        for names, hosts in found.items()
    ]


def member_of(every: Sequence[Layout], name: str) -> Tuple[Layout, Member]:
    """Return a member, and its pair or cluster."""
    return next((layout, member) for layout in every for member in layout.members if member.name == name)


def _members(hosts: List[Dict[str, Any]]) -> List[Member]:
    silent = [host["name"] for host in hosts if host["seen"].get("unreachable")]
    return [_member(host)._replace(silent=silent) for host in hosts]


def _member(host: Dict[str, Any]) -> Member:
    seen = host["seen"]
    unread = problem(seen, "unable")
    return Member(host["name"], host["engine"], {} if unread else seen, unread)


def problem(seen: Dict[str, Any], wanted: str) -> str:
    """Say why a host could not be read; '' if it was.

    :param wanted: a key of what the module returns. With it a failed task has waited in vain for something better.
    """
    said = cause(seen)
    if seen.get("unreachable"):
        return f"cannot be reached: {said}."
    return f"cannot be read: {said}." if seen.get("failed") and wanted not in seen else ""


def cause(result: Mapping[str, Any]) -> str:
    """Return why a task failed. Where a program is missing that Ansible connects with, its message may be empty."""
    said = next((str(result[key]) for key in ("msg", "module_stderr", "module_stdout") if result.get(key)), "")
    return BEFORE_THE_CAUSE.sub("", " ".join(said.split()), count=1).rstrip(".") or NO_CAUSE


def addresses_of(vips: List[Any]) -> List[str]:
    """Return the addresses of VIPs as a user writes them; what is none is for a run to refuse."""
    texts = [str(vip.get("address", "") if isinstance(vip, dict) else vip).partition("/")[0] for vip in vips]
    return [str(ipaddress.ip_address(text)) for text in texts if _is_address(text)]


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
