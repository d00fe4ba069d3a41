# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the plan has for one member. Pure."""

from __future__ import annotations

from typing import List

from ..._shared import engines
from ..bgp import announcing
from ..bgp.gate import gate
from ..change import changed_checks, still_asked, transition
from ..members import broadcast_domain, engine_choice, openings, unused
from ..members.hosts import Member, served_elsewhere
from ..model import answers, bind_line, tls_content
from ..model.plan import Balancer, Expected, MemberPlan
from . import follow, resolver
from .judged import Judged


def of_member(member: Member, judged: Judged, password: str) -> MemberPlan:
    name, running = member["name"], member["host"].get("instances", [])
    choice, found = judged.choices[name], judged.found
    balancer = _balancer(member, judged)
    kept = kept_on(member, judged, balancer)
    watching = found.router(name, choice.engine)
    router = engine_choice.accepting_keepalived(watching, choice.engine) if found.has_vrrp else announcing.NO_ROUTER
    units, others = judged.delivery.units(choice.engine), found.clients_of_members(name)
    runs = (bool(balancer.services), bool(router.instances))
    following = follow.planned(found.follow, choice.engine, runs[0], resolver.followed(found.resolver))
    planned = MemberPlan(
        engine=choice.engine,
        replaces=choice.replaces,
        moves_from=choice.moves_from,
        replaced_programs=list(engines.REPLACED[choice.replaces]),
        resigns_when_killed=judged.delivery.is_pod or engine_choice.will_have_hook(member),
        balancer=balancer,
        router=router,
        firewall=openings.firewall(found.clients(name), router, others),
        meanwhile=still_asked.meanwhile(balancer, kept, found.clients(name), router, others),
        asked=still_asked.to_answer(_asked(member, judged), kept, watching),
        expected=Expected(
            vips=found.vips,
            services=[bind_line.expected(each) for each in found.listeners(name)],
            targets=found.targets,
            units=[unit for unit, it_runs in zip(units, runs) if it_runs],
            programs=list(engines.PROGRAMS[choice.engine]),
            down_file=balancer.down_file,
            peered=[[peer["address"], balancer.peers_port] for peer in balancer.peers if peer["name"] != name],
            settle=transition.settle(running, router.instances, password),
            peers=broadcast_domain.peers(name, found.vips, found.placements),
        ),
        follow=following,
        resolver=resolver.planned(found.resolver, name, bool(following)),
        questions=answers.questions(choice.engine, found.asked(name)),
        direct=found.direct.file(name) if found.direct else {},
        direct_memory=found.direct.memory if found.direct else 0,
        direct_server=found.direct.server(name) if found.direct else {},
        unused=unused.unused(member["host"], choice.engine, *runs, announces=bool(found.bgp and watching.instances)),
        pods=judged.delivery.options,
    )
    if found.bgp:
        planned = found.bgp.announced(name, planned, gate(choice.engine, watching, found.asked(name)))
    return _with_checks(member, found.checks(name), planned)


def _balancer(member: Member, judged: Judged) -> Balancer:
    """Return a member's balancer, with the servers that follow has given it."""
    name, found = member["name"], judged.found
    given = found.balancer(name, judged.choices[name].engine)
    services, contents = tls_content.taken(given.services)
    return given._replace(
        services=follow.kept(services, found.follow, follow.followed_on(name, judged.members)),
        contents=contents,
        inventory_servers=follow.inventory_servers(given.services, found.follow),
        served_elsewhere=served_elsewhere(member, judged.members),
        down_file="" if judged.delivery.is_pod else given.down_file,  # a pod's is its own
    )


def kept_on(member: Member, judged: Judged, planned: Balancer) -> Balancer:
    """Return what a member's balancer keeps while something asks for it."""
    return still_asked.to_keep(planned, _asked(member, judged), judged.found.answers)


def _asked(member: Member, judged: Judged) -> still_asked.Asked:
    """Return what is asked of the balancer that runs on a member."""
    return still_asked.asked(member, judged.choices[member["name"]])


def _with_checks(member: Member, names: List[str], planned: MemberPlan) -> MemberPlan:
    """Return a member's plan with the checks that change. Those of pods run in their images, and not on the host."""
    if member.get("outside_limit") or planned.pods:
        return planned
    checks = changed_checks.changed(member["host"], planned, names)
    reloaded = [] if planned.replaces else [check for check in checks if check["lives"]]  # one that starts says at once
    expected = planned.expected._replace(judged=changed_checks.judged(reloaded))
    return planned._replace(checks=checks, expected=expected)
