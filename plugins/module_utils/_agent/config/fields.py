# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Checks of values in the agent's configuration, for ``schema.Field``. Pure, and none of them raises."""

from __future__ import annotations

import ipaddress
import re
import socket
from typing import Any, Callable, Optional, Tuple

from . import shell_words
from .schema import Field, ip_address, number, text, word

Checked = Tuple[Any, Optional[str]]

MILLION = 1_000_000

MAX_INTERFACE_LENGTH = 15  # IFNAMSIZ, with its NUL
MAX_SOCKET_PATH = 107  # sun_path, with its NUL
MAX_URL_PATH = 8000  # octets that every server should take, RFC 9110 section 4.1; haproxy's buffer has 16384
SCOPED = "leave out the % and what follows, the interface is known."
STATUSES = re.compile(r"([1-5][0-9]{2})(?:-([1-5][0-9]{2}))?", re.ASCII)
UNREACHABLE = "no host can be reached at that address."


def optional(check: Callable[[Any], Checked]) -> Callable[[Any], Checked]:
    """Nothing, written as '', or what passes a check."""
    return lambda value: ("", None) if value == "" else check(value)


def duration(low: float, high: float, default: int) -> Field:
    """A duration in seconds; the default is in microseconds, as in the settings."""
    seconds = default / MILLION
    return Field(number(low, high, " seconds"), int(seconds) if seconds.is_integer() else seconds)


def microseconds(seconds: float) -> int:
    return round(seconds * MILLION)


def interface(value: Any) -> Checked:
    found, wrong = word(value)
    if not wrong and len(found) > MAX_INTERFACE_LENGTH:
        return None, f"an interface's name has at most {MAX_INTERFACE_LENGTH} characters."
    return found, wrong


def address(value: Any) -> Checked:
    """An address as the kernel writes it: the two are compared as text."""
    if "%" in str(value):
        return None, SCOPED
    try:
        return as_the_kernel_writes(ip_address(str(value))), None
    except ValueError:
        return None, "an IPv4 or IPv6 address is required."


def reachable(ip: Any) -> bool:
    impossible = ip.is_multicast or ip.is_loopback or ip.is_unspecified or str(ip) == "255.255.255.255"
    return not impossible and not (ip.version == 6 and ip.ipv4_mapped)


def as_the_kernel_writes(ip: Any) -> str:
    return socket.inet_ntop(socket.AF_INET6 if ip.version == 6 else socket.AF_INET, ip.packed)


def network(value: Any) -> Checked:
    """A network whose hosts may connect; a single address is one, too."""
    try:
        found = ipaddress.ip_network(value if isinstance(value, str) and "%" not in value else "")
    except ValueError:
        return None, "a network such as 192.0.2.0/24, or an address, is required."
    if not found.prefixlen:
        return None, "that is every address: name the networks that are meant, or leave all of them out."
    return str(found.network_address if found.prefixlen == found.max_prefixlen else found), None


def program(value: Any) -> Checked:
    """A program and its arguments, as a list or as a shell would split it; no shell runs it."""
    try:
        words = shell_words.split(value) if isinstance(value, str) else value
    except shell_words.Unfinished as error:
        return None, str(error)
    if not isinstance(words, list) or not words or not all(isinstance(item, str) for item in words):
        return None, "a program and its arguments are required."
    if not all(item.isprintable() for item in words):
        return None, "printable characters are required."
    if not words[0].startswith("/"):
        return None, "write the program's absolute path."
    return tuple(words), None


def process(value: Any) -> Checked:
    """The name of a process."""
    found, wrong = text(value)
    if wrong or not found.isprintable() or not found.strip() or "/" in found:
        return None, "the name of a program, without its directory, is required."
    return found, None


def path(value: Any) -> Checked:
    """A file's absolute path."""
    if isinstance(value, str) and value.isprintable() and value.startswith("/"):
        return value, None
    return None, "an absolute path is required."


def socket_path(value: Any) -> Checked:
    found, wrong = path(value)
    if not wrong and len(found.encode()) > MAX_SOCKET_PATH:
        return None, f"the path of a socket has at most {MAX_SOCKET_PATH} bytes."
    return found, wrong


def url_path(value: Any) -> Checked:
    """A path for the first line of an HTTP request."""
    if (
        isinstance(value, str)
        and value.startswith("/")
        and value.isascii()
        and value.isprintable()
        and not set(value) & {" ", "#"}
    ):
        if len(value) > MAX_URL_PATH:
            return None, f"a path of at most {MAX_URL_PATH} characters is required."
        return value, None
    return None, "a URL path is required: it begins with / and has neither spaces nor #."


def statuses(value: Any) -> Checked:
    """The HTTP statuses that are a success: codes and ranges, or one of them without a list; returned as texts."""
    given = [str(each) for each in (value if isinstance(value, list) else [value])]
    parts = [STATUSES.fullmatch(each) for each in given]
    if not given or not all(part and int(part[1]) <= int(part[2] or part[1]) for part in parts):
        return None, "codes from 100 to 599 and ranges of them are required, such as 200, [200, 401] or ['200-399']."
    return given, None
