# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The `instances` half of the model: Virtual Routers, their addresses and peers, and what they track.

An instance as ``read_instances`` returns it has every key of ``INSTANCE``. Intervals and delays are in seconds.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Tuple

from ..._agent.config.schema import (
    Faults,
    Field,
    address,
    anything,
    boolean,
    integer,
    lines,
    list_of,
    number,
    one_of,
    place_of,
    read,
    read_list,
    text,
    word,
)
from ..._agent.vrrp import rules
from . import url_checks
from .variables import as_role_variables

# keepalived ends a quoted text at the next double quote, unless a backslash is before it.
UNESCAPED = re.compile(r'(?<!\\)"')

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
    "interface": Field(word, required=True),
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
    "addresses": Field(list_of(rules.vip, at_least=1), required=True, default=[]),
    "track_scripts": Field(anything, []),
    "track_files": Field(anything, []),
    "track_interfaces": Field(anything, []),
    "garp_refresh": Field(integer(0, 86400, "seconds"), 60),
    "notify": Field(text),
    "lines": Field(lines, []),
}

RAW = {
    "global_lines": Field(lines, []),
    "extra_lines": Field(lines, []),
}

SYNC_GROUP = {
    "name": Field(word, required=True),
    "instances": Field(list_of(word, at_least=1), required=True, default=[]),
    "notify": Field(text),
    "lines": Field(lines, []),
}


def read_instances(given: Any, place: str) -> Tuple[List[Dict[str, Any]], Faults]:
    """Return the instances with every default filled in, and a sentence for each fault."""
    faults: Faults = []
    instances = read_list(INSTANCE, given, place, faults)
    for at, instance in enumerate(instances):
        where = place_of(place, at, instance)
        for kind in ("track_scripts", "track_files", "track_interfaces"):
            instance[kind] = read_list(rules.TRACKED, rules.spelled_out(instance[kind]), f"{where}.{kind}", faults)
        instance["family"] = rules.family(instance, where, faults)
        faults.extend(_contradictions(instance, where))
    faults.extend(rules.vrid_clashes(instances, place))
    return instances, faults


def _contradictions(instance: Dict[str, Any], place: str) -> Faults:
    """Combinations of values that no Virtual Router, or keepalived in particular, can have."""
    faults = rules.contradictions(instance, place) + auth_pass_faults(instance["auth_pass"], f"{place}.auth_pass")
    if not instance["preempt"] and instance["state"] == "MASTER":
        faults.append(f"{place}.state is MASTER: an instance that does not preempt starts as BACKUP.")
    if instance["preempt_delay"] and instance["state"] == "MASTER":
        faults.append(f"{place}.state is MASTER: an instance with a preempt_delay starts as BACKUP.")
    return faults


def auth_pass_faults(auth_pass: str, place: str) -> Faults:
    """Refuse a password that would be truncated or misread silently. The sentence does not repeat it."""
    faults = rules.too_long(auth_pass, place)
    if not faults and any(not c.isprintable() or c in " \"'#!{}\\" for c in auth_pass):
        faults.append(f"{place} has a character that keepalived.conf gives a meaning: use letters and digits.")
    return faults


def model(settings: Dict[str, Any], prefix: str = "keepalived") -> Dict[str, Any]:
    """Return what the role `keepalived` renders: ``{instances, scripts, files, groups, raw, faults}``.

    :param settings: ``instances``, ``scripts``, ``track_files``, ``sync_groups`` and ``raw`` as the user wrote them,
        and ``auth_pass``, for every version 2 instance without one of its own
    :param prefix: of the variables' names, for the sentences
    """
    instances, faults = read_instances(settings["instances"], f"{prefix}_instances")
    raw = read(RAW, settings["raw"], prefix, faults)
    scripts = _scripts(settings["scripts"], f"{prefix}_scripts", faults)
    files = read_list(TRACK_FILE, settings["track_files"], f"{prefix}_track_files", faults)
    groups = read_list(SYNC_GROUP, settings["sync_groups"], f"{prefix}_sync_groups", faults)
    faults.extend(auth_pass_faults(settings["auth_pass"], f"{prefix}_auth_pass"))
    for instance in instances:
        if instance["version"] == 2:
            instance["auth_pass"] = instance["auth_pass"] or settings["auth_pass"]
        place = f"{prefix}_instances ({instance['name']})"
        faults.extend(rules.undefined(instance["track_scripts"], scripts, f"{place}.track_scripts"))
        faults.extend(rules.undefined(instance["track_files"], files, f"{place}.track_files"))
        if instance["interface"] in [item["name"] for item in instance["track_interfaces"]]:
            faults.append(f"{place}.track_interfaces has its own interface, which is always tracked: leave it out.")
    for group in groups:
        members = [{"name": name} for name in group["instances"]]
        faults.extend(rules.undefined(members, instances, f"{prefix}_sync_groups ({group['name']}).instances"))
        faults.extend(_weights_in(group, instances, prefix))
    return {
        "instances": instances,
        "scripts": scripts,
        "files": files,
        "groups": groups,
        "raw": raw,
        "faults": [as_role_variables(fault, prefix) for fault in faults],
    }


def keepalived_model(settings: Dict[str, Any]) -> Dict[str, Any]:
    """Return the model, with the faults of what stands between double quotes in keepalived.conf."""
    found = model(settings)
    quoted = {
        "scripts": [(script["name"], "command", script["command"]) for script in found["scripts"]],
        "track_files": [(file["name"], "path", file["path"]) for file in found["files"]],
        "instances": [(instance["name"], "notify", instance["notify"]) for instance in found["instances"]],
        "sync_groups": [(group["name"], "notify", group["notify"]) for group in found["groups"]],
    }
    found["faults"] += [
        f'keepalived_{kind} ({name}).{key} has a ", which ends the text in keepalived.conf: use single quotes.'
        for kind, texts in quoted.items()
        for name, key, written in texts
        if UNESCAPED.search(written or "")
    ]
    return found


def _scripts(given: Any, place: str, faults: Faults) -> List[Dict[str, Any]]:
    """The scripts, each with a command: its own, or one that asks its URLs."""
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


def _weights_in(group: Dict[str, Any], instances: List[Dict[str, Any]], prefix: str) -> Faults:
    """keepalived ignores weights in a group: its members change together, by FAULT only."""
    return [
        f"{prefix}_sync_groups ({group['name']}): its instance {instance['name']} tracks {item['name']} with weight "
        f"{item['weight']}, which keepalived ignores in a group: use weight 0 (FAULT)."
        for instance in instances
        if instance["name"] in group["instances"]
        for kind in ("track_scripts", "track_files", "track_interfaces")
        for item in instance[kind]
        if item["weight"]
    ]
