# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What each changed setting means for a VIP while some members have the old value and others the new one. Pure.

`SETTINGS` is the whole knowledge as a table. A setting has one of three classes:

- harmless: the members go on as they are;
- moves: the VIP goes to another member, or is gone while its router starts anew;
- splits: members that differ discard each other's Advertisements, so each of them holds the VIP.

A balancer has no such settings: at a reload it keeps its connections, whatever changes.
"""

from __future__ import annotations

from typing import Any, Callable, Collection, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from ..._agent.vrrp.core.packet import PASSWORD_SIZE
from ..._shared import engines
from ..._shared.membership import carriers, vips

Instance = Dict[str, Any]
HARMLESS, MOVES, SPLITS = "harmless", "moves", "splits"
MISSED = 3  # Active_Down_Interval is three intervals and Skew_Time, which is one at most, or a second in version 2
AS_IT_RUNS = {"preempt": False, "preempt_delay": 0}  # of an instance that runs: who holds a VIP now keeps it
# From here on keepalived only logs an Advertisement with other addresses than its own; before, it discards it.
TOLERATES_OTHER_LISTS = (2, 3, 3)


class Pair(NamedTuple):
    """A VIP's instance on one member: the one that runs, and the one that is planned."""

    vip: str
    before: Instance
    after: Instance
    engine: str  # that runs
    compares_lists: bool  # whether a router on the link discards Advertisements with other addresses
    keeps_source: bool  # whether the host still has the address that the running one sends from


class Setting(NamedTuple):
    """A setting, and what its change means. Of several with one label the first that applies counts."""

    label: str
    kind: str
    value: Callable[[str, Instance], Any]  # of a VIP in an instance
    words: Tuple[str, str]  # the old value in a sentence, and any value in a table; none of a secret
    why: str
    applies: Callable[[Pair], bool] = lambda pair: True
    starts_anew: Callable[[Pair], bool] = lambda pair: False


class Change(NamedTuple):
    """A setting of a VIP that changes on one member."""

    vip: str
    label: str
    kind: str
    kept: str  # the old value, in a sentence
    before: str
    after: str
    gone: float = 0  # for how many seconds at most the VIP is gone


def _of(key: str) -> Callable[[str, Instance], Any]:
    return lambda vip, instance: instance[key]


def _in_version_2(pair: Pair) -> bool:
    return bool(pair.before["version"] == pair.after["version"] == 2)


def _in_version_3(pair: Pair) -> bool:
    return bool(pair.before["version"] == pair.after["version"] == 3)


def _compares_lists(pair: Pair) -> bool:
    return pair.compares_lists


def _by_unicast(pair: Pair) -> bool:
    return {_way_to_send(pair.vip, instance) for instance in (pair.before, pair.after)} == {"unicast"}


def _at_both_sources(pair: Pair) -> bool:
    """Whether a router is heard at its old address, and will not be heard there."""
    on_another_link = pair.before["interface"] != pair.after["interface"]
    return pair.keeps_source and (_by_unicast(pair) or on_another_link)


def _always(pair: Pair) -> bool:
    return True


def _by_the_agent(pair: Pair) -> bool:
    return pair.engine == engines.AGENT


def _by_keepalived(pair: Pair) -> bool:
    return pair.engine == engines.NATIVE


def _password(vip: str, instance: Instance) -> str:
    return password(instance)


def _way_to_send(vip: str, instance: Instance) -> str:
    return "multicast" if instance["multicast"] else "unicast"


def _list(vip: str, instance: Instance) -> str:
    return ", ".join(sorted(vips([instance])))


def _prefix(vip: str, instance: Instance) -> str:
    whole = "128" if ":" in vip else "32"
    lengths = (each.partition(" ")[0].partition("/") for each in instance["addresses"])
    return next((length or whole for address, _slash, length in lengths if address == vip), "")


def _carrier(vip: str, instance: Instance) -> str:
    return carriers(instance).get(vip) or str(instance["interface"])


def _peers(vip: str, instance: Instance) -> str:
    return ", ".join(sorted(instance["peers"]))


def _preemption(vip: str, instance: Instance) -> str:
    return "yes" if instance["preempt"] else "no"


