# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VRRP advertisement on the wire: version 2 (RFC 3768) and version 3 (RFC 5798 and RFC 9568), pure functions.

::

    0        1        2         3        4           5         6        8
    | vers,  | VRID   | priority| count  | auth type | seconds | check- | addresses, then 8 bytes of
    | type   |        |         |        | 4 bits 0, centisec. | sum    | authentication data (version 2 only)

A message comes from the network, so ``decode`` never raises for one: it returns the advertisement, or why it must be
discarded. The arguments of ``encode`` come from this program, so there an impossible value is a ``ValueError``.

Addresses are text as ``socket.inet_ntop`` writes it, without a scope. Intervals are microseconds.
"""

from __future__ import annotations

import socket
import struct
from functools import lru_cache
from typing import NamedTuple, Optional, Tuple, Union

PROTOCOL = 112
GROUP, GROUP6 = "224.0.0.18", "ff02::12"
# Sent and required: a host behind a router cannot take part (RFC 9568, 5.1.1.3 and 5.1.2.3).
REQUIRED_HOP_LIMIT = 255

ADVERTISEMENT = 1
NO_AUTHENTICATION, PASSWORD = 0, 1
# One unit of the interval field, and the largest value that fits into it.
SECOND, CENTISECOND = 1_000_000, 10_000
UNITS = {2: (SECOND, 0xFF), 3: (CENTISECOND, 0xFFF)}
# RFC 3768, 5.3.10: present in every version 2 message, even without authentication.
PASSWORD_SIZE = 8  # bytes, all that is compared; RFC 2338, section 5.3.10

RFC3768, RFC5798, RFC9568 = "rfc3768", "rfc5798", "rfc9568"
CHECKSUMS = (RFC3768, RFC5798, RFC9568)

LENGTH = "length"
HOP_LIMIT = "hop_limit"
CARP = "carp"
VERSION = "version"
TYPE = "type"
CHECKSUM = "checksum"
VRID = "vrid"
COUNT = "count"
INTERVAL = "interval"
AUTHENTICATION = "authentication"
REASONS = (LENGTH, HOP_LIMIT, CARP, VERSION, TYPE, CHECKSUM, VRID, COUNT, INTERVAL, AUTHENTICATION)

# The fifth field: the authentication type and the seconds of version 2, the 12 bits of centiseconds of version 3.
_HEADER = struct.Struct("!BBBBHH")


class Advertisement(NamedTuple):
    """One advertisement. ``checksum`` is set by ``decode``: the variant that matches."""

    version: int  # 2 or 3
    vrid: int  # 1 to 255
    priority: int  # 0: resigns; 255: the address owner
    interval: int  # microseconds: version 2 whole seconds up to 255, version 3 centiseconds up to 4095
    addresses: Tuple[str, ...]
    auth_type: int = NO_AUTHENTICATION  # version 2 only
    auth_pass: bytes = b""  # version 2 only, without the NULs that pad it
    checksum: str = ""


class Discard(NamedTuple):
    """Why a message is not an advertisement for us: one of REASONS, and a sentence for the log."""

    reason: str
    detail: str
    advertisement: Optional[Advertisement] = None  # what it says, if only its authentication is unknown


class _Path(NamedTuple):
    """What follows from the source and the destination of a message."""

    family: int
    size: int  # bytes in one address
    pseudo: int  # sum of the pseudo-header's words, but for the length (RFC 8200, 8.1)


def encode(advertisement: Advertisement, source: str, destination: str, checksum: str = RFC5798) -> bytes:
    """The message, without an IP header.

    ``checksum`` chooses between the variants for version 3 over IPv4; elsewhere there is only one.
    Raises ValueError for values that no message can carry.
    """
    path = _path(source, destination)
    _refuse_impossible(advertisement, path, checksum)
    version, vrid, priority, interval, addresses, auth_type, auth_pass, _checksum = advertisement
    first = version << 4 | ADVERTISEMENT
    word = auth_type << 8 | interval // UNITS[version][0]
    message = _HEADER.pack(first, vrid, priority, len(addresses), word, 0)
    message += b"".join(_packed(path.family, address) for address in addresses)
    if version == 2:
        message += auth_pass.ljust(PASSWORD_SIZE, b"\x00")
    total = _sum(message)
    if version == 3 and (path.family == socket.AF_INET6 or checksum != RFC9568):
        total += path.pseudo + len(message)
    return message[:6] + (-total % 0xFFFF).to_bytes(2, "big") + message[8:]


def decode(
    message: bytes,
    source: str,
    destination: str,
    hop_limit: int = REQUIRED_HOP_LIMIT,
    min_hop_limit: int = REQUIRED_HOP_LIMIT,
) -> Union[Advertisement, Discard]:
    """The advertisement in a message without its IP header, or why it must be discarded.

    Never raises for any message; ValueError for a source or destination that is no address, or of two families.
    Bytes after the announced end are Ethernet's padding, and no fault.

    The order is that of RFC 9568, 7.1: first what all else depends on (hop limit, version, type, length), then the
    checksum, and only then values. So a damaged message is counted as damaged, not as a neighbour with a wrong
    setting; and a value is refused only if a router really sent it.
    """
    path = _path(source, destination)
    unreadable = _unreadable(message, path, hop_limit, min_hop_limit)
    if unreadable:
        return unreadable
    first, vrid, priority, count, word, _checksum = _HEADER.unpack_from(message)
    version = first >> 4
    whole, message = message, message[: _length(version, count, path)]
    auth_type = word >> 8 if version == 2 else NO_AUTHENTICATION
    known = auth_type in (NO_AUTHENTICATION, PASSWORD)
    # The length of the data of another type is not known, nor whether padding follows them.
    variant = _checksum_variant(message, version, path) or ("" if known else _checksum_variant(whole, version, path))
    if not variant:
        return Discard(CHECKSUM, f"the checksum is wrong in version {version}, VRID {vrid}, {len(message)} bytes")
    unit, largest = UNITS[version]
    impossible = _impossible(vrid, count, word & largest)
    if impossible:
        return impossible
    end = _HEADER.size + count * path.size
    addresses = tuple(
        socket.inet_ntop(path.family, message[at : at + path.size]) for at in range(_HEADER.size, end, path.size)
    )
    # RFC 3768, 5.3.10: without authentication the data are ignored on receipt.
    auth_pass = message[end:].rstrip(b"\x00") if auth_type == PASSWORD else b""
    interval = (word & largest) * unit
    advertisement = Advertisement(version, vrid, priority, interval, addresses, auth_type, auth_pass, variant)
    if known:
        return advertisement
    # RFC 3768, 5.3.6 leaves 0 alone in use; 1 is RFC 2338's password, which keepalived still has.
    detail = f"unknown authentication type {auth_type} received for VRID {vrid}"
    return Discard(AUTHENTICATION, detail, advertisement)


def mismatch(advertisement: Advertisement, own: Advertisement) -> Optional[Discard]:
    """Why an advertisement of our VRID disagrees with our settings, None if it agrees.

    Version 3 adopts the sender's interval (RFC 9568, 6.4.2), version 2 must discard another one (RFC 3768, 7.1).
    Another list of addresses is logged elsewhere, and never a reason to discard. No sentence shows a password.
    """
    if advertisement.version != own.version:
        return Discard(VERSION, f"version {advertisement.version} received, {own.version} expected")
    if advertisement.auth_type != own.auth_type:
        return Discard(
            AUTHENTICATION, f"authentication type {advertisement.auth_type} received, {own.auth_type} expected"
        )
    if advertisement.auth_pass != own.auth_pass:
        return Discard(AUTHENTICATION, "the password received is not ours")
    if own.version == 2 and advertisement.interval != own.interval:
        received, expected = advertisement.interval // SECOND, own.interval // SECOND
        return Discard(INTERVAL, f"an interval of {received} s received, {expected} s expected")
    return None


def _unreadable(message: bytes, path: _Path, hop_limit: int, min_hop_limit: int) -> Optional[Discard]:
    """Return why a message cannot be read as an advertisement."""
    if len(message) < _HEADER.size:
        return Discard(LENGTH, f"{len(message)} bytes received, the header alone has {_HEADER.size}")
    if hop_limit < min_hop_limit:
        return Discard(HOP_LIMIT, f"TTL or hop limit {hop_limit} received, {min_hop_limit} or more expected")
    if _is_carp(message):
        return Discard(CARP, f"a CARP advertisement of VHID {message[1]}, which shares VRRP's protocol number")
    version, kind, count = message[0] >> 4, message[0] & 0x0F, message[3]
    # Version 2 is for IPv4 only.
    if version not in UNITS or (version == 2 and path.family == socket.AF_INET6):
        return Discard(VERSION, f"version {version} received over {_family_name(path)}")
    # Before the length, because another type may look different behind its first byte.
    if kind != ADVERTISEMENT:
        return Discard(TYPE, f"type {kind} received, only {ADVERTISEMENT} is known")
    announced = _length(version, count, path)
    if len(message) < announced:
        return Discard(LENGTH, f"{len(message)} bytes received, {announced} announced by {count} addresses")
    return None


def _impossible(vrid: int, count: int, interval: int) -> Optional[Discard]:
    """Return which value no router may send, whatever its configuration."""
    if vrid == 0:
        return Discard(VRID, "VRID 0 received, 1 to 255 are possible")
    # Erratum 8299: an advertisement without addresses is to be ignored.
    if count == 0:
        return Discard(COUNT, f"an advertisement without any address received for VRID {vrid}")
    # Erratum 8301: the interval must not be 0.
    if interval == 0:
        return Discard(INTERVAL, f"an interval of 0 received for VRID {vrid}")
    return None


def _is_carp(message: bytes) -> bool:
    """CARP looks like VRRP version 2, but always has 36 bytes, and where VRRP counts its addresses CARP says
    that it has 7 words of authentication. A VRRP message with 7 addresses has 44 bytes."""
    return len(message) == 36 and message[0] == 0x21 and message[3] == 7


def _checksum_variant(message: bytes, version: int, path: _Path) -> str:
    """Return the variant of the checksum that matches, empty if none does."""
    total = _sum(message)
    if version == 2:
        return RFC3768 if _is_valid(total) else ""
    if _is_valid(total + path.pseudo + len(message)):
        return RFC5798
    # RFC 9568, 5.2.8 takes the pseudo-header away from IPv4; RFC 5798, which most routers follow, has it.
    if path.family == socket.AF_INET and _is_valid(total):
        return RFC9568
    return ""


def _sum(data: bytes) -> int:
    """The words of the data summed modulo 0xFFFF: the one's complement sum of RFC 1071. Because 0x10000 is 1 modulo
    0xFFFF, the remainder of one big number is that of its words' sum. Of an odd number of bytes only a sum of 0 is
    right: RFC 1071 appends a zero byte, and that multiplies it by 256.
    """
    return int.from_bytes(data, "big") % 0xFFFF


def _is_valid(total: int) -> bool:
    """Whether a sum with the checksum in it is all ones (RFC 1071, 1), which modulo 0xFFFF is 0."""
    return total % 0xFFFF == 0


def _length(version: int, count: int, path: _Path) -> int:
    return _HEADER.size + count * path.size + (PASSWORD_SIZE if version == 2 else 0)


def _refuse_impossible(advertisement: Advertisement, path: _Path, checksum: str) -> None:
    version, vrid, priority, interval, addresses, auth_type, auth_pass, _checksum = advertisement
    if version not in UNITS:
        raise ValueError(f"there is no VRRP version {version}")
    if version == 2 and path.family == socket.AF_INET6:
        raise ValueError("VRRP version 2 knows no IPv6")
    if not 1 <= vrid <= 255:
        raise ValueError(f"a VRID is 1 to 255, not {vrid}")
    if not 0 <= priority <= 255:
        raise ValueError(f"a priority is 0 to 255, not {priority}")
    unit, largest = UNITS[version]
    if interval % unit or not 1 <= interval // unit <= largest:
        raise ValueError(f"the interval of version {version} is 1 to {largest} times {unit} us, not {interval} us")
    if not 1 <= len(addresses) <= 255:
        raise ValueError(f"an advertisement has 1 to 255 addresses, not {len(addresses)}")
    if checksum not in CHECKSUMS:
        raise ValueError(f"the checksum is one of {', '.join(CHECKSUMS)}, not {checksum}")
    _refuse_impossible_authentication(version, auth_type, auth_pass)


def _refuse_impossible_authentication(version: int, auth_type: int, auth_pass: bytes) -> None:
    """The sentences do not show the password: they may end up in a log."""
    if auth_type not in (NO_AUTHENTICATION, PASSWORD):
        raise ValueError(f"an authentication type is {NO_AUTHENTICATION} or {PASSWORD}, not {auth_type}")
    if version == 3 and auth_type != NO_AUTHENTICATION:
        raise ValueError("VRRP version 3 has no authentication")
    if auth_pass and auth_type == NO_AUTHENTICATION:
        raise ValueError("a password without authentication would not be sent")
    if len(auth_pass) > PASSWORD_SIZE or auth_pass.endswith(b"\x00"):
        raise ValueError(f"a password has at most {PASSWORD_SIZE} bytes and does not end in a NUL")


# Bounded, because sources come from the network; and large enough for every router on a link.
@lru_cache(maxsize=256)
def _path(source: str, destination: str) -> _Path:
    family = socket.AF_INET6 if ":" in source else socket.AF_INET
    ends = _packed(family, source) + _packed(family, destination)
    return _Path(family, len(ends) // 2, _sum(ends) + PROTOCOL)


def _packed(family: int, address: str) -> bytes:
    try:
        return socket.inet_pton(family, address)
    except OSError:
        expected = "IPv6" if family == socket.AF_INET6 else "IPv4"
        raise ValueError(f"{address} is not an {expected} address") from None


def _family_name(path: _Path) -> str:
    return "IPv6" if path.family == socket.AF_INET6 else "IPv4"
