# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""When a certificate or a list of revoked ones expires (RFC 5280, 4.1 and 5.1), and which certificate it is. Pure;
Python's ssl shows this of connections alone.
"""

from __future__ import annotations

import base64
import calendar
import hashlib
import re
from typing import List, NamedTuple, Optional

PEM = re.compile(r"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)
REVOKED = re.compile(r"-----BEGIN X509 CRL-----(.*?)-----END X509 CRL-----", re.DOTALL)
VERSION, INTEGER = 0xA0, 0x02
UTC_TIME, GENERALIZED_TIME = 0x17, 0x18
TIME = re.compile(r"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z")
LONG = 0x80  # a length of several bytes
BESIDE = (".key", ".ocsp", ".issuer", ".sctl")  # how files end that haproxy reads beside a certificate


class Item(NamedTuple):
    """An item of DER."""

    tag: int
    content: bytes


def expires(text: str) -> Optional[int]:
    """Return when the first certificate in PEM expires, in seconds since 1970; None if there is none."""
    try:
        return _not_after(_der(text))
    except (ValueError, IndexError):
        return None


def next_update(text: str) -> Optional[int]:
    """Return when the first of some lists of revoked certificates in PEM expires; None if that is not known."""
    try:
        known = [_next_update(base64.b64decode(found)) for found in REVOKED.findall(text)]
    except (ValueError, IndexError):
        return None
    return min((at for at in known if at is not None), default=None)


def fingerprint(text: str) -> str:
    """Return the SHA-1 of the first certificate in PEM, as OpenSSL prints it without its colons; '' without one."""
    try:
        der = _der(text)
    except ValueError:
        return ""
    return hashlib.sha1(der).hexdigest().upper()  # noqa: S324 - that is what haproxy shows


def _der(text: str) -> bytes:
    """Return the first certificate. Raises ValueError."""
    found = PEM.search(text)
    if not found:
        raise ValueError("there is none")
    return base64.b64decode(found[1])  # binascii.Error is one


def _not_after(der: bytes) -> int:
    (certificate,) = _items(der)[:1]
    fields = _items(_items(certificate.content)[0].content)
    # The version may be left out. Then: the serial number, the algorithm, the issuer, the validity.
    validity = fields[4 if fields[0].tag == VERSION else 3]
    return _seconds(_items(validity.content)[1])


def _next_update(der: bytes) -> Optional[int]:
    (revoked,) = _items(der)[:1]
    fields = _items(_items(revoked.content)[0].content)
    # The version may be left out. Then: the algorithm, the issuer, this update, and the next one, which may be, too.
    following = fields[4 if fields[0].tag == INTEGER else 3 :][:1]
    return _seconds(following[0]) if following and following[0].tag in (UTC_TIME, GENERALIZED_TIME) else None


def _seconds(time: Item) -> int:
    digits = time.content.decode("ascii")
    if time.tag == UTC_TIME:
        digits = ("19" if digits[:2] >= "50" else "20") + digits
    found = TIME.fullmatch(digits)
    if not found or time.tag not in (UTC_TIME, GENERALIZED_TIME):
        raise ValueError(digits)
    return calendar.timegm(tuple(int(part) for part in found.groups()))


def _items(data: bytes) -> List[Item]:
    """Return the items that follow each other."""
    found = []
    while data:
        size, begin = data[1], 2
        if size & LONG:
            begin += size & ~LONG
            size = int.from_bytes(data[2:begin], "big")
        found.append(Item(data[0], data[begin : begin + size]))
        data = data[begin + size :]
    return found
