# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The way from VRRP to BGP on living members, and back: the steps, and what must be known before the next one. Pure.

Both run for a while. Clients that come through a router do not notice which of the two it follows: it prefers a path to
one address to the network that the VIP is in. So nobody stops what carries the VIPs before the other one is proved, on
each member, and the holder goes last.

Linux answers ARP for the addresses of lo on every link. With a VIP on lo and VRRP beside it, a Backup would answer in
place of the holder. So all members are quiet about lo before the first VIP is there, until the last one has gone.
"""

from __future__ import annotations

from typing import Any, List, Mapping, NamedTuple, Optional, Sequence

from .settings import BGP

QUIET, LOUD = "answer_no_arp_for_lo", "answer_arp_as_before"
ANNOUNCE, WITHDRAW = "announce", "withdraw"  # the second one drains first, by graceful shutdown
START_VRRP, STOP_VRRP = "start_vrrp", "stop_vrrp"
OPPOSITE = {QUIET: LOUD, ANNOUNCE: WITHDRAW, START_VRRP: STOP_VRRP}
OPPOSITE.update({after: before for before, after in [*OPPOSITE.items()]})
# What must be known of each member of a step before the next one begins; nothing for those that do without.
PATHS = "each router of the member has its path to each VIP"
ONE_HOLDER = "each VIP has one holder on the link, as every member sees it"
PROOFS = {ANNOUNCE: PATHS, START_VRRP: ONE_HOLDER}


class Step(NamedTuple):
    verb: str
    members: List[str]

    @property
    def proof(self) -> str:
        return PROOFS.get(self.verb, "")


def steps(to: str, order: Sequence[str]) -> List[Step]:
    """Return the steps of a change of reach.

    :param to: the reach of the plan
    :param order: the members, the holder of most VIPs last
    """
    one_by_one = [[name] for name in order]
    if to == BGP:
        return [
            Step(QUIET, [*order]),
            *(Step(ANNOUNCE, names) for names in one_by_one),
            *(Step(STOP_VRRP, names) for names in one_by_one),
            Step(LOUD, [*order]),
        ]
    return [
        Step(QUIET, [*order]),
        Step(START_VRRP, [*order]),
        *(Step(WITHDRAW, names) for names in one_by_one),
        Step(LOUD, [*order]),
    ]


def may_go_on(step: Step, proofs: Mapping[str, Optional[bool]]) -> bool:
    """Return whether the next step may begin. What is not known proves nothing.

    :param proofs: by member, whether that shows which the step asks for; None where nobody could tell
    """
    return not step.proof or all(proofs.get(name) is True for name in step.members)


def undo(done: Sequence[Step]) -> List[Step]:
    """Return the way back from steps, of which the last one may have been taken in part.

    What carried the VIPs before starts first, on all, and is proved; then what the run had added goes.
    """
    back = [Step(OPPOSITE[step.verb], step.members) for step in reversed(done)]
    starting = [step for step in back if step.proof]
    added = [step for step in back if not step.proof and step.verb not in (QUIET, LOUD)]
    quiet = [Step(QUIET, done[0].members), *starting, *added] if done else []
    return [*quiet, *([Step(LOUD, done[0].members)] if done else [])]


def asked_first(in_subnets: Sequence[str], accepted: Any) -> List[str]:
    """Return why a change to BGP does not begin: clients on the members' links lose a VIP that only VRRP gives them.

    :param in_subnets: as `peers.in_subnets` has it
    :param accepted: whether the user has said that there are none
    """
    return [] if accepted else [*in_subnets]
