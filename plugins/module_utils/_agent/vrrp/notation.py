# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How virtual addresses and routes are written: as in keepalived.conf, with the words of ip-address(8) and ip-route(8).

``192.0.2.10/24 dev eth1`` and ``10.0.0.0/8 via 192.0.2.254 dev eth1 src 192.0.2.10 metric 50 table 7``. The checks are
for ``schema.Field``: pure, and none of them raises.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from ..config import fields
from ..config.schema import integer

Checked = Tuple[Any, Optional[str]]
DEV = "dev"
DEFAULT = "default"
MAIN_TABLE = 254
HIGHEST = 2**32 - 1  # of 32 bits: metrics and tables


def on_interface(check: Callable[[Any], Checked]) -> Callable[[Any], Checked]:
    """An address that passes a check; ``dev`` and a name follow it if another interface carries it."""

    def checked(value: Any) -> Checked:
        words = str(value).split()
        if DEV not in words:
            return check(value)
        if len(words) != 3 or words[1] != DEV:
            return None, "an address is required, or an address, dev and the interface that carries it."
        address, wrong = check(words[0])
        dev, wrong_dev = fields.interface(words[2])
        wrong = wrong or wrong_dev
        return (None, wrong) if wrong else (f"{address} {DEV} {dev}", None)

    return checked


def split_dev(text: str) -> Tuple[str, str]:
    """Return an address with its prefix length, and the interface that carries it; '' is the instance's own."""
    address, _dev, interface = text.partition(f" {DEV} ")
    return address, interface


class Route(NamedTuple):
    """A route that a Virtual Router has while it is Active; what is empty or 0 is left to the kernel."""

    to: str  # a network with its prefix length
    dev: str
    via: str = ""  # the gateway
    src: str = ""  # the address from which this host itself sends
    metric: int = 0
    table: int = MAIN_TABLE

    def __str__(self) -> str:
        given = [(key, getattr(self, key)) for key in WORDS]
        words = [f"{key} {value}" for key, value in given if value != self._field_defaults.get(key)]
        return " ".join([self.to, *words])


def _gateway(value: Any) -> Checked:
    found, wrong = fields.address(value)
    if not wrong and not fields.reachable(ipaddress.ip_address(found)):
        return None, fields.UNREACHABLE
    return found, wrong


WORDS: Dict[str, Callable[[Any], Checked]] = {
    "via": _gateway,
    "dev": fields.interface,
    "src": fields.address,
    "metric": integer(0, HIGHEST, "a metric"),
    "table": integer(1, HIGHEST, "the number of a table"),
}


def route(value: Any) -> Checked:
    """A route as ``Route`` writes it."""
    found, wrong = read_route(value)
    return (None, wrong) if wrong else (str(found), None)


def read_route(value: Any) -> Tuple[Any, Optional[str]]:
    """Return a ``Route``, or what is wrong with its text."""
    words = value.split() if isinstance(value, str) else []
    words = words[1:] if words[:1] == ["to"] else words
    if not words:
        return None, "a network, dev and an interface are required."
    given, wrong = _pairs(words[1:])
    to, wrong_network = _network(words[0], given)
    if wrong or wrong_network:
        return None, wrong or wrong_network
    if "dev" not in given:  # without one keepalived before 2.3 does not notice that the route is gone
        return None, "it names no interface: write dev and its name."
    families = {ipaddress.ip_network(each).version for each in (to, given.get("via"), given.get("src")) if each}
    if len(families) > 1:
        return None, "it mixes IPv4 and IPv6: name addresses of one family."
    return Route(to, **given), None


def _pairs(words: List[str]) -> Tuple[Dict[str, Any], Optional[str]]:
    """Read the words after the network, each with its value."""
    given: Dict[str, Any] = {}
    for word, value in zip(words[::2], [*words[1::2], ""]):
        if word not in WORDS or word in given:
            problem = "is there twice" if word in given else "is unknown"
            return {}, f"{word} {problem}; a route has a network, and once each {', '.join(WORDS)}."
        given[word], wrong = WORDS[word](value)
        if wrong:
            return {}, f"{word} is {value!r}: {wrong}"
    return given, None


def _network(text: str, given: Dict[str, Any]) -> Checked:
    if text == DEFAULT and given.get("via"):
        return ("::/0" if ":" in given["via"] else "0.0.0.0/0"), None
    try:
        return str(ipaddress.ip_network(text.replace("%", " "))), None  # it would accept a zone
    except ValueError:
        return None, (
            f"{text!r} is not a network: use a form such as 10.0.0.0/8, or 0.0.0.0/0 or ::/0 for every address."
        )
