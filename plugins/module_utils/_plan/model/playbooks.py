# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a user may set for the playbooks with variables of their own, which no role judges."""

from __future__ import annotations

from typing import Any, Collection, Dict, List, Mapping, NamedTuple, Optional, Tuple

from ansible.module_utils.parsing.convert_bool import boolean as ansible_boolean

from ..._agent.config.schema import Faults, Field, anything, integer, list_of, number, one_of, read, text
from ..._shared.state_ids import ID
from . import pod_options, values
from .variables import as_role_variables, read_given

NEVER, ALWAYS, IF_NEEDED = "never", "always", "if_needed"
DAY = 86_400


def _packages(value: Any) -> Tuple[Any, Optional[str]]:
    """A list of packages, or a text of them with commas between, as the command line gives it."""
    return list_of(values.package)(value.split(",") if isinstance(value, str) else value)


def _id(value: Any) -> Tuple[Any, Optional[str]]:
    if value == "" or (isinstance(value, str) and ID.fullmatch(value)):
        return value, None
    return None, "the ID of a state is required, such as 20260131T120000Z; -e rollback_list=true lists them."


def truth(value: Any) -> Tuple[Any, Optional[str]]:
    """A truth value in any of Ansible's words, for what no role judges; None where an empty text leaves it unset."""
    try:
        return (None if value == "" else ansible_boolean(value)), None
    except TypeError:
        return None, "true or false is required."


def is_true(value: Any, default: bool = False) -> bool:
    """Return what a truth value counts as, by the words of `truth`; one that is unset as the default."""
    if value in (None, ""):
        return default
    return bool(truth(value)[0])


def _pattern(value: Any) -> Tuple[Any, Optional[str]]:
    """What ``hosts`` of a play takes: a pattern, or a list of them."""
    return (list_of(text, at_least=1) if isinstance(value, list) else text)(value)


WAIT = Field(integer(0, DAY, "a number of seconds"), 10)  # for the connections of a member that leaves by BGP
MAINTENANCE = {
    "members": Field(values.words, []),
    "packages": Field(_packages, []),
    "reboot": Field(one_of(NEVER, ALWAYS, IF_NEEDED), NEVER),
    "reboot_timeout": Field(integer(1, DAY, "a number of seconds"), 600),
    "tasks": Field(text, ""),
    "pause": Field(integer(0, DAY, "a number of seconds"), 0),
    "wait": WAIT,
    "break_lock": Field(truth, False),
}
RETURN = {
    "undo_after": Field(number(0, 3600, " seconds"), 35),
    "break_lock": Field(truth, False),
    "downgrade": Field(truth, False),
}
TEXT, NEEDED, TRUTH = Field(text, ""), Field(text), Field(truth, False)  # what is needed has no default
# By the playbook, whose name its variables begin with. What may be anything here is judged for each host.
PLAYBOOKS: Dict[str, Mapping[str, Field]] = {
    "backup": {"folder": TEXT, "break_lock": TRUTH},
    "dns": {
        "format": Field(one_of("zone", "dnsmasq", "nsupdate", "corefile"), "zone"),
        "output": TEXT,
        **dict.fromkeys(("ttl", "domain", "subdomain", "address", "api", "nodes", "etcd"), Field(anything, "")),
    },
    "forecast": {"transition": TRUTH},
    "import": {"hosts": Field(_pattern, ""), "haproxy": TEXT, "keepalived": TEXT, "output": NEEDED},
    "maintenance": MAINTENANCE,
    "pods": {
        "format": Field(one_of("files", "machineconfig"), "files"),
        **pod_options.OPTIONS,
        "agent_image": pod_options.AGENT._replace(required=False),
        "frr_image": pod_options.OTHER,
        "kubeconfig": TEXT,
        "output": NEEDED,
        **dict.fromkeys(("address", "pool"), Field(anything, "")),
    },
    "restore": {"file": NEEDED, "other_vips": TRUTH, **RETURN},
    "rollback": {"to": Field(_id, ""), "list": TRUTH, **RETURN},
    "status": {
        "format": Field(one_of("text", "json"), "text"),
        "output": TEXT,
        "timeout": Field(number(0, DAY, " seconds"), 5),
    },
    "survey": {"hosts": Field(_pattern, ""), "interface": TEXT, "seconds": Field(number(0, DAY, " seconds"), 3.5)},
    "switchover": {**dict.fromkeys(("to", "from"), TEXT), "back": TRUTH, "break_lock": TRUTH, "wait": WAIT},
}
# What every playbook reads of a layout, whose name these begin with.
OF_LAYOUT: Mapping[str, Field] = {"firewall": Field(truth, True)}


