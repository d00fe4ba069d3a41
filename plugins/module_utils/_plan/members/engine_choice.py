# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which engine a host gets: the one that it has, or else HAProxy and keepalived where they can be installed, and the
embedded agent elsewhere. Pure."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Tuple

from ..._agent.config.schema import Faults, one_of, shown
from ..._shared import platforms
from ..._shared.engines import AGENT, AUTO, ENGINES, HAPROXY, HOOK, KEEPALIVED, NATIVE, UNITS
from ..model.plan import Router

KERNEL_HOP_LIMIT = 64  # Linux's net.ipv6.conf.*.hop_limit, unless a Router Advertisement changes it


class Choice(NamedTuple):
    """An engine, and the reason for it."""

    engine: str
    reason: str
    replaces: str = ""  # the engine that it replaces on this host; itself where only the delivery changes
    moves_from: str = ""  # the delivery that goes, `UNIT` or `POD`, where another one comes

    @property
    def gone(self) -> str:
        """What goes, in a sentence."""
        return f"its {self.moves_from}s" if self.moves_from else self.replaces


def wanted_engines(members: Sequence[Mapping[str, Any]], prefix: str, faults: Faults) -> Dict[str, str]:
    """Return the engine that each member's settings name, and append what is wrong with it: once, if all are wrong.

    :param members: as in `planner`
    """
    given = {member["name"]: member["settings"].get("engine") for member in members}
    wanted = {name: AUTO if value in (None, "") else value for name, value in given.items()}
    judged = {name: one_of(*ENGINES)(value)[1] for name, value in wanted.items()}
    wrong = {name: f"{prefix}_engine is {shown(wanted[name])}: {fault}" for name, fault in judged.items() if fault}
    everywhere = dict.fromkeys(wrong.values()) if len(wrong) == len(members) else {}
    faults += everywhere or [f"{name}: {sentence}" for name, sentence in wrong.items()]
    return {name: AUTO if name in wrong else value for name, value in wanted.items()}


def choose(wanted: str, host: Dict[str, Any], prefix: str) -> Choice:
    """Return the engine of a host.

    :param host: as `host_info` returns it
    :param prefix: of the layout's variables, in one of which the user may name an engine
    """
    choice = _choose(wanted, host, prefix)
    other = NATIVE if choice.engine == AGENT else AGENT
    # Also where it no longer runs: the run completes a migration that was interrupted.
    is_there = set(UNITS[other]) & set(host.get("own_units", []))
    return choice._replace(replaces=other if is_there else "")


def _choose(wanted: str, host: Dict[str, Any], prefix: str) -> Choice:
    if wanted != AUTO:
        return Choice(wanted, f"{prefix}_engine names it")
    present, reason = _present(host)
    if present:
        return Choice(present, reason)
    family, missing = host.get("os_family"), ", ".join(host.get("missing_packages", []))
    if family and family not in platforms.FAMILIES:
        return Choice(AGENT, f"this is {family}, whose packages the roles do not know")
    if host.get("silent"):
        return Choice(NATIVE, "as is assumed, because it does not answer")
    if host.get("assumed"):  # it was not asked, as in a forecast
        return Choice(NATIVE, "if its packages are installed or can be")
    if not missing:
        return Choice(NATIVE, "its packages are installed")
    if host.get("unobtainable"):
        return Choice(AGENT, f"{missing} cannot be installed: {host['unobtainable']}")
    return Choice(NATIVE, f"{missing} can be installed")


def _present(host: Dict[str, Any]) -> Tuple[str, str]:
    """Return the engine that this collection has set up here, and how that shows; nothing if there is none.

    Both are there where a migration was interrupted: the one that runs counts, or else the one that starts at boot.
    """
    ours = {*host.get("own_units", []), *UNITS[AGENT]}
    evidence = {
        "it runs here already": host.get("active_units", []),
        "it is enabled here already": host.get("enabled_units", []),
        "its units are here already": host.get("own_units", []),
    }
    for reason, units in evidence.items():
        for engine in (NATIVE, AGENT):
            if ours & set(units) & set(UNITS[engine]):
                return engine, reason
    return "", ""


def package_faults(wanted: str, choice: Choice, host: Dict[str, Any], prefix: str) -> Faults:
    """Return why a member cannot have its engine, as far as packages must be installed or removed for it.

    A user who names the native engine may know better whether the packages can be fetched.
    """
    if choice.replaces == NATIVE:
        unremovable = host.get("unremovable", {})
        return [unremovable[name] for name in (HAPROXY, KEEPALIVED) if name in unremovable]
    if wanted == AUTO and choice.engine == NATIVE and host.get("unobtainable"):
        missing = ", ".join(host["missing_packages"])
        return [
            f"the native engine stays ({choice.reason}), but it lacks {missing}, and {host['unobtainable']}: "
            f"mend that, or name an engine in {prefix}_engine."
        ]
    return []


def migration_order(choices: Mapping[str, Choice], held: Mapping[str, int]) -> List[str]:
    """Return the members that change their engine or delivery, in the order in which they migrate, one by one.

    The members that hold a VIP come last: then all the others can take it over, and it moves once.

    :param held: how many VIPs each member carries now
    """
    changing = [name for name, choice in choices.items() if choice.replaces]
    return sorted(changing, key=lambda name: held[name])


def table(choices: Mapping[str, Choice], order: Sequence[str]) -> List[str]:
    """Return a line for each member: its engine, the reason, and the engine that it replaces."""
    lines = []
    for name, choice in choices.items():
        line = f"{name}: {choice.engine}, {choice.reason}"
        if choice.replaces:
            line += f"; in place of {choice.gone}"
        if name in order:
            line += f", as number {order.index(name) + 1} of {len(order)}"
        lines.append(line)
    return lines


def accepting_keepalived(router: Router, engine: str) -> Router:
    """Let an agent accept the lower hop limit with which keepalived sends IPv6 to its peers.

    It does so without such a peer, too: a member that moves to the other engine is one for a while, whichever moves
    first.
    """
    if engine != AGENT:
        return router
    return router._replace(instances=[*map(_accepting_64, router.instances)])


def _accepting_64(instance: Dict[str, Any]) -> Dict[str, Any]:
    over_ipv6 = any(":" in address for address in instance["addresses"])
    return {**instance, "min_ttl": KERNEL_HOP_LIMIT} if over_ipv6 and not instance["multicast"] else instance


def will_have_hook(member: Mapping[str, Any]) -> bool:
    """Return whether a keepalived of this member has its hook once the run is over.

    A run writes it. A member that the run leaves as it is has what it has: one that an older version of this collection
    has set up has none, and of one that does not answer nobody knows.
    """
    if not (member.get("outside_limit") or member.get("stays")):
        return True
    return bool(member["host"].get("files", {}).get(HOOK, {}).get("checksum"))
