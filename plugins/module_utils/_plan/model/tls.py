# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How HAProxy ends the TLS of a service: what may be said of it, and what a `bind` line makes of that. Pure."""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, Mapping

from ..._agent.config.schema import Faults, Field, boolean, list_of, one_of, port, read, refused, repeated
from ..._agent.proxy.settings import HTTP
from ..._shared import quoting
from . import tls_content, tls_profiles
from .values import Checked, optional, path, protocol

ALPN = ("h2", "http/1.1", "http/1.0")  # what HAProxy speaks behind TLS in mode http
VERIFY = REQUIRED, OPTIONAL = "required", "optional"  # a client's certificate
HTTPS_PORT = 443  # to which a redirect leads
CIPHERS = re.compile(r"[A-Za-z0-9!@+-][A-Za-z0-9_=@!+:-]*")
CIPHERSUITES = re.compile(r"TLS_[A-Z0-9_]+(:TLS_[A-Z0-9_]+)*")


def certificates(value: Any) -> Checked:
    """A file with a certificate, a folder of them, or a list of both."""
    if not isinstance(value, list):
        found, wrong = path(value)
        return (None, wrong) if wrong else ([found], None)
    found, wrong = list_of(path, at_least=1)(value)
    twice = repeated([each.rstrip("/") for each in found or []])
    return (None, f"{twice[0]} is there twice: name it once.") if twice else (found, wrong)


def ciphers(value: Any) -> Checked:
    """Ciphers up to TLS 1.2, as OpenSSL writes them."""
    if isinstance(value, str) and CIPHERS.fullmatch(value):
        return value, None
    return None, "ciphers as OpenSSL lists them are required, such as ECDHE-RSA-AES128-GCM-SHA256:!SHA1."


def ciphersuites(value: Any) -> Checked:
    """Ciphers of TLS 1.3, as OpenSSL writes them."""
    if isinstance(value, str) and CIPHERSUITES.fullmatch(value):
        return value, None
    return None, "ciphers of TLS 1.3 are required, such as TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384."


# The names of the files are words of haproxy.cfg.
TLS = {
    "certificate": Field(certificates, []),
    "content": Field(tls_content.contents, [], secret=True),
    "key": Field(optional(path), ""),
    "strict_sni": Field(boolean, False),
    "ca": Field(optional(path), ""),
    "verify": Field(one_of(*VERIFY), VERIFY[0]),
    "crl": Field(optional(path), ""),
    "alpn": Field(list_of(protocol), []),
    "profile": Field(optional(one_of(*tls_profiles.PROFILES, tls_profiles.NONE)), ""),
    "min_version": Field(optional(one_of(*tls_profiles.VERSIONS)), ""),
    "ciphers": Field(optional(ciphers), ""),
    "ciphersuites": Field(optional(ciphersuites), ""),
    "redirect": Field(port),
}


def read_tls(service: Dict[str, Any], place: str, faults: Faults) -> None:
    """Read what a service says of TLS in place. A certificate whose text it has is one in a file from here on."""
    given = service["tls"]
    tls = service["tls"] = read(TLS, given, place, faults)
    is_refused = not isinstance(given, dict) or refused(faults, place, "certificate", "content")
    if not (tls["certificate"] or tls["content"] or is_refused):
        faults.append(f"{place} lacks 'certificate': add it, or content.")
    faults.extend(_faults(service, place, faults))
    own = [tls_content.path_of(service["name"], text) for text in tls["content"]]
    tls["certificate"] = [*tls["certificate"], *own]


def _faults(service: Mapping[str, Any], place: str, wrong: Faults) -> Iterator[str]:
    """Yield what does not go together.

    :param wrong: what is wrong with the values themselves
    """
    tls = service["tls"]
    shown = tls["certificate"]
    if tls["content"] and shown:
        yield f"{place}.certificate and content are both set: leave one of them out."
    if tls["content"] and tls["key"]:
        yield f"{place}.key is {tls['key']}, and content has the key: leave key out."
    if tls["key"] and len(shown) > 1:
        yield (
            f"{place}.key is {tls['key']}, and there are several certificates: leave it out, and have each key in its "
            "certificate's file or beside it."
        )
    elif tls["key"] and shown and tls["key"] != f"{shown[0]}.key":
        yield (
            f"{place}.key is {tls['key']}: HAProxy reads the key from the certificate's file, or from {shown[0]}.key: "
            "rename it, or leave it out where the certificate's file has it."
        )
    strange = [each for each in tls["alpn"] if each not in ALPN and service["mode"] == HTTP]
    if strange:
        yield (
            f"{place}.alpn has {strange[0]!r}, which HAProxy does not speak in mode http: name some of "
            f"{', '.join(ALPN)}, or set mode to tcp."
        )
    if not (tls["ca"] or refused(wrong, place, "ca")) and (tls["crl"] or tls["verify"] != REQUIRED):
        key = "crl" if tls["crl"] else "verify"
        yield f"{place}.{key} is {tls[key]}, and no client needs a certificate: set ca, or leave {key} out."
    if tls_profiles.is_below(tls["min_version"], tls["profile"]):
        least = tls_profiles.PROFILES[tls["profile"]].min_version
        yield (
            f"{place}.min_version is {tls['min_version']}, and the profile {tls['profile']} begins with {least}: "
            "leave it out, or choose an older profile."
        )
    if tls["redirect"] and service["port"] not in (None, HTTPS_PORT):
        yield f"{place}.redirect leads to port {HTTPS_PORT}, and the service has port {service['port']}: leave it out."


def words(tls: Mapping[str, Any], profile: str) -> List[str]:
    """Return what a `bind` line says of TLS.

    :param profile: as `tls_profiles.of_service` returns it
    """
    found = ["ssl", *(f"crt {quoting.haproxy(each)}" for each in tls["certificate"])]
    found += ["strict-sni"] if tls["strict_sni"] else []
    found += [f"verify {tls['verify']} ca-file {quoting.haproxy(tls['ca'])}"] if tls["ca"] else []
    found += [f"crl-file {quoting.haproxy(tls['crl'])}"] if tls["crl"] else []
    found += [f"alpn {','.join(tls['alpn'])}"] if tls["alpn"] else []
    return found + tls_profiles.words(profile, *own(tls))


def own(tls: Mapping[str, Any]) -> List[str]:
    """Return what a service itself says of versions and ciphers; each is '' for nothing."""
    return [tls[key] for key in ("min_version", "ciphers", "ciphersuites")]


def guideline(profile: str) -> str:
    """Return where that is from."""
    return f"Mozilla's server side TLS, guidelines {tls_profiles.GUIDELINES}, {profile}." if profile else ""
