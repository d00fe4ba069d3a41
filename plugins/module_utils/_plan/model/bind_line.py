# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a service's `bind` lines say behind the address, which no key of the agent's has: HAProxy's options. Pure."""

from __future__ import annotations

import shlex
from typing import Any, Collection, Dict, Iterator, List, Mapping, Sequence

from ..._agent.config.schema import list_of
from ..._shared import quoting
from . import tls, tls_profiles
from .line_words import LINE_WORDS, of_networks
from .values import OPTION, Checked, quotable

# Options that a key of the service renders.
OF_KEYS = {
    **dict.fromkeys(("ssl", "crt"), "tls.certificate"),
    "strict-sni": "tls.strict_sni",
    "alpn": "tls.alpn",
    "verify": "tls.verify",
    "ca-file": "tls.ca",
    "crl-file": "tls.crl",
    "ssl-min-ver": "tls.min_version",
    **{word: f"tls.{word}" for word in ("ciphers", "ciphersuites")},
    **dict.fromkeys(("v4v6", "v6only"), "bind"),
}
UNFIT = {
    "id": "each address of the service would get the same number",
    "ocsp-update": "HAProxy refuses the line: ocsp-update.mode in haproxy_global_lines is for all certificates",
    "namespace": "the VIPs are in the host's own namespace",
}
INTERFACE = "interface"
TOLD = (
    "{name}: tls.profile is {profile} by default, and HAProxy's own versions and ciphers have applied until now. "
    "Clients below TLS 1.2 or without forward secrecy can no longer connect. To keep that as it was, set tls.profile "
    "to {none}."
)
BEHIND_PROXY = frozenset(("accept-proxy", "accept-netscaler-cip"))


def bind_option(value: Any) -> Checked:
    """An option of haproxy's for `bind`, with its arguments. Haproxy itself judges which there are."""
    if not (isinstance(value, str) and OPTION.match(value)):
        return None, "an HAProxy option with its arguments is required, such as 'maxconn 100'."
    _found, wrong = quotable(quoting.haproxy_words)(value)
    for word in [] if wrong else shlex.split(value):
        if word in OF_KEYS:
            return None, f"{word} is said by {OF_KEYS[word]} of the service: leave it out here, and set that."
        if word in UNFIT:
            return None, f"with {word} {UNFIT[word]}: leave it out."
    return (None, wrong) if wrong else (value, None)


bind_options = list_of(bind_option)  # whose arguments are no secrets


def link(service: Mapping[str, Any]) -> str:
    """Return the interface on which alone a service listens, '' for all. The host itself never comes in there, not even
    by its own VIP.
    """
    given = _words(service)
    return next((given[at + 1] for at, word in enumerate(given[:-1]) if word == INTERFACE), "")


def expected(listener: Mapping[str, Any]) -> Dict[str, Any]:
    """Return what `layout_info` must find of a service, or of what else listens."""
    found = {"name": listener["name"], "port": listener["port"]}
    return {**found, "from_outside": True} if link(listener) else found


def is_behind_proxy(service: Mapping[str, Any]) -> bool:
    """Return whether a service serves nobody whose connection does not begin with the header of a proxy."""
    return not BEHIND_PROXY.isdisjoint(_words(service))


def _words(service: Mapping[str, Any]) -> List[str]:
    return [word for option in service.get("bind_options", ()) for word in shlex.split(option)]


def faults(service: Mapping[str, Any], place: str) -> Iterator[str]:
    """Yield what does not go together."""
    number = sum(len(shlex.split(each)) for each in [*_of_tls(service), *service["bind_options"]])
    if number > LINE_WORDS - len(("bind", "ADDRESS", "v6only")):
        yield (
            f"{place} has {number} words for its bind line, and HAProxy reads {LINE_WORDS} of a line: name a folder of "
            "certificates in place of many, or leave options out."
        )
    if service["accept_proxy"] and is_behind_proxy(service):
        yield (
            f"{place}.accept_proxy names who sends the header of a proxy, and by bind_options everybody has to: leave "
            "one of them out."
        )


def clients(service: Mapping[str, Any]) -> List[str]:
    """Return the networks that may connect; none for everybody. Behind a proxy are other clients than itself."""
    return [*service["allow"], *service.get("accept_proxy", ())] if service["allow"] else []


def admission(service: Mapping[str, Any]) -> List[str]:
    """Return the rules of who connects: who a client is, is only known once the header of its proxy has been read."""
    stage = "session" if service["accept_proxy"] else "connection"
    rules = {
        "accept_proxy": "tcp-request connection expect-proxy layer4 if",
        "allow": f"tcp-request {stage} reject unless",
    }
    asked = [(key, rule) for key, rule in rules.items() if service[key]]
    return [line for key, rule in asked for line in of_networks(rule, service[key], f"onprem_{key}")]


def _profile(service: Mapping[str, Any], global_lines: Sequence[str]) -> str:
    given = service["tls"]
    return tls_profiles.of_service(given["profile"], tls.own(given), _words(service), global_lines) if given else ""


def _of_tls(service: Mapping[str, Any], global_lines: Sequence[str] = ()) -> List[str]:
    return tls.words(service["tls"], _profile(service, global_lines)) if service["tls"] else []


def told(service: Mapping[str, Any], global_lines: Sequence[str], unrestricted: Collection[str]) -> List[str]:
    """Return what clients notice of the default profile where no profile has been in force.

    :param unrestricted: the frontends that run without, as `host_info` returns them
    """
    profile, name = _profile(service, global_lines), service["frontend_name"] or service["name"]
    is_new = profile and not service["tls"]["profile"] and name in unrestricted
    return [TOLD.format(name=service["name"], profile=profile, none=tls_profiles.NONE)] if is_new else []


def words(service: Mapping[str, Any], global_lines: Sequence[str]) -> Dict[str, Any]:
    """Return what the template writes of the addresses of the service, TLS first, and of those of its redirect."""
    options = list(map(quoting.haproxy_words, service["bind_options"]))
    return {
        "bind_words": [*_of_tls(service, global_lines), *options],
        "redirect_words": options,
        "guideline": tls.guideline(_profile(service, global_lines)),
        "admission": admission(service),
    }
