# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The units that a layout sets up beside its programs, each as a row: its files, its program, and when it runs. Pure.

A row whose unit is not wanted removes it. The stages of a run take the rows that are theirs as one piece of work.
"""

from __future__ import annotations

import json
import posixpath
import shlex
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Sequence

from ..._agent.config.schema import boolean
from ..._shared import engines, held_back, paths
from ..._shared.load_records import record_of
from ..bgp import gate
from ..dns.resolver import FOLDER as NAMES
from ..model import tls_content
from ..model.plan import MEANWHILE
from . import follow

File = Dict[str, Any]  # as `config_files` takes it
OURS = "onprem-lb-"  # what their names begin with, and those of their templates do not
AGENT_FILES, LOADED = "/etc/onprem-lb-agent", record_of(engines.HAPROXY)
BALANCER = engines.UNITS[engines.NATIVE].balancer
FOLLOW_LEAVES = (paths.library(engines.FOLLOW), follow.FOLDER)
PYTHON = "/usr/bin/python3"  # until the host has said which one runs its modules
# Addresses of lo are nobody's on a link: the host neither answers for them nor asks in their name. The setting of all
# interfaces and that of one: the greater one counts.
QUIET, QUIET_FOLDER = {"arp_ignore": 1, "arp_announce": 2}, "/proc/sys/net/ipv4/conf/all"
ALIVE = "0\n"  # what a down file says of a balancer that serves
BALANCERS, ROUTERS = (" ".join(names) for names in zip(*engines.UNITS.values()))


class About(NamedTuple):
    """What the rows are made of.

    :ivar plan: of the member, as data
    :ivar host: as `host_info` returns it
    :ivar render: returns the text of a template of the role layout
    :ivar record: the text of the record of the members
    :ivar shutdown_before: the units before which the router stops
    :ivar configs: of haproxy and keepalived, by program
    :ivar socket: the runtime socket of haproxy
    :ivar followed: what the filter `follow_files` returned, for a member that follows its cluster
    :ivar agent: the ``python`` and the ``checksum`` of the agent, once it is written
    :ivar dry: whether it is a run in check mode
    """

    plan: Mapping[str, Any]
    host: Mapping[str, Any]
    render: Callable[[str, Mapping[str, Any]], str]
    prefix: str
    record: str
    settings: Mapping[str, Any]
    shutdown_before: Sequence[str]
    configs: Mapping[str, str]
    socket: str
    followed: Mapping[str, Any]
    agent: Mapping[str, str]
    dry: bool

    @property
    def balances(self) -> bool:
        return bool(self.plan["balancer"]["services"] != "[]")  # JSON

    @property
    def down_file(self) -> str:
        return str(self.plan["balancer"]["down_file"] if self.balances else "")

    @property
    def routes(self) -> bool:
        return bool(self.plan["router"]["instances"])

    @property
    def anycast(self) -> Mapping[str, Any]:
        """The configuration of the health gate; empty where no VIP is announced."""
        return {} if self.plan["pods"] else self.plan.get("bgp", {}).get("anycast", {})

    def command(self, archive: str) -> str:
        return f"{shlex.quote(self.agent.get('python', PYTHON))} -I {archive}"


class Unit(NamedTuple):
    """A row.

    :ivar is_wanted: whether it is to run
    :ivar is_here: whether a run before has set it up
    :ivar files: its own, and those beside it
    :ivar archive: where the agent is that it runs; empty if it runs something else
    :ivar folders: to be created, with their modes
    :ivar leaves: the folders that go
    :ivar run: how `config_files` has it run
    """

    name: str
    is_wanted: bool
    is_here: bool
    files: List[File]
    archive: str = ""
    folders: Mapping[str, str] = {}
    leaves: Sequence[str] = ()
    secrets: Sequence[str] = ()
    run: Mapping[str, Any] = {}


class Rows(NamedTuple):
    """All rows of a member."""

    watch: Unit
    shutdown: Unit
    follow: Unit
    answers: Unit
    metrics: Unit
    gate: Unit
    quiet: Unit
    renewal: Unit


class Work(NamedTuple):
    """What a stage does, in this order; `files`, `leaves` and `units` in one call of `config_files`."""

    archives: List[str]
    folders: List[Dict[str, str]]
    files: List[File]
    leaves: List[str]
    units: List[Dict[str, Any]]
    secrets: List[str]


def rows(about: About) -> Rows:
    every = (_watch, _shutdown, _follow, _answers, _metrics, _gate, _quiet, _renewal)
    return Rows(*(row(about) for row in every))


def _file(about: About, name: str, is_wanted: bool, **variables: Any) -> File:
    """Return the file of a unit, of whose template these are the variables."""
    content = about.render(f"layout/{name[len(OURS) :]}.j2", variables) if is_wanted else ""
    return {**_gone(name), "content": content, "state": "present"} if is_wanted else _gone(name)


def _gone(name: str) -> File:
    return {"path": paths.of_unit(name), "content": "", "state": "absent", "unit": name}


def _row(about: About, own: File, *files: File, **more: Any) -> Unit:
    name = own["unit"]
    return Unit(name, own["state"] == "present", name in about.host["existing_units"], [own, *files], **more)


def _watch(about: About) -> Unit:
    """The balancer's unit writes a file that the router tracks. This corrects what others write there."""
    path = about.down_file
    correction = _file(about, paths.CORRECTION, bool(path), down_file=path, balancers=BALANCERS)
    return _row(about, _file(about, paths.WATCH, bool(path), down_file=path), correction)


