# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What each daemon has in force, whatever the files say: haproxy, keepalived, and the agent's daemons.

A file on disk is what a daemon would load. What it has loaded is known

- of haproxy and keepalived from a record, which a drop-in of their units writes at every start and reload. It has the
  checksums of the configuration and of what that names: certificates, authorities, maps, pages of errors;
- of the agent's daemons from the report at their status sockets;
- of a static pod from a record of its configuration, which the first process of its container writes, or the same
  report, and from its manifest.

No comparison of these involves the wall clock, which may be set back. One does: that of the age of a process with the
age of its unit's file, for the processes that are restarted for a new version. Where the clock was set back between the
two, a run restarts such a process once too often, or not at all.
"""

from __future__ import annotations

import os
import re
import time
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Sequence, Tuple

from ..._agent.runtime import status_socket
from ..._shared import paths
from ..._shared.engines import (
    AGENT,
    ANYCAST,
    DIRECT,
    FOLLOW,
    HAPROXY,
    KEEPALIVED,
    NATIVE,
    PODS,
    PROXY,
    UNITS,
    VRRP,
    Daemon,
)
from ..._shared.load_records import read_record, record_of
from ..._shared.pods import FOLLOW as FOLLOW_POD
from ..._shared.pods import MANIFESTS
from . import facts, loaded_files, pod_programs, pods
from .reader import Reader, show

PROPERTIES = ("ActiveState", "NeedDaemonReload", "MainPID", "InvocationID", "ExecMainStartTimestampMonotonic")
# What is restarted for a new version, and for whatever else its unit says. The others hand over, or are reloaded.
RESTARTED = (paths.FOLLOWING, paths.PLANE, paths.GATE, paths.METRICS, paths.RENEWAL, paths.RESOLVER)
PROGRAM_OF = dict(zip(UNITS[NATIVE], (HAPROXY, KEEPALIVED)))  # whose unit records all that it has loaded
UNIT_FILES = "/etc/systemd/"
KERNEL_SETTINGS = "/etc/sysctl.d/"
# haproxy's new worker starts this long before or after the record is written. A refused reload starts none.
WORKER_SLACK = 2.0  # seconds
MILLION = 1_000_000


class InForce(NamedTuple):
    """What one daemon has in force."""

    active: bool
    unit_outdated: bool = False  # systemd has not read the unit's files since they changed
    config: str = ""  # the path of the configuration that it has loaded; '' if that is not known
    checksum: str = ""  # its SHA-256 when it was loaded
    others: Dict[str, str] = {}  # that of each file that it named then, by path
    in_fault: Dict[str, str] = {}  # the VRRP instances in FAULT, each with the reason
    failing: Dict[str, str] = {}  # the checks that fail, each with what is known of it
    age: float = 0.0  # for how many seconds its main process has run
    refused: bool = False  # it was asked to load its configuration, and goes on with that of before


def haproxy(reader: Reader) -> InForce:
    """`systemctl reload` succeeds even if haproxy then cannot use the file and continues with the old worker."""
    properties = _properties(reader, UNITS[NATIVE].balancer)
    record = read_record(reader.text(record_of(HAPROXY)))
    pid = int(properties.get("MainPID") or 0)
    if pid and facts.youngest(pid, facts.process_stats()) < record.uptime - WORKER_SLACK:
        record = record._replace(checksum="")
    return _in_force(properties, record.config, record.checksum)._replace(others=record.others)


def keepalived(reader: Reader) -> InForce:
    properties = _properties(reader, UNITS[NATIVE].router)
    record = read_record(reader.text(record_of(KEEPALIVED)))
    invocation = properties.get("InvocationID")
    in_fault, failing = verdicts(reader.journal(invocation)) if invocation else ({}, {})
    found = _in_force(properties, record.config, record.checksum)
    return found._replace(others=record.others, in_fault=in_fault, failing=failing)


# What keepalived 2.0 to 2.3 logs of an instance and of a script.
ENTERED = re.compile(r"\((\S+)\):? [Ee]ntering (\w+) (?:STATE|state)(?: \(init\))?(?: due to (.+)| \((.+)\))?")
FAILS = ("failed", "timed_out", "considered unsuccessful")
SCRIPT = re.compile(rf"VRRP_Script\((\S+)\) ({'|'.join(FAILS)}|succeeded|considered successful)(.*)")


def verdicts(log: Iterable[str]) -> Tuple[Dict[str, str], Dict[str, str]]:
    """Return what keepalived says in its log since it started: which instances it has in FAULT, and which scripts fail.

    Each comes with its reason. keepalived does not always log one for an instance. Then it is '', or the scripts that
    fail.
    """
    in_fault: Dict[str, str] = {}
    failing: Dict[str, str] = {}
    for line in log:
        script, entered = SCRIPT.fullmatch(line), ENTERED.fullmatch(line)
        if script and script[2] in FAILS:
            failing[script[1]] = f"script {script[1]} {script[2].replace('_', ' ')}{script[3]}"
        elif script:
            failing.pop(script[1], None)
        elif entered and entered[2] == "FAULT":
            reason = entered[3] or entered[4] or in_fault.get(entered[1]) or ", ".join(failing.values())
            in_fault[entered[1]] = reason
        elif entered:
            in_fault.pop(entered[1], None)
    return in_fault, failing


class State(NamedTuple):
    """The state of a VRRP instance, in RFC 9568's words, and since when, in seconds since 1970."""

    name: str
    since: float


