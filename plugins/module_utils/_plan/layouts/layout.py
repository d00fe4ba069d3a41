# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a layout is, and what it reads from its variables."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from ..._agent.config.schema import Faults, Field
from ..bgp import announcing
from ..change import still_asked
from ..members import broadcast_domain
from ..members.hosts import Member
from ..members.openings import Clients
from ..members.subnets import Placement
from ..model import answers, destinations
from ..model.plan import Balancer, Router, Vip
from . import direct, follow, resolver


class Draft(NamedTuple):
    """What a layout has read from its variables."""

    vips: List[Vip]
    placements: Dict[str, Dict[str, Placement]]  # by member and address of a VIP
    targets: List[List[Any]]  # ``[address, port]``: every service through every VIP
    listeners: Callable[[str], List[Dict[str, Any]]]  # what a member's balancer binds: services and monitors
    balancer: Callable[[str, str], Balancer]  # of a member, with an engine
    router: Callable[[str, str], Router]
    clients: Callable[[str], Clients]  # of a member, by the port to which they connect
    missing_programs: Callable[[Member, str], Faults]  # that a member needs with an engine, and no role installs
    watched: Dict[str, Dict[str, Any]] = {}  # as `forecast.forecast` takes it
    weighted: List[str] = []  # as the plan has it
    warnings: List[str] = []
    checks: Callable[[str], List[str]] = lambda _name: []  # the names of the user's checks on a member
    asked: Callable[[str], List[answers.Check]] = lambda _name: []  # the checks that are run all the time
    answers: still_asked.Answers = still_asked.Answers()
    snippet: List[str] = []  # as the plan has it
    follow: Optional[follow.Follow] = None
    resolver: Optional[resolver.Resolver] = None
    direct: Optional[direct.Direct] = None
    mends: Mapping[str, str] = MappingProxyType({})  # by VIP, as `broadcast_domain.faults` takes them
    bgp: Optional[announcing.Bgp] = None
    sends: Sequence[destinations.Destination] = ()
    senders: Dict[str, Dict[str, Placement]] = {}  # like `placements`, where VRRP is on links of its own

    @property
    def advertising(self) -> Dict[str, Dict[str, Placement]]:
        """From where the members advertise."""
        return self.senders or self.placements

    def clients_of_members(self, name: str) -> List[str]:
        """Return the addresses by which the other members are clients of a VIP, where they are no peers."""
        others = broadcast_domain.peers(name, self.vips, self.placements) if self.senders else {}
        return sorted({address for each in others.values() for address in each})

    @property
    def has_vrrp(self) -> bool:
        return self.bgp is None or self.bgp.beside_vrrp


class Layout(NamedTuple):
    """What distinguishes one layout from another."""

    prefix: str  # of its variables
    schema: Mapping[str, Field]  # of its variables, without the prefix
    vips: List[str]  # the variables that name VIPs
    read: Callable[[List[Member], Dict[str, Any], Faults], Optional[Draft]]  # None where there are too few members
    whole: str  # what its members are together
