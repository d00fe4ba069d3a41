# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The `instances` half of the model: Virtual Routers, their addresses and peers, and what they track.

An instance as ``read_instances`` returns it has every key of ``INSTANCE``. Intervals and delays are in seconds.
"""

from __future__ import annotations

import math
import shlex
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from ..._agent.config.schema import (
    Faults,
    Field,
    address,
    anything,
    boolean,
    integer,
    list_of,
    number,
    one_of,
    place_of,
    read,
    read_list,
    shown_of,
    text,
    undefined,
    word,
)
from ..._agent.vrrp import config, notation, rules
from ..._shared import quoting
from . import raw_lines, secrets, url_checks, values
from .variables import as_role_variables

GARP_REFRESH = 60  # seconds between two announcements of the addresses that a holder has
ALIVE = ("killall", "-0")
ALIVE_LIMIT_S = 3600
ROOT = "root"
AGAIN = "notify_master_rx_lower_pri"

SCRIPT = {
    "name": Field(word, required=True),
    "command": Field(text, ""),
    "any_of": Field(url_checks.any_of, []),
    "interval": Field(number(0.01, 86400, " seconds"), 2),
    "timeout": Field(number(0.01, 86400, " seconds"), 2),
    "rise": Field(integer(1, 1000), 1),
    "fall": Field(integer(1, 1000), 1),
    "user": Field(word),
}

TRACK_FILE = {
    "name": Field(word, required=True),
    "path": Field(text, required=True),
}

INSTANCE = {
    "name": Field(word, required=True),
    "state": Field(one_of("MASTER", "BACKUP"), "BACKUP"),
    "interface": config.INSTANCE["interface"],
    "vrid": Field(integer(1, 255, "a VRID"), required=True),
    "version": Field(integer(2, 3, "a VRRP version"), 2),
    "priority": Field(integer(1, 255, "a priority"), 100),
    "advert_interval": Field(number(*rules.V3_INTERVAL[:1], 255, " seconds"), 1),
    "preempt": Field(boolean, True),
    "preempt_delay": Field(number(0, 1000, " seconds"), 0),
    "auth_pass": Field(text, "", secret=True),
    "multicast": Field(boolean, False),
    "source": Field(address),
    "peers": Field(list_of(address), []),
    "min_ttl": Field(rules.ttl),
    "addresses": Field(list_of(notation.on_interface(rules.vip), at_least=1), required=True, default=[]),
    "excluded_addresses": Field(list_of(notation.on_interface(rules.vip)), []),
    "virtual_routes": Field(list_of(notation.route), []),
    "track_scripts": Field(anything, []),
    "track_files": Field(anything, []),
    "track_interfaces": Field(anything, []),
    "dont_track_primary": Field(boolean, False),
    "garp_refresh": Field(integer(0, 86400, "seconds"), GARP_REFRESH),
    "notify": Field(text),
    "notify_user": Field(word),
    "lines": Field(raw_lines.keepalived_lines, []),
}

SHARED = {"auth_pass": INSTANCE["auth_pass"]}

TRACKING = ("track_scripts", "track_files", "track_interfaces")

# What the role `keepalived` has beside the instances and their checks.
DAEMON = {
    "router_id": Field(values.quotable(quoting.keepalived), ""),
    "script_user": Field(word, ROOT),
    "startup_delay": config.CONFIGURATION["startup_delay"],
    "config_path": Field(values.written_path, "/etc/keepalived/keepalived.conf"),
    "global_lines": Field(raw_lines.keepalived_lines, []),
    "extra_lines": Field(raw_lines.keepalived_lines, []),
}

SYNC_GROUP = {
    "name": Field(word, required=True),
    "instances": Field(list_of(word, at_least=1), required=True, default=[]),
    "track_scripts": Field(anything, []),
    "track_files": Field(anything, []),
    "track_interfaces": Field(anything, []),
    "notify": Field(text),
    "notify_user": Field(word),
    "lines": Field(raw_lines.keepalived_lines, []),
}


def read_instances(given: Any, place: str) -> Tuple[List[Dict[str, Any]], Faults]:
    """Return the instances with every default filled in, and a sentence for each fault."""
    faults: Faults = []
    instances = read_list(INSTANCE, given, place, faults)
    for at, instance in enumerate(instances):
        where = place_of(place, at, instance)
        _read_tracked(instance, where, faults)
        instance["family"] = rules.family(instance, where, faults)
        faults.extend(_contradictions(instance, where, faults))
    faults.extend(rules.vrid_clashes(instances, place) + rules.same_routes(instances, place))
    return instances, faults


def _read_tracked(item: Dict[str, Any], place: str, faults: Faults) -> None:
    """Read what an instance or a sync group tracks."""
    for kind in TRACKING:
        item[kind] = [*map(_plain, read_list(config.TRACKED, rules.spelled_out(item[kind]), f"{place}.{kind}", faults))]


def _plain(tracked: Dict[str, Any]) -> Dict[str, Any]:
    """Return what is tracked without the default of a key that the agent alone has."""
    return {key: value for key, value in tracked.items() if key != "offers" or value}


def _contradictions(instance: Dict[str, Any], place: str, wrong: Faults) -> Faults:
    """Combinations of values that no Virtual Router, or keepalived in particular, can have."""
    faults = rules.contradictions(instance, place, wrong) + auth_pass_faults(
        instance["auth_pass"], f"{place}.auth_pass"
    )
    if not instance["preempt"] and instance["state"] == "MASTER":
        faults.append(f"{place}.state is MASTER: an instance that does not preempt starts as BACKUP.")
    if instance["preempt_delay"] and instance["state"] == "MASTER":
        faults.append(f"{place}.state is MASTER: an instance with a preempt_delay starts as BACKUP.")
    return faults


def auth_pass_faults(auth_pass: str, place: str) -> Faults:
    """Refuse a password that would be truncated or misread silently. The sentence does not repeat it."""
    faults = rules.too_long(auth_pass, place)
    if not faults and values.quotable(quoting.keepalived)(auth_pass)[1]:
        faults.append(f"{place} has what keepalived.conf gives a meaning, also in quotes: use letters and digits.")
    return faults


def shared_faults(settings: Dict[str, Any], families: Iterable[int], prefix: str) -> Faults:
    """Return what is wrong with the settings that all instances of a layout share.

    :param families: IP versions of its VIPs
    """
    faults = auth_pass_faults(settings["auth_pass"], f"{prefix}_auth_pass")
    for version in sorted({3 if family == 6 else settings["vrrp_version"] for family in families}):
        faults += rules.interval_faults(version, settings["advert_interval"], f"{prefix}_advert_interval")
    return faults


def settings_of(given: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the settings that `model` takes.

    :param given: the role's variables that are set, without the prefix of their names
    """
    lists = {key: given.get(key, []) for key in ("instances", "scripts", "track_files", "sync_groups")}
    daemon = {key: given[key] for key in DAEMON if key in given}
    return {**lists, "auth_pass": given.get("auth_pass", ""), "daemon": daemon}


