# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the role `haproxy` renders: services, monitors, and a statistics page that only its users can read."""

from __future__ import annotations

import json
import re
from types import MappingProxyType
from typing import Any, Collection, Dict, List, Mapping, Sequence

from ..._agent.config.schema import Faults, Field, boolean, integer, list_of, number, one_of, port, read, refused, text
from ..._agent.proxy import config, rules
from ..._agent.proxy.settings import places
from . import (
    answers,
    asked,
    bind_line,
    binds,
    fallback,
    loops,
    own_lines,
    pace,
    peers,
    raw_binds,
    raw_lines,
    secrets,
    shared,
    tls_content,
    values,
)
from .services import listeners as listeners_of
from .services import names_taken, port_conflicts, read_monitors, read_services, resolved_names
from .variables import as_role_variables

WELL_KNOWN = (
    "admin",
    "password",
    "haproxy",
    "secret",
    "changeme",
    "stats",
    "openshift",
    "123456",
    "12345678",
)

URL_PATH = config.CHECK["path"].check

TUNING = {
    "maxconn": Field(integer(0, 10000000), 0),
    "retries": Field(integer(0, 1000), 3),
    "log_normal": Field(boolean, True),
    "log_targets": Field(values.log_targets, []),
    "global_lines": Field(own_lines.global_lines, []),
    "defaults_lines": Field(raw_lines.section_lines, []),
    "extra_lines": Field(own_lines.extra_lines, []),
    "timeout_connect": Field(values.time, pace.CONNECT),
    "timeout_client": Field(values.time, "1m"),
    "timeout_server": Field(values.time, "1m"),
    "timeout_queue": Field(values.time, "1m"),
    "timeout_check": Field(values.time, pace.ANSWER),
    "timeout_http_request": Field(values.time, "10s"),
    "timeout_http_keep_alive": Field(values.time, "10s"),
    "timeout_tunnel": Field(values.time, "1h"),
    "timeout_fin": Field(values.optional(values.time), ""),
    "hard_stop_after": Field(values.time, "1h"),
    "nameservers": Field(list_of(values.nameserver), []),
    "resolve_prefer": Field(one_of("ipv4", "ipv6"), "ipv4"),
    "config_path": Field(values.written_path, "/etc/haproxy/haproxy.cfg"),
    "down_file": Field(values.optional(values.down_file), ""),
    "answer_port": answers.PORT_FIELD,
    "peers_port": peers.PORT_FIELD,
    "stop_pause": Field(number(0, 60, " seconds"), 0.2),
    "start_commands": Field(values.commands, []),
    "stop_commands": Field(values.commands, []),
}

STATS = {
    "enabled": Field(boolean, True),
    "address": Field(config.listen_address, "127.0.0.1"),
    "port": Field(port, 9000),
    "uri": Field(URL_PATH, "/haproxy_stats"),
    "metrics": Field(values.optional(URL_PATH), "/metrics"),
    "user": Field(text, ""),
    "password": Field(text, "", secret=True),
}

PAGE = "haproxy_stats"
STATS_VARIABLES = {"metrics_path" if key == "metrics" else f"stats_{key}": key for key in STATS}


