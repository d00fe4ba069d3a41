# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hosts, seen without Ansible: who holds the VIPs, who can take over, what answers, and what is there."""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, ContextManager, Dict, Iterable, List, Tuple

from support.waiting import happens

from lab import hosts, inventory
from lab.layout import Lab
from lab.shell import LabError

from .operations import Layout
from .watch import Watch, watching

ROUTERS = "keepalived.service onprem-lb-vrrp.service"
TAKEOVER_S = 15.0
RETURNS_S = 20.0  # how long members take to return, once their time has come
LOCK = "/run/onprem-lb.lock\n"  # a killed run leaves it, and the next one takes it over
DUE = "cat /var/lib/onprem.lb/undo/due.json 2>/dev/null"
ARMED = "systemctl list-units --plain --no-legend 'onprem-lb-undo.*'"
# What runs write and start, with the contents of files. The accounts are the packages' own, and numbered as they come.
FOOTPRINT = r"""
find /etc /opt /usr/local -xdev -type f ! -name '*.lock' ! -regex '/etc/\(passwd\|shadow\|group\|gshadow\|sub.id\)-?' |
    sort | xargs -d '\n' sha256sum
find /etc/systemd /run/systemd/system -xdev -type l -printf '%p -> %l\n' | sort
ls -d /run/onprem* /run/*.down /run/*.loaded 2>/dev/null
systemctl list-units --plain --no-legend --state=active,failed 'haproxy*' 'keepalived*' 'onprem*' | cut -d' ' -f1
nft --stateless list ruleset
sysctl net.ipv4.ip_nonlocal_bind net.ipv6.ip_nonlocal_bind
dpkg-query --show --showformat '${Package} ${Status}\n' haproxy keepalived 2>/dev/null
"""


class Hosts:
    """The hosts of a lab that is up."""

    def __init__(self, layout: Layout, lab: Lab) -> None:
        self.layout, self.lab = layout, lab
        self.described = inventory.read(lab.inventory)["all"]
        self.variables = self.described["vars"]

    def run(self, host: str, command: str) -> str:
        """Run a shell command as root on a host and return its output. It may fail."""
        words = [*hosts.ssh_command(self.lab, host), "sudo", "bash", "-s"]
        return subprocess.run(words, input=command, text=True, stdout=subprocess.PIPE, check=False, timeout=60).stdout

    def watching(self) -> ContextManager[Watch]:
        """Watch who holds the VIPs, on all hosts that may be a member."""
        return watching({name: hosts.ssh_command(self.lab, name, shared=False) for name in self.layout.groups})

    def vips(self) -> List[str]:
        """Return all VIPs."""
        return [self.variables[vip] for vip in self.layout.vips_of(self.layout.groups)]

    def inventory_of(self, members: Iterable[str]) -> Dict[str, object]:
        """Return the lab's inventory with these members, and without the other hosts that may be one."""
        known = {
            name: variables
            for group in self.described["children"].values()
            for name, variables in group["hosts"].items()
        }
        groups: Dict[str, Dict[str, object]] = {"backends": {}, "probe": {}, **{g: {} for g in self.layout.vips}}
        for name, variables in known.items():
            if name in members:
                groups[self.layout.groups[name]][name] = variables
            elif name not in self.layout.groups:
                groups["backends" if name.startswith("node") else "probe"][name] = variables
        children = {name: {"hosts": content} for name, content in groups.items()}
        return {"all": {"vars": self.variables, "children": children}}

    def holders(self) -> Dict[str, List[str]]:
        """Return the holders of each VIP, among all hosts that may be a member."""
        with ThreadPoolExecutor(len(self.layout.groups)) as pool:
            names = list(self.layout.groups)
            seen = dict(zip(names, pool.map(lambda name: self.run(name, "ip -oneline address"), names)))
        return {vip: [name for name in names if f" {vip}/" in seen[name]] for vip in self.vips()}

    def not_served(self, members: Tuple[str, ...]) -> str:
        """Wait until each VIP has one holder and the services answer through it; return what is missing in the end."""
        return self._missing(lambda: self._not_held(self.layout.vips_of(members)) or self._not_answered())

    def not_taken_over(self, members: Tuple[str, ...]) -> str:
        """Let each member be the only one with a router; return what one of them does not do then."""
        for member in members:
            others = [name for name in members if name != member]
            running = {name: units for name in others if (units := self._running(name))}
            for name in running:
                self.run(name, f"systemctl stop {running[name]}")
            vips = self.layout.vips_of([member])
            missing = self._missing(lambda: self._not_held(vips, member) or self._not_answered(vips))  # noqa: B023
            for name in running:
                self.run(name, f"systemctl start {running[name]}")
            if missing:
                return f"without the routers of the others: {missing}"
        return self.not_served(members)

    def _running(self, name: str) -> str:
        """Return the routers that run on a host."""
        units = self.run(name, f"systemctl list-units --plain --no-legend --state=active {ROUTERS}")
        return " ".join(line.split()[0] for line in units.splitlines())

    def not_returned(self, before: Dict[str, str]) -> str:
        """Wait until the members have returned from a killed run; return what then differs from before it."""
        due = [json.loads(text) for text in (self.run(name, DUE) for name in self.layout.groups) if text]
        limit = max((each["after"] for each in due), default=0.0) + RETURNS_S
        waiting = self._missing(lambda: ", ".join(name for name in self.layout.groups if self.run(name, ARMED)), limit)
        if waiting:
            return f"after {limit:.0f} s {waiting} had not returned"
        after = {name: text.replace(LOCK, "") for name, text in self.footprint().items()}
        other = difference(before, after)
        return other and f"returned, but {other}"

    def footprint(self) -> Dict[str, str]:
        """Return what runs have left on the hosts that may be a member."""
        with ThreadPoolExecutor(len(self.layout.groups)) as pool:
            names = list(self.layout.groups)
            found = dict(zip(names, pool.map(lambda name: self.run(name, FOOTPRINT), names)))
        if not all(found.values()):
            raise LabError(f"no answer from {', '.join(name for name, text in found.items() if not text)}")
        return found

    def _missing(self, find: Callable[[], str], seconds: float = TAKEOVER_S) -> str:
        return "" if happens(lambda: not find(), seconds) else find()

    def _not_held(self, vips: List[str], by: str = "") -> str:
        holders = self.holders()
        wrong = {vip: holders[vip] for vip in (self.variables[name] for name in vips) if len(holders[vip]) != 1}
        if by:
            wrong = {vip: holders[vip] for vip in (self.variables[name] for name in vips) if holders[vip] != [by]}
        return "; ".join(f"{vip} is held by {' and '.join(names) or 'nobody'}" for vip, names in wrong.items())

    def _not_answered(self, vips: Iterable[str] = ()) -> str:
        urls = [url for url in self.layout.urls if not vips or any(f"{{{vip}}}" in url for vip in vips)]
        named = [url.format(**self.variables) for url in urls]
        command = "\n".join(f"curl --silent --insecure --max-time 3 {url} >/dev/null || echo {url}" for url in named)
        silent = self.run(self.layout.client, command).split()
        return f"no answer from {', '.join(silent)}" if silent else ""


def difference(before: Dict[str, str], after: Dict[str, str]) -> str:
    """Return the lines that are only in one of two footprints, those before with a minus."""
    found = []
    for name, text in before.items():
        old, new = text.splitlines(), after[name].splitlines()
        lines = [f"-{line}" for line in old if line not in new] + [f"+{line}" for line in new if line not in old]
        found += [f"{name}: {', '.join(lines)}"] if lines else []
    return "; ".join(found)
