# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a member holds and runs, and why it could not take over: read at once, without a plan."""

from __future__ import annotations

import os
import re
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ..._agent.direct.settings import Settings
from ..._agent.keepalived import conf as keepalived_conf
from ..._shared import membership, paths, versions
from ..._shared.engines import (
    AGENT,
    CONFIGS,
    HAPROXY,
    HOOK,
    KEEPALIVED,
    NATIVE,
    PODS,
    PROGRAMS,
    PROXY,
    ROUTERS,
    UNITS,
    VRRP,
    Daemon,
    is_own,
)
from . import (
    announcing,
    balancer,
    beside,
    facts,
    held_back,
    in_force,
    let_in,
    obstacles,
    pod_programs,
    pods,
    reboot,
    resolver,
    starting,
    unconfirmed,
)
from .reader import Reader

FAILING = re.compile(r"onprem-lb-(.+)\.failing$")  # the track file of a check that `_plan.model.answers` has
DIRECT_DOWN = Settings._field_defaults["down_file"]
ASK = "onprem.lb.site starts onprem-lb-answers.service again, which writes it"
ANSWER_TIMEOUT = 0.2  # seconds for the answers of other holders on the link
FIRST_CHECKS_PAUSE = 0.2  # seconds between two looks at a balancer that has just started
CONNECT_TIMEOUT = 1.0  # seconds for the balancer to accept a connection of its own host
FOLDERS = ("/run", "/etc", paths.STATE)  # in which the daemons, and the next run, write
WILDCARDS = ("0.0.0.0", "::")
ACTIVE = "Active"
NOT_SET_UP = "nothing of this collection is set up here: run onprem.lb.site."


class Own(NamedTuple):
    """What the engine of a member is configured for, and says of itself."""

    versions: Dict[str, str] = {}
    instances: List[Dict[str, Any]] = []  # ``{name, interface, addresses, priority, preempt}``
    states: Dict[str, in_force.State] = {}  # of the instances, while the router runs
    track_files: List[str] = []
    failing: Dict[str, str] = {}  # the agent's checks that lower the priority, and why each fails
    servers: List[balancer.Server] = []
    silent: str = ""  # why the servers are not known
    announcing: Optional[announcing.Announcing] = None  # where BGP carries the VIPs, and no router has instances

    @property
    def vips(self) -> List[str]:
        """The VIPs of its configuration."""
        of_router = [address for instance in self.instances for address in instance["addresses"]]
        return [*of_router, *(self.announcing.vips if self.announcing else [])]


Daemons = Dict[str, in_force.InForce]  # by unit


def read(
    reader: Reader,
    vips: Sequence[Any],
    members_record: str = "",
    asks_start: bool = False,
    asks_firewall: bool = False,
) -> Dict[str, Any]:
    """Return what `member_info` returns.

    :param vips: those of the inventory, as a user writes them
    :param asks_start: whether its programs are asked if they could start again, which takes a moment
    :param asks_firewall: whether its firewall is read, which may have many thousands of rules
    :raises PermissionError: without the right to open raw sockets
    """
    engine, units, daemons, own = _own(reader)
    record = held_back.in_force(reader)
    recorded = reader.text(members_record) if members_record else ""
    addresses = reader.addresses() or []
    every = list(dict.fromkeys([*facts.vip_addresses(vips), *own.vips]))
    listeners = facts.listeners()
    answering_ports = ports(listeners, engine, every, own_address(addresses, own))
    listening = ports_of_vips(listeners, engine, every, sorted({each["port"] for each in listeners}))
    return {
        "booted": reboot.booted(reader),
        "engine": engine,
        "router": next((unit for unit in units if unit in ROUTERS), ""),
        "balancer": next((unit for unit in units if unit not in (*ROUTERS, *announcing.UNITS)), ""),
        "versions": own.versions,
        "resigns_when_killed": UNITS[NATIVE].router not in units or os.path.exists(HOOK),
        "instances": [_with_state(instance, own.states) for instance in own.instances],
        "announcing": own.announcing.shown if own.announcing else {},
        "held": held(every, addresses, own),
        "answering": reader.answering(every, ANSWER_TIMEOUT, addresses),
        "addresses": [info["address"] for info in addresses if info["interface"] != "lo"],
        "macs": sorted({info["mac"] for info in addresses if info["interface"] != "lo" and info["mac"]}),
        "ports": answering_ports,
        "ports_of_vips": ports_of_vips(listeners, engine, every, answering_ports),
        "servers": balancer.summary(own.servers),
        "firewall": let_in.read(reader, listening, own.instances) if asks_firewall else {},
        "full": obstacles.of_folders(FOLDERS),
        "held_back": record,
        "unable": list(unable(daemons, own, track_files(reader, own), record)) if units else [NOT_SET_UP],
        "would_not_start": list(starting.faults(reader, units)) if asks_start else [],
        "replaced": [line for line in (in_force.replaced(unit, found) for unit, found in daemons.items()) if line],
        "stale": [line for line in (in_force.unloaded(unit, found) for unit, found in daemons.items()) if line],
        "members": facts.members(recorded),
        "written_by": versions.written_by(recorded),
        "direct": beside.direct_faults(reader),
        "not_following": beside.not_following(reader),
        "names": resolver.problems(reader),
        "named": resolver.named(reader),
        "undo": unconfirmed.read(),
    }