def _shutdown(about: About) -> Unit:
    """On a cluster's node the router stops at a shutdown before the programs that the layout names begin to stop.

    A restart would stop the router, and its start waits for the node's programs, which may wait for the VIP.
    """
    before = " ".join(about.shutdown_before)
    is_wanted = bool(about.routes and not about.plan["pods"] and before)
    own = _file(about, paths.SHUTDOWN, is_wanted, before=before, routers=ROUTERS)
    return _row(about, own, run={"on_change": "unchanged", "wait": False})


def _follow(about: About) -> Unit:
    """In pods it is one of them. It replaces files of others, so their folders must be there when it starts."""
    plan = about.plan["follow"]
    is_wanted = bool(plan and not about.plan["pods"])
    archive, names = paths.archive(engines.FOLLOW), [NAMES] if plan.get("hosts") else []
    native = about.plan["engine"] == engines.NATIVE
    writes = [AGENT_FILES]
    if native:
        writes = [posixpath.dirname(about.configs[engines.HAPROXY]), LOADED]
    own = _file(
        about,
        paths.FOLLOWING,
        is_wanted,
        command=about.command(archive),
        config=follow.CONFIG,
        checksum=about.agent.get("checksum", ""),
        paths=[f"-{path}" for path in writes + names],
        native=native,
        groups=[] if native or not about.balances else [engines.Daemon(engines.PROXY).program],
    )
    found = about.followed
    return _row(
        about,
        own,
        *([*found["credentials"], found["config"]] if is_wanted else ()),
        archive=archive,
        folders={follow.FOLDER: "0700", **dict.fromkeys(names, "0755")},
        leaves=[*([] if is_wanted else FOLLOW_LEAVES), *([] if plan else [paths.FOLLOW_STATE])],
        secrets=found["secrets"] if is_wanted else (),
        run={"on_change": "reloaded"},
    )


def _answers(about: About) -> Unit:
    """Asks haproxy and its like all the time whether they answer. The agent asks by itself, and in pods the sidecar."""
    questions = about.plan["questions"]
    words = [engines.HOOK, "answers", about.configs[engines.KEEPALIVED], *map(json.dumps, questions)]
    is_wanted = bool(questions and not about.plan["pods"])
    return _row(about, _file(about, paths.ANSWERS, is_wanted, command=" ".join(map(shlex.quote, words))))


