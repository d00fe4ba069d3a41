# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a change by each task means, by the variable that the task registers. Pure.

An empty text: the result names what has changed. Names in braces are those that `facts` returns.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping

from ..._shared.paths import PLANE

Facts = Mapping[str, Any]

SET_UP = {
    "__packages_would_install": "install {missing}",
    "__packages_installed": "install {missing}",
    "__layout_departed_stopped": "stop the router of {departed}",
    "__layout_departed_pod_stopped": "stop the router's pod of {departed}",
    "__layout_first_written": "",
    "__layout_agents": "",
    "__layout_folders_created": "",
    "__layout_units_written": "",
    "__layout_direct_written": "",
    "__layout_direct_folder_created": "",
    "__layout_direct_configured": "",
    "__layout_direct_unit_written": "",
    "__layout_direct_handed_over": f"start the new version of {PLANE}",
    "__layout_direct_started": "reload",
    "__direct_server_written": "write the program of direct return's servers",
    "__direct_server_configured": "",
    "__direct_server_differed": "put the server of direct return in force",
    "__direct_server_started": "reload",
    "__layout_router_stopped": "stop for the change",
    "__layout_router_pod_stopped": "stop for the change",
    "__keepalived_boolean_set": "set the SELinux boolean keepalived_connect_any",
    "__keepalived_stopped": "stop",
    "__keepalived_hook_written": "",
    "__keepalived_written": "",
    "__keepalived_tables_deleted": "delete the tables of another keepalived",
    "__keepalived_reloaded": "{keepalived_reload}",
    "__keepalived_started": "enable",
    "__haproxy_boolean_set": "set the SELinux boolean haproxy_connect_any",
    "__haproxy_stopped": "stop",
    "__haproxy_written": "",
    "__haproxy_reloaded": "reload",
    "__haproxy_started_at_once": "enable",
    "__frr_configured": "",
    "__agent_deployed": "",
    "__layout_pods_archive_written": "",
    "__layout_follow_pod_paused": "stop for the change",
    "__layout_pods_written": "",
    "__layout_pods_started": "start or reload",
    "__layout_follow_paused": "stop for the change",
    "__layout_router_started": "start",
    "__layout_openings": "change the firewall",
    "__ipi_written": "",
    "__ipi_put_in_force": "load",
    "__layout_answers_restarted": "restart",
    "__layout_static_pods_disabled": "disable {manifests}",
    "__layout_router_took_over": "start keepalived.service, which takes over at once",
    "__layout_router_enabled": "enable",
    # What a member does not need any more.
    "__layout_units_disabled": "",
    "__layout_units_deleted": "",
    "__layout_pods_stopped": "stop",
    "__layout_router_disabled": "",
    # The host's own resolver.
    "__resolver_on_the_way": "",
    "__resolver_named_written": "",
    "__resolver_written": "",
    "__resolver_nodes_written": "",
    "__resolver_corefile_written": "",
    "__resolver_reloaded": "reload",
    "__resolver_turned": "",
    "__resolver_upstreams_kept": "",
    "__resolver_asked_written": "",
    "__resolver_host_told": "",
    "__resolver_program": "",
    "__resolver_keeper_written": "",
    "__resolver_kept": "restart",
}
# What onprem.lb.remove does, and a run where a member does not need something any more.
REMOVAL = {
    "__layout_follow_deleted": "",
    "__layout_pods_deleted": "",
    "__layout_manifests_deleted": "delete the manifests of",
    "__layout_firewall_closed": "close the firewall's openings",
    "__agent_removed": "",
    "__agent_down_file_deleted": "",
    "__agent_firewall_closed": "close the firewall's openings",
    "__keepalived_disabled": "",
    "__keepalived_deleted": "",
    "__keepalived_put_back": "",
    "__haproxy_disabled": "",
    "__haproxy_deleted": "",
    "__haproxy_put_back": "",
    "__frr_disabled": "",
    "__frr_deleted": "",
    "__frr_put_back": "",
    "__packages_removed": "remove {own}",
    "__ipi_deleted": "",
    "__ipi_unloaded": "unload",
    "__layout_direct_stopped": "",
    "__direct_server_deleted": "",
    "__layout_direct_deleted": "",
    "__resolver_told": "",
    "__resolver_left": "",
    "__resolver_put_back": "",
    "__resolver_resolved_restarted": "restart",
    "__resolver_deleted": "",
    "__layout_units_removed": "",
}
OWN = ("haproxy", "keepalived", "resolver")  # what has packages of its own
EVERY = {"present": {**SET_UP, **REMOVAL}, "absent": REMOVAL}  # by the state that a run is for


def results(state: str) -> List[str]:
    """Return the variables that tasks of a run register, whose changes its end says."""
    return [*EVERY[state]]


def words(state: str, registered: Mapping[str, Facts], read: Mapping[str, Any]) -> List[str]:
    """Return the words of each result.

    :param registered: what each task returned, by its variable
    :param read: of the host ``host``, ``resolver``, ``haproxy`` and ``keepalived``, as `host_info` has returned them to
        the tasks of each; whether the packages of the host are installed, ``native``; and the ``departed`` of the plan
    """
    known = facts(registered, read)
    return [word.format(**known) for word in EVERY[state].values()]


def facts(registered: Mapping[str, Facts], read: Mapping[str, Any]) -> Dict[str, str]:
    """Return what the words name."""
    host, resolver = read["host"], read["resolver"]
    restarts = host.get("takeover", {}).get("keepalived", {}).get("restart")
    return {
        "missing": _listed(_packages("missing", host if read.get("native") else {}, resolver)),
        "manifests": _listed(each["manifest"] for each in host.get("static_pods", [])),
        "departed": _listed(each["name"] for each in read.get("departed", [])),
        "keepalived_reload": "restart" if restarts else "reload",
        "own": _listed(_packages("own", *(read[name] for name in OWN))),
    }


def _packages(which: str, *read: Facts) -> List[str]:
    """Return the packages that are missing, or this collection's own, by what `host_info` has returned."""
    return [*dict.fromkeys(package for each in read for package in each.get(f"{which}_packages", []))]


def _listed(names: Any) -> str:
    return ", ".join(names)