def variables(playbook: str) -> List[str]:
    """Return the names of a playbook's variables."""
    return [f"{playbook}_{key}" for key in PLAYBOOKS.get(playbook, {})]


def faults(given: Mapping[str, Any], playbook: str) -> Faults:
    """Return what is wrong with a playbook's variables.

    :param given: those that are set, without their prefix
    """
    return _faults(PLAYBOOKS.get(playbook, {}), given, playbook)


def layout_faults(given: Mapping[str, Any], layout: str) -> Faults:
    """Return what is wrong with a layout's variables that a playbook reads which does not plan it."""
    return _faults(OF_LAYOUT, given, layout)


def _faults(schema: Mapping[str, Field], given: Mapping[str, Any], prefix: str) -> Faults:
    found: Faults = []
    unset = [key for key in schema if given.get(key) is None and schema[key].default is not None]
    read_given(schema, {key: given[key] for key in given if key not in unset}, prefix, found)
    return [as_role_variables(fault, prefix) for fault in found]


def layouts_among(groups: Mapping[str, Collection[str]], pair: str, ipi: str) -> str:
    """Return what an inventory has: `pair`, `ipi` or `both`; `both` also where it has neither.

    :param groups: its groups with their hosts
    :param pair: the pair's groups where a user names them, with colons in between, and ``ipi`` the cluster's
    """
    named = (pair or "pair", ipi or "ipi_masters:ipi_workers")
    has_pair, has_ipi = (any(groups.get(name) for name in names.split(":")) for names in named)
    return "both" if has_pair == has_ipi else "pair" if has_pair else "ipi"


class Maintenance(NamedTuple):
    """What is wrong with the variables, or their values."""

    faults: Faults
    settings: Dict[str, Any] = {}


def model(given: Dict[str, Any], names: List[str]) -> Maintenance:
    """Read the variables.

    :param given: those that are set, without their prefix
    :param names: of all members
    """
    faults: Faults = []
    settings = read(MAINTENANCE, given, "maintenance", faults)
    unknown = [name for name in settings["members"] if name not in names]
    faults += [
        f"maintenance_members has {name!r}, which is not a member: choose from {', '.join(names)}." for name in unknown
    ]
    if not faults and not (settings["packages"] or settings["tasks"] or settings["pause"] or _may_reboot(settings)):
        faults.append(
            "A maintenance would do nothing: set maintenance_packages, maintenance_reboot, maintenance_tasks or "
            "maintenance_pause."
        )
    if faults:
        return Maintenance([as_role_variables(fault, "maintenance") for fault in faults])
    return Maintenance([], {**settings, "work": work(settings)})


def _may_reboot(settings: Dict[str, Any]) -> bool:
    return bool(settings["reboot"] != NEVER)


def work(settings: Dict[str, Any]) -> str:
    """Say in words what is done to each member."""
    packages, file, pause = ", ".join(settings["packages"]), settings["tasks"], settings["pause"]
    parts = {
        f"the packages {packages} are updated": packages,
        f"the tasks of {file} run": file,
        f"it is left to you for {pause} s": pause,
        "it reboots": settings["reboot"] == ALWAYS,
        "it reboots if it needs to": settings["reboot"] == IF_NEEDED,
    }
    return ", ".join(part for part, is_wanted in parts.items() if is_wanted)
