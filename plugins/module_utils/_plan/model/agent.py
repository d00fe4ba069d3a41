# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Renders the model as the agent's two configurations, or says why the agent cannot have them. Pure.

This is to the agent what haproxy.cfg.j2 and keepalived.conf.j2 are to HAProxy and keepalived. What the agent does not
support is refused, never left out.
"""

from __future__ import annotations

import json
import re
from types import MappingProxyType
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..._agent.config.schema import (
    Faults,
    Field,
    anything,
    boolean,
    integer,
    list_of,
    number,
    parted,
    port,
    read,
    refused,
    text,
    word,
)
from ..._agent.proxy import config
from ..._agent.proxy.rules import Claim, is_loopback
from ..._agent.proxy.settings import BALANCES, HTTP, WORKER, places
from ..._agent.vrrp import config as vrrp_config
from ..._shared.engines import PROXY, VRRP, Daemon
from . import answers, asked, binds, instances, loops, pace, secrets, url_checks, values
from .services import Read, backends, port_conflicts, read_monitors, read_services
from .variables import as_role_variables

Settings = Dict[str, Any]

AGENT_PROGRAMS = (Daemon(PROXY).program, WORKER)  # the agent's programs that listen


PROXY_SETTINGS = {
    "services": Field(list_of(anything), []),
    "monitors": Field(list_of(anything), []),
    "maxconn": Field(integer(0, 1_000_000), 0),
    "retries": config.CONFIGURATION["retries"],
    "workers": Field(integer(1, 64), 1),
    "timeout_connect": Field(values.seconds, pace.CONNECT_S),
    "timeout_client": Field(values.seconds, 60),
    "timeout_server": Field(values.seconds, 60),
    "timeout_queue": Field(values.seconds, 60),
    "timeout_check": Field(values.seconds, pace.ANSWER_S),
    "timeout_tunnel": Field(values.seconds, 3600),
    "timeout_fin": Field(values.optional(values.seconds), ""),
    "hard_stop_after": Field(values.seconds, 3600),
    "stop_within": Field(values.seconds, 8),
    "stats_enabled": Field(boolean, True),
    "stats_address": Field(config.listen_address, "127.0.0.1"),
    "stats_port": Field(port, 9000),
    "stats_user": Field(text, ""),
    "stats_password": Field(text, "", secret=True),
    "down_file": Field(values.optional(values.down_file), ""),
    "answer_port": answers.PORT_FIELD,
    "stop_pause": Field(number(0, 60, " seconds"), 0.2),
    "start_commands": Field(values.commands, []),
    "stop_commands": Field(values.commands, []),
}
VRRP_SETTINGS = {
    "instances": Field(list_of(anything), []),
    "scripts": Field(list_of(anything), []),
    "track_files": Field(list_of(anything), []),
    "sync_groups": Field(list_of(anything), []),
    "auth_pass": Field(text, "", secret=True),
    "script_user": Field(word, "root"),
    "checksum": vrrp_config.INSTANCE["checksum"],
    "startup_delay": vrrp_config.CONFIGURATION["startup_delay"],
}
LISTS = ("instances", "scripts", "track_files", "sync_groups")  # which the model of the instances reads
SETTINGS = {**PROXY_SETTINGS, **VRRP_SETTINGS, "raw": Field(anything, {})}

# The keys of a service and of its check that are always written; of the others those that are not the agent's default.
SERVICE_KEYS = ("name", "bind", "port", "mode", "balance", "servers")
ROUTE_KEYS = ("name", "hosts", "balance", "servers")
CHECK_KEYS = ("type", "interval", "timeout", "fall", "rise")
INSTANCE_KEYS = (
    *("name", "interface", "vrid", "version", "priority", "advert_interval", "preempt", "preempt_delay"),
    *("auth_pass", "multicast", "source", "peers", "min_ttl", "addresses", "garp_refresh"),
    *("notify", "notify_user"),
)
RARE_INSTANCE_KEYS = ("excluded_addresses", "virtual_routes", "dont_track_primary")  # written where they say something

# What the daemons call the items of variables.
OF_DAEMONS = (
    (re.compile(r"checks\[\d+\] (\(.*?\))\.file\b"), r"track_files \1.path"),
    (re.compile(r"checks\[\d+\] (?=\()"), "scripts "),
    (re.compile(r"(instances|sync_groups|services|monitors)(?=\b)"), r"\1"),
)


def translate(
    settings: Settings,
    prefix: str = "agent",
    listeners: Any = (),
    host: str = "",
    addresses: Any = (),
    inventory_servers: Mapping[str, int] = MappingProxyType({}),
    also_answers: Sequence[int] = (),
    asking: Sequence[Settings] = (),
) -> Dict[str, Any]:
    """Return ``{vrrp, proxy, options, secrets, service_ports, ports, faults}``; a daemon without a task is None.

    The ports are those of monitors that other hosts may reach.

    :param settings: the keys of SETTINGS, each as the user wrote it; ``raw`` holds variables with raw lines, by name
    :param prefix: of the variables' names, for the sentences
    :param listeners: the listening sockets of the host, as `host_info` returns them
    :param host: its name, for the sentences
    :param addresses: those of the host, as `host_info` returns them
    :param inventory_servers: as `read_monitors` takes it
    :param also_answers: as the plan's balancer has it
    :param asking: what has to be answered, as the plan has it
    """
    found = _read(settings, prefix, inventory_servers, also_answers)
    known, services, monitors, model, faults = found
    vips = [vip for instance in model["instances"] for vip in instance["addresses"]]
    faults += loops.faults(services, loops.of_host(vips, addresses, host, {}), f"{prefix}_services")
    faults += _stats_faults(known, prefix) + _raw_faults(services, model, prefix)
    faults += port_conflicts(_occupied([*services, *monitors], known), list(listeners), host, AGENT_PROGRAMS)
    vrrp = _vrrp(model, known, faults, prefix) if model["instances"] and not model["faults"] else None
    proxy = _proxy(services, known) if services or known["monitors"] else None
    faults += [] if faults else asked.faults(asking, _answering(found), host)
    faults += [] if faults else [_in_variables(fault, prefix) for fault in _refused_by_daemons(vrrp, proxy)]
    return {
        VRRP: vrrp,
        PROXY: proxy,
        "options": {key: known[key] for key in ("down_file", "stop_pause", "start_commands", "stop_commands")},
        "service_ports": [service["port"] for service in services],
        "ports": binds.reachable(binds.of_monitors(monitors)),
        "secrets": sorted({*secrets.texts(known), *model["secrets"]}),
        "faults": [as_role_variables(fault, prefix) for fault in dict.fromkeys(faults)],
    }


class _Read(NamedTuple):
    """The settings, each by its own schema, and what is wrong with them."""

    known: Settings
    services: List[Settings]
    monitors: List[Settings]
    model: Dict[str, Any]  # of the instances
    faults: Faults


def _read(settings: Settings, prefix: str, inventory_servers: Mapping[str, int], also_answers: Sequence[int]) -> _Read:
    faults: Faults = []
    known = read(SETTINGS, {key: settings[key] for key in settings if key not in LISTS}, prefix, faults)
    known["monitors"] = [*known["monitors"], *answers.monitors(known["answer_port"]), *answers.kept(also_answers)]
    faults += [_refused(name) for name, lines in known["raw"].items() if lines]
    lists = {key: known[key] if settings.get(key) is None else settings[key] for key in LISTS}
    model = instances.model({**known, **lists, "daemon": {}}, prefix)
    planned = settings.get("services")
    given = planned if isinstance(planned, Read) else known["services"]
    services, wrong_services = read_services(given, f"{prefix}_services")
    counted = None if refused(wrong_services, f"{prefix}_services") else services
    monitors, wrong_monitors = read_monitors(known["monitors"], counted, f"{prefix}_monitors", inventory_servers)
    return _Read(known, services, monitors, model, faults + model["faults"] + wrong_services + wrong_monitors)


def _answering(found: _Read) -> List[asked.Listener]:
    """Return what answers on this host."""
    of_all = [*asked.of_services(found.services), *asked.of_monitors(found.monitors)]
    return asked.with_claims(of_all, _page(found.known))


def _refused_by_daemons(vrrp: Optional[Settings], proxy: Optional[Settings]) -> Faults:
    """Return what the daemons themselves would refuse of their configurations."""
    of_vrrp = vrrp_config.parse(json.dumps(vrrp))[1] if vrrp else []
    return of_vrrp + (config.parse(json.dumps(proxy))[1] if proxy else [])


def _in_variables(fault: str, prefix: str) -> str:
    """Return what a daemon says of its configuration, with the names of the variables that it is from."""
    for place, variable in OF_DAEMONS:
        found = place.match(fault)
        if found:
            return f"{prefix}_{found.expand(variable)}{fault[found.end() :]}"
    return fault


def _refused(place: str) -> str:
    return (
        f"{place} has raw lines for HAProxy or keepalived, which the agent cannot read: leave them out, or use these."
    )


def _raw_faults(services: List[Settings], model: Dict[str, Any], prefix: str) -> Faults:
    """Refuse what only HAProxy and keepalived do, such as raw lines of services, instances and sync groups."""
    kinds = (("instances", model["instances"]), ("sync_groups", model["groups"]))
    items = [(f"{prefix}_{kind} ({item['name']}).lines", item["lines"]) for kind, of_kind in kinds for item in of_kind]
    return [*beyond(services, prefix), *(_refused(place) for place, lines in items if lines)]


def beyond(services: List[Settings], prefix: str) -> Faults:
    """Return what of services only HAProxy does."""
    return [fault for service in services for fault in _beyond(service, f"{prefix}_services ({service['name']})")]


def _beyond(service: Settings, place: str) -> Iterator[str]:
    if service["frontend_lines"]:
        yield _refused(f"{place}.frontend_lines")
    if service["bind_options"]:
        options = ", ".join(map(repr, service["bind_options"]))
        yield f"{place}.bind_options has {options}, which only HAProxy has: leave it out, or use HAProxy."
    if service["accept_proxy"]:
        yield f"{place}.accept_proxy is set, and the agent reads no header of a proxy: leave it out, or use HAProxy."
    if service["backend"]:
        yield f"{place}.backend is set, and the agent checks servers for each service: name them, or use HAProxy."
    if service["frontend_name"]:
        yield f"{place}.frontend_name is set, and the agent has no frontends: leave it out, or use HAProxy."
    if service["tls"]:
        yield (
            f"{place}.tls is set, and the agent relays TLS as it comes, without a certificate of its own: leave it "
            "out, or use HAProxy."
        )
    if service["routes"] and service["mode"] == HTTP:
        yield (
            f"{place}.routes are set, and the agent relays HTTP as it comes, without reading its requests: leave them "
            "out, or use HAProxy."
        )
    if service["rate_limit"]:
        yield f"{place}.rate_limit is set, and the agent counts no client: leave it out, or use HAProxy."
    for where, backend in backends(service, place):
        if backend["sticky"]:
            yield (f"{where}.sticky is set, and the agent remembers no client: choose balance source, or use HAProxy.")
        if backend["backend_lines"]:
            yield _refused(f"{where}.backend_lines")
        if backend["return"]:
            yield f"{where}.return is set, and the agent answers no request itself: leave it out, or use HAProxy."
        if backend["check"]["agent"]:
            yield f"{where}.check.agent is set, which HAProxy alone asks: leave it out, or use HAProxy."
        for server in backend["servers"]:
            yield from _beyond_of_server(server, f"{where}.servers: {server['name']}")
        if backend["balance"] not in BALANCES:
            known = ", ".join(BALANCES)
            yield f"{where}.balance is {backend['balance']}, and the agent knows {known}: choose one, or use HAProxy."


def _beyond_of_server(server: Settings, place: str) -> Iterator[str]:
    if values.is_name(server["address"]):
        name = server["address"]
        yield f"{place} has the name {name}, which the agent cannot resolve: write its address, or use HAProxy."
    if server["options"]:
        options = ", ".join(parted("options", option)[0] for option in server["options"])
        yield (
            f"{place} has the options {options}, and the agent knows weight, maxconn and backup alone: leave them out, "
            "or use HAProxy."
        )


def _stats_faults(known: Settings, prefix: str) -> Faults:
    if not known["stats_enabled"]:
        return []
    if known["stats_user"] or known["stats_password"]:
        return [
            f"{prefix}_stats_user or {prefix}_stats_password is set, and the agent's page knows no password: "
            f"leave both out and {prefix}_stats_address at 127.0.0.1, or use HAProxy."
        ]
    if not is_loopback(known["stats_address"]):
        return [
            f"{prefix}_stats_address is {known['stats_address']}, which others can reach, and the agent's page knows "
            "no password: bind it to 127.0.0.1."
        ]
    return []


def _occupied(listening: List[Settings], known: Settings) -> List[Settings]:
    if not known["stats_enabled"] or not listening:
        return listening
    return [*listening, {"name": "page", "port": known["stats_port"], "bind": [known["stats_address"]]}]


def _page(known: Settings) -> List[Claim]:
    return binds.of_page(places([known["stats_address"]], known["stats_port"])) if known["stats_enabled"] else []


def _proxy(services: List[Settings], known: Settings) -> Settings:
    found = {
        "services": [_service(service, known) for service in services],
        "monitors": known["monitors"],
        "timeouts": {key: known[f"timeout_{key}"] for key in config.TIMEOUTS if known[f"timeout_{key}"] != ""},
        "retries": known["retries"],
        "workers": known["workers"],
        "hard_stop_after": known["hard_stop_after"],
        "status_socket": Daemon(PROXY).status_socket,
    }
    if known["maxconn"]:
        found["maxconn"] = known["maxconn"]
    if known["stop_within"] != config.CONFIGURATION["stop_within"].default:
        found["stop_within"] = known["stop_within"]
    if known["stats_enabled"]:
        found["page"] = {"bind": [known["stats_address"]], "port": known["stats_port"]}
    return found


def _service(service: Settings, known: Settings) -> Settings:
    routes = [without_defaults(_backend(each, known), config.ROUTE, ROUTE_KEYS) for each in service["routes"]]
    return without_defaults({**_backend(service, known), "routes": routes}, config.SERVICE, SERVICE_KEYS)


def _backend(given: Settings, known: Settings) -> Settings:
    """Return a service or a route with its servers and check as the agent has them."""
    paced = pace.of_agent(given, known["timeout_connect"], known["timeout_check"])
    check = check_without_defaults(paced, config.CHECK, CHECK_KEYS)
    servers = [without_defaults(server, config.SERVER, tuple(config.SERVER)) for server in given["servers"]]
    return {**given, "check": check, "servers": servers}


def without_defaults(given: Settings, schema: Dict[str, Field], always: Tuple[str, ...]) -> Settings:
    """Return the keys of a schema that are always written, and the others that say something."""
    return {
        key: value for key, value in given.items() if key in schema and (key in always or value != schema[key].default)
    }


def check_without_defaults(check: Settings, schema: Dict[str, Field], always: Tuple[str, ...]) -> Settings:
    """Return a check likewise, whose steps have its own method unless they say another."""
    steps = [
        {key: value for key, value in step.items() if key != "method" or value != check[key]} for step in check["steps"]
    ]
    return without_defaults({**check, "steps": steps}, schema, always)


def _vrrp(model: Dict[str, Any], known: Settings, faults: Faults, prefix: str) -> Settings:
    names = [each["name"] for each in (*model["scripts"], *model["files"])]
    for name in sorted({name for name in names if names.count(name) > 1}):
        faults.append(f"{prefix}_scripts and {prefix}_track_files both have the name '{name}': give each its own.")
    tracking = [*model["instances"], *model["groups"]]
    checks = checks_of(model["scripts"], model["files"], tracking)
    found = {
        "instances": [_instance(instance, known["checksum"]) for instance in model["instances"]],
        "sync_groups": [_group(group) for group in model["groups"]],
        "checks": checks,
        "script_user": known["script_user"],
        "status_socket": Daemon(VRRP).status_socket,
    }
    return {**found, "startup_delay": known["startup_delay"]} if known["startup_delay"] else found


def checks_of(scripts: Sequence[Settings], files: Sequence[Settings], tracking: Sequence[Settings]) -> List[Settings]:
    """Return what a daemon checks.

    :param tracking: the instances and groups, of whose tracked interfaces each becomes a check
    """
    checks = [script_check(script) for script in scripts]
    checks += [{"name": file["name"], "type": "file", "file": file["path"]} for file in files]
    watched = {item["name"] for each in tracking for item in each["track_interfaces"]}
    return checks + [{"name": _link(name), "type": "interface", "interface": name} for name in sorted(watched)]


def _group(group: Settings) -> Settings:
    found = {**group, "track": tracked(group)}
    return {key: found[key] for key in ("name", "instances", "track", "notify", "notify_user") if found[key]}


def _instance(instance: Settings, checksum: str) -> Settings:
    same = {key: instance[key] for key in INSTANCE_KEYS if instance[key] not in (None, "")}
    same.update((key, instance[key]) for key in RARE_INSTANCE_KEYS if instance[key])
    if instance["version"] == 3 and checksum != vrrp_config.INSTANCE["checksum"].default:
        same["checksum"] = checksum
    return {**same, "track": tracked(instance)}


def tracked(item: Settings) -> List[Settings]:
    """Return what an instance or a sync group tracks."""
    links = [{**each, "name": _link(each["name"])} for each in item["track_interfaces"]]
    return [*item["track_scripts"], *item["track_files"], *links]


def _link(interface: str) -> str:
    return f"link:{interface}"


def script_check(script: Settings) -> Settings:
    """A script as a check of the agent, which needs no killall to find a process and no curl to ask a single URL."""
    same = {key: script[key] for key in ("name", "interval", "timeout", "rise", "fall")}
    web_check = url_checks.agent_check(script["any_of"])
    if web_check:
        return {**same, **web_check}
    process = instances.process_of(script)
    if process:
        return {**same, "type": "process", "process": process}
    user = {"user": script["user"]} if script["user"] else {}
    return {**same, "type": "script", "command": script["command"], **user}
