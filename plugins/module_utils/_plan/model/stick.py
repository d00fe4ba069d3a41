# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What HAProxy remembers of clients between requests: `sticky` and `rate_limit` of a service. Pure.

A stick table has the name of its section, and two sections of one name cannot both have one. So each table is alone in
a backend of its own, as HAProxy's manual advises, and frontends and backends keep their names. In raw lines a table is
where the user writes it; a frontend that needs one besides its backend's gets a `frontend_name`.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from ..._agent.config.schema import Faults, Field, integer, read, refused
from ..._agent.proxy import config, names
from ..._agent.proxy.settings import HTTP, TCP
from . import line_words, values

Service = Mapping[str, Any]

COOKIE, SOURCE = "cookie", "source"
LOOPBACK = ("127.0.0.0/8", "::1")  # where a host asks itself
COUNTER = 2  # of HAProxy's three the one that raw lines use last
EXPRESSION = re.compile(values.SAMPLE, re.ASCII)
OF_HTTP = re.compile(
    r"(capture|req\.(hdr|fhdr|cook|body|ver)|hdr|cook|base|path|pathq|url|urlp|url_param|query|method|http_)[a-z0-9_]*\b"
)
OF_REQUEST, OF_ANSWER = "req.cook(", "res.cook("  # a cookie of the application, and where it gives that to a client
COOKIE_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")  # RFC 6265 section 4.1.1
SIZE = re.compile(r"([1-9][0-9]{0,8})([kmg]?)")
UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
LARGEST = 100 << 20  # entries, of some 200 bytes each
STICK_TABLE = re.compile(r"\s*stick-table\s")
STICKS = re.compile(r"\s*(stick\s+(on|match|store-request|store-response)|cookie|dynamic-cookie-key)\s")
# Of HAProxy's tcp-request, and what comes behind all of these.
STAGES = ("connection", "session", "content", "http-request")
STAGED = re.compile(r"\s*(?:tcp-request\s+(connection|session|content)|(http-request))\s")
EARLY = re.compile(r"\s*(acl|tcp-request)\s")  # what HAProxy processes before the requests, wherever it stands
TRACKS = re.compile(rf".*\strack-sc{COUNTER}\s")


def _cookie_name(value: Any) -> values.Checked:
    if isinstance(value, str) and COOKIE_NAME.fullmatch(value) and not {"'", "#", "\\"}.intersection(value):
        return value, None
    return None, "the name of a cookie is required, such as SERVERID."


def _sample(*words: str) -> Any:
    """Return a check of one of these words, or of an expression of HAProxy's."""

    def check(value: Any) -> values.Checked:
        if isinstance(value, str) and (value in words or EXPRESSION.fullmatch(value)):
            return value, None
        return None, f"{', '.join(words)} or a sample of HAProxy's, such as req.cook(JSESSIONID), is required."

    return check


def _size(value: Any) -> values.Checked:
    found = None if isinstance(value, bool) else SIZE.fullmatch(str(value))
    if not found or int(found[1]) * UNITS[found[2]] > LARGEST:
        return None, "a number of entries such as 5000, 100k or 1m, at most 100m, is required."
    return str(value), None


def _time(longest: str) -> Any:
    def check(value: Any) -> values.Checked:
        found, wrong = values.time(value)
        if not wrong and not 1 <= values.seconds(value)[0] <= values.seconds(longest)[0]:
            wrong = f"a time from 1s to {longest} is required."
        return (None, wrong) if wrong else (found, None)

    return check


STICKY = {
    "by": Field(_sample(COOKIE, SOURCE), required=True),
    "cookie": Field(_cookie_name, "SERVERID"),
    "expire": Field(_time("24d"), "30m"),
    "size": Field(_size, "100k"),
    "len": Field(integer(1, 1024), 64),
}
RATE_LIMIT = {
    "requests": Field(integer(1, 1_000_000)),
    "connections": Field(integer(1, 1_000_000)),
    "period": Field(_time("1d"), "10s"),
    "by": Field(_sample(SOURCE), SOURCE),
    "except": config.SERVICE["allow"],
    "size": Field(_size, "100k"),
    "len": Field(integer(1, 1024), 64),
}


