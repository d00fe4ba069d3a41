# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reads the host through its programs: ip, systemctl, dpkg-query or rpm. ``run`` and ``find`` are AnsibleModule's."""

from __future__ import annotations

import functools
import glob
import json
import os
import re
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from ..link import neighbours
from . import dnf, dpkg, facts, ownership, package_sources, packages

Run = Callable[[List[str]], Tuple[int, str, str]]
Find = Callable[[str], Optional[str]]

DAY = 86400.0
MILLION = 1_000_000
JOURNAL_LINES = 20000  # more than keepalived logs in a day of errors
LAST_LINES = 6  # that an error repeats
SOURCE_TIMEOUT = 4.0  # seconds for a package source to answer
APT_SOURCES = ("/etc/apt/sources.list", "/etc/apt/sources.list.d/*.list", "/etc/apt/sources.list.d/*.sources")
APT_SETTINGS = ("/etc/apt/apt.conf", "/etc/apt/apt.conf.d/*")
YUM_SOURCES = ("/etc/yum.repos.d/*.repo",)
YUM_SETTINGS = ("/etc/dnf/dnf.conf",)
VERSION = re.compile(r"(?:HAProxy version|HA-Proxy version|Keepalived v)\s*(\d+(?:\.\d+)+)")


def show(run: Run, units: Sequence[str], properties: Sequence[str]) -> List[Dict[str, str]]:
    """Return properties of units. systemd prints a paragraph for every unit, even for one that does not exist."""
    output = run(["systemctl", "show", f"--property={','.join(properties)}", *units])[1]
    return [dict(line.partition("=")[::2] for line in text.splitlines()) for text in output.strip().split("\n\n")]


def last_words(run: Run, unit: str) -> str:
    """Return the last lines that a unit's own programs have logged, in one line."""
    options = ["--output=cat", f"--lines={LAST_LINES}", "--no-pager", "--quiet"]
    lines = run(["journalctl", "--unit", unit, *options])[1].splitlines()
    own = [line for line in lines if not re.match(rf"{re.escape(unit)}: |(Start|Stopp|Fail)", line)]
    return " ".join(own or lines)


