# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What uses the balancer's ports on its own host: the router's checks, `onprem-lb-answers.service`, and the redirect.

A plan may give the balancer other ports. These go on with the old ones until the run has changed them as well.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import Any, Collection, Dict, Iterable, Iterator, List, Mapping, Tuple
from urllib.parse import urlsplit

from ..._agent.keepalived import conf as keepalived_conf
from ..._shared import paths
from ..._shared.engines import AGENT, KEEPALIVED, NATIVE, PODS, UNITS, VRRP
from ..._shared.pods import RESOURCES
from .. import nft_table
from . import answered, facts, pod_programs
from .reader import Reader

ANSWERS = paths.of_unit(paths.ANSWERS)
SIDECAR = f"{RESOURCES}/sidecar/sidecar.json"
TABLE = "onprem_lb_api"
# The file is loaded anew whenever the balancer starts.
REDIRECTS = ("/etc/onprem-lb/api-redirect.nft", f"{RESOURCES}/sidecar/api-redirect.nft")
RULE = re.compile(r"tcp dport (\d+) dnat (?:ip6? )?to \S+:(\d+)")
URL = re.compile(r"https?://[^\s'\"]+")
LOOPBACKS = ("localhost", "127.0.0.1", "::1")
HTTP, HTTPS, HAPROXY = "http", "https", "haproxy"  # the types of checks that may ask a balancer
PORTS = {HTTP: 80, HTTPS: 443}


def read(
    reader: Reader, asked: Mapping[str, Any], own: Collection[str] = (), active: Collection[str] = ()
) -> Dict[str, List[Dict[str, Any]]]:
    """Return ``{checks, redirects}``: what is asked of this host, and ``{port, to}`` of each redirect.

    A question is ``{name, address, port, path, tls, answered}``. A path is '' where no web server is asked. A file that
    is not in use any more does no harm: the plan counts only ports on which the balancer listens, and what no router
    that runs asks counts as unanswered.

    :param asked: the parameters of `host_info`
    :param own: the addresses of this host
    :param active: the units and the pods that run
    """
    local = {*LOOPBACKS, *own}
    every = [
        (router, question)
        for router, check in _checks(reader, asked)
        for question in _questions(check)
        if question["address"] in local
    ]
    asked_now = [question for router, question in every if router in active]
    rules = [_in_force(reader), *map(reader.text, REDIRECTS)]
    return {
        "checks": _answered(_once(question for _router, question in every), asked_now),
        "redirects": _once({"port": int(port), "to": int(to)} for rule in rules for port, to in RULE.findall(rule)),
    }


def _checks(reader: Reader, asked: Mapping[str, Any]) -> Iterator[Tuple[str, Mapping[str, Any]]]:
    """Yield the checks of each router, with its unit or pod."""
    native, agent = UNITS[NATIVE].router, UNITS[AGENT].router
    for router, path in ((native, asked["keepalived_config"]), (PODS.router, pod_programs.config_of(KEEPALIVED))):
        yield from ((router, each) for each in keepalived_conf.scripts(reader.text(path)))
    for router, path in ((agent, asked["agent_config"]), (PODS.router, pod_programs.config_of(VRRP))):
        yield from ((router, each) for each in facts.agent_checks(reader.text(path)))
    yield from ((native, each) for each in _of_unit(reader.text(ANSWERS)))
    yield from ((PODS.router, each) for each in _of_sidecar(reader.text(SIDECAR)))


def _of_unit(text: str) -> Iterator[Dict[str, Any]]:
    """Yield the questions of `onprem-lb-answers.service`: each is an argument of its program."""
    for line in text.splitlines():
        words = _words(line) if line.startswith("ExecStart=") else []
        for word in words:
            if word.startswith("{"):
                yield from _mappings([_json(word)])


def _words(line: str) -> List[str]:
    try:
        return shlex.split(line)
    except ValueError:  # quotes that do not end
        return []


def _of_sidecar(text: str) -> Iterator[Dict[str, Any]]:
    for router in _mappings(each.get("router") for each in _mappings([_json(text)])):
        questions = router.get("questions")
        yield from _mappings(questions if isinstance(questions, list) else [])


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _mappings(given: Iterable[Any]) -> Iterator[Dict[str, Any]]:
    return (each for each in given if isinstance(each, dict))


def _questions(check: Mapping[str, Any]) -> Iterator[Dict[str, Any]]:
    """Yield what a check asks: by its address and its port, and by the URLs of its command."""
    name, kind, address, port = str(check.get("name", "")), check.get("type"), check.get("address"), check.get("port")
    if kind in (HTTP, HTTPS, HAPROXY) and isinstance(port, int) and isinstance(address, str):
        path = "" if kind == HAPROXY else str(check.get("path", "/"))
        yield {"name": name, "address": address, "port": port, "path": path, "tls": kind == HTTPS}
    for url in URL.findall(str(check.get("command") or "")):
        yield from _of_url(name, url)


def _of_url(name: str, url: str) -> Iterator[Dict[str, Any]]:
    try:
        parts = urlsplit(url)
        port = parts.port or PORTS[parts.scheme]
    except ValueError:  # no port
        return
    address, is_tls = parts.hostname or "", parts.scheme == HTTPS
    yield {"name": name, "address": address, "port": port, "path": parts.path or "/", "tls": is_tls}


def _answered(checks: List[Dict[str, Any]], asked_now: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Add to each question whether it is answered now; of one that is not asked in HTTP that is not known."""
    urls = [answered.Question(*(each[key] for key in answered.Question._fields)) for each in checks]
    known = answered.of({url for url, each in zip(urls, checks) if url.path and each in asked_now})
    return [{**each, "answered": url in known} for each, url in zip(checks, urls)]


def _in_force(reader: Reader) -> str:
    nft = reader.find("nft")
    return nft_table.in_force(lambda command: reader.run([nft, *command[1:]]), TABLE) if nft else ""


def _once(found: Iterable[Dict[str, Any]]) -> List[Dict[str, Any]]:
    result: List[Dict[str, Any]] = []
    for each in found:
        if each not in result:
            result.append(each)
    return result