STATES = {"MASTER": "Active", "BACKUP": "Backup", "FAULT": "Fault"}


def keepalived_states(reader: Reader) -> Dict[str, State]:
    """Return the state of each instance of the keepalived that runs, as far as its log still says it."""
    properties = _properties(reader, UNITS[NATIVE].router)
    found = {}
    for at, line in reader.timed_journal(properties.get("InvocationID", "")):
        entered = ENTERED.fullmatch(line)
        if entered and entered[2] in STATES:
            found[entered[1]] = State(STATES[entered[2]], at)
    return found


def router(reader: Reader) -> InForce:
    found, report = _agent_daemon(reader, Daemon(VRRP))
    checks = report.get("checks", ())
    failing = {check["name"]: check.get("detail") or "it failed" for check in checks if check.get("up") is False}
    return found._replace(in_fault=_agents_in_fault(report), failing=failing)


def _agents_in_fault(report: Dict[str, Any]) -> Dict[str, str]:
    instances = report.get("instances", ())
    return {each["name"]: each["reason"] for each in instances if each["state"] == STATES["FAULT"]}


def proxy(reader: Reader) -> InForce:
    return _agent_daemon(reader, Daemon(PROXY))[0]


def follow(reader: Reader) -> InForce:
    return _agent_daemon(reader, Daemon(FOLLOW))[0]


def direct(reader: Reader) -> InForce:
    return _agent_daemon(reader, Daemon(DIRECT))[0]


def anycast(reader: Reader) -> InForce:
    return _agent_daemon(reader, Daemon(ANYCAST))[0]


def pod(reader: Reader, name: str) -> InForce:
    """Return what a static pod has in force. Nothing that another manifest has started is."""
    first = pods.running().get(name)
    if not first:
        return InForce(False)
    record = read_record(reader.text(first.record))
    program = pod_programs.program_of(record.config)
    report = pod_programs.report(first, program)
    loaded = report.get("config_sha256", "") if program in pod_programs.AGENT_FILES else record.checksum
    is_of_manifest = first.configuration == pods.wanted(name)
    newest = _newest(first) if program == HAPROXY else record.uptime
    is_loaded = is_of_manifest and newest >= record.uptime - WORKER_SLACK
    return InForce(
        active=True,
        unit_outdated=not is_of_manifest,
        config=pod_programs.config_of(program) if program else "",
        checksum=loaded if is_loaded else "",
        in_fault=_keepalived_in_fault(reader, first) if program == KEEPALIVED else _agents_in_fault(report),
        refused=is_of_manifest and not is_loaded and newest > 0,
    )


def _newest(first: pods.First) -> float:
    """Return when haproxy's newest process started; 0 if it does not run.

    One that could not use a new file, or has not come to it yet, goes on with the worker of before.
    """
    stats = facts.process_stats()
    return max((facts.youngest(pid, stats) for pid in pod_programs.children(first)), default=0.0)


def _keepalived_in_fault(reader: Reader, first: pods.First) -> Dict[str, str]:
    states = pod_programs.states(reader, first)
    silent = {name: "keepalived does not say what it does" for name, (state, _since) in states.items() if not state}
    return {**silent, **{name: "" for name, (state, _since) in states.items() if state == STATES["FAULT"]}}


def report_of(daemon: Daemon) -> Dict[str, Any]:
    """Return the report of a daemon of the agent; an empty one if it does not answer."""
    return status_socket.report_at(daemon.status_socket, daemon.name)


def _agent_daemon(reader: Reader, daemon: Daemon) -> Tuple[InForce, Dict[str, Any]]:
    """Return what a daemon of the agent has in force, and its report."""
    report = report_of(daemon)
    properties = _properties(reader, daemon.unit)
    return _in_force(properties, report.get("config", ""), report.get("config_sha256", "")), report


def _properties(reader: Reader, unit: str) -> Dict[str, str]:
    return show(reader.run, [unit], PROPERTIES)[0]


def _in_force(properties: Dict[str, str], config: str = "", checksum: str = "") -> InForce:
    active = properties.get("ActiveState") in ("active", "reloading")
    started = int(properties.get("ExecMainStartTimestampMonotonic") or 0) / MILLION
    age = time.monotonic() - started
    return InForce(active, properties.get("NeedDaemonReload") == "yes", config, checksum, age=age)


