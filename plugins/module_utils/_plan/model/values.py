# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Checks for ``schema.Field`` of values that haproxy, keepalived or a shell in a unit would refuse or misread."""

from __future__ import annotations

import posixpath
import re
from typing import Any, Callable, Optional, Tuple

from ..._agent.config.schema import address, lines, list_of, port, shown_of, text
from ..._agent.proxy import config as proxy_config
from ..._agent.vrrp import config
from ..._shared import quoting

Checked = Tuple[Any, Optional[str]]

interface = config.INSTANCE["interface"].check

UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86400}  # of haproxy's times, in seconds
TIME = re.compile(r"([0-9]{1,12})(us|ms|s|m|h|d|)")
LONGEST = 2147483.647  # seconds, some 24 days: haproxy counts milliseconds in 31 bits
TEXTFILE = ".prom"
PLAIN_PATH = re.compile(r"(/(?!\.\.?(/|$))[\w.-]+)+", re.ASCII)
# A sample of HAProxy's with its converters, as one word that needs no quotes.
ARGUMENTS = r"(\([\w.:/-]*(,[\w.:/-]*)*\))?"
SAMPLE = rf"[a-z][\w.]*{ARGUMENTS}(,[a-z][\w.]*{ARGUMENTS})*"
BALANCE = re.compile(
    rf"(roundrobin|static-rr|leastconn|first|source|hash {SAMPLE}|(random|rdp-cookie)(\([\w.-]+\))?|hdr\([\w.-]+\)"
    r"( use_domain_only)?|uri( (whole|path-only|(len|depth) \d+))*|url_param [\w.-]+( check_post( \d+)?)?)",
    re.ASCII,
)
HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,252})", re.ASCII)
DNS_LABEL = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
DNS_NAME = re.compile(rf"({DNS_LABEL}\.)+(?!\d){DNS_LABEL}", re.ASCII)
LONGEST_NAME = 253  # characters, RFC 1035 section 2.3.4 without the last dot
DNS_PORT = 53
WITH_PORT = re.compile(r"(?:([^:\[\]]+)|\[([^\[\]]+)\]):([0-9]{1,5})", re.ASCII)
OPTION = re.compile(r"[a-z][a-z0-9-]*(?=\s|$)", re.ASCII)
OWN_KEYS = ("weight", "maxconn", "backup")  # of a server in the model, which haproxy has as options
PROTOCOL = re.compile(r"[a-z][a-z0-9./-]{0,30}", re.ASCII)
PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+:~=*_-]*")
VOLATILE = ("/run", "/var/run")  # which are empty after a reboot
OF_KERNEL = ("/dev", "/proc", "/sys")  # whose files are none that a program writes
SHARED = ("/tmp", "/var/tmp", "/dev/shm")  # in which every user may create files


def seconds(value: Any) -> Checked:
    """A time as it is written in haproxy.cfg; returned in seconds."""
    found = None if isinstance(value, bool) else TIME.fullmatch(str(value))
    if not found:
        return None, "a time such as 500ms, 30s or 1h is required."
    if not found.group(2):  # which HAProxy takes for milliseconds
        return None, f"a time without a unit: write {found.group(1)}s, or {found.group(1)}ms."
    number = int(found.group(1)) * UNITS[found.group(2)]
    return (int(number) if float(number).is_integer() else number), None


def time(value: Any) -> Checked:
    """A time for haproxy.cfg itself, returned as it is written."""
    found, wrong = seconds(value)
    if not wrong and found > LONGEST:
        wrong = "haproxy takes at most 24d."
    return (None, wrong) if wrong else (str(value), None)


def optional(check: Callable[[Any], Checked]) -> Callable[[Any], Checked]:
    """Nothing, for the program's own default, or what passes a check."""
    return lambda value: (value, None) if value == "" else check(value)