def _metrics(about: About) -> Unit:
    """What Prometheus collects from a member, if its user names a file for it."""
    file = about.settings["metrics_file"] if about.routes or about.anycast else ""
    own = _file(
        about,
        paths.METRICS,
        bool(file),
        file=file,
        folder=posixpath.dirname(file),
        command=_metrics_command(about, file) if file else "",
        announces=bool(about.anycast),
        checksum=about.agent.get("checksum", ""),
    )
    leaves = () if file else [paths.library("metrics")]
    return _row(about, own, archive=paths.archive("metrics"), leaves=leaves)


def _metrics_command(about: About, file: str) -> str:
    services = json.loads(about.plan["balancer"]["services"])
    certificates = [path for service in services if service.get("tls") for path in service["tls"]["certificate"]]
    has_haproxy = about.plan["engine"] == engines.NATIVE and not about.plan["pods"] and services
    words = [about.command(paths.archive("metrics")), "metrics --file", file]
    words += ["--haproxy-socket", about.socket] if has_haproxy else []
    return " ".join([*words, *(f"--certificate {shlex.quote(path)}" for path in dict.fromkeys(certificates))])


def _gate(about: About) -> Unit:
    """Has the VIPs on lo, from which they are announced. A restart leaves them there: see its unit."""
    config, archive = about.anycast, paths.archive(engines.ANYCAST)
    types = {check["type"] for check in config.get("checks", ())}
    own = _file(
        about,
        paths.GATE,
        bool(config),
        after=f"frr.service {BALANCERS}",
        command=about.command(archive),
        config=paths.GATE_CONFIG,
        checksum=about.agent.get("checksum", ""),
        runs_programs="script" in types,
        sees_processes=bool(types & {"script", "process"}),
    )
    file = {"path": paths.GATE_CONFIG, "content": "", "state": "absent"}
    if config:
        file = {**gate.file(config), "unit": paths.GATE}
    return _row(
        about,
        own,
        file,
        archive=archive,
        folders={AGENT_FILES: "0755"},
        leaves=() if config else [paths.library(engines.ANYCAST)],
        run={"on_change": "reloaded"},
    )


def _quiet(about: About) -> Unit:
    """VRRP has the VIPs on an interface, and they are on lo too, for whose addresses Linux answers on every link."""
    before = f"{paths.GATE} {ROUTERS}"
    is_wanted = bool(about.plan.get("quiet"))
    return _row(about, _file(about, paths.QUIET, is_wanted, before=before, settings=QUIET, folder=QUIET_FOLDER))


def _renewal(about: About) -> Unit:
    """Reloads haproxy when something else has renewed a certificate, if its user wants that."""
    is_native = about.plan["engine"] == engines.NATIVE and not about.plan["pods"]
    wants = is_native and boolean(about.settings.get("reload_certificates"))[0]
    watched = tls_content.renewed_elsewhere(json.loads(about.plan["balancer"]["services"])) if wants else []
    archive, haproxy = paths.archive("certificates"), about.configs[engines.HAPROXY]
    words = ["certificates", "--config", haproxy, "--record", LOADED, "--unit", BALANCER, "--", *watched]
    own = _file(
        about,
        paths.RENEWAL,
        bool(watched),
        command=" ".join([about.command(archive), *map(shlex.quote, words)]),
        checksum=about.agent.get("checksum", ""),
    )
    return _row(about, own, archive=archive, leaves=() if watched else [paths.library("certificates")])


def _work(units: Sequence[Unit], files: Sequence[File] = (), absent: Sequence[str] = (), named: str = "") -> Work:
    """Return the work of a stage.

    :param absent: files that go
    :param named: one that goes if it is ours, because a user names it; '' for none
    """
    wanted = [unit for unit in units if unit.is_wanted]
    gone: List[File] = [{"path": path, "state": "absent"} for path in absent]
    gone += [{"path": named, "state": "absent", "own_only": True}] if named else []
    return Work(
        [unit.archive for unit in wanted if unit.archive],
        [{"path": path, "mode": mode} for unit in wanted for path, mode in unit.folders.items()],
        [*files, *gone, *(file for unit in units for file in unit.files)],
        [path for unit in units for path in unit.leaves],
        [{"name": each.name, "state": "started" if each.is_wanted else "stopped", **each.run} for each in units],
        [secret for unit in units for secret in unit.secrets],
    )


