# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What uses the balancer's ports on its own host: the router's checks, `onprem-lb-answers.service`, and the redirect.

A plan may give the balancer other ports. These go on with the old ones until the run has changed them as well.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import Any, Dict, Iterable, Iterator, List, Mapping
from urllib.parse import urlsplit

from .._agent.keepalived import conf as keepalived_conf
from .._shared.engines import KEEPALIVED, VRRP
from .._shared.pods import RESOURCES
from . import facts, nft_table, pod_programs
from .reader import Reader

ANSWERS = "/etc/systemd/system/onprem-lb-answers.service"
SIDECAR = f"{RESOURCES}/sidecar/sidecar.json"
TABLE = "onprem_lb_api"
# The file is loaded anew whenever the balancer starts.
REDIRECTS = ("/etc/onprem-lb/api-redirect.nft", f"{RESOURCES}/sidecar/api-redirect.nft")
RULE = re.compile(r"tcp dport (\d+) dnat (?:ip6? )?to \S+:(\d+)")
URL = re.compile(r"http://[^\s'\"]+")
LOOPBACKS = ("localhost", "127.0.0.1", "::1")
HTTP, HAPROXY = "http", "haproxy"  # the types of checks that ask a balancer itself


def read(reader: Reader, asked: Mapping[str, Any]) -> Dict[str, List[Dict[str, Any]]]:
    """Return ``{checks, redirects}``: ``{name, port, path}`` of each question, and ``{port, to}`` of each redirect.

    A path is '' where no web server is asked. A file that is not in use any more does no harm: the plan counts only
    ports on which the balancer listens.

    :param asked: the parameters of `host_info`
    """
    native = [asked["keepalived_config"], pod_programs.config_of(KEEPALIVED)]
    agents = [asked["agent_config"], pod_programs.config_of(VRRP)]
    every = [
        *(each for path in native for each in keepalived_conf.scripts(reader.text(path))),
        *(each for path in agents for each in facts.agent_checks(reader.text(path))),
        *_of_unit(reader.text(ANSWERS)),
        *_of_sidecar(reader.text(SIDECAR)),
    ]
    rules = [_in_force(reader), *map(reader.text, REDIRECTS)]
    return {
        "checks": _once(question for each in every for question in _questions(each)),
        "redirects": _once({"port": int(port), "to": int(to)} for rule in rules for port, to in RULE.findall(rule)),
    }


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
    """Yield what a check asks of this host: by its port, and by the URLs of its command."""
    name, port = str(check.get("name", "")), check.get("port")
    if check.get("type") in (HTTP, HAPROXY) and isinstance(port, int) and check.get("address") in LOOPBACKS:
        yield {"name": name, "port": port, "path": str(check.get("path", "/")) if check["type"] == HTTP else ""}
    for url in URL.findall(str(check.get("command") or "")):
        yield from _of_url(name, url)


def _of_url(name: str, url: str) -> Iterator[Dict[str, Any]]:
    try:
        parts = urlsplit(url)
        if parts.hostname in LOOPBACKS:
            yield {"name": name, "port": parts.port or 80, "path": parts.path or "/"}
    except ValueError:  # no port
        return


def _in_force(reader: Reader) -> str:
    nft = reader.find("nft")
    return nft_table.in_force(lambda command: reader.run([nft, *command[1:]]), TABLE) if nft else ""


def _once(found: Iterable[Dict[str, Any]]) -> List[Dict[str, Any]]:
    result: List[Dict[str, Any]] = []
    for each in found:
        if each not in result:
            result.append(each)
    return result