# What stands after `log` in haproxy.cfg. Without a facility HAProxy refuses the line.
FACILITIES = (
    *("kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "auth2", "ftp", "ntp"),
    *("audit", "alert", "cron2", *(f"local{at}" for at in range(8))),
)
LEVEL = "(emerg|alert|crit|err|warning|notice|info|debug)"
LOG_TARGET = re.compile(
    r"(?P<target>[\w./:@\[\]*-]{1,107})( len \d{2,5})?( format \w+)?( sample [\d:,-]+)?"
    rf" ({'|'.join(FACILITIES)})( {LEVEL}( {LEVEL})?)?",
    re.ASCII,
)


def log_targets(value: Any) -> Checked:
    """What stands after `log` in haproxy.cfg: an address, options, a facility, and levels."""
    found, wrong = lines(value)
    targets = [" ".join(line.split()) for line in found or []]
    for target in targets:
        if not set(FACILITIES).intersection(target.split()[1:]):
            return None, f"{target!r} has no facility: write an address and a facility, such as /dev/log local0."
        if not LOG_TARGET.fullmatch(target):
            return None, (
                f"{target!r} is not a log target: write an address, a facility and levels, such as /dev/log local0."
            )
    return (None, wrong) if wrong else (targets, None)


def quotable(quote: Callable[[str], str]) -> Callable[[Any], Checked]:
    """A text that a format can express, which its quoting function tells."""

    def check(value: Any) -> Checked:
        if not isinstance(value, str):
            return None, "a string is required."
        try:
            quote(value)
        except quoting.Unquotable as error:
            return None, str(error)
        return value, None

    return check


def program(value: Any) -> Checked:
    """A program and its arguments, for either engine."""
    if not isinstance(value, str) or not value.isprintable() or not value.startswith("/"):
        return None, "write the program's absolute path, in one line."
    return quotable(quoting.keepalived_command)(value)


def path(value: Any) -> Checked:
    """A file that haproxy opens."""
    if not isinstance(value, str) or not value.isprintable() or not value.startswith("/"):
        return None, "an absolute path is required."
    return quotable(quoting.haproxy)(value)


def balance(value: Any) -> Checked:
    """How haproxy chooses a server, with its options."""
    if isinstance(value, str) and BALANCE.fullmatch(value):
        return value, None
    return None, "roundrobin, leastconn, source, or another HAProxy algorithm with its options is required."


def host_name(value: Any) -> Checked:
    """The name of a host as a browser asks for it, without a port."""
    if isinstance(value, str) and HOST_NAME.fullmatch(value):
        return value, None
    return None, "the name of a host, without a port, is required."


def server_address(value: Any) -> Checked:
    """The address of a server, or its name, which haproxy resolves without a search domain."""
    if isinstance(value, str) and "%" not in value and address(value)[1]:
        return _whole_name(value)
    return proxy_config.server_address(value)


def _whole_name(value: str) -> Checked:
    if is_name(value) and len(value) <= LONGEST_NAME:
        return value, None
    if HOST_NAME.fullmatch(value) and "." not in value:
        return None, "haproxy resolves no bare name: write the address, or the name in full, such as app1.example.com."
    with_port = WITH_PORT.fullmatch(value)
    if with_port:
        address_alone = with_port[1] or with_port[2]
        return None, f'a port is a key of its own: write {{"address": "{address_alone}", "port": {with_port[3]}}}.'
    return None, "an IPv4 or IPv6 address, or a fully qualified name such as app1.example.com, is required."


def is_name(address: Optional[str]) -> bool:
    """Whether the address of a server is a name. One that was refused is None."""
    return bool(address and DNS_NAME.fullmatch(address))


def nameserver(value: Any) -> Checked:
    """The address of a DNS server, and its port; with a port, an IPv6 address stands in brackets."""
    with_port = WITH_PORT.fullmatch(value) if isinstance(value, str) else None
    host, number = (with_port[1] or with_port[2], with_port[3]) if with_port else (value, DNS_PORT)
    found, wrong = proxy_config.server_address(host)
    if wrong or port(number)[1]:
        return None, "an address is required, or an address and a port, such as 192.0.2.53 or [2001:db8::53]:53."
    return f"[{found}]:{number}" if ":" in found else f"{found}:{number}", None


def server_option(value: Any) -> Checked:
    """An option of haproxy's for a server, with its arguments. Haproxy itself judges which there are."""
    option = OPTION.match(value) if isinstance(value, str) else None
    if not option:
        return None, "an HAProxy option with its arguments is required, such as 'cookie app1'."
    if option[0] in OWN_KEYS:
        return None, f"{option[0]} is a key of the server itself: set it next to options."
    return quotable(quoting.haproxy_words)(value)


server_options = list_of(server_option, key="options")


def path_prefix(value: Any) -> Checked:
    """How the path of a request begins, without its query."""
    found, wrong = proxy_config.CHECK["path"].check(value)
    if not wrong and set(found) & set("?*"):
        return None, "the beginning of a path is required, without * behind it and without a query."
    return found, wrong


def protocol(value: Any) -> Checked:
    """A protocol that TLS offers (RFC 7301)."""
    if isinstance(value, str) and PROTOCOL.fullmatch(value):
        return value, None
    return None, "a protocol such as h2 or http/1.1 is required."


def commands(value: Any) -> Checked:
    """Command lines for a systemd unit."""
    if not isinstance(value, list):
        return None, "a list of commands is required."
    for item in value:
        _found, wrong = quotable(quoting.systemd_command)(item)
        if wrong:
            return None, f"in it {shown_of('command', item)} is wrong: {wrong}"
    return value, None


def plain_path(value: Any) -> Checked:
    """A path that is one word to a shell, to systemd and to keepalived."""
    if isinstance(value, str) and PLAIN_PATH.fullmatch(value):
        return value, None
    return None, "an absolute path of letters, digits and . _ - / is required."


def written_path(value: Any) -> Checked:
    """A file that a run or a unit writes as root."""
    found, wrong = plain_path(value)
    if not wrong and any(_is_in(value, folder) for folder in OF_KERNEL):
        return None, "this is no ordinary file: name one in /etc or /run, or in another folder of that kind."
    return found, wrong


def metrics_file(value: Any) -> Checked:
    """A file that node_exporter's textfile collector reads."""
    found, wrong = written_path(value)
    if wrong:
        return None, wrong
    if not value.endswith(TEXTFILE):
        return None, f"node_exporter reads files whose names end with {TEXTFILE} alone."
    return found, None


def down_file(value: Any) -> Checked:
    """A file that a unit writes as root, also right after a reboot."""
    found, wrong = written_path(value)
    if wrong:
        return None, wrong
    folder = posixpath.dirname(value)
    if any(_is_in(folder, shared) for shared in SHARED):
        return None, f"every user may create files in {folder}: name a file in /run."
    if folder not in VOLATILE and any(_is_in(folder, volatile) for volatile in VOLATILE):
        return None, f"a reboot removes {folder}, without which the balancer cannot start: name a file in /run itself."
    return found, None


def _is_in(folder: str, other: str) -> bool:
    return f"{folder}/".startswith(f"{other}/")


def package(value: Any) -> Checked:
    """The name of a package, with the version that a package manager takes behind it."""
    if isinstance(value, str) and PACKAGE.fullmatch(value):
        return value, None
    return None, "the name of a package is required."


def words(value: Any) -> Checked:
    """A list of words, or a text of them with commas between, as the command line gives it."""
    return list_of(text)(value.split(",") if isinstance(value, str) else value)


def is_plain(value: Any) -> bool:
    """Return whether a value has no template: thousands of servers would take a second to evaluate."""
    if isinstance(value, dict):
        return all(map(is_plain, value.values())) and all(map(is_plain, value))
    if isinstance(value, list):
        return all(map(is_plain, value))
    return "{" not in value if isinstance(value, str) else value is None or isinstance(value, (int, float))