def unserved(reader: Reader, limit: float) -> List[str]:
    """Return a sentence for each service of which no server is up, and one if the balancer does not say.

    :param limit: for how many seconds to wait for the first checks of a balancer that has just started
    """
    end = time.monotonic() + limit
    own = _own(reader)[3]
    while not balancer.is_known(own.servers) and time.monotonic() < end:
        time.sleep(FIRST_CHECKS_PAUSE)
        own = _own(reader)[3]
    return [*balancer.unserved(own.servers), *([own.silent] if own.silent else [])]


def servers(reader: Reader) -> List[balancer.Server]:
    """Return the servers of the balancer that runs here; none where it does not say them."""
    return _own(reader)[3].servers


def _own(reader: Reader) -> Tuple[str, List[str], Daemons, Own]:
    """Return the engine, its units, how they run, and what they say."""
    static = pods.own(PODS)
    engine = pod_programs.engine() if static else engine_of(reader)
    units = static or [unit for unit in UNITS.get(engine, ()) if facts.is_ours(unit)]
    units = [*units, *(announcing.UNITS if announcing.is_here() else ())]
    daemons = {unit: in_force.read(reader, unit) for unit in units}
    own = of_pods(reader) if static else READERS[engine](reader, daemons) if engine else Own()
    return engine, units, daemons, _announcing(reader, own) if paths.GATE in units else own


def _announcing(reader: Reader, own: Own) -> Own:
    """Return what the units of a member say of which BGP carries the VIPs: its checks are those of its gate."""
    found = announcing.read(reader)
    return own._replace(
        versions={**own.versions, **found.versions},
        track_files=found.track_files,
        failing=found.failing,
        announcing=found,
    )


def engine_of(reader: Reader) -> str:
    """Return the engine whose router runs, or that was set up here; '' if there is none.

    A member that announces its VIPs has no router, and perhaps no balancer either.
    """
    engines = {UNITS[engine].router: engine for engine in (NATIVE, AGENT) if facts.is_ours(UNITS[engine].router)}
    if not engines and announcing.is_here():
        engines = {UNITS[name].balancer: name for name in (NATIVE, AGENT) if facts.is_ours(UNITS[name].balancer)}
    active = reader.units_in("ActiveState", list(engines), "active", "reloading")
    return engines[[*active, *engines][0]] if engines else ""


def unable(daemons: Daemons, own: Own, values: Dict[str, str], record: Dict[str, str]) -> Iterator[str]:
    """Yield a sentence for each reason why this member could not take over.

    :param values: what the track files say
    :param record: of what has stopped the router on purpose, which is no reason here
    """
    for unit, daemon in daemons.items():
        if not daemon.active and not (record and unit in ROUTERS):
            yield f"{unit} does not run."
        for instance, why in daemon.in_fault.items() if daemon.active else ():
            yield f"{instance} is in FAULT{': ' + why if why else ''}."
    for path, value in values.items():
        check = FAILING.search(path)
        if value not in ("", "0"):
            part = "direct plane" if path == DIRECT_DOWN else "balancer"
            yield f"{path} says {value}, that {f'the check {check[1]} fails' if check else f'the {part} is down'}."
        elif check and not value:  # which keepalived takes for an answer
            yield f"{path} says nothing, so nobody knows whether the check {check[1]} succeeds: {ASK}."
    for name, why in own.failing.items():
        yield f"The check {name} fails: {why}."
    if own.silent:
        yield own.silent


