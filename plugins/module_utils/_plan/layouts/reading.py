# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a layout reads of a host before it plans: the parameters of `host_info`. Pure.

The user's variables may be anything here. The plan refuses those that are wrong, after the hosts were read.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Collection, Dict, List, Mapping, Sequence

from ..._agent.config.schema import boolean
from ..._shared import paths, pods
from ..._shared.engines import HAPROXY, KEEPALIVED, POD, ROUTERS
from ..bgp.announcing import UNIT
from ..members import unused
from ..model import tls_content

NESTED = ("servers", "routes")
NO_DOWN_FILE = "/run/onprem-lb-no-down-file"


def parameters(
    definition: Mapping[str, Any],
    settings: Mapping[str, Any],
    configs: Dict[str, str],
    script_user: str,
    hook: str,
    presets: Collection[str],
    of_pods: Sequence[Mapping[str, Any]],
) -> Dict[str, Any]:
    """Return the parameters.

    :param definition: the layout, as its role defines it
    :param settings: its variables without their prefix
    :param configs: of haproxy and keepalived, by program
    :param script_user: who runs the checks and the notify programs
    :param hook: the checksum of keepalived's
    :param presets: those with an API server, whose certificates are read
    :param of_pods: the files that a member's pods may have
    """
    in_pods = settings.get("delivery") == POD
    services = tls_content.to_read(_without_addresses(settings.get("services") or []))
    programs = paths.of_programs(configs, hook)
    contents = [{"path": path} for path in tls_content.paths(services)]
    api = {"servers": settings.get("masters"), "names": _listed(settings.get("api_names"))}
    record = paths.members_record(definition["prefix"])
    down_file = settings["down_file"] if boolean(settings.get("track_events", True))[0] else ""
    besides = {
        **{key: definition[key] for key in ("programs", "takes_over", "take_over_variable")},
        "removes": [HAPROXY, KEEPALIVED],
        "pings": not in_pods and any("gateway" in each for each in _listed(settings["checks"]) if _is_mapping(each)),
        "runs_units": _units_of(settings, in_pods),
        "read_files": [*programs, *_of_layout(down_file, record), *definition["read_files"], *of_pods, *contents],
        "keepalived_config": configs[KEEPALIVED],
        "api": api if settings.get("preset") in presets else {},
        "members_record": record,
    }
    return {
        **{key: definition[key] for key in ("vips", "packages")},
        "layout": besides,
        "sets_booleans": not in_pods,
        "units": [*paths.EVERY_UNIT, *definition["units"], UNIT],
        "files": [*(each["path"] for each in programs), *_own_files(definition)],
        "configs": configs,
        "named": {
            "notify": settings.get("notify", ""),
            "script_user": script_user,
            "down_file": down_file,
            "services": services,
            "metrics_file": settings["metrics_file"],
        },
        "servers": _listed([services, definition.get("servers", [])]),
        "with_auth_pass": True,
        "loaded": list(ROUTERS),
        "listen": settings["listen"],
    }


def _units_of(settings: Mapping[str, Any], in_pods: bool) -> List[str]:
    """Return what of a member systemd has to run: in pods the resolver alone."""
    resolver = ["the resolver"] if boolean(settings.get("dns"))[0] else []
    return [*([] if in_pods else ["the balancer", "the router"]), *resolver]


def obstacles(
    host: Mapping[str, Any],
    name: str,
    definition: Mapping[str, Any],
    stages: Collection[str],
    components: Collection[str],
    is_native: bool,
    in_pods: bool,
) -> List[str]:
    """Return what is in the way of a member's own files, units and packages, and which programs it lacks.

    :param host: as `host_info` returns it
    :param stages: of the run
    :param components: the component roles that set the member up
    :param is_native: whether its programs come with packages, and run as units
    """
    packages = unused.needed(definition["packages"], components) if is_native else []
    things = {*definition["units"], *_own_files(definition), *packages, *(pods.NAMES if in_pods else [])}
    found = [sentence for thing, sentence in host["obstacles"].items() if thing in things]
    missing = host["missing_packages"] if is_native else []
    if missing and "configure" in stages and "install" not in stages:
        found.append(f"{name} lacks {', '.join(missing)}: run the stage install as well.")
    return list(dict.fromkeys(found))


def _own_files(definition: Mapping[str, Any]) -> List[str]:
    """Return what a run writes for the layout on each member: its files, its record, and the states."""
    return [*definition["files"], paths.members_record(definition["prefix"]), paths.STATES]


def _of_layout(down_file: str, record: str) -> List[Dict[str, str]]:
    """Return the layout's own files that a run compares."""
    units = [paths.CORRECTION, paths.WATCH, paths.RENEWAL, paths.SHUTDOWN, paths.ANSWERS]
    own = [{"path": paths.of_unit(name), "unit": name} for name in units]
    return [*own, {"path": down_file or NO_DOWN_FILE}, {"path": record}, {"path": paths.GATE_CONFIG}]


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _listed(value: Any) -> List[Any]:
    """Return all items of a list, and of the lists in it; of anything else that alone."""
    return [item for each in value for item in _listed(each)] if isinstance(value, (list, tuple)) else [value]


def _without_addresses(given: Any) -> Any:
    """Return services, as the user wrote them, without the servers that are named by their addresses.

    A host has nothing to say of those, which may be thousands.
    """
    if isinstance(given, list):
        return [_without_addresses(each) for each in given if not _is_address(each)]
    if isinstance(given, dict):
        return {key: _without_addresses(value) if key in NESTED else value for key, value in given.items()}
    return given


def _is_address(server: Any) -> bool:
    try:
        return bool(ipaddress.ip_address(str(server.get("address") if isinstance(server, dict) else server)))
    except ValueError:
        return False
