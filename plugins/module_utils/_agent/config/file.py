# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Configuration files: reads them, and tells whose they are."""

from __future__ import annotations

import json
import os
import stat
from typing import Any, Callable, Dict, Generic, Iterator, List, NamedTuple, Optional, Sequence, Tuple, TypeVar

from . import host as this_host
from .schema import Faults, place_of, repeated, shown

Parts = TypeVar("Parts")
Settings = TypeVar("Settings")

MAX_SIZE = 16 * 1024 * 1024  # bytes
WHOLE = "configuration"  # what a configuration is called where it has no path

VRRP, PROXY, FOLLOW, SIDECAR, DIRECT = "vrrp", "proxy", "follow", "sidecar", "direct"
ANYCAST = "anycast"
# The keys that only one of the configurations has.
OWN = {
    VRRP: ("instances", "sync_groups", "checks", "script_user"),
    PROXY: (
        "services",
        "monitors",
        "timeouts",
        "maxconn",
        "workers",
        "hard_stop_after",
        "stop_within",
        "page",
    ),
    FOLLOW: ("api", "nodes", "haproxy", "proxy", "drain_for", "state_file"),
    SIDECAR: ("first", "balancer", "router"),
    DIRECT: ("interface", "down_file", "stop_pause", "nft"),
    ANYCAST: ("vips", "held_back"),
}
# What these have as well.
ALSO = {DIRECT: ("services",), ANYCAST: ("checks", "script_user", "interface")}


def load(path: str) -> Tuple[str, Faults]:
    """Return the text in a file, or why it cannot be read."""
    try:
        # Without waiting for a writer, which the opening of a FIFO otherwise does.
        with open(path, encoding="utf-8", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                return "", [f"{path} is not a regular file: name one that contains the configuration."]
            text = file.read(MAX_SIZE + 1) if found.st_size <= MAX_SIZE else ""
            if found.st_size > MAX_SIZE or len(text) > MAX_SIZE:  # files in /proc have no size
                return "", [
                    f"{path} has more than {MAX_SIZE >> 20} MB, too large for a configuration: name another file."
                ]
            return text, []
    except OSError as error:
        return "", [f"{path} cannot be read: {error.strerror}."]
    except ValueError:
        return "", [f"{path} is not JSON: it is not written in UTF-8."]


class _Mapping(Dict[str, Any]):
    """A JSON object, and which of its keys it has more than once: JSON leaves open which of them counts."""

    repeated_keys: Sequence[str] = ()


def parse(text: str, path: str) -> Tuple[Any, Faults]:
    """Return the value of a JSON text, or why it is not valid. Never raises."""
    if not text.strip():
        return None, [f"{path} is empty: a configuration in JSON is required."]
    try:
        found = json.loads(text, object_pairs_hook=_mapping)
        faults = list(_repeated_keys(found, ""))
    except ValueError as error:
        return None, [f"{path} is not JSON: {error}."]
    except RecursionError:
        return None, [f"{path} is nested too deeply."]
    return (None if faults else found), [f"{path} has {fault}" for fault in faults]


def _mapping(pairs: List[Tuple[str, Any]]) -> _Mapping:
    found = _Mapping(pairs)
    if len(found) < len(pairs):
        found.repeated_keys = repeated([key for key, _value in pairs])
    return found


def _repeated_keys(value: Any, place: str) -> Iterator[str]:
    if isinstance(value, _Mapping):
        where = f" in {place}" if place else ""
        yield from (f"the key {key!r} more than once{where}: leave one out." for key in value.repeated_keys)
        for key, item in value.items():
            yield from _repeated_keys(item, f"{place}.{key}" if place else key)
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _repeated_keys(item, place_of(place, at, item))


class Found(NamedTuple):
    """What a file has: its text, and the settings of that very text, or every reason why they cannot be in force.

    A daemon tells by its text what it has in force. If the file were read again for that, it might have changed.
    """

    text: str
    settings: Any
    faults: Faults


class Format(Generic[Parts, Settings]):
    """What reads one of the configurations."""

    def __init__(
        self,
        read: Callable[[Any, Faults], Parts],
        host_answers: Callable[[Parts, str, Any], List[Tuple[str, str, Optional[str]]]],
        settings: Callable[[Parts], Settings],
    ) -> None:
        """
        :param read: turns JSON into parts with their defaults, and adds faults
        :param host_answers: asks the host about the file and what it names; returns place, value and what is wrong
        :param settings: turns parts without faults into settings
        """
        self._read, self._host_answers, self._settings = read, host_answers, settings

    def load(self, path: str) -> Found:
        """Return what a file has for this host. Never raises."""
        text, faults = load(path)
        settings, faults = (None, faults) if faults else self.parse(text, path, this_host)
        return Found(text, settings, faults)

    def parse(self, text: str, path: str = WHOLE, host: Any = None) -> Tuple[Optional[Settings], Faults]:
        """Return the settings in a text, or None and every fault in it. Never raises.

        :param host: is asked about the programs, files and users that the text names; None for another host's text
        """
        data, faults = parse(text, path)
        if faults:
            return None, faults
        try:
            found = self._read(data, faults)
        except RecursionError:  # to show such a value in a sentence takes more
            return None, [f"{path} is nested too deeply."]
        answers = self._host_answers(found, path, host) if host else []
        faults += [f"{place} is {shown(value)}: {wrong}" for place, value, wrong in answers if wrong]
        return (None, faults) if faults else (self._settings(found), [])


def kind(data: Any, path: str) -> Tuple[str, Faults]:
    """Return which configuration this is, by its keys, or why that is not clear."""
    keys = set(data) if isinstance(data, dict) else set()
    found = [name for name, own in OWN.items() if keys & set(own)]
    for name, also in ALSO.items():
        if name in found:
            found = [other for other in found if other == name or keys & set(OWN[other]) - {*also}]
    if len(found) == 1:
        return found[0], []
    which = (
        "the one of a VRRP router has the key 'instances', that of a proxy 'services', that of a direct plane "
        "'interface', that of follow 'api', that of a health gate 'vips'."
    )
    if not isinstance(data, dict):
        return "", [f"{path} is {shown(data)}: a mapping is required, and {which}"]
    has = "keys of several configurations" if found else "keys of no configuration"
    return "", [f"{path} has {has}: {which}"]