def with_password(instances: Iterable[Dict[str, Any]], auth_pass: str) -> List[Dict[str, Any]]:
    """Return VRRP instances, of which those of version 2 have a password: their own, or this one."""
    own = ((each, each.get("auth_pass") or (auth_pass if each["version"] == 2 else "")) for each in instances)
    return [{**each, "auth_pass": password} for each, password in own]


class _Read(NamedTuple):
    """What the user wrote, with every default."""

    instances: List[Dict[str, Any]]
    scripts: List[Dict[str, Any]]
    files: List[Dict[str, Any]]
    groups: List[Dict[str, Any]]


class _Known(NamedTuple):
    """What others may name; None where some of them were refused."""

    instances: Optional[List[Dict[str, Any]]]
    scripts: Optional[List[Dict[str, Any]]]
    files: Optional[List[Dict[str, Any]]]


def _is_refused(faults: Faults, place: str) -> bool:
    return any(fault.startswith((f"{place}[", f"{place} is ")) for fault in faults)


def model(settings: Dict[str, Any], prefix: str = "keepalived") -> Dict[str, Any]:
    """Return what the role `keepalived` renders.

    That is ``{instances, scripts, files, groups, daemon, connects, secrets, faults}``.

    :param settings: ``instances``, ``scripts``, ``track_files``, ``sync_groups`` and ``daemon`` as the user wrote them,
        and ``auth_pass``, for every version 2 instance without one of its own
    :param prefix: of the variables' names, for the sentences
    """
    instances, faults = read_instances(settings["instances"], f"{prefix}_instances")
    daemon = read(DAEMON, settings["daemon"], prefix, faults)
    auth_pass = read(SHARED, {"auth_pass": settings["auth_pass"]}, prefix, faults)["auth_pass"]
    scripts = read_scripts(settings["scripts"], f"{prefix}_scripts", faults)
    files = read_list(TRACK_FILE, settings["track_files"], f"{prefix}_track_files", faults)
    groups = _groups(settings["sync_groups"], f"{prefix}_sync_groups", faults)
    faults.extend(auth_pass_faults(auth_pass, f"{prefix}_auth_pass"))
    instances = with_password(instances, auth_pass)
    faults.extend(_among(_Read(instances, scripts, files, groups), prefix, faults))
    return {
        "instances": instances,
        "scripts": scripts,
        "files": files,
        "groups": groups,
        "daemon": daemon,
        # A command of the user's own may connect to anything.
        "connects": any(not process_of(script) for script in scripts),
        "secrets": secrets.texts(instances, scripts, groups, daemon),
        "faults": [as_role_variables(fault, prefix) for fault in faults],
    }


