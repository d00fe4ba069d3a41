# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a run says at its end: who holds each VIP, what changed where, what was not proved, what to run next. Pure.

A member is ``{name, engine, announces, vips, held, steps, unserved, statistics}``: its name in the inventory, its
engine, whether it announces its VIPs, the VIPs of its pair or cluster, those of them that it has, or None if that was
not verified, what `steps` returned, a sentence for each service of which no server is up, and the variables of the
statistics page.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, List, Mapping, Sequence, Tuple

from ..._agent.config.schema import read
from ..._shared.engines import AGENT
from ..model.haproxy import STATS

Member = Dict[str, Any]
STATISTICS = ("enabled", "address", "port", "uri")  # the variables of the page, as a member's values have them
SAID = ("restart", "stop")  # of what systemd is told as files change
RUNNING = ("active", "activating", "reloading")


def steps(words: Iterable[str], results: Iterable[Mapping[str, Any]]) -> List[str]:
    """Return what tasks have changed on a host, or would in check mode.

    :param words: of each result what a change means; empty where the result names what has changed
    :param results: what these tasks returned, empty for one that did not run
    """
    done: Dict[str, Dict[str, None]] = {}
    for word, registered in zip(words, results):
        for result in _each(registered):
            for verb, thing in _done(word, result) if result.get("changed") else []:
                done.setdefault(verb, {})[thing] = None
    return [f"{verb} {', '.join(things)}".rstrip() for verb, things in done.items()]


def _each(registered: Mapping[str, Any]) -> List[Mapping[str, Any]]:
    """Return what a task returned: for each item of a loop, or once. The ``results`` of dnf are sentences."""
    results = registered.get("results", [registered])
    return [registered] if any(isinstance(result, str) for result in results) else results


def _done(word: str, result: Mapping[str, Any]) -> Iterator[Tuple[str, str]]:
    """Yield what a task has done, and to what."""
    if "paths" in result:
        yield from _files(result)
    elif "steps" in result:
        yield from ((step, "") for step in result["steps"])
    elif "pods" in result or "not_in_force" in result:
        yield from ((word, name) for name in result.get("pods") or result.get("not_in_force") or [])
    elif "name" in result and "state" in result:
        yield _unit(word, result), result["name"]
    elif "path" in result and not word:
        yield "delete" if result.get("state") == "absent" else "create", result["path"]
    else:
        yield word, ""


def _files(result: Mapping[str, Any]) -> Iterator[Tuple[str, str]]:
    deleted, stale = result.get("deleted", []), result.get("stale", [])
    yield from (("delete" if path in deleted else "write", path) for path in result["paths"])
    if result["paths"]:
        words = [str(command).split() for command in result.get("commands", [])]
        yield from ((each[1], each[-1]) for each in words if each[0] == "systemctl" and each[1] in SAID)
    else:
        yield from ((f"reload, because {sentence.rstrip('.')}", "") for sentence in stale)
        yield from (("run", command) for command in ([] if stale else result.get("commands", [])))


def _unit(word: str, result: Mapping[str, Any]) -> str:
    """Return what became of a unit. One that ran before is not started, whatever its task asked for."""
    if result["state"] == "stopped":
        return word or "stop"
    ran = result.get("status", {}).get("ActiveState", "active") in RUNNING
    return word if ran and word else "start"


def lines(
    members: List[Member], outside: List[str], dry: bool, silent: Sequence[str] = (), names: Sequence[str] = ()
) -> List[str]:
    """Return the lines.

    :param outside: the names of the members outside `--limit`
    :param dry: whether it was a run in check mode
    :param silent: those of them that do not answer
    :param names: what the resolvers of the others still answer
    """
    said = [*_holders(members), *_changes(members, dry)]
    if not dry:
        said += [*_unserved(members), *names, *_unproved(members, outside)]
    said += _statistics(members)
    if dry:
        return [*said, "Next: run the same command without --check."]
    if silent:
        said.append(
            f"Next: when {', '.join(silent)} answers, run the same command without --limit to bring it up to date."
        )
    return [*said, "Next: onprem.lb.drill causes each failure, and measures how long each VIP is gone."]


