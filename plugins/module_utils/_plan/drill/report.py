# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Compares the measurements of a drill with the plan. Pure; runs on the controller.

A result is a round with ``member`` (where it ran), ``interval_ms`` (of the probe) and ``seen`` (what `vip_probe`
measured). One that repeats another has ``because``.
"""

from __future__ import annotations

import statistics
from typing import Any, Callable, Dict, List, Mapping, Optional

from ..._shared import events, markdown
from . import announced, budgets, lost_servers

# A response gap includes the probe's own interval and the way to the server and back, an outage does not.
SLACK_MS = 15.0
# A preempted holder keeps the VIP until it acts on the new Active's first advertisement. That takes a while on a
# host with busy processors: among eight returns in containers beside three busy loops, one took 9 ms.
REACTION_MS = 15.0
POLLED_MS = 1000  # the shortest interval of a check that asks; a file that is tracked is noticed within some ms
NOT_MEASURED = "not measured"
ENOUGH_ROUNDS = 3  # of which one may fail: the hosts may have been busy at that moment

# The printed table: what each column shows of a row. The last ones are left out where they say nothing.
COLUMNS: Dict[str, Callable[[Dict[str, Any]], str]] = {
    "VIP": lambda row: row["vip"],
    "event": lambda row: row["event"].replace("_", " "),
    "probe": lambda row: row["asks"],
    "before": lambda row: ", ".join(row["before"]) or "unknown",
    "after": lambda row: ", ".join(row["after"]) or "unknown",
    "outage": lambda row: _ms(row["outage_ms"]),
    "longest gap": lambda row: _ms(row["response_gap_ms"]),
    "worst": lambda row: _ms(row["worst_ms"]),
    "allowed": lambda row: f"{row['limit_ms']} ms",
    "new ones failed (plan)": lambda row: row["new_failed"],
    "lasting lost (plan)": lambda row: row["lasting_share"],
    "clients": lambda row: row["clients"],
    "failback": lambda row: f"{row['failback_ms']:.0f} ms",
    "failed connections": lambda row: f"{row['failed']} of {row['tried']}",
    "long-lived lost": lambda row: f"{row['lasting_lost']} of {row['lasting_held']}",
    "two holders (allowed)": lambda row: f"{row['two_holders_ms']:.0f} ms ({row['two_holders_limit_ms']} ms)",
    "failed rounds": lambda row: f"{row['faulty']} of {row['rounds']}",
    "extra rounds": lambda row: str(row["repeated"]),
    "reason": lambda row: row["because"],
}


# Columns that are left out where no row has anything at this key.
OPTIONAL = {
    "new_failed": ("new ones failed (plan)", "lasting lost (plan)"),
    "clients": ("clients",),
    "repeated": ("extra rounds", "reason"),
}


def _ms(value: Optional[float]) -> str:
    return NOT_MEASURED if value is None else f"{value:.0f} ms"


def report(
    results: List[Dict[str, Any]], budget: float = 0, own_budgets: Optional[Mapping[str, float]] = None
) -> Dict[str, Any]:
    """Return ``{rows, table, faults, again}``: one row for each event and VIP, and the rounds to repeat.

    Each round is judged by itself. A row fails when more than a third of its rounds fail, or when one was over
    the budget.

    :param budget: for how many milliseconds the VIP may go unserved; 0 is no budget
    :param own_budgets: those of events that have another one
    """
    groups = _grouped(results)
    own = own_budgets or {}
    rows = [{**_row(group), "budget_ms": budgets.of(group[0]["event"], budget, own)} for group in groups]
    faults = [f"{row['vip']}, {row['event']}: {why}" for row in rows for why in row["faults"]]
    again = [repeat for group in groups for repeat in _repeats(group)]
    table = markdown.table(cells(rows))
    return {"rows": rows, "table": table, "faults": faults + budgets.over(rows, own), "again": again}


def cells(rows: List[Dict[str, Any]]) -> List[List[str]]:
    """Return the lines of the table, its head first."""
    silent = [name for key, names in OPTIONAL.items() for name in names if not any(row[key] for row in rows)]
    columns = {name: cell for name, cell in COLUMNS.items() if name not in silent}
    return [list(columns), *([cell(row) for cell in columns.values()] for row in rows)]


def each_round(results: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Return a row for each round of an event."""
    return [_row([item]) for item in results]