def read_sticky(backend: Dict[str, Any], mode: Optional[str], place: str, faults: Faults) -> None:
    """Read `sticky` of a service, or of a route.

    :param mode: of the service; None where it was refused
    """
    if backend["sticky"] is not None:
        where = f"{place}.sticky"
        backend["sticky"] = read(STICKY, backend["sticky"], where, faults)
        faults.extend(_of_sticky(backend, mode, where) if mode else [])


def cookies_shared(backends: Sequence[Tuple[str, Service]]) -> Iterator[str]:
    """Refuse one cookie of a client for a service and its routes: each would replace the other's.

    :param backends: the service and its routes, each with its place
    """
    having: Dict[str, List[Tuple[str, Service]]] = {}
    for place, backend in backends:
        sticky = backend["sticky"] or {}
        if sticky.get("by") == COOKIE:
            earlier = having.setdefault(sticky["cookie"], [])
            first = next((where for where, other in earlier if _share_a_host(other, backend)), None)
            if first:
                yield f"{place}.sticky.cookie is {sticky['cookie']}, as that of {first}: give each a name of its own."
            earlier.append((place, backend))


def _share_a_host(one: Service, route: Service) -> bool:
    """Return whether some host has requests for both: clients keep a cookie for a host.

    :param one: another route, or their service, which gets what no route takes
    """
    if "hosts" not in one:
        return not route["hosts"] or bool(route["paths"])
    both = [(a, b) for a in one["hosts"] for b in route["hosts"]]
    return not both or any(names.covers(a, b) or names.covers(b, a) for a, b in both)


def read_rate_limit(service: Dict[str, Any], place: str, faults: Faults) -> None:
    """Read `rate_limit` of a service, and judge what raw lines say besides."""
    if service["rate_limit"] is not None:
        where = f"{place}.rate_limit"
        found: Faults = []
        service["rate_limit"] = read(RATE_LIMIT, service["rate_limit"], where, found)
        faults.extend(found if found or refused(faults, place, "mode") else _of_rate_limit(service, where))
    in_both = all(any(map(STICK_TABLE.match, service[key])) for key in ("frontend_lines", "backend_lines"))
    if in_both and service["frontend_name"] in ("", service["name"]):
        faults.append(
            f"{place}.frontend_lines and backend_lines both have a stick-table, and HAProxy has one of each name: set "
            f"frontend_name, such as {service['name']}-in."
        )


def _of_sticky(backend: Service, mode: str, place: str) -> Iterator[str]:
    sticky = backend["sticky"]
    if not sticky["by"]:  # which was refused, or is missing
        return
    if sticky["by"] == COOKIE and mode != HTTP:
        yield f"{place}.by is cookie, which needs mode http: set mode to http, or by to source."
    elif mode == TCP and OF_HTTP.match(sticky["by"]):
        yield f"{place}.by is {sticky['by']}, which reads HTTP: set mode to http, or by to source."
    is_cookie, is_source = sticky["by"] == COOKIE, sticky["by"] == SOURCE
    without = {"cookie": not is_cookie, "expire": is_cookie, "size": is_cookie, "len": is_cookie or is_source}
    for key in [key for key, has_no_use in without.items() if has_no_use and sticky[key] != STICKY[key].default]:
        yield f"{place}.{key} has no use with by {sticky['by']}: leave it out."
    for at, line in enumerate(backend["backend_lines"], 1):
        if STICKS.match(line):
            yield f"{place} is set, and line {at} of backend_lines says the same in its way: leave one of them out."


def _of_rate_limit(service: Service, place: str) -> Iterator[str]:
    limit = service["rate_limit"]
    if (limit["requests"] is None) == (limit["connections"] is None):
        yield f"{place} needs either requests or connections, as a number of each client in a period: set one of them."
    elif limit["requests"] is not None and service["mode"] == TCP:
        yield f"{place}.requests needs mode http: set mode to http, or limit connections."
    elif limit["connections"] is not None and limit["by"] != SOURCE:
        yield f"{place}.by is {limit['by']}, and connections are counted by source alone: limit requests, or omit it."
    if limit["by"] == SOURCE and limit["len"] != RATE_LIMIT["len"].default:
        yield f"{place}.len has no use with by source: leave it out."
    for at, line in enumerate(service["frontend_lines"], 1):
        if TRACKS.match(f"{line} "):
            yield (
                f"{place} is set, and counts with HAProxy's sc{COUNTER}, as line {at} of frontend_lines does: use "
                "another counter there."
            )