DAEMONS: Dict[str, Callable[[Reader], InForce]] = {
    UNITS[NATIVE].balancer: haproxy,
    UNITS[NATIVE].router: keepalived,
    UNITS[AGENT].balancer: proxy,
    UNITS[AGENT].router: router,
    Daemon(FOLLOW).unit: follow,
    Daemon(DIRECT).unit: direct,
    Daemon(ANYCAST).unit: anycast,
    PODS.balancer: lambda reader: pod(reader, PODS.balancer),
    PODS.router: lambda reader: pod(reader, PODS.router),
    FOLLOW_POD: lambda reader: pod(reader, FOLLOW_POD),
}


def read(reader: Reader, unit: str) -> InForce:
    """Return what a unit has in force; of a unit that is none of the daemons only what systemd knows."""
    return DAEMONS[unit](reader) if unit in DAEMONS else _in_force(_properties(reader, unit))


def unloaded(unit: str, found: InForce) -> str:
    """Say that a running daemon has not loaded its configuration as it is on disk; '' if it has, or is none of them."""
    if (
        unit not in DAEMONS
        or not found.active
        or (found.checksum and found.checksum == loaded_files.checksum(found.config))
    ):
        return ""
    return f"{unit} has not loaded {found.config or 'its configuration'} since it changed."


def replaced(unit: str, found: InForce) -> str:
    """Say that files which its configuration names have been replaced since a running unit loaded them; '' if not.

    A run has it load them, and the status says it. A proof does not need it: somebody may renew a certificate at any
    time, and what was proved is as good as before.
    """
    if not found.active or unloaded(unit, found):
        return ""
    changed = loaded_files.changed(PROGRAM_OF.get(unit, ""), found.config, found.others)
    if changed and not found.others:  # as those of version 1.0.0
        return f"The record of {unit} does not say whether it has loaded {loaded_files.in_words(changed)} as it is now."
    return f"{unit} has not loaded {loaded_files.in_words(changed)} since it changed." if changed else ""


def unloaded_units(reader: Reader, units: Iterable[str]) -> List[str]:
    """Return a sentence for each running unit that has not loaded its configuration."""
    sentences = (unloaded(unit, read(reader, unit)) for unit in units)
    return [sentence for sentence in sentences if sentence]


def stale(reader: Reader, files: Sequence[Tuple[str, str]]) -> List[str]:
    """Return a sentence for each file that its running unit has not loaded, and each kernel setting that differs.

    A unit that does not run reads its files when it starts.

    :param files: pairs of a unit and a path: a part of the unit, or the configuration that its daemon loads
    """
    return [sentence for _path, sentences in stale_files(reader, files) for sentence in sentences]


def stale_files(reader: Reader, files: Sequence[Tuple[str, str]]) -> List[Tuple[str, List[str]]]:
    """Return the same, for each file its path and the sentences."""
    known = {unit: read(reader, unit) for unit in dict(files)}
    return [(path, _stale(reader, unit, path, known[unit])) for unit, path in files]


def _stale(reader: Reader, unit: str, path: str, found: InForce) -> List[str]:
    if path.startswith(KERNEL_SETTINGS):
        return kernel_settings_differ(reader, path)
    if path.startswith(UNIT_FILES):
        is_older = unit in RESTARTED and found.active and found.age > age_of(path) > 0
        older = [f"{unit} has run since before {path} changed."] if is_older else []
        return [f"systemd has not read {path} since it changed."] if found.unit_outdated else older
    if path.startswith(MANIFESTS):
        return [f"The kubelet has not read {path} since it changed."] if found.unit_outdated else []
    if unit in PODS and found.config != path and not os.path.exists(path):
        return []  # what the other engine's pod of this name would load
    of_path = found if found.config == path else found._replace(config=path, checksum="")
    sentence = unloaded(unit, of_path) or replaced(unit, of_path)
    return [sentence] if sentence else []


def kernel_settings_differ(reader: Reader, path: str) -> List[str]:
    """Return a sentence for each setting in a file of sysctl.d that the kernel has otherwise; see sysctl.d(5).

    A setting that this kernel does not have is left out.
    """
    sentences = []
    for name, wanted in re.findall(r"^([\w.]+) = (.+)$", reader.text(path), re.MULTILINE):
        value = reader.text("/proc/sys/" + name.replace(".", "/")).strip()
        if value and value != wanted:
            sentences.append(f"{name} is {value}, and {path} says {wanted}.")
    return sentences


def age_of(path: str) -> float:
    """Return for how many seconds a file is as it is; less than none where it is not there, or the clock was set."""
    try:
        return time.time() - os.stat(path).st_mtime
    except OSError:
        return -1.0
