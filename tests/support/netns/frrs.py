# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""FRR's vrrpd in a member's namespace, with zebra, which moves the addresses.

vrrpd holds an address by a macvlan with RFC 9568's virtual MAC, which the administrator must create. The macvlan always
has the address, and a carrier only while the router is Active. vrrpd sends IPv6 from that interface as well.
"""

from __future__ import annotations

import ipaddress
import re
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from support.netns.agents import Daemon
from support.netns.links import sh

PROGRAMS = Path("/usr/lib/frr")
USER = "frr"  # both programs change to this user, which must own all files that they open


class Macvlan(NamedTuple):
    name: str
    mac: str
    address: str


class Vrrpd(Daemon):
    kind = "vrrpd"
    lost = {6: 1}  # it sends from the macvlan before it knows that this has a usable address
    silent = True  # as in RFC 5798, section 6.4.3

    def prepare(self):
        self.macvlans = [self._macvlan(instance) for instance in self.instances]
        for number, macvlan in enumerate(self.macvlans, 1):
            self._add(macvlan, number)
        # Other users cannot enter the tests' own folder, but they can enter /tmp.
        self.own = Path(tempfile.mkdtemp(prefix="onpremlb-frr-"))
        shutil.chown(self.own, USER, USER)
        lines = [line for instance in self.instances for line in self._lines(**instance)]
        (self.own / "vrrpd.conf").write_text("\n".join(["interface eth0", *lines, ""]))
        (self.own / "zebra.conf").touch()
        self.zebra = self.spawn(self._program("zebra"))

    @staticmethod
    def _macvlan(instance):
        address, vrid = instance["addresses"][0].partition("/")[0], instance["vrid"]
        family = ipaddress.ip_address(address).version
        return Macvlan(f"vrrp{family}-{vrid}", f"00:00:5e:00:{1 if family == 4 else 2:02x}:{vrid:02x}", address)

    def _add(self, macvlan, number):
        ip, name = self.node.ip, macvlan.name
        ip("link", "add", "link", "eth0", "name", name, "address", macvlan.mac, "type", "macvlan", "mode", "bridge")
        ip("link", "set", name, "addrgenmode", "none")
        ip("addr", "add", macvlan.address, "dev", name, "nodad")
        if ":" in macvlan.address:
            # The source address. As for all members, a greater number of the member makes it greater.
            ip("addr", "add", f"fe80::{'ffff:' if self.node.number > 1 else ''}0:{number}/64", "dev", name, "nodad")
        ip("link", "set", name, "up")

    @staticmethod
    def _lines(vrid, priority, advert_interval, preempt, addresses, **_rest):
        yield f" vrrp {vrid} version 3"
        yield f" vrrp {vrid} priority {priority}"
        yield f" vrrp {vrid} advertisement-interval {round(advert_interval * 1000)}"
        yield f" {'' if preempt else 'no '}vrrp {vrid} preempt"
        for address in (item.partition("/")[0] for item in addresses):
            yield f" vrrp {vrid} {'ipv6' if ':' in address else 'ip'} {address}"

    def _program(self, name):
        files = ["-f", self.own / f"{name}.conf", "-i", self.own / f"{name}.pid", "-z", self.own / "zebra.socket"]
        return [str(word) for word in (PROGRAMS / name, *files, "--vty_socket", self.own, "-P", 0, "--log", "stdout")]

    def command(self):
        return self._program("vrrpd")

    def start(self):
        self.until((self.own / "zebra.socket").exists, self.zebra)
        super().start()

    def is_backup(self):
        shown = sh("vtysh", "--vty_socket", str(self.own), "-c", "show vrrp")
        return len(re.findall(r"Status \(v[46]\) +Backup", shown)) == len(self.instances)

    def fail_tracking(self):
        """Lower its priorities, because it has no trackers."""
        self._set_priorities(
            {each["vrid"]: max(1, each["priority"] + each["track"][0]["weight"]) for each in self.instances}
        )

    def recover_tracking(self):
        self._set_priorities({each["vrid"]: each["priority"] for each in self.instances})

    def _set_priorities(self, priorities):
        lines = [
            "configure terminal",
            "interface eth0",
            *(f"vrrp {vrid} priority {n}" for vrid, n in priorities.items()),
        ]
        sh("vtysh", "--vty_socket", str(self.own), *(word for line in lines for word in ("-c", line)))

    def close(self):
        super().close()
        self.zebra.kill()
        self.zebra.wait()
        shutil.rmtree(self.own)