def by_stage(about: About) -> Dict[str, Any]:
    """Return the work of each stage, and what is ``compared`` before it.

    ``first`` is done before the routers change, because one tracks the down file. ``router`` is done with them, and
    ``last`` with the programs that come with them. ``unused`` is what a member does not need any more once the others
    are proved: the stop of the unit for a shutdown stops the router, and what keepalived or FRR relies on goes after
    it.
    """
    made, down_file = rows(about), about.down_file
    record = {"path": paths.members_record(about.prefix), "content": about.record}
    alive = [{"path": down_file, "content": ALIVE}] if down_file else []
    watch, no_watch = ([made.watch], []) if about.balances else ([], [made.watch])
    there = [unit for unit in made if unit.is_wanted or unit.is_here]
    compared = [*watch, *(unit for unit in (made.shutdown, made.answers, made.quiet, made.renewal) if unit in there)]
    gate, quiet = ([unit] if unit.is_wanted else [] for unit in (made.gate, made.quiet))
    # What VRRP or BGP relied on goes after it; with a router of another engine the questions go with the old one.
    leaving = [made.shutdown, made.gate, made.quiet, *([] if about.routes else [made.answers])]
    outdated = [unit for unit in there if not unit.is_wanted and unit in leaving]
    outdated = [unit for unit in outdated if not (about.routes and unit is made.shutdown)]
    ended = [_quiet(about._replace(plan={**about.plan, "quiet": ""}))] if about.plan.get("quiet") == MEANWHILE else []
    late = [unit for unit in there if unit not in (made.watch, *gate, *quiet) and unit not in outdated]
    late = [unit for unit in late if unit is not made.shutdown or unit.is_wanted]
    released = list(held_back.PATHS.values()) if about.host["held_back"] else []
    by_gate = released if made.gate.is_wanted else []  # it is proved that it announces before the next one changes
    is_new = about.dry and about.host["missing_packages"]  # nothing serves here yet
    left = "" if about.balances else about.settings["down_file"]
    return {
        "first": _work([*watch, *quiet], [record]),
        "router": _work(gate, absent=by_gate),
        "last": _work(late, [] if is_new else alive, [] if by_gate else released),
        "unused": _work([*no_watch, *outdated, *ended], named=left),
        "compared": {
            "files": [record, *alive, *_work(compared).files],
            "units": [unit.name for unit in compared if unit.is_wanted],
            "others": [unit.name for unit in (made.follow, made.metrics, made.gate) if unit in there],
        },
    }


def removal(prefix: str, down_file: str) -> Dict[str, Work]:
    """Return how the units of a member go that is removed: before its ``balancer``, and the ``others`` at the end."""
    following = Unit(paths.FOLLOWING, False, True, [_gone(paths.FOLLOWING)], leaves=FOLLOW_LEAVES)
    gate = Unit(paths.GATE, False, True, [_gone(paths.GATE)])  # so that its VIPs leave before the balancer stops
    names = (paths.WATCH, paths.SHUTDOWN, paths.ANSWERS, paths.METRICS, paths.QUIET, paths.RENEWAL)
    others = [Unit(name, False, True, [_gone(name)]) for name in names]
    records = [paths.members_record(prefix), held_back.PATHS[held_back.SWITCHOVER], paths.PACKAGES]
    gone = [paths.of_unit(paths.CORRECTION), *records, paths.GATE_CONFIG]
    leaves = [
        paths.library("metrics"),
        paths.library("certificates"),
        paths.library(engines.ANYCAST),
        paths.FOLLOW_STATE,
        paths.STATE,
        "/etc/onprem-lb",
    ]
    return {
        "balancer": _work([gate, following]),
        "others": _work(others, absent=gone, named=down_file)._replace(leaves=leaves),
    }
