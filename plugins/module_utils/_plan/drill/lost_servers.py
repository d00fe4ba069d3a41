# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The loss of one server: what is forecast of it on each VIP, and what a drill measured of that. Pure; runs on the
controller.

The VIP stays. So a drill measures the connections of the probe that another server answered late, and those that
nobody answered: how many there were, from the first to the last of them, and how late the latest was.

Of a server that comes back the same is measured from its return on: it is lost before the probe begins. Its balancer
says whether it was down then, and whether it is up at the end.
"""

from __future__ import annotations

import json
import math
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ..._shared import events
from ..forecast import servers
from ..model import direct_plane
from ..model.services import backends
from . import announced, questions

FORECAST_AS = {event: name for name, event in servers.DRILLED_AS.items()}
BEFORE = {events.SERVER_BACK: events.SERVER_CUT}  # what happens before a return
BEYOND_MS = 2500  # that a server stays lost after the last connection that may be late, so that it would be seen
PATIENCE_MS = 500  # for which an answer is waited for beyond what is forecast
EVERYWHERE = "all members that announce it have balancers of their own, and the forecast is of one that has all clients"
SLACK_MS = 60  # of an answer: what takes time beside what is forecast

Plan = Mapping[str, Any]
Members = Sequence[Mapping[str, Any]]  # each ``{name, timeouts}``
Line = Dict[str, Any]
Item = Mapping[str, Any]
Seen = Sequence[Mapping[str, Any]]  # what `member_info` returned of each member, which is its ``item``


class Chance(NamedTuple):
    """One event on one VIP: its line of the forecast, or why there is none."""

    event: str
    vip: str
    line: Line
    why: str


def lines(plan: Plan, members: Members, wanted: Sequence[str], send: str, seen: Seen = ()) -> List[Line]:
    """Return a line of the forecast for each VIP and event, as those in ``outages``, with ``server`` and ``promise``.

    :param wanted: the events; most drills want none of these
    :param send: what the user has the probe send
    :param seen: what `member_info` returned of each member; without that of a holder all of its servers count as up
    """
    return [chance.line for chance in _chances(plan, members, wanted, send, seen) if not chance.why]


def refusals(plans: Sequence[Plan], members: Members, wanted: Sequence[str], send: str, seen: Seen = ()) -> List[str]:
    """Return why no VIP can have a wanted event: a sentence for each VIP. One that another VIP can have is drilled."""
    every = [chance for plan in plans for chance in _chances(plan, members, wanted, send, seen)]
    possible = {chance.event for chance in every if not chance.why}
    return [f"{each.event} is not for {each.vip}: {each.why}." for each in every if each.event not in possible]


def _chances(plan: Plan, members: Members, wanted: Sequence[str], send: str, seen: Seen) -> List[Chance]:
    asked = [event for event in FORECAST_AS if event in wanted]
    outages = plan["outages"] if asked else []
    holders = {line["vip"]: line["before"] for line in outages if not announced.is_line(line)}
    of_bgp = dict.fromkeys(line["vip"] for line in outages if announced.is_line(line))
    found = [Chance(event, vip, {}, EVERYWHERE) for vip in of_bgp for event in asked]
    for vip, holder in holders.items():
        service = _serving(questions.service_of(plan, vip, send), holder, seen)
        why = _unfit(plan["members"][holder], service)
        for event in asked:
            chance = Chance(event, vip, {}, why)
            found.append(chance if why or not service else _forecast(chance, plan, members, holder, service))
    return found


def _serving(service: Optional[questions.Service], holder: str, seen: Seen) -> Optional[questions.Service]:
    """Return a service with those of its servers that the balancer of its VIP's holder gives connections to now.

    It gives them to late ones only while no other is up. Those that it has not checked yet count as up, as for itself.
    """
    if service is None:
        return None
    others = [each for item in seen if item.get("item") == holder for each in item.get("servers", {}).get("others", [])]
    known = [each for each in others if each["service"] == service["name"] and each["state"] != "not checked yet"]
    states = {server["name"]: server["state"] for server in known}
    up = [server for server in service["servers"] if server["name"] not in states]
    late = [server for server in service["servers"] if states.get(server["name"]) == "late"]
    total = len(service["servers"])
    count = f"{len(up or late)} of {total} servers up" if states else ""
    return {**service, "servers": up or late, "up": count}


def _unfit(holder: Mapping[str, Any], service: Optional[questions.Service]) -> str:
    """Return why a drill takes no server of a service away; nothing if it may."""
    if service is None:
        return "no balancer of this collection serves what the probe asks"
    if service["name"] in [each["name"] for each in direct_plane.services(holder["direct"])]:
        return f"clients of {service['name']} may reach its servers without a balancer"
    if service["routes"]:
        return f"{service['name']} has routes, each with servers of its own"
    second = f"{service['name']} has no second active server" + (f" ({service['up']})" if service["up"] else "")
    return "" if len(servers.weights_of(service["servers"])) > 1 else second


def _forecast(chance: Chance, plan: Plan, members: Members, holder: str, service: questions.Service) -> Chance:
    """Return what is forecast of one event, at worst where members have several engines."""
    weights = servers.weights_of(service["servers"])
    every = [servers.rules_of(service, *each) for each in _timeouts(plan, members).items()]
    promise, lost = (_worst(event, every, weights) for event in (chance.event, BEFORE.get(chance.event, chance.event)))
    if lost.window == servers.FOR_GOOD:
        return chance._replace(why=f"of {service['name']} connections would be lost for as long as it lasts")
    line = {
        "event": chance.event,
        "vip": chance.vip,
        "service": service["name"],
        "tied": [],
        **dict.fromkeys(("member", "before", "after", "back"), holder),
        "outage_ms": promise.window,
        "back_ms": 0,
        "two_holders_ms": 0,
        **_times(chance.event, every, lost),
        "promise": {key: getattr(promise, key) for key in ("late", "failed", "worst")},
        "note": promise.note if chance.event in BEFORE else "",
        "up": service["up"],
        "server": _server(json.loads(plan["members"][holder]["balancer"]["services"]), service),
    }
    return chance._replace(line=line)


def _worst(event: str, every: Sequence[servers.Rules], weights: Sequence[int]) -> servers.Loss:
    """Return what is forecast of an event by the rules for which it is the worst."""

    def rank(rules: servers.Rules) -> Any:
        loss = losses[rules]
        return loss.window == servers.FOR_GOOD, loss.window, loss.worst, rules.up_after

    losses = {
        rules: loss for rules in every for loss in servers.losses(rules, weights) if loss.event == FORECAST_AS[event]
    }
    return losses[max(losses, key=rank)]


def _times(event: str, every: Sequence[servers.Rules], lost: servers.Loss) -> Dict[str, Any]:
    """Return how long a server is lost; of one that comes back how long before, and how long its return takes."""
    seen_after = max(rules.down_after(max(rules.check_connect, rules.check_answer)) for rules in every)
    lasts_ms = round(1000 * seen_after) + lost.worst + BEYOND_MS
    if event not in BEFORE:
        return {"lasts_ms": lasts_ms}
    takes = max(rules.back_after + rules.slow_start for rules in every)
    return {"gone_ms": lasts_ms, "returns_ms": round(1000 * takes)}


def _timeouts(plan: Plan, members: Members) -> Dict[str, servers.Timeouts]:
    """Return the time-outs of each engine that a member has."""
    given = {member["name"]: member.get("timeouts", {}) for member in members}
    engines = {member["engine"]: given.get(name, {}) for name, member in plan["members"].items()}
    return {engine: servers.timeouts_of(engine, variables) for engine, variables in engines.items()}


def _server(services: Sequence[Dict[str, Any]], service: questions.Service) -> Dict[str, Any]:
    """Return the server of the greatest share, and each service of the balancer that has it, by its names there."""
    lost = max((one for one in service["servers"] if not one["backup"]), key=lambda one: int(one["weight"]))
    names: Dict[str, List[str]] = {}
    for backend in (backend for each in services for _place, backend in backends(each, "")):
        for server in backend["servers"]:
            if (server["address"], server["port"]) == (lost["address"], lost["port"]):
                names.setdefault(backend["name"], []).append(server["name"])
    return {"address": lost["address"], "port": lost["port"], "services": names}


def timing(line: Line, margin: float, start_delay: float) -> Dict[str, float]:
    """Return the timing of a server that comes back.

    :param margin: for which the probe looks beyond what is forecast
    :param start_delay: in which the probe starts; the balancer says before whether the server is down
    """
    return announced.of_return(math.ceil(line["gone_ms"] / 1000), 3 * start_delay, line["returns_ms"] / 1000 + margin)


def is_return(line: Mapping[str, Any]) -> bool:
    """Whether a line of a forecast is of a server that comes back."""
    return line["event"] in BEFORE


def unproved(item: Item, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return a sentence where the server was not lost before its return, is not back after it, or nobody knows.

    :param item: the round
    :param before: what `member_info` returned of the holder before the return
    :param after: what it returned at the end
    """
    if item["event"] not in BEFORE:
        return ""
    server = item["server"]
    names = {(service, name) for service, own in server["services"].items() for name in own}
    shown = f"{server['address']} at {server['port']}"
    lost, left = _others(before), _others(after)
    if lost is None or left is None:
        return f"whether {shown} was down and is up again is not known, because its balancer did not say so."
    if names - lost:
        return f"{shown} was not down before its return, so nothing was measured."
    limit = item["forecast"]["returns_ms"]
    return f"{shown} is not up again, the plan says after {limit} ms at most." if names & left else ""


