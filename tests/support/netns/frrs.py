# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""FRR's vrrpd in a member's namespace, with the zebra that it asks to move addresses.

It holds an address by an interface of its own: a macvlan with RFC 9568's virtual MAC that has the address all the time,
and no carrier unless it is Active. Somebody else must have made it. It sends its IPv6 from that interface as well.
"""

from __future__ import annotations

import ipaddress
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from support.netns.agents import Daemon
from support.netns.links import sh

PROGRAMS = Path("/usr/lib/frr")
USER = "frr"  # neither program runs as anybody else, and everything that they open must be theirs


class Macvlan(NamedTuple):
    name: str
    mac: str
    address: str


class Vrrpd(Daemon):
    kind = "vrrpd"
    lost = {6: 1}  # it sends from its interface, and has not heard yet that this has an address again
    silent = True  # as RFC 5798 section 6.4.3 says

    def prepare(self):
        self.macvlans = [self._macvlan(instance) for instance in self.instances]
        for number, macvlan in enumerate(self.macvlans, 1):
            self._make(macvlan, number)
        # The tests' own folder is closed to others: not so /tmp.
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

    def _make(self, macvlan, number):
        ip, name = self.node.ip, macvlan.name
        ip("link", "add", "link", "eth0", "name", name, "address", macvlan.mac, "type", "macvlan", "mode", "bridge")
        ip("link", "set", name, "addrgenmode", "none")
        ip("addr", "add", macvlan.address, "dev", name, "nodad")
        if ":" in macvlan.address:
            # The address to send from; like those of all members, the greater the member's number the greater.
            ip("addr", "add", f"fe80::{'ffff:' if self.node.number > 1 else ''}0:{number}/64", "dev", name, "nodad")
        ip("link", "set", name, "up")

    @staticmethod
    def _lines(vrid, priority, advert_interval, preempt, addresses, **_rest):
        yield f" vrrp {vrid} version 3"
        yield f" vrrp {vrid} priority {priority}"
        yield f" vrrp {vrid} advertisement-interval {round(advert_interval * 1000)}"
        yield f" {'' if preempt else 'no '}vrrp {vrid} preempt"
        for address in (found.partition("/")[0] for found in addresses):
            yield f" vrrp {vrid} {'ipv6' if ':' in address else 'ip'} {address}"

    def _program(self, name):
        files = ["-f", self.own / f"{name}.conf", "-i", self.own / f"{name}.pid", "-z", self.own / "zebra.socket"]
        return [str(word) for word in (PROGRAMS / name, *files, "--vty_socket", self.own, "-P", 0, "--log", "stdout")]

    def command(self):
        return self._program("vrrpd")

    def starts(self):
        self.until((self.own / "zebra.socket").exists, self.zebra)
        super().starts()

    def falls(self):
        """It tracks nothing: somebody changes its priorities."""
        self._set({each["vrid"]: max(1, each["priority"] + each["track"][0]["weight"]) for each in self.instances})

    def rises(self):
        self._set({each["vrid"]: each["priority"] for each in self.instances})

    def _set(self, priorities):
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