def content(path: str) -> bytes:
    """Return what a file has, or nothing if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


class Reader:
    """Reads one host."""

    @classmethod
    def of(cls, module: Any) -> Reader:
        """Return the reader of the host on which an AnsibleModule runs."""
        return cls(module.run_command, lambda name: module.get_bin_path(name, opt_dirs=["/usr/sbin", "/sbin"]))

    def __init__(self, run: Run, find: Find) -> None:
        self.run = run
        self.find = find

    def text(self, path: str) -> str:
        """Return a file's text, or nothing if it cannot be read."""
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return ""

    def version(self, program: str) -> str:
        """Return the version of haproxy or keepalived, '' where it is not installed."""
        path = self.find(program)
        found = VERSION.search("".join(self.run([path, "-v"])[1:])) if path else None
        return found.group(1) if found else ""

    def addresses(self) -> Optional[List[Dict[str, Any]]]:
        """Return the host's addresses, or None without the program ip."""
        text = self._ip_address()
        return None if text is None else facts.addresses(text)

    def on_loopback(self) -> List[str]:
        """Return the addresses of its loopback interface, or none without the program ip."""
        return facts.on_loopback(self._ip_address() or "")

    def _ip_address(self) -> Optional[str]:
        ip = self.find("ip")
        return str(self.run([ip, "-json", "address"])[1]) if ip else None

    def answering(self, vips: List[str], wait: float, addresses: List[Dict[str, Any]]) -> Dict[str, List[str]]:
        """Return the MACs of the other hosts that answer for each VIP on its link.

        :raises PermissionError: without the right to open raw sockets
        """
        links = facts.links_of(vips, addresses)
        return neighbours.holders_on_link(links, wait) if links else {}

    def _packages(self, wanted: List[str]) -> packages.Packages:
        """Ask the package managers. The other family's may be there, too, as a tool."""
        paths = {program: self.find(program) for program in packages.QUERIES if wanted}
        found = [(path, packages.QUERIES[program]) for program, path in paths.items() if path]
        return packages.read(wanted, [self.run([path, *arguments, *wanted])[1] for path, arguments in found])

    def packages(self, wanted: List[str]) -> packages.Packages:
        """Return the states of packages. Where dpkg is at work, they are as it leaves them."""
        found = self._packages(wanted)
        if not self.find("apt-get"):
            return found
        hindrance = dpkg.hindrance(waits=bool(found.missing))
        return (self._packages(wanted) if found.missing else found)._replace(hindrance=hindrance)

    def is_as_shipped(self, path: str) -> bool:
        """Return whether a file exists and is the one that a package brought."""
        text = content(path)
        queries = {"dpkg-query": ownership.DPKG_CONFFILES, "rpm": [*ownership.RPM_FILES, path]}
        found = [(self.find(program), arguments) for program, arguments in queries.items() if text]
        outputs = [self.run([program, *arguments])[1] for program, arguments in found if program]
        return any(ownership.is_as_shipped(text, ownership.digests(output).get(path, "")) for output in outputs)

    def unobtainable(self, missing: List[str]) -> str:
        """Return why missing packages cannot be fetched, '' if it seems that they can."""
        if not missing:
            return ""
        reached = functools.partial(facts.any_reachable, timeout=SOURCE_TIMEOUT)
        return package_sources.unobtainable(self._sources(), reached)

    def asked_dnf(self, missing: List[str]) -> dnf.Answer:
        """Return what dnf says of missing packages, where it is the package manager."""
        program = self.find("dnf")
        if not missing or not program or self.find("apt-get"):
            return dnf.Answer()
        return dnf.read("".join(self.run(["env", "LC_ALL=C", program, *dnf.ASK, *missing])[1:]))

    def source_names(self) -> List[str]:
        """Return the DNS names of the package sources."""
        return package_sources.names(self._sources())

    def _sources(self) -> package_sources.Sources:
        if self.find("apt-get"):
            return package_sources.apt(self._texts(*APT_SOURCES), self._texts(*APT_SETTINGS))
        return package_sources.yum(self._texts(*YUM_SOURCES), self._texts(*YUM_SETTINGS))

    def _texts(self, *patterns: str) -> List[str]:
        return [self.text(path) for pattern in patterns for path in sorted(glob.glob(pattern))]

    def package_lists_are_fresh(self, lists: str = "/var/lib/apt/lists", now: Optional[float] = None) -> bool:
        """Return whether apt has fetched its lists within a day; other managers refresh theirs themselves."""
        if not os.path.isdir(lists):
            return True
        age = (now or time.time()) - os.stat(lists).st_mtime
        return bool(glob.glob(os.path.join(lists, "*_Packages*"))) and age < DAY

    def units_in(self, prop: str, wanted: List[str], *states: str) -> List[str]:
        """Return the units whose property has one of these states: ``ActiveState`` active, ``LoadState`` masked."""
        if not wanted:
            return []
        found = {unit.get("Id") for unit in show(self.run, wanted, ["Id", prop]) if unit.get(prop) in states}
        return [unit for unit in wanted if unit in found]

    def journal(self, invocation: str) -> List[str]:
        """Return what a unit has logged in one of its runs, oldest first, as far as the journal still has it."""
        return self._journal(invocation, "--output=cat")

    def timed_journal(self, invocation: str) -> List[Tuple[float, str]]:
        """Return the same, each message with its time in seconds since 1970."""
        lines = map(json.loads, self._journal(invocation, "--output=json", "--output-fields=MESSAGE"))
        return [(int(line["__REALTIME_TIMESTAMP"]) / MILLION, str(line.get("MESSAGE", ""))) for line in lines]

    def _journal(self, invocation: str, *options: str) -> List[str]:
        command = ["journalctl", *options, "--no-pager", "--quiet", f"--lines={JOURNAL_LINES}"]
        return self.run([*command, f"_SYSTEMD_INVOCATION_ID={invocation}"])[1].splitlines()