def removed(members: List[Member], failed: Sequence[str], staying: Sequence[str], dry: bool) -> List[str]:
    """Return what a removal says at its end.

    :param members: as in `lines`, of which it needs the names and the steps
    :param failed: the names of those on which it has failed, or which did not answer
    :param staying: those of the members that it leaves as they are
    """
    names, others = ", ".join(member["name"] for member in members), ", ".join(staying)
    said = _changes(members, dry)
    if failed:
        said.append(f"Not removed: {', '.join(failed)}.")
    if dry:
        return [*said, "Next: run the same command without --check, and with -e confirm=true."]
    if failed:
        return [*said, f"Next: when {', '.join(failed)} answers, repeat the removal there. It may still hold VIPs."]
    if len(staying) == 1:
        alone = f"Next: {others} stays alone. Put another member into the inventory in place of {names}"
        return [*said, f"{alone}, and run onprem.lb.site."]
    if staying:
        again = "so that the others no longer send to it"
        return [*said, f"Next: take {names} out of the inventory, and run onprem.lb.site, {again}."]
    return [*said, "No member is left, so nobody holds their VIPs. Next: onprem.lb.site sets them up again."]


def _holders(members: List[Member]) -> List[str]:
    found = []
    for vip in dict.fromkeys(vip for member in members for vip in member["vips"]):
        sharing = [member for member in members if vip in member["vips"]]
        if any(map(_is_unverified, sharing)):
            continue
        holders = [member["name"] for member in sharing if vip in member["held"]]
        done = "announced" if any(member.get("announces") for member in sharing) else "held"
        found.append(f"{vip} is {done} by {', '.join(holders) or 'a member outside --limit'}.")
    return found


def _is_unverified(member: Member) -> bool:
    """Before ansible-core 2.19 a template makes an empty text of None."""
    return not isinstance(member["held"], (list, tuple))


def _changes(members: List[Member], dry: bool) -> List[str]:
    """Return a line for all members with the same changes."""
    names: Dict[str, List[str]] = {}
    for member in members:
        names.setdefault(_change(member, dry), []).append(member["name"])
    return [f"{', '.join(same)}: {change}" for change, same in names.items()]


def _change(member: Member, dry: bool) -> str:
    if not member["steps"]:
        return "nothing would change." if dry else "nothing changed."
    return f"{'to do' if dry else 'done'}: {'; '.join(member['steps'])}."


def _unserved(members: List[Member]) -> List[str]:
    """Return what the members' balancers say of services that answer no client, each sentence once."""
    names: Dict[str, List[str]] = {}
    for member in members:
        for sentence in member["unserved"]:
            names.setdefault(sentence, []).append(member["name"])
    return [f"{', '.join(same)}: {sentence}" for sentence, same in names.items()]


def _unproved(members: List[Member], outside: List[str]) -> List[str]:
    unverified = [member["name"] for member in members if _is_unverified(member)]
    found = [f"Not verified: {', '.join([*unverified, *outside])}."] if unverified or outside else []
    return [*found, "Not tested by this run: that each VIP moves as forecast."]


def statistics(values: Sequence[Any], planned_port: Any) -> Dict[str, Any]:
    """Return the variables of a statistics page; a member without a balancer has none, and no page."""
    port = {"port": planned_port} if planned_port else {}
    return {**dict(zip(STATISTICS, values)), **port} if values else {"enabled": False}


def _statistics(members: List[Member]) -> List[str]:
    """Return where the statistics are, once where all members have them at one place."""
    places: Dict[str, List[str]] = {}
    for member in members:
        given = {key: value for key, value in member["statistics"].items() if value != ""}
        stats = read(STATS, given, "haproxy_stats", [])  # its faults are known since the plan
        if stats["enabled"]:
            host = f"[{stats['address']}]" if ":" in stats["address"] else stats["address"]
            path = "/" if member["engine"] == AGENT else stats["uri"]
            places.setdefault(f"http://{host}:{stats['port']}{path}", []).append(member["name"])
    return [f"Statistics on {', '.join(names)}: {place}" for place, names in places.items()]