def _among(parts: _Read, prefix: str, wrong: Faults) -> Faults:
    """Return what is wrong between the instances, the groups, and what they track.

    :param wrong: what is wrong with each by itself
    """
    found: Faults = []
    known = _Known(
        *(
            None if _is_refused(wrong, f"{prefix}_{kind}") else items
            for kind, items in (
                ("instances", parts.instances),
                ("scripts", parts.scripts),
                ("track_files", parts.files),
            )
        )
    )
    for instance in parts.instances:
        place = f"{prefix}_instances ({instance['name']})"
        found.extend(_undefined(instance, known, place))
        found.extend(_offering(instance, place) if prefix == "keepalived" else [])
        tracked = [item["name"] for item in instance["track_interfaces"]]
        if instance["interface"] in tracked and not instance["dont_track_primary"]:
            found.append(f"{place}.track_interfaces has its own interface, which is always tracked: leave it out.")
    for group in parts.groups:
        place = f"{prefix}_sync_groups ({group['name']})"
        members = [{"name": name} for name in group["instances"]]
        found.extend(undefined(members, known.instances, f"{place}.instances"))
        found.extend(_undefined(group, known, place))
        found.extend(_weights_in(group, parts.instances, place))
    return found


def _offering(instance: Mapping[str, Any], place: str) -> Faults:
    """keepalived does not know offers: beside it another process makes them."""
    tracked = ((kind, item) for kind in TRACKING for item in instance[kind] if item.get("offers"))
    return [f"{place}.{kind} ({item['name']}).offers is for the agent only: leave it out." for kind, item in tracked]


def _groups(given: Any, place: str, faults: Faults) -> List[Dict[str, Any]]:
    groups = read_list(SYNC_GROUP, given, place, faults)
    for at, group in enumerate(groups):
        _read_tracked(group, place_of(place, at, group), faults)
    return groups


def keepalived_model(settings: Dict[str, Any]) -> Dict[str, Any]:
    """Return the model, with the faults of what keepalived.conf cannot express."""
    found = model(settings)
    command, path = quoting.keepalived_command, quoting.keepalived
    texts = [
        *(("scripts", script["name"], "command", script["command"], command) for script in found["scripts"]),
        *(("track_files", file["name"], "path", file["path"], path) for file in found["files"]),
        *(("instances", each["name"], "notify", each["notify"], command) for each in found["instances"]),
        *(("sync_groups", group["name"], "notify", group["notify"], command) for group in found["groups"]),
    ]
    for kind, name, key, written, quote in texts:
        also = f" GROUP {name} MASTER 255" if key == "notify" else ""  # with what keepalived does not add itself
        judged = [values.quotable(quote)(text)[1] for text in ((written, written + also) if written else ())]
        wrong = next(filter(None, judged), None)
        if wrong:
            found["faults"].append(f"keepalived_{kind} ({name}).{key} is {shown_of(key, written)}: {wrong}")
    again = [{**each, "notify_again": _notified_again(each, found["groups"])} for each in found["instances"]]
    usual = found["daemon"]["script_user"]
    scripts = [{**_permitted(each, usual), "timeout": keepalived_timeout(each)} for each in found["scripts"]]
    return {**found, "instances": again, "scripts": scripts, "programs": _notified(found)}


