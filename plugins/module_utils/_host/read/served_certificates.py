# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether the certificates that servers serve now are valid for the names that their clients use.

Python decodes only a certificate that it has verified, and the authority of a cluster is not known here. So the names
are read from the DER encoding (X.690) of the extension subjectAltName (RFC 5280 section 4.2.1.6).
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from . import in_time

API_PORT = 6443
TIMEOUT = 2.0  # seconds, for all of them

SEQUENCE, OBJECT_ID, OCTETS, EXTENSIONS = 0x30, 0x06, 0x04, 0xA3
DNS_NAME, IP_ADDRESS = 0x82, 0x87  # of a GeneralName
SUBJECT_ALT_NAME = bytes((0x55, 0x1D, 0x11))  # 2.5.29.17


class Question(NamedTuple):
    """A server, and a name or an address by which clients reach it."""

    address: str
    port: int
    name: str


def uncovered(servers: Any, names: List[str]) -> List[Dict[str, str]]:
    """Return ``{server, name}`` for each name that the certificate of a server lacks; none of one that is silent.

    :param servers: as the user wrote them
    """
    asked = [Question(address, port, name) for address, port in _places(servers) for name in names]
    served = in_time.answers(_serves, asked, TIMEOUT)
    return [{"server": each.address, "name": each.name} for each in asked if served.get(each) is False]


def _places(servers: Any) -> Iterator[Tuple[str, int]]:
    for server in servers if isinstance(servers, list) else []:
        given = server if isinstance(server, dict) else {"address": server}
        address, port = given.get("address"), str(given.get("port") or API_PORT)
        if isinstance(address, str) and port.isdigit():
            yield address, int(port)


def _serves(question: Question) -> Optional[bool]:
    """Return whether the certificate for a name is valid for it; None where nothing answers in TLS."""
    try:
        names = subject_alt_names(_served(question))
    except (OSError, ValueError):
        return None
    return any(is_for(name, question.name) for name in names)


def _served(question: Question) -> bytes:
    """Return the certificate that is served for a name, which need not be valid."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    plain = socket.create_connection((question.address, question.port), TIMEOUT)
    with plain, context.wrap_socket(plain, server_hostname=question.name) as tls:
        return tls.getpeercert(binary_form=True) or b""


def is_for(own: str, name: str) -> bool:
    """Whether a name of a certificate is the one that a client uses (RFC 6125 section 6.4)."""
    try:
        return ipaddress.ip_address(own) == ipaddress.ip_address(name)
    except ValueError:
        own, name = own.lower(), name.lower()
    return own == name or (own.startswith("*.") and own[2:] == name.partition(".")[2])


def subject_alt_names(certificate: bytes) -> List[str]:
    """Return the DNS names and the addresses of a certificate in DER. What is none raises ValueError."""
    found = [name for extension in _extensions(certificate) for name in _alt_names(extension)]
    return [str(ipaddress.ip_address(value)) if tag == IP_ADDRESS else value.decode("ascii") for tag, value in found]


def _extensions(certificate: bytes) -> Iterator[bytes]:
    for whole in _inside(certificate, SEQUENCE):
        for signed in list(_inside(whole, SEQUENCE))[:1]:  # then come the algorithm and the signature
            for extensions in _inside(signed, EXTENSIONS):
                for sequence in _inside(extensions, SEQUENCE):
                    yield from _inside(sequence, SEQUENCE)


def _alt_names(extension: bytes) -> Iterator[Tuple[int, bytes]]:
    if SUBJECT_ALT_NAME in _inside(extension, OBJECT_ID):
        for value in _inside(extension, OCTETS):
            for names in _inside(value, SEQUENCE):
                yield from (each for each in _elements(names) if each[0] in (DNS_NAME, IP_ADDRESS))


def _inside(data: bytes, tag: int) -> Iterator[bytes]:
    """Yield the contents of the elements with a tag."""
    return (content for found, content in _elements(data) if found == tag)


def _elements(data: bytes) -> Iterator[Tuple[int, bytes]]:
    """Yield the tag and the content of each element, one after the other."""
    at = 0
    while at < len(data):
        tag, length, at = data[at], *_length(data, at + 1)
        if at + length > len(data):
            raise ValueError("an element is longer than what contains it.")
        yield tag, data[at : at + length]
        at += length


def _length(data: bytes, at: int) -> Tuple[int, int]:
    """Return an element's length and where its content begins. From 128 on, the first byte counts the length's own."""
    first = data[at] if at < len(data) else 0x80
    if first < 0x80:
        return first, at + 1
    size = first & 0x7F
    if not 0 < size <= 4 or at + size >= len(data):
        raise ValueError("an element has no length.")
    return int.from_bytes(data[at + 1 : at + 1 + size], "big"), at + 1 + size
