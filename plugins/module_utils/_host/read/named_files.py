# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether the programs, folders and certificates that a role's variables name are fit for use on this host.

The variables are as the user wrote them. What is wrong with them whichever host they are for is the plan's to say.
"""

from __future__ import annotations

import os
import shlex
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from ..._agent.config import host
from ..._agent.config.schema import parted, place_of
from ..._shared import mark
from . import certificates, expiry, loaded_files

ROOT = "root"
ENOUGH = 1 << 20  # characters
NEW = "name one that does not exist yet."
Judge = Callable[[str], Optional[str]]
TLS: Dict[str, Judge] = {
    "certificate": certificates.certificate,
    "key": certificates.key,
    "ca": certificates.authorities,
    "crl": certificates.revoked,
}


def unfit(named: Dict[str, Any]) -> List[Dict[str, str]]:
    """Return ``{key, value, wrong, expired}`` of each that is not fit; ``wrong`` follows "KEY is VALUE: ".

    The last one is the checksum of a certificate that is unfit because it has expired, and '' of the others.

    :param named: ``notify``, the ``script_user`` that runs it, ``down_file``, ``metrics_file``, ``services``, and
        ``programs``, each a ``{key, command, user}``; each may be missing
    """
    found = [
        *((one["key"], one["command"], _notify(one["command"], one["user"])) for one in named.get("programs") or ()),
        ("notify", named.get("notify"), _notify(named.get("notify"), named.get("script_user") or ROOT)),
        ("down_file", named.get("down_file"), _down_file(named.get("down_file"))),
        ("metrics_file", named.get("metrics_file"), _metrics_file(named.get("metrics_file"))),
        *((key, option, _interface(option)) for key, option in _bind_options(named.get("services"))),
    ]
    return [
        *(
            {"key": key, "value": _shown(key, str(value)), "wrong": wrong, "expired": ""}
            for key, value, wrong in found
            if wrong
        ),
        *_unfit_certificates(named),
        *_unfit_contents(named),
    ]


def _unfit_certificates(named: Dict[str, Any]) -> Iterator[Dict[str, str]]:
    expired = expiry.refusals(certificate_paths(named))
    for key, path, file, judge in _certificates(named.get("services")):
        wrong = judge(file)
        said = wrong or expired.get(file)
        if said:
            where = "" if file == path else f"{os.path.basename(file)} in it is refused, "
            checksum = "" if wrong else loaded_files.checksum(file)
            yield {"key": key, "value": path, "wrong": f"{where}{said}", "expired": checksum}


def _unfit_contents(named: Dict[str, Any]) -> Iterator[Dict[str, str]]:
    expired = expiry.refusals_of_contents(contents(named))
    for place, service in _items("services", named.get("services")):
        for each in _contents(service):
            if each["path"] in expired:
                wrong = {"wrong": expired[each["path"]], "expired": each["checksum"]}
                yield {"key": f"{place}.tls.content", "value": each["path"], **wrong}


def contents(named: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Return ``{path, checksum, expires}`` of each certificate whose text is in the inventory."""
    return [each for _place, service in _items("services", named.get("services")) for each in _contents(service)]


def _contents(service: Dict[str, Any]) -> List[Dict[str, Any]]:
    tls = service.get("tls")
    found = tls.get("content") if isinstance(tls, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def certificate_paths(named: Dict[str, Any]) -> List[str]:
    """Return the files with the certificates that services show, and with lists of revoked ones."""
    expiring = (certificates.certificate, certificates.revoked)
    return [file for _key, _path, file, judge in _certificates(named.get("services")) if judge in expiring]


def _shown(key: str, value: str) -> str:
    """Return a path, or the program of a command, whose arguments may be secret."""
    return parted("notify", value)[0] if key.endswith("notify") else value


def _notify(command: Any, user: str) -> Optional[str]:
    try:
        program = shlex.split(command)[0] if isinstance(command, str) and command.startswith("/") else ""
    except ValueError:
        return None
    return host.program(program, user) if program else None


def _down_file(path: Any) -> Optional[str]:
    """A unit writes it as root, so that its folder must be there, and be root's."""
    if not isinstance(path, str) or not path.startswith("/"):
        return None
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        return f"there is no folder {folder}, so that the balancer could not start: create it, or name a file in /run."
    return host.exposed(folder, ROOT) or _others(path, mark.is_down_file)


def _metrics_file(path: Any) -> Optional[str]:
    folder = os.path.dirname(path) if isinstance(path, str) and path.startswith("/") else ""
    if folder and not os.path.isdir(folder):
        return f"there is no folder {folder}: install node_exporter, or name the folder that it reads."
    return _others(path, lambda text: not text.strip() or mark.is_metrics(text)) if folder else None


def _others(path: str, is_own: Callable[[str], bool]) -> Optional[str]:
    """Say what is where this collection is to write a file, unless it has written that.

    :param is_own: whether it may have written a text
    """
    if os.path.islink(path) or (os.path.exists(path) and not os.path.isfile(path)):
        return f"no ordinary file is there, and this one would be written: {NEW}"
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return None if is_own(file.read(ENOUGH)) else f"this collection has not written the file there: {NEW}"
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"the file there cannot be read ({error.strerror}): {NEW}"


def _interface(option: str) -> Optional[str]:
    """haproxy tests a configuration without binding to an interface, and then could not start."""
    try:
        words = shlex.split(option)
    except ValueError:
        return None
    named = [word for before, word in zip(words, words[1:]) if before == "interface"]
    missing = [name for name in named if not host.has_interface(name)]
    return f"this host has no interface {missing[0]}: name one that it has." if missing else None


def _bind_options(services: Any) -> Iterator[Tuple[str, str]]:
    for place, service in _items("services", services):
        options = service.get("bind_options")
        for each in options if isinstance(options, list) else []:
            if isinstance(each, str):
                yield f"{place}.bind_options", each


def _certificates(services: Any) -> Iterator[Tuple[str, str, str, Judge]]:
    """Yield the place of each certificate, the path that is named there, a file at that, and what judges it."""
    for place, service in _items("services", services):
        for where, backend in [(place, service), *_items(f"{place}.routes", service.get("routes"))]:
            yield from _paths(f"{where}.check", backend.get("check"), {"ca": host.authorities})
        yield from _paths(f"{place}.tls", service.get("tls"), TLS)


def _items(place: str, given: Any) -> List[Tuple[str, Dict[str, Any]]]:
    items = enumerate(given if isinstance(given, list) else [])
    return [(place_of(place, at, item), item) for at, item in items if isinstance(item, dict)]


def _paths(place: str, given: Any, judges: Dict[str, Judge]) -> Iterator[Tuple[str, str, str, Judge]]:
    for key, judge in judges.items():
        value = given.get(key) if isinstance(given, dict) else None
        for path in value if isinstance(value, list) else [value]:
            if isinstance(path, str) and path.startswith("/"):
                files = host.certificate_files(path) if key == "certificate" else []
                for file in files or [path]:
                    yield f"{place}.{key}", path, file, judge
