# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the configuration of a balancer answers, read from the file alone: of haproxy, and of the agent."""

from __future__ import annotations

import ipaddress
import json
import re

BIND = re.compile(r"bind \[?([^\] ]+?)\]?:(\d+)(.*)")
ALLOW = re.compile(r"tcp-request (?:connection|session) reject unless \{ src (.+) \}")
PROXIES = re.compile(r"tcp-request connection expect-proxy layer4 if \{ src (.+) \}")
# What a check of the host itself does not get over: it has no certificate, no name and no header, and is on no link.
UNANSWERED = ("verify required", "strict-sni", "accept-proxy", "interface ")
PATH = re.compile(r'(?:monitor-uri|stats uri|use-service prometheus-exporter if \{ path) "?([^" ]+)')


def by_haproxy(text, question):
    """Whether a haproxy.cfg answers a question of a check."""
    sections = re.split(r"^(?=\S)", text, flags=re.MULTILINE)
    return any(_in_section(each, question) for each in sections if each.startswith(("frontend ", "listen ")))


def _in_section(text, question):
    lines = [line.strip() for line in text.splitlines()]
    allow = [network for line in lines for found in ALLOW.findall(line) for network in found.split()]
    paths = [path for line in lines for path in PATH.findall(line)]
    proxies = [network for line in lines for found in PROXIES.findall(line) for network in found.split()]
    if proxies and _passes(proxies, [], question):
        return False
    if "http-request auth" in text or not _passes(allow, paths, question):
        return False
    binds = [found.groups() for line in lines for found in [BIND.match(line)] if found]
    return any(_over(options, "mode http" in lines, question) for options in _there(binds, question))


def _there(binds, question):
    for address, port, *options in binds:
        if int(port) == question["port"] and address in (question["address"], "*"):
            yield "".join(map(str, options))


def _over(options, is_http, question):
    if any(f" {word}" in options for word in UNANSWERED):
        return False
    if " ssl " in options:
        return question["tls"]
    return not question["tls"] or not is_http


def _passes(allow, paths, question):
    address = ipaddress.ip_address(question["address"])
    let_in = not allow or any(address in ipaddress.ip_network(network) for network in allow)
    return let_in and (not paths or any(map(question["path"].startswith, paths)))


def by_agent(text, question):
    """Whether the agent's proxy.json answers it."""
    found = json.loads(text)
    page = [found["page"]] if found.get("page") else []
    for each in [*found["services"], *found["monitors"], *page]:
        is_there = each["port"] == question["port"] and {question["address"], "*"} & {*each.get("bind", ["*"])}
        paths = [each["path"]] if "path" in each else []
        is_http = "path" in each or each.get("mode") == "http"
        if is_there and _passes(each.get("allow", []), paths, question) and _over("", is_http, question):
            return True
    return False
