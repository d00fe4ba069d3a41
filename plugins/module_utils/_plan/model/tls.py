# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How HAProxy ends the TLS of a service: what may be said of it, and what a `bind` line makes of that. Pure."""

from __future__ import annotations

from typing import Any, Iterator, List, Mapping

from ..._agent.config.schema import Field, boolean, list_of, port, repeated
from ..._shared import quoting
from .values import Checked, optional, path, protocol

HTTPS_PORT = 443  # to which a redirect leads


def certificates(value: Any) -> Checked:
    """A file with a certificate, a folder of them, or a list of both."""
    if not isinstance(value, list):
        found, wrong = path(value)
        return (None, wrong) if wrong else ([found], None)
    found, wrong = list_of(path, at_least=1)(value)
    twice = repeated([each.rstrip("/") for each in found or []])
    return (None, f"{twice[0]} is there twice: name it once.") if twice else (found, wrong)


# The names of the files are words of haproxy.cfg.
TLS = {
    "certificate": Field(certificates, [], required=True),
    "key": Field(optional(path), ""),
    "strict_sni": Field(boolean, False),
    "ca": Field(optional(path), ""),
    "alpn": Field(list_of(protocol), []),
    "redirect": Field(port),
}


def faults(service: Mapping[str, Any], place: str) -> Iterator[str]:
    """Yield what does not go together."""
    tls = service["tls"]
    shown = tls["certificate"]
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
    if tls["redirect"] and service["port"] != HTTPS_PORT:
        yield f"{place}.redirect leads to port {HTTPS_PORT}, and the service has port {service['port']}: leave it out."


def words(tls: Mapping[str, Any]) -> List[str]:
    """Return what a `bind` line says of TLS."""
    found = ["ssl", *(f"crt {quoting.haproxy(each)}" for each in tls["certificate"])]
    found += ["strict-sni"] if tls["strict_sni"] else []
    found += [f"verify required ca-file {quoting.haproxy(tls['ca'])}"] if tls["ca"] else []
    return [*found, *([f"alpn {','.join(tls['alpn'])}"] if tls["alpn"] else [])]
