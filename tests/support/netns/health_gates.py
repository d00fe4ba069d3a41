# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The health gate of anycast VIPs in a member's namespace, with a down file and a record that holds it back."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
from pathlib import Path

from support.netns.agents import Agent, open_text
from support.waiting import LIMIT_S, until

VIP, VIP6 = "192.0.2.200", "2001:db8::200"
NAMES = {VIP: "front", VIP6: "six"}


class HealthGate(Agent):
    kind = "health gate"

    def __init__(self, node, folder, vips=(VIP, VIP6)):
        self.vips = vips
        super().__init__(node, folder, [])

    def prepare(self):
        self.record = self.folder / "record.json"
        self.write(*self.vips)

    def write(self, *vips, **others):
        settings = {
            "vips": [{"name": NAMES[vip], "address": vip, "track": ["down"]} for vip in vips],
            "checks": [{"name": "down", "type": "file", "file": str(self.tracked)}],
            "held_back": [str(self.record)],
            "status_socket": self.socket,
            **others,
        }
        (self.folder / "anycast.json").write_text(json.dumps(settings))

    def command(self):
        return [sys.executable, "-S", "-m", "_agent.cli", "anycast", "--config", str(self.folder / "anycast.json")]

    def signal(self, number):
        """Signal the daemon alone, and not its checks process."""
        self.process.send_signal(number)

    def end(self, number):
        """End the daemon by a signal, and all that it has started; return how it ended."""
        self.signal(number)
        return self.process.wait(LIMIT_S)

    def reload(self, fault=None):
        """Have it load its file, and wait for what it says of it."""
        said = self.said().count("is in force.") + self.said().count("The reload is refused")
        self.signal(signal.SIGHUP)
        until(lambda: self.said().count("is in force.") + self.said().count("The reload is refused") > said, self.log)
        assert bool(self.report()["config_fault"]) is bool(fault)

    def said(self):
        return (self.folder / "log").read_text()

    def on(self, interface="lo"):
        """Return the VIPs on an interface, each with its prefix length."""
        shown = json.loads(self.node.output("ip", "-json", "addr", "show", "dev", interface))
        found = [known for link in shown for known in link.get("addr_info", []) if known]
        return {f"{known['local']}/{known['prefixlen']}" for known in found if known["local"] in NAMES}

    def has(self, *vips):
        return self.on() == {f"{vip}/{128 if ':' in vip else 32}" for vip in vips}

    def checks_process(self):
        """Return the number of its checks process, 0 while there is none."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        for pid in path.read_text().split():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a child may end at any time
                if open_text(f"/proc/{pid}/comm") == "gate-checks\n":
                    return int(pid)
        return 0

    def clear(self):
        for address in self.on():
            self.node.ip("addr", "del", address, "dev", "lo")