def ports(listeners: List[Dict[str, Any]], engine: str, vips: List[str], address: str) -> List[int]:
    """Return the ports at which the balancer answers through the VIPs.

    :param address: its own, at which it answers like a VIP where it listens on any; '' if it has none
    """
    own = [each for each in listeners if engine and is_own(each, PROGRAMS[engine])]
    anywhere = {each["port"] for each in own if each["address"] in WILDCARDS}
    reached = facts.reachable([(address, port) for port in sorted(anywhere)], CONNECT_TIMEOUT) if address else []
    silent = {port for port in anywhere if address and f"{address} {port}" not in reached}
    return sorted({each["port"] for each in own if each["address"] in (*WILDCARDS, *vips)} - silent)


def ports_of_vips(
    listeners: List[Dict[str, Any]], engine: str, vips: List[str], answering: List[int]
) -> Dict[str, List[int]]:
    """Return at which of the ports the balancer listens at each VIP, if this host holds it.

    :param answering: the ports, as `ports` returns them
    """
    own = [each for each in listeners if engine and is_own(each, PROGRAMS[engine])]
    found = {vip: {each["port"] for each in own if each["address"] in (*WILDCARDS, vip)} for vip in vips}
    return {vip: [port for port in answering if port in at] for vip, at in found.items()}


def own_address(addresses: List[Dict[str, Any]], own: Own) -> str:
    """Return an address of this host on a link of its routers, or on any if BGP carries the VIPs; '' without one."""
    links = (
        {info["interface"] for info in addresses} if own.announcing else {each["interface"] for each in own.instances}
    )
    vips = own.vips
    found = [info["address"] for info in addresses if info["interface"] in links and info["address"] not in vips]
    return next((address for address in found if not address.startswith("fe80:")), "")


def held(vips: List[str], addresses: List[Dict[str, Any]], own: Own) -> List[Dict[str, Any]]:
    """Return the VIPs that this host has, each with the seconds for which its router has been Active, if known."""
    if own.announcing:
        return own.announcing.held(vips)
    here, now = {info["address"] for info in addresses}, time.time()
    active = {name: state.since for name, state in own.states.items() if state.name == ACTIVE}
    seconds = {
        address: max(0, int(now - active[instance["name"]]))
        for instance in own.instances
        for address in instance["addresses"]
        if instance["name"] in active
    }
    return [{"address": vip, "seconds": seconds.get(vip)} for vip in vips if vip in here]


def _with_state(instance: Dict[str, Any], states: Dict[str, in_force.State]) -> Dict[str, Any]:
    state = states.get(instance["name"])
    return {**instance, "state": state.name if state else ""}


def track_files(reader: Reader, own: Own) -> Dict[str, str]:
    """Return what each track file says; '' where it is missing, or empty because /run is full."""
    return {path: reader.text(path).strip() for path in own.track_files}


def _instance(known: Dict[str, Any]) -> Dict[str, Any]:
    carriers = membership.carriers(known)
    elsewhere = {vip: interface for vip, interface in carriers.items() if interface != known["interface"]}
    kept = {key: known[key] for key in ("name", "interface", "priority", "preempt", "source", "peers")}
    return {**kept, "addresses": [*carriers], **({"carriers": elsewhere} if elsewhere else {})}