def settings_of(given: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the settings that `model` takes.

    :param given: the role's variables that are set, without the prefix of their names
    """
    stats = {key: given[name] for name, key in STATS_VARIABLES.items() if name in given}
    tuning = {key: given[key] for key in TUNING if key in given}
    return {**{key: given.get(key, []) for key in ("services", "monitors", "peers")}, "stats": stats, "tuning": tuning}


def model(
    settings: Dict[str, Any],
    listeners: List[Dict[str, Any]],
    host: str,
    addresses: Sequence[Dict[str, Any]] = (),
    resolved: Mapping[str, Sequence[str]] = MappingProxyType({}),
    inventory_servers: Mapping[str, int] = MappingProxyType({}),
    also_answers: Sequence[int] = (),
    asking: Sequence[Dict[str, Any]] = (),
    contents: Mapping[str, str] = MappingProxyType({}),
) -> Dict[str, Any]:
    """Return ``{services, certificates, monitors, stats, tuning, answering, peers, secrets, names, ports, faults}``.

    The names are those of servers, which haproxy resolves, and the ports those besides the services'. Those of
    UDP are such as ``514/udp``. ``restricted_ports`` are ``{port, networks}``.

    :param settings: ``services``, ``monitors``, ``peers``, ``stats`` and ``tuning`` as the user wrote them
    :param listeners: the listening sockets of this host, as `host_info` returns them
    :param host: its name, for the sentences
    :param addresses: those of this host, as `host_info` returns them
    :param resolved: those of servers' names, likewise
    :param inventory_servers: as `read_monitors` takes it
    :param also_answers: as the plan's balancer has it
    :param asking: what has to be answered, as the plan has it
    :param contents: the texts of certificates, as the plan's balancer has them
    """
    services, faults = read_services(settings["services"], "haproxy_services")
    services, own_contents = tls_content.taken(services)
    contents = {**contents, **own_contents}
    faults += loops.faults(services, loops.of_host([], addresses, host, resolved), "haproxy_services")
    counted = None if refused(faults, "haproxy_services") else services
    monitors, wrong = read_monitors(settings.get("monitors", []), counted, "haproxy_monitors", inventory_servers)
    faults.extend([*wrong, *names_taken(monitors, services, "haproxy_monitors")])
    faults.extend(fallback.names_taken(services, monitors, "haproxy_services"))
    tuning = read(TUNING, settings["tuning"], "haproxy", faults)
    stats = _stats(settings["stats"], faults)
    occupied = [*listeners_of(services), *monitors]
    if stats["enabled"]:
        faults += _page_taken(services, monitors)
        occupied.append({"name": PAGE, "port": stats["port"], "bind": [stats["address"]]})
    answering = [*answers.monitors(tuning["answer_port"]), *answers.kept(also_answers)]
    peering = peers.read(settings.get("peers", []), services, tuning, host, addresses)
    occupied += [*answering, *peers.listening(peering["peers"], host)]
    others, raws = _others(monitors, stats, tuning), _raws(services, tuning)
    faults.extend([*binds.clashes(services, others, raws), *peering["faults"]])
    others += raw_binds.plain(raws)
    faults.extend(peers.clashes(peering["peers"], services, others))
    faults.extend([] if faults else asked.faults(asking, _answering(services, monitors, stats, others), host))
    faults.extend(port_conflicts(occupied, listeners, host))
    faults = [as_role_variables(fault, "haproxy") for fault in faults]
    ports = [each["port"] for each in answering]
    read_parts = {"services": services, "monitors": monitors, "stats": stats, "tuning": tuning, "answering": ports}
    names = resolved_names(services)
    return {
        **read_parts,
        "certificates": tls_content.files(contents),
        "peers": peering["peers"],
        "secrets": [*secrets.texts(read_parts), *tls_content.secrets(contents)],
        "names": names,
        "ports": _ports(monitors, stats, raws),
        "restricted_ports": raw_binds.restricted_ports(raws),
        "faults": faults,
    }


def _page_taken(services: List[Dict[str, Any]], monitors: List[Dict[str, Any]]) -> Faults:
    frontends = [*(each["frontend_name"] or each["name"] for each in services), *(each["name"] for each in monitors)]
    if PAGE not in frontends:
        return []
    return [f"{PAGE} is the frontend of the statistics page: give the service or the monitor another name."]


def for_template(found: Mapping[str, Any], unrestricted: Collection[str] = ()) -> Dict[str, Any]:
    """Return a model as the template takes it: its services are JSON, each with its backends.

    A run says what is ``told``.

    :param unrestricted: as `bind_line.told` takes it
    """
    global_lines = found["tuning"]["global_lines"]
    told = [line for each in found["services"] for line in bind_line.told(each, global_lines, unrestricted)]
    services = [
        {**fallback.with_backends(service, found["tuning"]), **bind_line.words(service, global_lines)}
        for service in found["services"]
    ]
    known = shared.by_name(services)
    backs = [shared.backend_of(service, known) for service in services]
    services = [
        {**service, "default": back["name"], "fallback": back["fallback"]} for service, back in zip(services, backs)
    ]
    return {**found, "services": json.dumps(services), "told": told}


def _others(monitors: List[Dict[str, Any]], stats: Dict[str, Any], tuning: Dict[str, Any]) -> List[rules.Claim]:
    """Return what listens besides the services and raw lines."""
    page = places([stats["address"]], stats["port"]) if stats["enabled"] else []
    answering = binds.of_answers(tuning["answer_port"], "haproxy_answer_port")
    return [*binds.of_monitors(monitors), *binds.of_page(page), *answering]


def _raws(services: List[Dict[str, Any]], tuning: Dict[str, Any]) -> List[raw_binds.Raw]:
    """Return where raw lines listen."""
    of_all = [(tuning[f"{section}_lines"], f"haproxy_{section}_lines") for section in ("global", "defaults", "extra")]
    lines = [raw for lines, place in of_all for raw in raw_binds.of_lines(lines, place)]
    return [*raw_binds.of_services(services, "haproxy_services"), *lines]


def _ports(monitors: List[Dict[str, Any]], stats: Dict[str, Any], raws: List[raw_binds.Raw]) -> List[Any]:
    """Return the ports besides the services' that every other host may reach."""
    page = places([stats["address"]], stats["port"]) if stats["enabled"] else []
    own = binds.reachable([*binds.of_monitors(monitors), *binds.of_page(page)])
    by_udp = [f"{port}/{raw_binds.UDP}" for port in raw_binds.open_ports(raws, raw_binds.UDP)]
    return [*sorted({*own, *raw_binds.open_ports(raws, raw_binds.TCP)}), *by_udp]


def _answering(
    services: List[Dict[str, Any]], monitors: List[Dict[str, Any]], stats: Dict[str, Any], others: List[rules.Claim]
) -> List[asked.Listener]:
    """Return what answers a check.

    :param others: as `_others` returns it
    """
    page = asked.of_page(stats) if stats["enabled"] else []
    return asked.with_claims([*asked.of_services(services), *asked.of_monitors(monitors), *page], others)


def _stats(given: Any, faults: Faults) -> Dict[str, Any]:
    """Read the statistics page. The variable of one key has a name that is not made of the key."""
    found: Faults = []
    stats = read(STATS, given, "haproxy_stats", found)
    found = found or _stats_faults(stats)
    faults += [re.sub(r"^haproxy_stats\.metrics\b", "haproxy_metrics_path", fault) for fault in found]
    return stats


def _stats_faults(stats: Dict[str, Any]) -> Faults:
    if not stats["enabled"]:
        return []
    unfit = [key for key in ("user", "password") if " " in stats[key] or not stats[key].isprintable()]
    if unfit:
        return [
            f"haproxy_stats_{key} has a space or a control character: use letters, digits and signs." for key in unfit
        ]
    if ":" in stats["user"]:
        return ["haproxy_stats_user has a colon, which ends a user's name in HTTP: leave it out."]
    if stats["password"].lower() in WELL_KNOWN or (stats["password"] and stats["password"] == stats["user"]):
        return ["haproxy_stats_password is one of the first that attackers try: choose another."]
    if bool(stats["user"]) != bool(stats["password"]):
        return ["haproxy_stats_user and haproxy_stats_password go together: set both, or none."]
    if not rules.is_loopback(stats["address"]) and not stats["password"]:
        return [
            f"haproxy_stats_address is {stats['address']}, which others can reach: set haproxy_stats_user and "
            "haproxy_stats_password, or bind it to 127.0.0.1."
        ]
    return []
