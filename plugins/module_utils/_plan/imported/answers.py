# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What HAProxy answers itself in an haproxy.cfg: `return` of a service, and the redirect to one with TLS. Pure."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ..._agent.config.schema import Faults, read
from ..model.returns import RETURN
from ..model.tls import HTTPS_PORT
from . import binds
from .sections import Line, Section

# What goes on behind the rules of a frontend, or before them.
BEHIND = ("default_backend", "use_backend", "server", "server-template", "dispatch", "redirect", "stats")
TO_HTTPS = (
    "http-request redirect scheme https code 301",
    "redirect scheme https code 301",
    *(f"{rule} redirect scheme https code 301 if !{{ ssl_fc }}".strip() for rule in ("http-request", "")),
)
TARGETS = ("location", "prefix")
USUAL_CODE = "302"  # HAProxy's
OF_RETURN = {"status": "status", "content-type": "content_type", "string": "content"}


def answer(lines: Sequence[Line]) -> Optional[Tuple[Dict[str, Any], Line]]:
    """Return `return` and its rule, if the last rule of a frontend answers every request, and nothing is behind it."""
    rules = [line for line in lines if line.keyword == "http-request"]
    if not rules or any(line.keyword in BEHIND for line in lines):
        return None
    words = list(rules[-1].words[2:])
    kind = rules[-1].words[1:2]
    given = dict(zip(words[::2], words[1::2]))
    if len(words) % 2 or len(given) * 2 != len(words):
        return None
    found = _redirect(given) if kind == ("redirect",) else _returned(given) if kind == ("return",) else None
    faults: Faults = []
    if found is None or (read(RETURN, found, "return", faults) and faults):
        return None
    return found, rules[-1]


def _redirect(given: Mapping[str, str]) -> Optional[Dict[str, Any]]:
    """Read ``redirect location URL code 301``. With a percent sign the URL is made of each request."""
    targets = [key for key in TARGETS if key in given]
    code = given.get("code", USUAL_CODE)
    if len(targets) != 1 or {*given} - {*TARGETS, "code"} or "%" in given[targets[0]] or not code.isdecimal():
        return None
    return {"status": int(code), targets[0]: given[targets[0]]}


def _returned(given: Mapping[str, str]) -> Optional[Dict[str, Any]]:
    """Read ``return status 200 content-type text/plain string ok``."""
    if {*given} - {*OF_RETURN} or not given.get("status", "").isdecimal():
        return None
    if ("string" in given) != ("content-type" in given):
        return None
    return {OF_RETURN[key]: int(value) if key == "status" else value for key, value in given.items()}


def redirected(
    section: Section, lines: Sequence[Line], services: Sequence[Dict[str, Any]], bases: Dict[str, str]
) -> Optional[Dict[str, Any]]:
    """Return the service to whose TLS a frontend leads each request, if that can have it as its own redirect.

    :param lines: of the frontend, without those that the role writes anyway
    """
    left = [line for line in lines if line.keyword not in ("bind", "mode")]
    if len(left) != 1 or " ".join(left[0].words) not in TO_HTTPS:
        return None
    bound = section.having("bind")
    listening = binds.read(bound, bases)
    if listening is None or listening.lines or {*listening.keys} - {"bind", "port"}:
        return None
    fitting: List[Dict[str, Any]] = [
        each
        for each in services
        if "redirect" not in each.get("tls", {"redirect": 0})
        and each["port"] == HTTPS_PORT
        and each.get("bind") == listening.keys.get("bind")
        and "bind_options" not in each
    ]
    if len(fitting) != 1:
        return None
    return {"service": fitting[0], "port": listening.keys["port"]}
