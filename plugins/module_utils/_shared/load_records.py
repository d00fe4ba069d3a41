# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The record of what haproxy or keepalived has loaded, which its unit writes when it does: see `_host.in_force`. Pure.

A static pod's has the configuration alone.
"""

from __future__ import annotations

import re
import shlex
from typing import Callable, Dict, Iterator, List, NamedTuple, Sequence

from . import haproxy_files, keepalived_files, quoting
from .engines import HAPROXY, KEEPALIVED
from .loaded_files import CERTIFICATE, LIST, PATTERN, Named

RECORD = re.compile(r"([0-9a-f]{64})  (/.*)\n(\d+\.\d+) .*\n((?:.*\n)*)")
OTHER = re.compile(r"^([0-9a-f]{64})  (.+)$", re.MULTILINE)
NAMED: Dict[str, Callable[[str, str], List[Named]]] = {
    HAPROXY: haproxy_files.named,
    KEEPALIVED: keepalived_files.named,
}
UNSAFE = re.compile(r"[^\w./*?\[\]-]")  # in a pattern, to a shell


class Record(NamedTuple):
    """Such a record: ``sha256sum FILE; cat /proc/uptime; sha256sum OTHER_FILES``."""

    checksum: str = ""
    config: str = ""
    uptime: float = 0.0  # seconds since boot
    others: Dict[str, str] = {}  # the checksums of what else it reads, by path


def record_of(program: str) -> str:
    """Return where its unit writes it."""
    return f"/run/{program}.loaded"


def read_record(text: str) -> Record:
    """Return a record; an empty one if the text is none."""
    found = RECORD.fullmatch(text)
    others = {path: checksum for checksum, path in OTHER.findall(found[4])} if found else {}
    return Record(found[1], found[2], float(found[3]), others) if found else Record()


def recording(text: str, program: str, path: str) -> str:
    """Return the command that writes the record of a configuration, for ``ExecReload=`` and its like.

    Only a shell knows what is there when the program loads it. A file that changes meanwhile is recorded as it was, so
    that a run has it loaded once more. What is recorded and not read does no harm.

    :param text: the configuration
    :param path: where it is
    """
    steps = [f"sha256sum {shlex.quote(path)}", "cat /proc/uptime", *_others(NAMED[program](text, path))]
    return quoting.systemd_shell(f"{{ {'; '.join(steps)}; }} > {record_of(program)}")


def _others(named: Sequence[Named]) -> Iterator[str]:
    words = " ".join(word for each in named for word in _words(each))
    if words:
        yield f"find -L {words} -maxdepth 1 -type f -exec sha256sum {{}} +"


def _words(named: Named) -> List[str]:
    """Return what a shell expands to the files under a name."""
    path = shlex.quote(named.path)
    return {
        PATTERN: [UNSAFE.sub(r"\\\g<0>", named.path)],
        CERTIFICATE: [path, f"{path}.*"],
        LIST: [path, f"$({_names_in(path, named.base)})"],
    }.get(named.kind, [path])


def _names_in(path: str, base: str) -> str:
    """Return the command that prints the names in a list, and for each a pattern of those beside it."""
    folder = re.sub(r"[\\&|]", r"\\\g<0>", base.rstrip("/"))
    edits = ["s/^[[:space:]]*//", "s/[#[:space:]].*//", "/^$/d", f"s|^[^/]|{folder}/&|", "p", "s/$/.*/p"]
    return " ".join(["sed -n", *(f"-e {shlex.quote(edit)}" for edit in edits), path])
