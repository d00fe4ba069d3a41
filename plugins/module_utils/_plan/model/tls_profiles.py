# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The configurations of Mozilla's server side TLS guidelines, as HAProxy has them on a `bind` line. Pure."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Sequence

from ..._shared import tls_words

GUIDELINES = "5.7"
DEFAULT, NONE = "intermediate", "none"  # the latter leaves it to HAProxy, and to its ssl-default-bind lines
VERSIONS = ("TLSv1.0", "TLSv1.1", "TLSv1.2", "TLSv1.3")


class Profile(NamedTuple):
    """One of them.

    :ivar prefers_clients: whether a client's order of ciphers counts, and not that of the server
    """

    min_version: str
    ciphers: Sequence[str] = ()  # up to TLS 1.2
    prefers_clients: bool = True


CIPHERSUITES = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")  # of TLS 1.3
INTERMEDIATE = (
    *("ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
    *("ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384"),
    *("ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305"),
    *("DHE-RSA-AES128-GCM-SHA256", "DHE-RSA-AES256-GCM-SHA384", "DHE-RSA-CHACHA20-POLY1305"),
)
OLD = (
    "@SECLEVEL=0",  # without which OpenSSL 3 has neither TLS 1.0 nor TLS 1.1
    *INTERMEDIATE,
    *("ECDHE-ECDSA-AES128-SHA256", "ECDHE-RSA-AES128-SHA256", "ECDHE-ECDSA-AES128-SHA", "ECDHE-RSA-AES128-SHA"),
    *("ECDHE-ECDSA-AES256-SHA384", "ECDHE-RSA-AES256-SHA384", "ECDHE-ECDSA-AES256-SHA", "ECDHE-RSA-AES256-SHA"),
    *("DHE-RSA-AES128-SHA256", "DHE-RSA-AES256-SHA256", "AES128-GCM-SHA256", "AES256-GCM-SHA384"),
    *("AES128-SHA256", "AES256-SHA256", "AES128-SHA", "AES256-SHA", "DES-CBC3-SHA"),
)
PROFILES: Dict[str, Profile] = {
    "modern": Profile("TLSv1.3"),
    "intermediate": Profile("TLSv1.2", INTERMEDIATE),
    "old": Profile("TLSv1.0", OLD, prefers_clients=False),
}


def words(profile: str, min_version: str, ciphers: str, ciphersuites: str) -> List[str]:
    """Return what a `bind` line says; each is '' for what the profile has, or HAProxy without one."""
    known = PROFILES.get(profile)
    said = {
        "ssl-min-ver": min_version or (known.min_version if known else ""),
        "ciphers": ciphers or ":".join(known.ciphers if known else ()),
        "ciphersuites": ciphersuites or ":".join(CIPHERSUITES if known else ()),
    }
    found = [f"{word} {value}" for word, value in said.items() if value]
    return [*found, *(["prefer-client-ciphers"] if known and known.prefers_clients else [])]


def of_service(profile: str, own: Sequence[str], options: Sequence[str], global_lines: Sequence[str]) -> str:
    """Return the profile of a service, '' for none: one that says anything itself has no default.

    :param own: its versions and ciphers
    :param options: the words of its options of `bind`
    """
    if profile or any(own) or tls_words.are_in(options) or tls_words.are_for_all(global_lines):
        return "" if profile == NONE else profile
    return DEFAULT


def is_below(min_version: str, profile: str) -> bool:
    """Return whether a version is older than the oldest of a profile."""
    known = PROFILES.get(profile)
    return bool(known and min_version and VERSIONS.index(min_version) < VERSIONS.index(known.min_version))
