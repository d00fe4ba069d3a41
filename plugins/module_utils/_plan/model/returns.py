# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What HAProxy answers itself, for a service or a route without servers: a redirect, or a status with a text. Pure.

The backend of such a service has no servers: a rule of it ends each request.
"""

from __future__ import annotations

import re
from typing import Any, Iterator, List, Mapping, Optional

from ..._agent.config.schema import Faults, Field, anything, integer, list_of, read, refused, shown
from ..._agent.proxy.settings import HTTP
from ..._shared import quoting
from .values import Checked, optional

REDIRECTS = (301, 302, 303, 307, 308)
OF_SERVERS = {"balance": "roundrobin", "check": {}, "send_proxy": False, "sticky": None}  # with what says nothing
ESCAPES = {"\n": "\\n", "\t": "\\t"}
WITHOUT_CONTENT = (204, 205)  # RFC 9110, 15.3.5 and 15.3.6
# What a haproxy.cfg of ordinary size has room for, and HAProxy's buffer, whose 16384 bytes the headers share.
LONGEST_CONTENT, LONGEST_URL = 8000, 2000
# Printable characters, without those that a URL may not have (RFC 3986).
URL = re.compile(r"(https?://[A-Za-z0-9\[]|/(?!/))[!#-;=?-\[\]_a-z~]*", re.ASCII)
MEDIA_TYPE = re.compile(r"[a-z0-9.+-]{1,60}/[A-Za-z0-9.+-]{1,80}(; ?charset=[A-Za-z0-9-]{1,20})?", re.ASCII)


def _status(value: Any) -> Checked:
    found, wrong = integer(200, 599)(value)
    if wrong or (300 <= found < 400 and found not in REDIRECTS):
        return None, f"a status from 200 to 299 or 400 to 599 is required, or {', '.join(map(str, REDIRECTS))}."
    return found, None


def _url(value: Any) -> Checked:
    if isinstance(value, str) and URL.fullmatch(value) and len(value) <= LONGEST_URL:
        return value, None
    return None, "a URL such as https://www.example.com, or a path that begins with /, is required."


def _content(value: Any) -> Checked:
    """A text of several lines, which haproxy.cfg can have."""
    if not isinstance(value, str):
        return None, "a string is required."
    if not all(each.isprintable() or each in "\n\t" for each in value):
        return None, "printable characters are required."
    if len(value.encode()) > LONGEST_CONTENT:
        return None, f"a string of at most {LONGEST_CONTENT} bytes is required."
    return value, None


def _media_type(value: Any) -> Checked:
    if isinstance(value, str) and MEDIA_TYPE.fullmatch(value):
        return value, None
    return None, "a media type such as text/html, or text/html; charset=utf-8, is required."


RETURN = {
    "status": Field(_status, required=True),
    "location": Field(optional(_url), ""),
    "prefix": Field(optional(_url), ""),
    "content": Field(_content, ""),
    "content_type": Field(_media_type, "text/plain; charset=utf-8"),
}


def servers_of(given: Any, usual: Field) -> Field:
    """Return how the servers of a service or a route are read.

    There are none where HAProxy answers itself, or sends to those of another service.
    """
    needs_none = isinstance(given, dict) and (given.get("return") is not None or given.get("backend"))
    return Field(list_of(anything), []) if needs_none else usual


def completed(given: Mapping[str, Any], backend: Mapping[str, Any], place: str, faults: Faults) -> Any:
    """Return the answer with its defaults; None where servers answer.

    :param given: the service or the route as the user wrote it
    :param backend: the same with its defaults
    """
    if backend["return"] is None:
        return None
    where, before = f"{place}.return", len(faults)
    found = read(RETURN, backend["return"], where, faults)
    for key, usual in OF_SERVERS.items():
        if given.get(key) not in (None, usual) and not refused(faults, place, key):
            faults.append(f"{place}.{key} is for servers, and return answers without them: leave it out.")
    if backend["servers"]:
        faults.append(f"{place} has servers and return, and one of them answers: leave the other one out.")
    if len(faults) == before:
        faults.extend(_faults(found, where))
    return found


def _faults(found: Mapping[str, Any], place: str) -> Iterator[str]:
    status, targets = found["status"], [key for key in ("location", "prefix") if found[key]]
    is_redirect = status in REDIRECTS
    if is_redirect and len(targets) != 1:
        yield f"{place}.status is {status}, which leads elsewhere: set either location or prefix."
    if targets and not is_redirect:
        mend = f"set status to one of {', '.join(map(str, REDIRECTS))}, or leave it out"
        yield f"{place}.{targets[0]} is set, and status {status} leads nowhere: {mend}."
    if found["content"] and (is_redirect or status in WITHOUT_CONTENT):
        yield f"{place}.content is set, and status {status} has none: leave it out."


def mode_faults(service: Mapping[str, Any], every: Mapping[str, Mapping[str, Any]], place: str) -> Iterator[str]:
    """Refuse an answer where no request is read.

    :param every: the service and its routes, by their places
    """
    if service["mode"] != HTTP:
        for where, backend in every.items():
            if backend["return"] is not None:
                yield f"{where}.return needs mode http, and {place}.mode is {shown(service['mode'])}: set mode to http."


def rules(found: Optional[Mapping[str, Any]]) -> List[str]:
    """Return the rules of haproxy.cfg that answer."""
    if not found:
        return []
    for kind in ("location", "prefix"):
        if found[kind]:
            # HAProxy would take a percent sign for the beginning of a format.
            target = quoting.haproxy(found[kind].replace("%", "%%"))
            return [f"http-request redirect {kind} {target} code {found['status']}"]
    rule = f"http-request return status {found['status']}"
    if not found["content"]:
        return [rule]
    return [f"{rule} content-type {quoting.haproxy(found['content_type'])} string {_text(found['content'])}"]


def _text(content: str) -> str:
    """Return a text as one word of a line: outside of quotes HAProxy reads \\n and \\t as what they are in C."""
    parts = re.split("([\n\t])", content)
    return "".join(ESCAPES.get(part) or quoting.haproxy(part) for part in parts if part)
