# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reads the VRRP instances of a keepalived.conf, also of one that this collection has not written. Pure."""

from __future__ import annotations

import re
import socket
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

# A quoted text, a brace, a word; a comment begins with # or ! anywhere outside quotes, and ends with its line.
TOKEN = re.compile(r'"([^"]*)"|([{}])|([^\s{}"#!]+)|([#!].*)')
DECIMAL = re.compile(r"-?(?:\d+\.?\d*|\.\d+)")
Statement = Tuple[List[str], List[Any]]  # the words, and the statements in braces after them
SOURCES = ("unicast_src_ip", "mcast_src_ip")
UNDECODED = "surrogateescape"  # a file may have any bytes
HELD = ("virtual_ipaddress", "virtual_ipaddress_excluded")  # the latter are not in Advertisements


class VirtualAddress(NamedTuple):
    """An address that an instance holds while it is Active, as the kernel has it then."""

    interface: str
    address: str  # as inet_ntop writes it
    prefix: int


class Router(NamedTuple):
    """What an instance sends, and from where; and what it holds."""

    name: str
    interface: str
    vrid: int
    version: int
    interval: float  # seconds
    auth_pass: str
    source: str  # '' for the interface's own
    peers: Tuple[str, ...]  # none for multicast
    advertised: Tuple[str, ...]
    held: Tuple[VirtualAddress, ...]
    priority: int = 100  # keepalived's default

    @property
    def family(self) -> int:
        return 6 if ":" in self.advertised[0] else 4


def instances(text: str) -> List[Dict[str, Any]]:
    """Return each instance, with the keys of `facts.INSTANCE`.

    A value that is not there is keepalived's default. The interval is in seconds. One without a VRID is left out: see
    `unread`.
    """
    return [instance for instance, _block in _instances(statements(text))]


def routers(text: str) -> List[Router]:
    """Return each instance that has addresses to advertise, as a router."""
    found = (_router(instance, block) for instance, block in _instances(statements(text)))
    return [router for router in found if router.advertised]


def scripts(text: str) -> List[Dict[str, Any]]:
    """Return each script that is run periodically: ``{name, command, interval, timeout, rise, fall, user}``.

    The command is as it stands in the file. A script without a user has that of the file.
    """
    given = statements(text)
    usual = next((words[1] for words, _nested in inside(given, "global_defs") if words[0] == "script_user"), "")
    return [_script(words[1], block, usual) for words, block in given if words[:1] == ["vrrp_script"] and words[1:]]


def _script(name: str, block: List[Statement], usual: str) -> Dict[str, Any]:
    values = {words[0]: words[1] for words, _nested in block if len(words) > 1}
    numbers = {key: _number(values.get(key, "1")) for key in ("interval", "timeout", "rise", "fall")}
    return {"name": name, "command": values.get("script", ""), **numbers, "user": values.get("user", usual)}


def track_files(text: str) -> List[str]:
    """Return the paths of the files that are tracked."""
    blocks = [block for words, block in statements(text) if words[:1] in (["track_file"], ["vrrp_track_file"])]
    return [words[1] for block in blocks for words, _nested in block if words[:1] == ["file"] and len(words) > 1]


def without_instances(text: str) -> List[Statement]:
    """Return the statements that are of no instance and of no sync group."""
    return [
        (words, block) for words, block in statements(text) if words[:1] not in (["vrrp_instance"], ["vrrp_sync_group"])
    ]


def weights(text: str, name: str) -> Dict[str, int]:
    """Return by instance the weight with which it tracks the file of this name itself."""
    found = {}
    for instance, block in _instances(statements(text)):
        for words, _nested in inside(block, "track_file"):
            if words[0] == name:
                found[instance["name"]] = int(_number(dict(zip(words, words[1:])).get("weight", "0")))
    return found


def _instances(given: List[Statement]) -> List[Tuple[Dict[str, Any], List[Statement]]]:
    """Return each instance that has a VRID, with its statements."""
    default = next((words[1] for words, _nested in inside(given, "global_defs") if words[:1] == ["vrrp_version"]), "2")
    found = [(_instance(words, block, default), block) for words, block in given if words[:1] == ["vrrp_instance"]]
    return [(instance, block) for instance, block in found if instance["vrid"]]


