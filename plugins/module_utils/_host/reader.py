# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Asking the host's own programs: ip, systemctl, dpkg-query or rpm. ``run`` and ``find`` are AnsibleModule's."""

from __future__ import annotations

import glob
import os
import time
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from ansible_collections.onprem.lb.plugins.module_utils._host import facts, package_sources
from ansible_collections.onprem.lb.plugins.module_utils._host.link import neighbours

Run = Callable[[List[str]], Tuple[int, str, str]]
Find = Callable[[str], Optional[str]]

# Both are made to print "NAME STATUS"; what is not installed they mention in other words.
INSTALLED = "install ok installed"
DAY = 86400.0
PATIENCE = 4.0  # seconds for a package source to answer
APT_SOURCES = ("/etc/apt/sources.list", "/etc/apt/sources.list.d/*.list", "/etc/apt/sources.list.d/*.sources")
APT_SETTINGS = ("/etc/apt/apt.conf", "/etc/apt/apt.conf.d/*")
YUM_SOURCES = ("/etc/yum.repos.d/*.repo",)
YUM_SETTINGS = ("/etc/dnf/dnf.conf",)
QUERIES = {
    "dpkg-query": ["--show", "--showformat", "${Package} ${Status}\\n"],
    "rpm": ["--query", "--queryformat", f"%{{NAME}} {INSTALLED}\\n"],
}


class Reader:
    """What can be asked of one host."""

    @classmethod
    def of(cls, module: Any) -> Reader:
        """Return the reader of the host on which an AnsibleModule runs."""
        return cls(module.run_command, lambda name: module.get_bin_path(name, opt_dirs=["/usr/sbin", "/sbin"]))

    def __init__(self, run: Run, find: Find) -> None:
        self.run = run
        self.find = find

    def text(self, path: str) -> str:
        """Return a file's text, or nothing when there is no such file or it may not be read."""
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return ""

    def addresses(self) -> Optional[List[Dict[str, Any]]]:
        """Return the host's addresses, or None without the program ip."""
        ip = self.find("ip")
        return facts.addresses(self.run([ip, "-json", "address"])[1]) if ip else None

    def answering(self, vips: List[str], wait: float, addresses: List[Dict[str, Any]]) -> Dict[str, List[str]]:
        """Return who else answers for each VIP on its link.

        :raises PermissionError: without the right to open raw sockets
        """
        links = facts.links_of(vips, addresses)
        return neighbours.holders_on_link(links, wait) if links else {}

    def missing_packages(self, wanted: List[str]) -> List[str]:
        """Return the packages that none of the host's managers has; the other family's may be there too, as a tool."""
        installed: Set[str] = set()
        for program, arguments in QUERIES.items():
            path = self.find(program)
            if path and wanted:
                said = self.run([path, *arguments, *wanted])[1]
                installed |= {line.split()[0] for line in said.splitlines() if line.endswith(INSTALLED)}
        return [name for name in wanted if name not in installed]

    def unobtainable(self, missing: List[str]) -> str:
        """Return why missing packages cannot be installed, '' where they can, as far as that can be told."""
        if not missing:
            return ""
        if self.find("apt-get"):
            sources = package_sources.apt(self._texts(*APT_SOURCES), self._texts(*APT_SETTINGS))
        else:
            sources = package_sources.yum(self._texts(*YUM_SOURCES), self._texts(*YUM_SETTINGS))
        return package_sources.unobtainable(sources, lambda places: facts.any_reachable(places, PATIENCE))

    def _texts(self, *patterns: str) -> List[str]:
        return [self.text(path) for pattern in patterns for path in sorted(glob.glob(pattern))]

    def package_lists_are_fresh(self, lists: str = "/var/lib/apt/lists", now: Optional[float] = None) -> bool:
        """Return whether apt has lists at all and has fetched them within a day; other managers look themselves."""
        if not os.path.isdir(lists):
            return True
        age = (now or time.time()) - os.stat(lists).st_mtime
        return bool(glob.glob(os.path.join(lists, "*_Packages*"))) and age < DAY

    def units_in(self, prop: str, state: str, wanted: List[str]) -> List[str]:
        """Return the units whose property has a state: ``ActiveState`` active, or ``UnitFileState`` enabled.

        systemd prints a paragraph for every unit, also for one that does not exist.
        """
        if not wanted:
            return []
        said = self.run(["systemctl", "show", f"--property=Id,{prop}", *wanted])[1]
        paragraphs = [dict(line.split("=", 1) for line in text.splitlines()) for text in said.strip().split("\n\n")]
        found = {paragraph.get("Id") for paragraph in paragraphs if paragraph.get(prop) == state}
        return [unit for unit in wanted if unit in found]

    def is_stale(self, path: str, unit: str) -> bool:
        """Return whether a running unit has not loaded its file: its youngest process is older than the file.

        haproxy forks a new worker for every file that it loads, and `systemctl reload` succeeds also when haproxy
        could not use the file after all and goes on with the old one.
        """
        said = self.run(["systemctl", "show", "--property=MainPID", "--value", unit])[1].strip()
        if not said.isdigit() or said == "0" or not os.path.exists(path):
            return False
        started = facts.youngest(int(said), time.time(), self.text("/proc/uptime"), facts.process_stats())
        return started < os.stat(path).st_mtime
