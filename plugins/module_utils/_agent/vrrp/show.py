# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The daemon's report as a table and as Prometheus metrics; docs/agent.md describes its fields. Pure."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Sequence

from ..checks import show as checks
from ..runtime.prometheus import PROCESS, Metric, Report, Sample, exposition
from ..runtime.text_table import ago, columns, heading, problems

STATES = ("Initialize", "Backup", "Active", "Leaving", "Fault")
HOLDERS = ("Active", "Leaving")  # states with addresses
PREFIX = "onprem_lb_vrrp"


def table(report: Report, now: float) -> str:
    """Return the report as text for a terminal.

    :param now: seconds since 1970, for how long ago something was
    """
    parts = [heading(report, now), *problems(report), _instances(report["instances"], now)]
    if report["groups"]:
        rows = [(group["name"], group["state"], " ".join(group["instances"])) for group in report["groups"]]
        parts.append(columns(("SYNC GROUP", "STATE", "INSTANCES"), rows))
    if report["checks"]:
        parts.append(checks.table(report["checks"], now))
    return "\n\n".join(parts) + "\n"


def _instances(instances: Sequence[Report], now: float) -> str:
    heads = ("INSTANCE", "STATE", "SINCE", "PRIORITY", "INTERFACE", "VRID", "ADDRESSES", "WHY")
    rows = [
        (
            instance["name"],
            instance["state"],
            ago(instance["since"], now),
            _priority(instance["priority"]),
            instance["interface"],
            f"{instance['vrid']} v{instance['version']}",
            " ".join(_addresses(instance)),
            _why(instance),
        )
        for instance in instances
    ]
    return columns(heads, rows)


def _priority(priority: Report) -> str:
    if priority["configured"] == priority["effective"]:
        return str(priority["effective"])
    return f"{priority['effective']} of {priority['configured']}"


def _addresses(instance: Report) -> List[str]:
    """Mark an address that is missing, or present although the state or the prefix length says otherwise."""
    active, held = instance["state"] in HOLDERS, instance["held"]
    marks = {(True, False): " (missing)", (False, True): " (left over)"}
    strays = [f"{address} (left over)" for address in held if address not in instance["addresses"]]
    return [address + marks.get((active, address in held), "") for address in instance["addresses"]] + strays


def _why(instance: Report) -> str:
    if instance["waiting_for"]:
        return f"waits for {', '.join(instance['waiting_for'])}"
    changes = [
        f"{item['name']} FAULT" if item["change"] is None else f"{item['name']} {item['change']:+d}"
        for item in instance["priority"]["because"]
    ]
    rivals = [f"{rival['source']} is Active as well, priority {rival['priority']}" for rival in instance["rivals"]]
    holders = [
        f"another host has {other['address']} as well ({', '.join(other['macs'])})"
        for other in instance["other_holders"]
    ]
    return "; ".join([instance["reason"], *changes, *rivals, *holders])


def prometheus(report: Report) -> str:
    """Return the report in Prometheus's text format."""
    return exposition(PREFIX, METRICS, report)


def prometheus_of_router(report: Report) -> str:
    """Return what any VRRP router has of such a report: ``instances``, with the fields of ROUTER, and ``checks``."""
    return exposition(PREFIX, ROUTER, report)


def _each(value: Callable[[Report], float]) -> Callable[[Report], Iterable[Sample]]:
    return lambda report: [(_of(instance), value(instance)) for instance in report["instances"]]


def _of(instance: Report) -> Dict[str, Any]:
    return {"instance_name": instance["name"], "interface": instance["interface"], "vrid": instance["vrid"]}


def _states(report: Report) -> Iterable[Sample]:
    for instance in report["instances"]:
        for state in STATES:
            yield {**_of(instance), "state": state}, instance["state"] == state


def _last_received(report: Report) -> Iterable[Sample]:
    for instance in report["instances"]:
        if instance["last_advertisement"]:
            yield _of(instance), instance["last_advertisement"]["at"]


def _discarded(report: Report) -> Iterable[Sample]:
    for instance in report["instances"]:
        for reason, count in instance["discarded"].items():
            yield {**_of(instance), "reason": reason}, count


# Those of any VRRP router, keepalived too.
ROUTER = (
    Metric("state", "1 for the state in which an instance is, 0 for the others.", _states),
    Metric("state_since_seconds", "When an instance entered its state, since 1970.", _each(lambda i: i["since"])),
    Metric("priority", "The priority that an instance advertises.", _each(lambda i: i["priority"]["effective"])),
    Metric("priority_configured", "The priority as configured.", _each(lambda i: i["priority"]["configured"])),
    Metric("addresses", "How many virtual addresses an instance has.", _each(lambda i: len(i["addresses"]))),
    Metric("addresses_held", "How many of them are on this host's interface.", _each(lambda i: len(i["held"]))),
    Metric("takeovers_total", "How often an instance became Active.", _each(lambda i: i["takeovers"])),
    Metric("advertisements_sent_total", "Advertisements sent.", _each(lambda i: i["sent"])),
    Metric("advertisements_received_total", "Valid Advertisements received.", _each(lambda i: i["received"])),
    Metric("last_advertisement_seconds", "When one was last received, since 1970.", _last_received),
    Metric("discarded_total", "Messages for an instance that were discarded, by reason.", _discarded),
    checks.UP,
)
METRICS = (
    *PROCESS,
    *ROUTER,
    Metric("transitions_total", "Changes of state.", _each(lambda i: i["transitions"])),
    Metric(
        "advertisements_lower_total",
        "Advertisements of a lower priority received while Active.",
        _each(lambda i: i["lower"]),
    ),
    Metric("rivals", "Other routers that are Active at the same time as this one.", _each(lambda i: len(i["rivals"]))),
    Metric(
        "other_holders",
        "Addresses for which another host answers as well.",
        _each(lambda i: len(i["other_holders"])),
    ),
)