def _router(instance: Dict[str, Any], block: List[Statement]) -> Router:
    held = {
        name: [_virtual_address(words, instance["interface"]) for words, _nested in inside(block, name)]
        for name in HELD
    }
    advertised = tuple(each.address for each in held[HELD[0]] if each)
    return Router(
        **{key: instance[key] for key in ("name", "interface", "vrid", "version", "auth_pass", "source", "priority")},
        interval=instance["advert_interval"],
        peers=tuple(instance["peers"]),
        advertised=advertised,
        held=tuple(each for name in HELD for each in held[name] if each),
    )


def _virtual_address(words: List[str], interface: str) -> Optional[VirtualAddress]:
    """Read a line such as ``192.0.2.10/24 dev eth1``; None if it begins with no address."""
    address, _slash, prefix = words[0].partition("/")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        packed = socket.inet_pton(family, address)
        length = int(prefix) if prefix else 8 * len(packed)
    except (OSError, ValueError):
        return None
    named = dict(zip(words, words[1:])).get("dev", interface)
    return VirtualAddress(named, socket.inet_ntop(family, packed), length)


def _instance(words: List[str], block: List[Statement], version: str) -> Dict[str, Any]:
    values = {statement[0]: statement[1] for statement, _nested in block if len(statement) > 1}
    flags = {statement[0] for statement, _nested in block if statement}
    secrets = {
        statement[0]: statement[1] for statement, _nested in inside(block, "authentication") if len(statement) > 1
    }
    own = values.get("interface", "")
    addresses, excluded = ([_carried(words, own) for words, _nested in inside(block, name)] for name in HELD)
    peers = [_as_the_kernel_writes_it(words[0]) for words, _nested in inside(block, "unicast_peer")]
    # There is no version 2 for IPv6, and keepalived takes version 3 for it whatever global_defs has.
    speaks = 3 if any(":" in address for address in addresses) else int(_number(values.get("version", version)))
    return {
        "name": words[1] if len(words) > 1 else "",
        "interface": own,
        "vrid": int(_number(values.get("virtual_router_id", "0"))),
        "version": speaks,
        "priority": int(_number(values.get("priority", "100"))),
        "preempt": "nopreempt" not in flags,
        "advert_interval": _interval(_number(values.get("advert_int", "1")), speaks),
        "auth_pass": secrets.get("auth_pass", "") if secrets.get("auth_type") == "PASS" else "",
        "multicast": not peers,
        "source": next((_as_the_kernel_writes_it(values[name]) for name in SOURCES if name in values), ""),
        "addresses": addresses,
        "excluded_addresses": excluded,
        "peers": peers,
    }


def _carried(words: List[str], interface: str) -> str:
    """Return an address as it is written, with ``dev`` if another interface than the instance's carries it."""
    text, found = _as_the_kernel_writes_it(words[0]), _virtual_address(words, interface)
    if found is None or found.interface == interface:
        return text
    return f"{found.address}/{found.prefix} dev {found.interface}"


def _as_the_kernel_writes_it(text: str) -> str:
    """Return an address, with its prefix length if it has one, in the one notation in which addresses are compared."""
    address, slash, prefix = text.partition("/")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.inet_ntop(family, socket.inet_pton(family, address)) + slash + prefix
    except (OSError, ValueError):  # what is no address is for `unread`
        return text


def _interval(seconds: float, version: int) -> float:
    """Round an interval as keepalived does: version 2 counts in seconds, version 3 in hundredths of them."""
    steps = 1 if version == 2 else 100
    return max(1, int(seconds * steps + 0.5)) / steps if seconds else 0.0


def _number(text: str) -> float:
    return float(text) if DECIMAL.fullmatch(text) else 0.0


def inside(given: List[Statement], name: str) -> List[Statement]:
    """Return the statements in the blocks of a name."""
    return [each for words, block in given if words[:1] == [name] for each in block if each[0]]


def statements(text: str) -> List[Statement]:
    """Return the statements of a file. One ends with its line or its block."""
    root: List[Statement] = []
    stack = [root]
    for line in text.split("\n"):
        words: List[str] = []
        for quoted, brace, word, _comment in TOKEN.findall(line):
            if brace == "{":
                block: List[Statement] = []
                _open(stack[-1], words, block)
                stack.append(block)
                words = []
            elif brace:
                _add(stack[-1], words)
                words = []
                stack = stack[:-1] or [root]
            elif quoted or word:
                words.append(quoted or word)
        _add(stack[-1], words)
    return root


def _open(given: List[Statement], words: List[str], block: List[Statement]) -> None:
    """Begin a block; its brace may stand on the line after its words."""
    if not words and given and not given[-1][1]:
        words = given.pop()[0]
    given.append((words, block))


def _add(given: List[Statement], words: List[str]) -> None:
    if words:
        given.append((words, []))
