# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Asks the programs of the static pods what they do, through /proc: see `pods`."""

from __future__ import annotations

import contextlib
import os
import posixpath
import signal
import time
from typing import Any, Dict, List, Optional, Tuple

from ..._agent.keepalived import conf as keepalived_conf
from ..._agent.metrics import dumps
from ..._agent.runtime import status_socket
from ..._shared.engines import AGENT, FOLLOW, HAPROXY, KEEPALIVED, NATIVE, PROXY, VRRP, Daemon
from ..._shared.load_records import read_record
from ..._shared.pods import BALANCER, RESOURCES, ROUTER
from . import facts, pods, processes
from .pods import First
from .reader import Reader

DATA = "/tmp/keepalived.data"  # where keepalived writes what it does, at SIGUSR1
WRITES_WITHIN, LOOK_EVERY = 2.0, 0.02  # seconds
AGENT_FILES = {name: f"{name}.json" for name in (PROXY, VRRP, FOLLOW)}
FILES = {HAPROXY: "haproxy.cfg", KEEPALIVED: "keepalived.conf", **AGENT_FILES}
PROGRAMS = {file: program for program, file in FILES.items()}
_CONFIGS = {NATIVE: (HAPROXY, KEEPALIVED), AGENT: (PROXY, VRRP)}  # whose files the manifests of an engine name

States = Dict[str, Tuple[str, float]]  # by instance: its state, and since when


def program_of(config: str) -> str:
    """Return the program that loads a file, whose path is one in a container or on this host; '' if none does."""
    return PROGRAMS.get(posixpath.basename(config), "")


def program_in(reader: Reader, first: First) -> str:
    """Return the program of a container, whose first process records which file it loads; '' if that is not known."""
    return program_of(read_record(reader.text(first.record)).config)


def config_of(program: str) -> str:
    """Return the path of a program's file on this host."""
    return posixpath.join(RESOURCES, program, FILES[program])


def engine() -> str:
    """Return the engine of the pods that are set up here; '' where there are none.

    Their manifests say so: each of them changes at one instant, and all of what the programs read does not.
    """
    return next((each for name in (ROUTER, BALANCER) for each in [_engine_of(pods.manifest(name))] if each), "")


def _engine_of(manifest: str) -> str:
    return next((each for each, names in _CONFIGS.items() if any(f"/{FILES[name]}" in manifest for name in names)), "")


def report(first: Optional[First], program: str) -> Dict[str, Any]:
    """Return the report of a program of the agent; an empty one of others, and where it does not run or answer."""
    if not first or program not in AGENT_FILES:
        return {}
    return status_socket.report_at(first.path(Daemon(program).status_socket), program)


def instances(reader: Reader) -> List[Dict[str, Any]]:
    """Return the VRRP instances of the pods' configuration. Where both engines' files are there, the manifests tell."""
    of_native = keepalived_conf.instances(reader.text(config_of(KEEPALIVED)))
    of_agent = facts.agent_instances(reader.text(config_of(VRRP)))
    return (of_agent or of_native) if engine() == AGENT else (of_native or of_agent)


def children(first: First) -> List[int]:
    """Return the programs that the first process of a container, a shell, has started.

    A copy of that shell is none: it ends a program that stands still, and a signal that it does not know would end it.
    """
    found = facts.children(first.pid, facts.process_stats())
    return [pid for pid in found if not processes.is_copy(pid)]


def states(reader: Reader, first: First) -> States:
    """Have keepalived write what it does, and return that, as far as it does so in time; nothing if it does not run.

    The signal for that would end the agent.
    """
    if program_in(reader, first) != KEEPALIVED:
        return {}
    names = {each["name"] for each in keepalived_conf.instances(reader.text(config_of(KEEPALIVED)))}
    path, end = first.path(DATA), time.monotonic() + WRITES_WITHIN
    found: States = {}
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    for pid in children(first):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGUSR1)
    while not names <= {*found} and time.monotonic() < end:
        time.sleep(LOOK_EVERY)
        found = dumps.states(reader.text(path))
    return {name: found.get(name, ("", 0.0)) for name in names}