def _others(seen: Mapping[str, Any]) -> Optional[Set[Tuple[str, str]]]:
    """Return the servers that the balancer of a member does not have up, each with its service; None if not known."""
    if not seen.get("servers", {}).get("total"):
        return None
    return {(each["service"], each["name"]) for each in seen["servers"]["others"]}


def late_ms(line: Mapping[str, Any], usual_ms: float) -> float:
    """Return for how long an answer is waited for.

    :param usual_ms: what is long enough for other failures
    """
    return max(usual_ms, line["promise"]["worst"] + PATIENCE_MS) if "promise" in line else usual_ms


def of(item: Item) -> bool:
    """Whether a round lost a server."""
    return "promise" in item["forecast"]


def is_met(item: Item) -> bool:
    """Whether the probe's connections met the server: with `balance: source` they may all go to another one.

    None of them has to show that a server comes back. Its balancer says it.
    """
    promise, seen = item["forecast"]["promise"], item["seen"]["impaired"]
    if item["event"] in BEFORE:
        return not item["unproved"]
    return bool(seen["late"] or seen["failed"] or seen["open"] or not (promise["late"] or promise["failed"]))


def window(item: Item) -> float:
    """Return from the first connection that was late or failed to the last one, in milliseconds."""
    return float(item["seen"]["impaired"]["window_ms"])


