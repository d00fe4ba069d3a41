# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Compares what a run wants with what `host_info` has read, so that a run without a change ends early. Pure."""

from __future__ import annotations

import hashlib
from typing import Any, Iterable, List, Mapping

from ..._shared.engines import NATIVE

PLAIN = "0644"  # the mode of a file that names none, as of config_files


def not_in_force(files: Iterable[Mapping[str, Any]], host: Mapping[str, Any], units: Iterable[str] = ()) -> List[str]:
    """Return the files and the units that are not as wanted.

    :param files: as `config_files` takes them; one without ``content`` is compared by the host itself
    :param host: as `host_info` returns it, which has read those files
    :param units: that are to run, and to start at boot
    """
    found = host["files"]
    differing = [item["path"] for item in files if not _is_as_wanted(item, found.get(item["path"]))]
    return differing + [unit for unit in units if not _runs(unit, host)]


def _is_as_wanted(item: Mapping[str, Any], found: Any) -> bool:
    if found is None or found["stale"]:
        return False
    if item.get("state", "present") == "absent":
        return not found["checksum"]
    checksum = sha256(item["content"]) if "content" in item else found["checksum"]
    return (found["checksum"], found["mode"]) == (checksum, item.get("mode", PLAIN))


def _runs(unit: str, host: Mapping[str, Any]) -> bool:
    return unit in host["active_units"] and unit in host["enabled_units"] and unit not in host["restarting_units"]


def sha256(content: str) -> str:
    return hashlib.sha256(content.encode("utf-8", "surrogateescape")).hexdigest()


BETWEEN_MEMBERS = ("departed", "migration_order", "joining", "waiting", "routers_together")  # parts of a plan


def is_in_force(plan: Mapping[str, Any], name: str, host: Mapping[str, Any], differing: Iterable[Any]) -> bool:
    """Return whether a run has nothing to configure on a member, as far as that was compared.

    The booleans of SELinux are compared by the tasks that set them.

    :param plan: as data
    :param host: as `host_info` returns it
    :param differing: what the roles have found that is not as wanted
    """
    member = plan["members"][name]
    between_members = [plan[name] for name in BETWEEN_MEMBERS if plan[name]]
    packages = host["missing_packages"] if member["engine"] == NATIVE else []  # the agent needs none
    on_this_one = member["replaces"] or packages or host["held_back"] or host["static_pods"]
    return not (any(differing) or between_members or on_this_one or host["selinux"])