def _permitted(script: Dict[str, Any], usual: str) -> Dict[str, Any]:
    """Let root look for a process: `killall -0` of another user fails, although the process is there.

    :param usual: the user of scripts that name none
    """
    needs_root = process_of(script) and not script["user"] and usual != ROOT
    return {**script, "user": ROOT} if needs_root else script


def keepalived_timeout(script: Mapping[str, Any]) -> int:
    """Return the timeout of a script as keepalived has it, which counts whole seconds, and takes one for a failure.

    A `killall -0` that is late says only that the host is busy. The runs that fall due meanwhile are skipped.
    """
    return ALIVE_LIMIT_S if process_of(script) else math.ceil(script["timeout"])


def _notified_again(instance: Dict[str, Any], groups: List[Dict[str, Any]]) -> Dict[str, str]:
    """Return what an instance runs when it is MASTER and hears another one: `notify`, with the same arguments.

    keepalived adds none there, and a sync group has nothing of the kind. While its link is split, all instances of a
    group hear another MASTER. So one without a `notify` of its own can tell the group's.
    """
    if AGAIN in " ".join(instance["lines"]):
        return {}
    others = (group for group in groups if instance["name"] in group["instances"])
    own = (instance, "INSTANCE", instance["priority"])
    for teller, kind, priority in (own, *((group, "GROUP", 0) for group in others)):
        if teller["notify"]:
            command = f"{teller['notify']} {kind} {teller['name']} MASTER {priority}"
            return {"command": command, "user": teller["notify_user"] or ""}
    return {}


def _notified(found: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Return the programs to notify, for `host_info`. Those of scripts may come with packages that are yet to come."""
    usual = found["daemon"]["script_user"]
    return [
        {"key": f"{kind} ({each['name']}).notify", "command": each["notify"], "user": each["notify_user"] or usual}
        for kind, items in (("instances", found["instances"]), ("sync_groups", found["groups"]))
        for each in items
        if each["notify"]
    ]


def read_scripts(given: Any, place: str, faults: Faults) -> List[Dict[str, Any]]:
    """Return the scripts, each with a command: its own, or one that asks its URLs."""
    before = len(faults)
    scripts = read_list(SCRIPT, given, place, faults)
    if len(faults) > before:
        return scripts
    for at, script in enumerate(scripts):
        where = place_of(place, at, script)
        if not script["command"] and not script["any_of"]:
            faults.append(f"{where} has nothing to do: give it a command, or URLs in any_of.")
        elif script["command"] and script["any_of"]:
            faults.append(f"{where} has a command and any_of, of which one is enough: leave the other out.")
        elif script["any_of"]:
            script["command"] = url_checks.command(script["any_of"], script["timeout"])
    return scripts


def process_of(script: Mapping[str, Any]) -> str:
    """Return the process that a script looks for by ``killall -0 PROCESS``; nothing for any other script."""
    try:
        words = shlex.split(script["command"] or "")
    except ValueError:
        return ""
    return words[2] if len(words) == 3 and (words[0].rpartition("/")[2], words[1]) == ALIVE else ""


def _undefined(item: Dict[str, Any], known: _Known, place: str) -> Faults:
    """Return what an instance or a sync group tracks without it being defined."""
    return [
        *undefined(item["track_scripts"], known.scripts, f"{place}.track_scripts"),
        *undefined(item["track_files"], known.files, f"{place}.track_files"),
    ]


def _weights_in(group: Dict[str, Any], instances: List[Dict[str, Any]], place: str) -> Faults:
    """keepalived ignores weights in a group: its members change together, by FAULT only."""
    members = [(f" its instance {each['name']}", each) for each in instances if each["name"] in group["instances"]]
    return [
        f"{place}:{who} tracks {item['name']} with weight {item['weight']}, which keepalived ignores in a group: "
        "use weight 0 (FAULT)."
        for who, of in [*members, (" it", group)]
        for kind in TRACKING
        for item in of[kind]
        if item["weight"]
    ]