def words(items: Sequence[Item]) -> str:
    """Return what clients saw in the longest round that lost a server, beside what is forecast; nothing without one."""
    rounds = [item for item in items if of(item)]
    return _round_words(max(rounds, key=window)) if rounds else ""


def _round_words(item: Item) -> str:
    promise, seen = item["forecast"]["promise"], item["seen"]["impaired"]
    planned = _words("{} %", promise["late"], promise["failed"], promise["worst"])
    planned += f", with {item['forecast']['up']}" if item["forecast"].get("up") else ""
    planned += f"; {item['forecast']['note']}" if item["forecast"].get("note") else ""
    if item.get("unproved"):
        return f"{item['unproved'].rstrip('.')} (plan: {planned})"
    if not is_met(item):
        return f"the probe met other servers (plan: {planned})"
    delay = _delay(seen) if seen["late"] else 0
    failed, opened = _failed(item), seen["failed"] + seen["open"] - _failed(item)
    found = _words(f"{{}} of {seen['attempts']}", seen["late"], failed, delay)
    ended = f", {opened} ended that may have been open" if opened else ""
    return f"{found}{ended} (plan: {planned})"


def _words(count: str, late: int, failed: int, worst: float) -> str:
    parts = [f"{count.format(late)} up to {worst:.0f} ms late"] if late else []
    parts += [f"{count.format(failed)} failed"] if failed else []
    return ", ".join(parts) or (f"none late, but {worst:.0f} ms as the server goes down" if worst else "none late")


def _failed(item: Item) -> int:
    """Return how many connections failed, without those that may have been open as a server was lost."""
    seen = item["seen"]["impaired"]
    return int(seen["failed"] + (seen["open"] if item["event"] in BEFORE else 0))


def _delay(seen: Mapping[str, Any]) -> float:
    return max(0.0, float(seen["worst_ms"] - seen["usual_ms"]))


def fault(item: Item) -> str:
    """Say in which way clients saw more of it than is forecast; nothing where they did not."""
    promise, seen = item["forecast"]["promise"], item["seen"]["impaired"]
    limit = item["forecast"]["outage_ms"]
    if _failed(item) and not promise["failed"]:
        return f"{_failed(item)} of {seen['attempts']} connections failed, the plan says none."
    if window(item) > limit + item["interval_ms"]:
        return f"connections were late or failed for {window(item):g} ms, the plan says at most {limit} ms."
    if seen["late"] and not promise["failed"] and _delay(seen) > promise["worst"] + SLACK_MS:
        return f"a connection was {_delay(seen):.0f} ms late, the plan says at most {promise['worst']} ms."
    return ""