INTERVAL = ("the advertisement interval {:g} s", "{:g} s")
LIST = ("the VIPs {}", "{}")
SOURCE = ("the source {}", "{}")
SETTINGS = (
    Setting(
        "VRID",
        SPLITS,
        _of("vrid"),
        ("VRID {}", "{}"),
        "a router discards another VRID (RFC 9568, 7.1), and one with another VRID is another router",
        starts_anew=_always,
    ),
    Setting(
        "VRRP version",
        SPLITS,
        _of("version"),
        ("VRRP version {}", "{}"),
        "a router discards another version (RFC 9568, 7.1); to the agent it is another router",
        starts_anew=_by_the_agent,
    ),
    Setting(
        "interval",
        SPLITS,
        _of("advert_interval"),
        INTERVAL,
        "in version 2 a router discards another interval (RFC 3768, 7.1)",
        applies=_in_version_2,
    ),
    Setting(
        "interval",
        HARMLESS,
        _of("advert_interval"),
        INTERVAL,
        "in version 3 a Backup learns the interval of the Active (RFC 9568, 6.4.2)",
        applies=_in_version_3,
    ),
    Setting(
        "password",
        SPLITS,
        _password,
        ("another password", "another"),
        "in version 2 a router discards another password (RFC 2338, 7.1); version 3 has none",
        applies=_in_version_2,
    ),
    Setting(
        "multicast",
        SPLITS,
        _way_to_send,
        ("{}", "{}"),
        "keepalived discards multicast where it expects unicast, and vice versa; its router restarts (2.2.7)",
        starts_anew=_by_keepalived,
    ),
    Setting(
        "source",
        SPLITS,
        _of("source"),
        SOURCE,
        "by unicast, and on another link, a router hears only those that send to its address there, and "
        "keepalived's restarts (2.2.7)",
        applies=_at_both_sources,
        starts_anew=_by_keepalived,
    ),
    Setting(
        "source",
        HARMLESS,
        _of("source"),
        SOURCE,
        "multicast is heard from any; a router whose address is gone is heard by nobody, and changes last",
    ),
    Setting(
        "VIPs of one VRID",
        SPLITS,
        _list,
        LIST,
        "keepalived before 2.3.3 discards another list of addresses",
        applies=_compares_lists,
    ),
    Setting("VIPs of one VRID", HARMLESS, _list, LIST, "keepalived from 2.3.3 on, and the agent, only log it"),
    Setting(
        "interface",
        MOVES,
        _of("interface"),
        ("{}", "{}"),
        "the router on another interface is another router",
        starts_anew=_always,
    ),
    Setting(
        "interface of the VIP",
        MOVES,
        _carrier,
        ("{}", "{}"),
        "the address goes from one interface of its holder to another, which announces it there",
    ),
    # Where it changes which member is the best, the VIP moves: `transition` sees that, which knows all members.
    Setting("priority", HARMLESS, _of("priority"), ("{}", "{}"), "the next Advertisement has it"),
    Setting("preemption", HARMLESS, _preemption, ("{}", "{}"), "it counts at the next failure"),
    Setting(
        "peers",
        HARMLESS,
        _peers,
        ("{}", "{}"),
        "a member that joins starts once all others send to it",
        applies=_by_unicast,
    ),
    Setting("prefix", HARMLESS, _prefix, ("/{}", "/{}"), "the address is replaced within 0.3 ms (measured, 2.2.7)"),
    Setting("name", HARMLESS, _of("name"), ("{}", "{}"), "routers do not send it"),
)


def between(
    running: List[Instance], planned: List[Instance], engine: str, compares_lists: bool, own: Collection[str]
) -> Iterator[Change]:
    """Yield what changes on one member for each VIP that it runs and will run.

    :param running: its instances now, as `host_info` returns them
    :param planned: its instances in the plan, with their passwords
    :param engine: that runs there
    :param compares_lists: whether a router on the link discards Advertisements with other addresses
    :param own: the addresses of the member's host
    """
    by_vip = {vip: instance for instance in running for vip in vips([instance])}
    by_key = {key(instance): instance for instance in running}
    for instance in planned:
        for vip in sorted(vips([instance])):
            before = by_vip.get(vip, by_key.get(key(instance)))
            if before is not None:
                yield from _changes(Pair(vip, before, instance, engine, compares_lists, before["source"] in own))


def _changes(pair: Pair) -> Iterator[Change]:
    judged: Set[str] = set()
    is_there = pair.vip in vips([pair.before])
    for setting in SETTINGS:
        if setting.label not in judged and setting.applies(pair):
            judged.add(setting.label)
            change = _change(setting, pair)
            if change and (is_there or change.kind == SPLITS):  # a new VIP in an old router
                yield change


def _change(setting: Setting, pair: Pair) -> Optional[Change]:
    before, after = (setting.value(pair.vip, instance) for instance in (pair.before, pair.after))
    if before == after:
        return None
    sentence, cell = setting.words
    gone = active_down(pair.after) if setting.starts_anew(pair) else 0
    kept = sentence.format(before)
    return Change(pair.vip, setting.label, setting.kind, kept, cell.format(before), cell.format(after), gone)


def active_down(instance: Instance) -> float:
    """Return for how many seconds at most a router waits for Advertisements before it becomes Active."""
    interval = instance["advert_interval"]
    return float(MISSED * interval + longest_skew(instance))


def longest_skew(instance: Instance) -> float:
    """Return the longest Skew_Time in seconds, which version 2 counts in seconds whatever the interval."""
    return 1.0 if instance["version"] == 2 else float(instance["advert_interval"])


def key(instance: Instance) -> Tuple[str, int, bool]:
    """Return what identifies a Virtual Router on its host."""
    return instance["interface"], instance["vrid"], any(":" in address for address in instance["addresses"])


def compares_lists(engine: str, keepalived_version: str) -> bool:
    """Return whether a router discards Advertisements with other addresses than its own.

    :param keepalived_version: '' if it is not known
    """
    known = tuple(int(part) for part in keepalived_version.split(".") if part.isdigit())
    return engine == engines.NATIVE and known < TOLERATES_OTHER_LISTS


def password(instance: Instance) -> str:
    """Return what routers compare of a password; version 3 has none."""
    return str(instance["auth_pass"] or "")[:PASSWORD_SIZE] if instance["version"] == 2 else ""
