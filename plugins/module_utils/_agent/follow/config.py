# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The configuration of ``follow``: JSON, read into ``settings``. In the file times are seconds.

It names files of credentials, never their contents. A kubeconfig is not read: it is YAML, and it may name programs.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Type
from urllib.parse import urlsplit

from ..config import fields, file
from ..config.schema import (
    Faults,
    Field,
    anything,
    counted,
    list_of,
    no_notes,
    one_of,
    port,
    read,
    same_names,
    text,
    word,
)
from . import selector, settings

DAY = 86400  # seconds
KUBECONFIG = re.compile(r"(?:^|[{,])\s*[\"']?(?:clusters|contexts|current-context)[\"']?\s*:", re.MULTILINE)
DOMAIN = re.compile(r"(?!.{254})[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*")


def _defaults(of: Type[Any]) -> Dict[str, Any]:
    return of._field_defaults


_API, _NODES, _ALL = _defaults(settings.Api), _defaults(settings.Nodes), _defaults(settings.Settings)
_HAPROXY, _PROXY, _TARGET = _defaults(settings.Haproxy), _defaults(settings.Proxy), _defaults(settings.Target)
_HOSTS = _defaults(settings.Hosts)


def api_url(value: Any) -> fields.Checked:
    wanted = "the URL of an API server is required, such as https://127.0.0.1:6443."
    try:
        found = urlsplit(value if isinstance(value, str) and value.isprintable() and " " not in value else "")
        good = found.scheme == "https" and found.hostname and found.port != 0 and value.isascii()
    except ValueError:
        good = False
    if not good:
        return None, wanted
    if found.username is not None or found.query or found.fragment:
        return None, f"{wanted} It has neither a user nor a query."
    return value, None


def _selector(value: Any) -> fields.Checked:
    try:
        selector.parse(value)
    except (TypeError, ValueError):
        return None, "a label selector is required, such as node-role.kubernetes.io/control-plane."
    return value, None


def _options(value: Any) -> fields.Checked:
    """Words of a server line; a comment would hide the rest, a quote could leave the line."""
    found, wrong = text(value)
    if not wrong and set(found) & set("#\"'\\;$"):
        return None, "words of HAProxy's server line are required, without quotes, backslashes, # and ;."
    return found, wrong


def _domain(value: Any) -> fields.Checked:
    if isinstance(value, str) and DOMAIN.fullmatch(value):
        return value, None
    return None, "a domain in lower case is required, such as lab.example.com."


def _exec(_value: Any) -> fields.Checked:
    return None, (
        "no program is run for credentials. Have a ServiceAccount's token written to a file by a timer, with "
        "`kubectl create token`, and name that file in api.token; or name a client certificate in api.certificate."
    )


API = {
    "servers": Field(list_of(api_url, at_least=1), [], required=True),
    "ca": Field(fields.optional(fields.path), _API["ca"]),
    "certificate": Field(fields.optional(fields.path), _API["certificate"]),
    "key": Field(fields.optional(fields.path), _API["key"], secret=True),
    "token": Field(fields.optional(fields.path), _API["token"], secret=True),
    "server_name": Field(fields.optional(word), _API["server_name"]),
    "timeout": fields.duration(1, 60, _API["timeout"]),
    "exec": Field(_exec),
}

NODES = {
    "label": Field(_selector, _NODES["label"]),
    "families": Field(list_of(one_of(*settings.FAMILIES), at_least=1), list(_NODES["families"])),
    "networks": Field(list_of(fields.network), []),
    "of_several": Field(one_of(settings.FIRST, settings.LAST), _NODES["of_several"]),
    "vips": Field(list_of(fields.address), []),
    "balancers": Field(list_of(fields.address), []),
    "not_ready_for": fields.duration(0, DAY, _NODES["not_ready_for"]),
}

TARGET = {
    "name": Field(word, required=True),
    "port": Field(port),
    "label": Field(fields.optional(_selector), _TARGET["label"]),
}
BACKEND = {
    **TARGET,
    "options": Field(_options, _TARGET["options"]),
    "fallback": Field(fields.optional(word), _TARGET["fallback"]),
}

HAPROXY = {
    "backends": Field(list_of(anything, at_least=1), [], required=True),
    "config": Field(fields.path, _HAPROXY["config"]),
    "socket": Field(fields.socket_path, _HAPROXY["socket"]),
    "program": Field(fields.path, _HAPROXY["program"]),
    "reload": Field(fields.program, _HAPROXY["reload"]),
    "loaded": Field(fields.optional(fields.path), _HAPROXY["loaded"]),
}

PROXY = {
    "services": Field(list_of(anything, at_least=1), [], required=True),
    "config": Field(fields.path, _PROXY["config"]),
    "socket": Field(fields.socket_path, _PROXY["socket"]),
}

HOSTS = {
    "domain": Field(_domain, required=True),
    "file": Field(fields.path, _HOSTS["file"]),
    "local": Field(fields.optional(fields.path), _HOSTS["local"]),
    "reserved": Field(list_of(word), list(_HOSTS["reserved"])),
}

CONFIGURATION = {
    "api": Field(anything, {}, required=True),
    "nodes": Field(anything, {}),
    "haproxy": Field(anything),
    "proxy": Field(anything),
    "hosts": Field(anything),
    "drain_for": fields.duration(0, DAY, _ALL["drain_for"]),
    "state_file": Field(fields.path, _ALL["state_file"]),
    "status_socket": Field(fields.socket_path, _ALL["status_socket"]),
}