def _repeats(results: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Return the rounds that bring an event with a failed round to three."""
    because = _first_fault(results)
    if not because:
        return []
    bare = {key: value for key, value in results[0].items() if key not in ("member", "seen")}
    return [{**bare, "repeat": repeat + 1, "because": because} for repeat in range(len(results), ENOUGH_ROUNDS)]


def _grouped(results: List[Dict[str, Any]]) -> List[List[Dict[str, Any]]]:
    groups: Dict[Any, List[Dict[str, Any]]] = {}
    for item in results:
        groups.setdefault((item["vip"], item["event"]), []).append(item)
    return list(groups.values())


def _row(results: List[Dict[str, Any]]) -> Dict[str, Any]:
    group = [item for item in results if not _moved_too_early(item)] or results
    seen = [item["seen"] for item in group]
    measured = all(map(_is_measured, group))
    outages = [_outage(item) for item in group] if measured else []
    took = [_took(item) for item in group] if measured else []
    faulty = sum(bool(_faults(item)) for item in results)
    broken = _all_faults(results)
    return {
        "event": group[0]["event"],
        "vip": group[0]["vip"],
        "service": group[0]["forecast"].get("service", ""),
        "asks": group[0]["question"]["words"],
        "members": {name: target["engine"] for name, target in group[0]["targets"].items()},
        **_holders(group),
        "outage_ms": _median(outages),
        "outages_ms": outages,
        "took_ms": took,
        "worst_ms": max(took, default=None),
        "unserved_ms": round(max(map(_unserved, group)), 1) if measured else None,
        "limit_ms": group[0]["forecast"]["outage_ms"],
        "response_gap_ms": _median([item["takeover"]["response_gap_ms"] for item in seen] if measured else []),
        "new_failed": announced.new_words(group),
        "lasting_share": announced.lasting_words(group),
        "clients": lost_servers.words(group),
        "failback_ms": round(statistics.median(item["failback"]["outage_ms"] for item in seen), 1),
        "tried": sum(item["tried"] for item in seen),
        "failed": sum(item["failed_attempts"] for item in seen),
        "lasting_held": sum(_lasting(item)["held"] for item in seen),
        "lasting_lost": sum(_lasting(item)["lost"] for item in seen),
        "most_holders": max(item["most_holders"] for item in seen),
        "two_holders_ms": max(item["two_holders_ms"] for item in seen),
        "two_holders_limit_ms": group[0]["forecast"]["two_holders_ms"],
        "no_holder_ms": max(item["no_holder_ms"] for item in seen),
        "rounds": len(results),
        "faulty": faulty,
        "repeated": sum("because" in item for item in results),
        "because": _first_fault(results),
        "broken": broken,
        "faults": broken if ENOUGH_ROUNDS * faulty > len(results) else [],
    }


def _holders(group: List[Dict[str, Any]]) -> Dict[str, List[str]]:
    """Return which members had the VIP before and after: those that were seen, or where BGP carries it those planned.

    That all of these announced it before was read from them.
    """
    if announced.of(group[0]):
        return {"before": group[0]["forecast"]["before"], "after": group[0]["forecast"]["left"]}
    seen = [item["seen"] for item in group]
    return {
        "before": sorted({item["holder_before"] for item in seen if item["holder_before"]}),
        "after": sorted({holder for holder in map(_successor, seen) if holder}),
    }


def _of_a_part(item: Dict[str, Any]) -> Any:
    """Return what knows rounds of this kind, in which only a part of the connections is concerned; None for others."""
    return next((kind for kind in (lost_servers, announced) if kind.of(item)), None)


def _is_measured(item: Dict[str, Any]) -> bool:
    """Whether the attempts of a round show what it cost: where the probe connects only, some failures let it."""
    kind = _of_a_part(item)
    return bool(item["measured"]) and (kind is None or kind.is_met(item))


def _median(values: List[float]) -> Optional[float]:
    return round(statistics.median(values), 1) if values else None


def _outage(item: Dict[str, Any]) -> float:
    """Return for how long the VIP was gone, or a part of the connections was late or failed."""
    return lost_servers.window(item) if _of_a_part(item) else float(item["seen"]["takeover"]["outage_ms"])


def _took(item: Dict[str, Any]) -> float:
    """Return for how long the VIP was gone, or for how much longer than usual nothing answered.

    A former holder may hold connections back and forward them later: none failed, and none was served in time.
    """
    if _of_a_part(item):
        return _outage(item)
    takeover = item["seen"]["takeover"]
    waited = takeover["response_gap_ms"] - SLACK_MS if item["forecast"]["outage_ms"] else 0.0
    return round(max(takeover["outage_ms"], waited), 1)


def _lasting(seen: Dict[str, Any]) -> Dict[str, int]:
    """Return how many lasting connections the probe held and lost; the record of an earlier version has none."""
    return seen.get("lasting") or {"held": 0, "lost": 0}


def _unserved(item: Dict[str, Any]) -> float:
    """Return for how long the VIP was not served at most, its return included; or not for all clients, or late."""
    if _of_a_part(item):
        return _outage(item)
    takeover, failback = item["seen"]["takeover"], item["seen"]["failback"]
    return max(takeover["outage_ms"], takeover["response_gap_ms"] - SLACK_MS, failback["outage_ms"])


def _first_fault(results: List[Dict[str, Any]]) -> str:
    """Return the first fault of several rounds, or nothing."""
    return next((why for item in results for why in _faults(item)), "")


def _all_faults(results: List[Dict[str, Any]]) -> List[str]:
    """Return every fault, each with the round that it was found in."""
    return [
        f"round {number} of {len(results)}: {why}" for number, item in enumerate(results, 1) for why in _faults(item)
    ]


def _successor(seen: Dict[str, Any]) -> str:
    """Return the first sole holder after the one before, or that one when the VIP stayed."""
    for step in seen["timeline"]:
        if len(step["holders"]) == 1 and step["holders"] != [seen["holder_before"]]:
            return str(step["holders"][0])
    return seen["holder_before"] or ""


def _faults(item: Dict[str, Any]) -> List[str]:
    """Return a sentence for each way in which one round broke the plan."""
    if _moved_too_early(item):
        return [f"{item['member']} did not hold the VIP when the probe began: nothing was measured."]
    unproved = item.get("unproved", "")
    found = [unproved, _outage_fault(item), _two_holders_fault(item), _wrong_holder(item), _failback_fault(item)]
    return [sentence for sentence in found if sentence]


def _outage_fault(item: Dict[str, Any]) -> str:
    """Say how long the VIP was not served, if that is longer than planned."""
    takeover, limit = item["seen"]["takeover"], item["forecast"]["outage_ms"]
    if not _is_measured(item):
        return ""
    kind = _of_a_part(item)
    if kind:
        return str(kind.fault(item))
    if _took(item) <= limit:
        return ""
    if takeover["outage_ms"] > limit:
        return f"the VIP was gone for {takeover['outage_ms']} ms, the plan says at most {limit} ms."
    return f"nothing answered for {takeover['response_gap_ms']} ms, the plan says at most {limit} ms."


def _two_holders_fault(item: Dict[str, Any]) -> str:
    """Say how long there were two holders, if that is longer than planned.

    A request in the very moment of a handover may be answered by both; the next one comes an interval later.
    """
    shared, limit = item["seen"]["two_holders_ms"], item["forecast"]["two_holders_ms"]
    if shared > max(limit + item["interval_ms"], REACTION_MS):
        return f"two members held the VIP for {shared} ms, the plan says at most {limit} ms."
    return ""


def _failback_fault(item: Dict[str, Any]) -> str:
    """Say how long the outage was when the first holder returned, if it was longer than planned."""
    cost, forecast = item["seen"]["failback"]["outage_ms"], item["forecast"]
    if forecast["back"] != forecast["after"] and cost > forecast["back_ms"]:
        return f"the failback took {cost} ms, the plan says at most {forecast['back_ms']} ms."
    return ""


def _moved_too_early(item: Dict[str, Any]) -> bool:
    """Whether the VIP had moved before the measurement began."""
    return bool(item["seen"]["holders_known"]) and item["seen"]["holder_before"] != item["member"]


def _wrong_holder(item: Dict[str, Any]) -> str:
    """Say where the VIP moved, or returned to, if the plan says otherwise; that of an earlier version has no ties."""
    seen, forecast = item["seen"], item["forecast"]
    if not seen["holders_known"]:
        return ""
    holder = _successor(seen)
    stayed = holder == item["member"]
    if stayed and _is_back_before(item):
        return ""
    if forecast["before"] != item["member"]:  # without preemption another member may have held the VIP
        return f"the VIP stayed on {holder}." if stayed and forecast["before"] != forecast["after"] else ""
    if holder not in (forecast["after"], *forecast.get("tied", [])):
        return f"the VIP stayed on {holder}." if stayed else _misplaced(holder, forecast["after"])
    back = holder if forecast["back"] == forecast["after"] else forecast["back"]
    if item["holder"] and seen["holder_after"] != back:
        return "after the return " + _misplaced(seen["holder_after"], back)
    return ""


def _is_back_before(item: Dict[str, Any]) -> bool:
    """Whether what was killed may serve again before anybody notices: systemd starts it anew.

    Of a killed keepalived the others have to miss Advertisements; of a killed haproxy a check has to ask, unless the
    router tracks the file that haproxy's unit writes.
    """
    limit = item["forecast"]["outage_ms"]
    return item["event"] == events.KEEPALIVED_KILLED or (item["event"] == events.HAPROXY_KILLED and limit > POLLED_MS)


def _misplaced(holder: str, forecast: str) -> str:
    return f"the VIP was on {holder or 'no member'}, the plan says {forecast}."
