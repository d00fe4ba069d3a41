# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The configuration of the health gate: JSON, read into ``settings``. In the file times are seconds."""

from __future__ import annotations

import ipaddress
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from ..checks import config as check_config
from ..config import fields, file
from ..config.schema import (
    Faults,
    Field,
    anything,
    counted,
    list_of,
    placed,
    read,
    read_list,
    repeated,
    undefined,
    word,
)
from . import settings

_ALL = settings.Settings._field_defaults
NEEDLESS = "a VIP is required without a prefix length: one IPv4 or IPv6 address that a router has a route to."


def _vip(value: Any) -> fields.Checked:
    found, wrong = fields.address(value)
    if wrong:
        return None, NEEDLESS
    ip = ipaddress.ip_address(found)
    return (found, None) if fields.reachable(ip) and not ip.is_link_local else (None, NEEDLESS)


CONFIGURATION = {
    "vips": Field(list_of(anything, at_least=1), [], required=True),
    "checks": Field(list_of(anything), []),
    "interface": Field(fields.interface, _ALL["interface"]),
    "held_back": Field(list_of(fields.path), [*_ALL["held_back"]]),
    "status_socket": Field(fields.socket_path, _ALL["status_socket"]),
    "script_user": Field(word, _ALL["script_user"]),
}
VIP = {
    "name": Field(word, required=True),
    "address": Field(_vip, required=True),
    # Without a check the address would stay when nothing serves any more.
    "track": Field(list_of(word, at_least=1), [], required=True),
}


class Parts(NamedTuple):
    """A configuration with its defaults, each part a dict with the keys of its schema."""

    whole: Dict[str, Any]
    vips: List[Dict[str, Any]]
    checks: List[Dict[str, Any]]


def _read(data: Any, faults: Faults) -> Parts:
    whole = read(CONFIGURATION, data, file.WHOLE, faults)
    checks = check_config.read_checks(whole["checks"], faults)
    vips = read_list(VIP, whole["vips"], "vips", faults)
    for place, vip in placed("vips", vips):
        faults.extend(undefined([{"name": name} for name in vip["track"]], checks, f"{place}.track"))
    twice = repeated([vip["address"] for vip in vips if vip["address"]])
    faults.extend(f"vips has the address {address} twice: leave one out." for address in twice)
    return Parts(whole, vips, checks)


def _host_answers(found: Parts, path: str, host: Any) -> List[Tuple[str, str, Optional[str]]]:
    """Check the programs that are named on this host, and who may name others. The interface may come later."""
    answers = check_config.programs(found.checks, found.whole["script_user"], host)
    return [*answers, (file.WHOLE, path, host.configuration(path))] if answers else []


def _settings(found: Parts) -> settings.Settings:
    whole = found.whole
    return settings.Settings(
        vips=tuple(settings.Vip(vip["name"], alone(vip["address"]), tuple(vip["track"])) for vip in found.vips),
        checks=tuple(map(check_config.check_of, found.checks)),
        held_back=tuple(whole["held_back"]),
        **{key: whole[key] for key in ("interface", "status_socket", "script_user")},
    )


def alone(address: str) -> str:
    """Return an address with the prefix length of a single one."""
    return f"{address}/{128 if ':' in address else 32}"


def counts(found: settings.Settings) -> List[str]:
    """Say what there is in a configuration."""
    return [counted(found.vips, "VIP"), counted(found.checks, "check")]


def notes(found: settings.Settings, has_interface: Callable[[str], bool]) -> List[str]:
    """Say what is odd about a configuration, and no fault."""
    until = f"this host has no interface {found.interface} now; until it has, no VIP is here."
    return [] if has_interface(found.interface) else [until]


FORMAT = file.Format(_read, _host_answers, _settings)
load, parse = FORMAT.load, FORMAT.parse