def native(reader: Reader, daemons: Daemons) -> Own:
    """Read haproxy and keepalived."""
    haproxy, keepalived = UNITS[NATIVE]
    servers, silent = _haproxy_servers(reader, daemons[haproxy]) if haproxy in daemons else ([], "")
    if keepalived not in daemons:
        return Own(versions=_installed(reader, HAPROXY), servers=servers, silent=silent)
    text = reader.text(daemons[keepalived].config or CONFIGS[keepalived])
    return Own(
        versions=_installed(reader, HAPROXY, KEEPALIVED),
        instances=[*map(_instance, keepalived_conf.instances(text))],
        states=in_force.keepalived_states(reader) if daemons[keepalived].active else {},
        track_files=keepalived_conf.track_files(text),
        servers=servers,
        silent=silent,
    )


def _installed(reader: Reader, *programs: str) -> Dict[str, str]:
    return {name: version for name in programs for version in [reader.version(name)] if version}


def _haproxy_servers(reader: Reader, daemon: in_force.InForce) -> Tuple[List[balancer.Server], str]:
    """Return haproxy's servers, and why they are not known."""
    config = reader.text(daemon.config or CONFIGS[UNITS[NATIVE].balancer])
    path = balancer.stats_socket(config)
    if not daemon.active or not path:
        return [], ""
    text = balancer.ask(path)
    return balancer.of_statistics(text or "", config), "" if text else f"haproxy does not answer at {path}."


def agent(reader: Reader, daemons: Daemons) -> Own:
    """Read the agent."""
    balancer_unit, router_unit = UNITS[AGENT]
    serves = balancer_unit in daemons and daemons[balancer_unit].active
    if router_unit not in daemons:
        return _of_reports("", {}, in_force.report_of(Daemon(PROXY)), serves)
    text = reader.text(daemons[router_unit].config or CONFIGS[router_unit])
    own = _of_reports(text, in_force.report_of(Daemon(VRRP)), in_force.report_of(Daemon(PROXY)), serves)
    checks = facts.agent_config(text).get("checks", [])
    return own._replace(track_files=[check["file"] for check in checks if check.get("type") == "file"])


def _of_reports(config: str, router: Dict[str, Any], proxy: Dict[str, Any], serves: bool) -> Own:
    """Return what the reports of the agent's daemons say, and its router's configuration.

    :param serves: whether its balancer runs
    """
    answer = router or proxy
    return Own(
        versions={AGENT: answer["version"]} if answer else {},
        instances=[*map(_instance, facts.agent_instances(config))],
        states={each["name"]: in_force.State(each["state"], each["since"]) for each in router.get("instances", [])},
        servers=balancer.of_report(proxy),
        failing=_failing(config, router),
        silent="the agent's balancer does not answer at its socket." if serves and not proxy else "",
    )


def _failing(config: str, router: Dict[str, Any]) -> Dict[str, str]:
    """Return the checks that fail, and with which the router offers its VIPs to others."""
    instances = facts.agent_config(config).get("instances", [])
    offering = {item["name"] for each in instances for item in each.get("track", []) if item.get("offers")}
    checks = [check for check in router.get("checks", []) if check["name"] in offering and check.get("up") is False]
    return {check["name"]: check.get("detail") or "it failed" for check in checks}


def of_pods(reader: Reader) -> Own:
    """Read static pods, whose programs are in containers of theirs."""
    running = pods.running()
    router, serving = running.get(PODS.router), running.get(PODS.balancer)
    if pod_programs.engine() == AGENT:
        text = reader.text(pod_programs.config_of(VRRP))
        proxy = pod_programs.report(serving, PROXY)
        return _of_reports(text, pod_programs.report(router, VRRP), proxy, serves=bool(serving))
    found = pod_programs.states(reader, router) if router else {}
    text = reader.text(pod_programs.config_of(KEEPALIVED))
    config = reader.text(pod_programs.config_of(HAPROXY)) if serving else ""
    path = balancer.stats_socket(config)
    answer = balancer.ask(serving.path(path)) if serving and path else None
    return Own(
        instances=[*map(_instance, keepalived_conf.instances(text))],
        states={name: in_force.State(state, since) for name, (state, since) in found.items() if state},
        servers=balancer.of_statistics(answer or "", config),
        silent=f"haproxy does not answer at {path}." if path and not answer else "",
    )


READERS: Dict[str, Callable[[Reader, Daemons], Own]] = {NATIVE: native, AGENT: agent}