def name_of(backend: str, what: str) -> str:
    """Return the name of a backend's table."""
    return f"{backend}-{what}"


RATE, STICKY_TABLE = "rate", "sticky"


def tables(service: Service, backends: Iterable[Service]) -> List[Dict[str, str]]:
    """Return the tables of a service as the template takes them: ``{name, type, size, expire, store}``.

    :param backends: the service itself and its routes
    """
    found = []
    limit = service["rate_limit"]
    if limit:
        counted = "http_req_rate" if limit["requests"] else "conn_rate"
        lasts = f"{round(2000 * values.seconds(limit['period'])[0])}ms"  # the rate is that of a sliding window
        store = f"{counted}({limit['period']})"
        found.append(_table(name_of(service["name"], RATE), limit, lasts, store))
    for each in backends:
        sticky = each["sticky"]
        if sticky and sticky["by"] != COOKIE:
            found.append(_table(name_of(each["name"], STICKY_TABLE), sticky, sticky["expire"], ""))
    return found


def _table(name: str, of: Service, expire: str, store: str) -> Dict[str, str]:
    kind = "ipv6" if of["by"] == SOURCE else f"string len {of['len']}"  # ipv6 takes IPv4 as well
    return {"name": name, "type": kind, "size": of["size"], "expire": expire, "store": store}


def stick_lines(backend: Service) -> List[str]:
    """Return the lines of a backend whose clients are remembered in a table."""
    sticky = backend["sticky"]
    if not sticky or sticky["by"] == COOKIE:
        return []
    by, table = sticky["by"], name_of(backend["name"], STICKY_TABLE)
    given = [by.replace(OF_REQUEST, OF_ANSWER, 1)] if by.startswith(OF_REQUEST) else []
    lines = [f"stick on {'src' if by == SOURCE else by} table {table}"]
    return [*lines, *(f"stick store-response {sample} table {table}" for sample in given)]


def sections(service: Service, backends: Iterable[Service]) -> List[str]:
    """Return the names of the sections that a service has besides those with the names of its backends."""
    own = [service["frontend_name"]] if service["frontend_name"] not in ("", service["name"]) else []
    return [*own, *(table["name"] for table in tables(service, backends))]


def for_template(service: Service, backends: Iterable[Service], admission: Sequence[str]) -> Dict[str, Any]:
    """Return what the template takes of a service: its frontend's name and lines, and its tables.

    :param admission: the rules of who connects
    """
    limit = _limit(service) if service["rate_limit"] else []
    first = (
        [line for line in service["frontend_lines"] if EARLY.match(line)] if limit or service["accept_proxy"] else []
    )
    return {
        "frontend": service["frontend_name"] or service["name"],
        "tables": tables(service, backends),
        "opening_lines": sorted([*admission, *first, *limit], key=stage),
        "frontend_lines": [line for line in service["frontend_lines"] if line not in first],
    }


def stage(line: str) -> int:
    """Return a number by which rules are in the order in which HAProxy processes them: it warns of any other order."""
    said = STAGED.match(line)
    return STAGES.index(said[1] or said[2]) if said else 0


def _limit(service: Service) -> List[str]:
    """Return the rules of a rate limit: in which stage clients are counted, by what, and when that is too much."""
    limit = service["rate_limit"]
    # A session begins after the handshakes of TLS and the PROXY protocol, so that src is the client.
    phase = "http-request" if limit["requests"] else "tcp-request session"
    counted = "http_req_rate" if limit["requests"] else "conn_rate"
    by = "src" if limit["by"] == SOURCE else limit["by"]
    track = f"{phase} track-sc{COUNTER} {by} table {name_of(service['name'], RATE)} unless"
    exempt = list(dict.fromkeys([*LOOPBACK, *limit["except"]]))
    refuse = "http-request deny deny_status 429" if service["mode"] == HTTP else "tcp-request session reject"
    too_much = f"sc_{counted}({COUNTER}) gt {limit['requests'] or limit['connections']}"
    return [*line_words.of_networks(track, exempt, "onprem_except"), f"{refuse} if {{ {too_much} }}"]
