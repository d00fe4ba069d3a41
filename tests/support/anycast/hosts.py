# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host for the keeper of anycast VIPs: that of the VRRP daemon, with an lo, and a folder for the files it reads."""

from __future__ import annotations

import json

from ansible_collections.onprem.lb.plugins.module_utils._agent.anycast.keeper import Dependencies, Keeper
from ansible_collections.onprem.lb.plugins.module_utils._agent.anycast.settings import Settings, Vip
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.checks_process import Result
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.settings import FILE, INTERFACE, TCP, Check

from support.vrrp import fakes

DOWN_FILE = Check("haproxy_down", FILE, file="/run/haproxy.down")
ANSWERS = Check("answers", TCP, address="127.0.0.1", port=443)
UPLINK = Check("uplink", INTERFACE, interface="eth0")
VIP = Vip("front", "192.0.2.10/32", ("haproxy_down", "answers"))
SIX = Vip("six", "2001:db8::10/128", ("haproxy_down",))
UP = {
    "haproxy_down": Result("haproxy_down", True, 0, ""),
    "answers": Result("answers", True, 0, "connected"),
}
DOWN = Result("haproxy_down", False, 1, "")
MISSING = Result("haproxy_down", True, 0, "no such file or directory", known=False)


class Host:
    def __init__(self, folder):
        self.folder, self.journal = folder, []
        self.network = fakes.Network(self.journal)
        self.netlink = self.network.netlink
        self.loop = fakes.Loop(lambda descriptor: descriptor == self.netlink.fileno() and bool(self.netlink.pending))
        self.checks = fakes.Checks(self.journal)
        self.record = folder / "switchover.json"
        for index, name in ((1, "lo"), (2, "eth0")):
            self.netlink.link(name, index)
        self.another_process()

    def another_process(self):
        """The daemon is started again, and knows nothing of what it did before."""
        log = fakes.Log(self.journal)
        self.keeper = Keeper(Dependencies(self.loop, self.netlink, self.checks, log, self.wall))

    def wall(self):
        return fakes.EPOCH + self.loop.now() / fakes.SECOND

    def settings(self, *vips, **others):
        found = {"checks": (DOWN_FILE, ANSWERS, UPLINK), "held_back": (str(self.record),), **others}
        return Settings(vips or (VIP,), status_socket=str(self.folder / "status.sock"), **found)

    def start(self, *vips, **others):
        self.keeper.start(self.settings(*vips, **others))
        return self.let()

    def apply(self, *vips, **others):
        self.keeper.apply(self.settings(*vips, **others))
        return self.let()

    def let(self, seconds=0.0):
        self.loop.let(seconds)
        return self

    def up(self):
        """Every check succeeds."""
        for result in UP.values():
            self.keeper.take_result(result)
        return self.let()

    def take(self, *results):
        for result in results:
            self.keeper.take_result(result)
        return self.let()

    def serving(self, *vips):
        self.start(*vips).up()
        self.journal.clear()
        return self

    def hold_back(self, **record):
        self.record.write_text(json.dumps({"since": "2026-01-01", "by": "anna", **record}))
        return self.let(3)

    @property
    def on_lo(self):
        """The addresses on lo, with their prefix lengths."""
        return {f"{address}/{prefix}" for index, address, prefix in self.netlink.there if index == 1}

    def done(self):
        """Return the journal since the last call."""
        found, self.journal[:] = [*self.journal], []
        return found

    def vip(self, name="front"):
        return next(each for each in self.keeper.report()["vips"] if each["name"] == name)
