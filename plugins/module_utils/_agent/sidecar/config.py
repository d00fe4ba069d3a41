# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The configuration of ``sidecar``: JSON. In the file times are seconds."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ..checks import settings
from ..checks.config import EVERY_CHECK, HTTP
from ..config import fields, file
from ..config.schema import Faults, Field, anything, list_of, no_notes, one_of, port, read, read_list, text
from ..keepalived.answers import Question, question

Command = Tuple[str, ...]


class Balancer(NamedTuple):
    """The balancer, which runs in a pod of its own.

    :ivar fifo: which its container holds open
    :ivar ready_port: where it answers on 127.0.0.1 once it serves
    :ivar down_file: the track file of the VRRP router; '' where it tracks none
    :ivar start_commands: what comes once it serves
    :ivar stop_commands: what comes before it stops, and however it has ended
    """

    fifo: str
    ready_port: int
    ready_path: str
    down_file: str = ""
    start_commands: Tuple[Command, ...] = ()
    stop_commands: Tuple[Command, ...] = ()


class Router(NamedTuple):
    """The VRRP router, or the gate of VIPs that BGP announces, which runs beside the sidecar.

    :ivar fifo: which its container holds open
    :ivar keepalived: its configuration, if it is keepalived
    :ivar agent: its configuration, if it is the agent
    :ivar notify_fifo: to which keepalived writes its changes of state (vrrp_notify_fifo)
    :ivar questions: what this member must answer to hold a VIP, which keepalived learns by track files
    """

    fifo: str
    keepalived: str = ""
    agent: str = ""
    notify_fifo: str = ""
    questions: Tuple[Question, ...] = ()


class Settings(NamedTuple):
    """What the sidecar looks after.

    :ivar first: the commands that it runs when it starts
    """

    first: Tuple[Command, ...] = ()
    balancer: Optional[Balancer] = None
    router: Optional[Router] = None


_COMMANDS = Field(list_of(list_of(text, at_least=1)), [])
BALANCER = {
    "fifo": Field(fields.path, required=True),
    "ready_port": Field(port, required=True),
    "ready_path": Field(text, required=True),
    "down_file": Field(fields.optional(fields.path), ""),
    "start_commands": _COMMANDS,
    "stop_commands": _COMMANDS,
}
ROUTER = {
    "fifo": Field(fields.path, required=True),
    "keepalived": Field(fields.optional(fields.path), ""),
    "agent": Field(fields.optional(fields.path), ""),
    "notify_fifo": Field(fields.optional(fields.path), ""),
    "questions": Field(list_of(anything), []),
}
QUESTION = {
    **EVERY_CHECK,
    **HTTP,
    "type": Field(one_of(settings.HAPROXY, settings.HTTP, settings.HTTPS), required=True),
    "file": Field(fields.path, required=True),
}
CONFIGURATION = {
    "first": _COMMANDS,
    "balancer": Field(anything),
    "router": Field(anything),
}
Parts = Dict[str, Any]


def _read(data: Any, faults: Faults) -> Parts:
    whole = read(CONFIGURATION, data, file.WHOLE, faults)
    for key, schema in (("balancer", BALANCER), ("router", ROUTER)):
        if whole[key] is not None:
            whole[key] = read(schema, whole[key], key, faults)
    if whole["router"]:
        whole["router"]["questions"] = read_list(QUESTION, whole["router"]["questions"], "router.questions", faults)
    return whole


def _host_answers(_found: Parts, _path: str, _host: Any) -> List[Tuple[str, str, Optional[str]]]:
    """The programs are those of an image, which this host need not have."""
    return []


def _settings(found: Parts) -> Settings:
    balancer, router = found["balancer"], found["router"]
    if balancer:
        commands = {key: _commands(balancer[key]) for key in ("start_commands", "stop_commands")}
        balancer = Balancer(**{**balancer, **commands})
    if router:
        router = Router(**{**router, "questions": tuple(question(**each) for each in router["questions"])})
    return Settings(_commands(found["first"]), balancer, router)


def _commands(given: List[List[str]]) -> Tuple[Command, ...]:
    return tuple(map(tuple, given))


def counts(found: Settings) -> List[str]:
    """Say what there is in a configuration."""
    return [name for name in ("balancer", "router") if getattr(found, name)]


notes = no_notes
FORMAT: file.Format[Parts, Settings] = file.Format(_read, _host_answers, _settings)
load, parse = FORMAT.load, FORMAT.parse