class Parts(NamedTuple):
    """A configuration with its defaults, each part a dict with the keys of its schema."""

    whole: Dict[str, Any]
    api: Dict[str, Any]
    nodes: Dict[str, Any]
    haproxy: Optional[Dict[str, Any]]
    proxy: Optional[Dict[str, Any]]
    hosts: Optional[Dict[str, Any]]


def _read(data: Any, faults: Faults) -> Parts:
    whole = read(CONFIGURATION, data, file.WHOLE, faults)
    api = read(API, whole["api"], "api", faults) if isinstance(data, dict) and "api" in data else dict(_API)
    nodes = read(NODES, whole["nodes"], "nodes", faults)
    haproxy = _balancer(HAPROXY, "haproxy", "backends", BACKEND, whole, faults)
    proxy = _balancer(PROXY, "proxy", "services", TARGET, whole, faults)
    hosts = None if whole["hosts"] is None else read(HOSTS, whole["hosts"], "hosts", faults)
    faults.extend(_together(api, whole))
    return Parts(whole, api, nodes, haproxy, proxy, hosts)


def _balancer(
    schema: Dict[str, Field], key: str, targets: str, target: Dict[str, Field], whole: Dict[str, Any], faults: Faults
) -> Optional[Dict[str, Any]]:
    if whole[key] is None:
        return None
    found = read(schema, whole[key], key, faults)
    found[targets] = [read(target, item, f"{key}.{targets}[{at}]", faults) for at, item in enumerate(found[targets])]
    faults.extend(same_names(found[targets], f"{key}.{targets}"))
    return found


def _together(api: Dict[str, Any], whole: Dict[str, Any]) -> Faults:
    """Return what does not go together although each value is good by itself."""
    faults = []
    if api["certificate"] and api["token"]:
        faults.append("api.certificate and api.token are both set: leave one of them out.")
    if api["key"] and not api["certificate"]:
        faults.append("api.key is set, but no api.certificate: name the certificate that the key belongs to.")
    if all(whole[key] is None for key in ("haproxy", "proxy", "hosts")):
        faults.append(
            f"{file.WHOLE} has neither 'haproxy' nor 'proxy': add the balancer that is to follow, or 'hosts', a file "
            "of names."
        )
    return faults


def _host_answers(found: Parts, path: str, host: Any) -> List[Tuple[str, str, Optional[str]]]:
    """Check the programs that are named on this host. Files of credentials may come later."""
    if not found.haproxy:
        return []
    programs = {"haproxy.program": found.haproxy["program"]}
    if found.haproxy["reload"]:
        programs["haproxy.reload"] = found.haproxy["reload"][0]
    answers = [(place, program, host.program(program, "root")) for place, program in programs.items()]
    return [*answers, (file.WHOLE, path, host.configuration(path))]


def _settings(found: Parts) -> settings.Settings:
    whole = {key: found.whole[key] for key in ("state_file", "status_socket")}
    api = {key: value for key, value in found.api.items() if key != "exec"}
    seconds = {"timeout": fields.microseconds(api["timeout"])}
    patience = {"not_ready_for": fields.microseconds(found.nodes["not_ready_for"])}
    return settings.Settings(
        api=settings.Api(**{**api, "servers": tuple(api["servers"]), **seconds}),
        nodes=settings.Nodes(**{**{key: _tuple(value) for key, value in found.nodes.items()}, **patience}),
        haproxy=settings.Haproxy(**_targets(found.haproxy, "backends")) if found.haproxy else None,
        proxy=settings.Proxy(**_targets(found.proxy, "services")) if found.proxy else None,
        hosts=settings.Hosts(**{key: _tuple(value) for key, value in found.hosts.items()}) if found.hosts else None,
        drain_for=fields.microseconds(found.whole["drain_for"]),
        **whole,
    )


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _targets(balancer: Dict[str, Any], key: str) -> Dict[str, Any]:
    targets = tuple(settings.Target(**{**item, "port": item["port"] or 0}) for item in balancer[key])
    return {**balancer, key: targets}


def kubeconfig(text: str, path: str) -> Faults:
    """Return what to write instead, if a text is a kubeconfig, in YAML or in JSON."""
    instead = (
        "write the URLs of the API servers to api.servers, and the paths of the authorities, the certificate with its "
        "key, or the token to api.ca, api.certificate, api.key or api.token"
    )
    return [f"{path} is a kubeconfig, which the agent does not read: {instead}."] if KUBECONFIG.search(text) else []


def counts(found: settings.Settings) -> List[str]:
    """Say what there is in a configuration."""
    backends = found.haproxy.backends if found.haproxy else ()
    services = found.proxy.services if found.proxy else ()
    return [counted(found.api.servers, "API server"), counted(backends, "backend"), counted(services, "service")]


class Format(file.Format[Parts, settings.Settings]):
    """What reads it, and recognises a kubeconfig."""

    def parse(self, text: str, path: str = file.WHOLE, host: Any = None) -> Tuple[Optional[settings.Settings], Faults]:
        faults = kubeconfig(text, path)
        return (None, faults) if faults else super().parse(text, path, host)


notes = no_notes
FORMAT = Format(_read, _host_answers, _settings)
load, parse = FORMAT.load, FORMAT.parse
