# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The layout of a play on a link of its own: it fails as the play says, and changes as the role `pair` changes it."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, List

from ansible_collections.onprem.lb.plugins.module_utils._plan.change.changes import longest_skew
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast.forecast import SWITCH_MS
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import Plan
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair
from ansible_collections.onprem.lb.plugins.module_utils._shared import events
from support.netns.links import Link, sh
from support.netns.recorder import Recorder
from support.plans.pairs import member
from support.waiting import happens

from chaos import plays
from chaos.load import SERVER, Load
from chaos.members import SERVICE_PORT, Member
from chaos.plays import Fault, Play, Round

SERVER_PORTS = (9001, 9002, 9003)
STEADY_S = 0.4  # longer than the second round of announcements, or a late announcement of the loser, takes
PASSWORDS = ("0f3a9c1e", "5b7d20c4")


class Cluster:
    """The members of a play, a client that loads them, and a recorder."""

    def __init__(self, play: Play, folder: Path) -> None:
        self.play, self.folder = play, folder
        self.link = Link(len(play.members))
        self.members: Dict[str, Member] = {}
        self.version = dict.fromkeys(plays.CHANGES, 0)  # how often each setting has changed
        self.plan = self._plan()

    def __enter__(self) -> Cluster:
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self) -> None:
        self.link.start()
        self.recorder = Recorder(self.link, threading.Event())
        assert self.link.client.python(SERVER, *SERVER_PORTS).stdout.readline() == "ready\n"
        for node in self.link.members:
            own = (self.folder / node.name, self.plan.members[node.name], self.auth_pass, self._recording(node.name))
            self.members[node.name] = Member(node, *own)
        for each in self.members.values():
            each.start()
        self.load = Load(self.link.client.namespace, self.vips, SERVICE_PORT)

    def _recording(self, name: str) -> Callable[[str], Any]:
        return lambda kind: self.recorder.record(name, kind)

    def __exit__(self, *_exception: Any) -> None:
        for part in ("load", "recorder"):
            if hasattr(self, part):
                getattr(self, part).close()
        for each in self.members.values():
            each.close()
        self.link.stop()

    def _plan(self) -> Plan:
        servers = [
            {"name": f"s{port}", "address": f"192.0.2.{self.link.client.number}", "port": port}
            for port in SERVER_PORTS[: 2 + self.version[plays.SERVERS] % 2]
        ]
        service = {"name": "web", "port": SERVICE_PORT, "servers": servers, "balance": "roundrobin"}
        settings = {**self.play.settings, "masters": [], "infra_nodes": [], "services": [service]}
        hosts = [member(number, **settings, engine=engine) for number, engine in enumerate(self.play.engines, 1)]
        plan = pair.plan(hosts[::-1] if self.version[plays.ORDER] % 2 else hosts)
        assert not plan.faults, plan.faults
        return plan

    @property
    def auth_pass(self) -> str:
        return PASSWORDS[self.version[plays.PASSWORD] % 2] if self.play.settings["vrrp_version"] == 2 else ""

    @property
    def vips(self) -> List[str]:
        return self.play.settings["vips"]

    def _configure(self) -> None:
        for name, one in self.members.items():
            one.configure(self.plan.members[name], self.auth_pass)

    def fail(self, fault: Fault) -> None:
        one = self.members[fault.member]
        actions: Dict[str, Callable[[], Any]] = {
            events.HAPROXY_KILLED: one.balancer.kill,
            events.HAPROXY_STOPPED: one.balancer.stop,
            events.HAPROXY_HUNG: one.balancer.suspend,
            events.HAPROXY_RELOADED: one.reload_balancer,
            events.KEEPALIVED_KILLED: one.router.kill,
            events.KEEPALIVED_STOPPED: one.router.stop,
            plays.KEEPALIVED_RELOADED: one.reload_router,
            events.BOTH_RELOADED: lambda: self._reload(one),
            events.HOST_CUT: lambda: self._cut(fault.member),
            events.PORT_DOWN: lambda: self._lose_link(fault.member),
            events.HOST_REBOOTED: lambda: self._shut_down(one),
        }
        actions[fault.event]()

    def revert(self, fault: Fault) -> None:
        one = self.members[fault.member]
        actions: Dict[str, Callable[[], Any]] = {
            events.HAPROXY_STOPPED: one.balancer.start,
            events.HAPROXY_HUNG: one.balancer.resume,
            events.KEEPALIVED_STOPPED: one.router.start,
            events.HOST_CUT: lambda: self._join(fault.member),
            events.PORT_DOWN: lambda: self._regain_link(fault.member),
            events.HOST_REBOOTED: lambda: self._boot(one),
        }
        actions.get(fault.event, one.balancer.wait_until_ready)()

    def _cut(self, name: str) -> None:
        self.recorder.record(name, "cut")
        self._set_port(name, "nomaster")

    def _join(self, name: str) -> None:
        self._set_port(name, "master", "br0")
        self.recorder.record(name, "joined")

    def _lose_link(self, name: str) -> None:
        self.recorder.record(name, "cut")
        self._set_port(name, "down")

    def _regain_link(self, name: str) -> None:
        self._set_port(name, "up")
        self.recorder.record(name, "joined")

    def _set_port(self, name: str, *setting: str) -> None:
        sh("ip", "-n", self.link.bridge, "link", "set", self.members[name].node.port, *setting)

    @staticmethod
    def _reload(one: Member) -> None:
        one.reload_balancer()
        one.reload_router()

    @staticmethod
    def _shut_down(one: Member) -> None:
        one.router.stop()
        one.balancer.stop()

    @staticmethod
    def _boot(one: Member) -> None:
        one.balancer.start()
        one.router.start()

    def change(self, setting: str) -> None:
        """Change a setting in the order in which the role does."""
        self.version[setting] += 1
        self.plan = self._plan()
        {plays.SERVERS: self._change_servers, plays.ORDER: self._change_routers, plays.PASSWORD: self._change_password}[
            setting
        ]()

    def _change_servers(self) -> None:
        self._configure()
        for one in self.members.values():
            one.reload_balancer()

    def _change_routers(self) -> None:
        self._configure()
        for one in self.members.values():
            one.reload_router()

    def _change_password(self) -> None:
        """The holder's router runs alone meanwhile: members that differ would both hold the VIP."""
        holders = [name for vip in self.vips for name in self.holders(vip)]
        sole = max(self.members, key=holders.count)
        others = [one for name, one in self.members.items() if name != sole]
        for one in others:
            one.router.stop()
        self._configure()
        self.members[sole].reload_router()
        for one in others:
            one.router.start()

    def handovers_ms(self, turn: Round, vip: str) -> float:
        """Return what a round costs a VIP at most that goes from member to member until the sole router has it.

        Each of them takes it over after its Skew_Time (RFC 9568 6.4.2).
        """
        if turn.change != plays.PASSWORD:
            return 0
        own = [each for member in self.plan.members.values() for each in member.router.instances]
        mine = [each for each in own if vip in {address.split("/")[0] for address in each["addresses"]}]
        skews = [(256 - each["priority"]) / 256 * longest_skew(each) for each in mine]
        return sum(1000 * skew + SWITCH_MS for skew in sorted(skews)[1:])

    @staticmethod
    def pause(seconds: float) -> None:
        """Wait until the next moment of the play."""
        threading.Event().wait(max(0.0, seconds))

    def holders(self, vip: str) -> List[str]:
        return self.recorder.views(vip)[-1][1].holders

    def settle(self, limit: float) -> bool:
        """Wait until each VIP is served by the one member that should have it, and stays so, and all could take over.

        Without preemption that is any one member.
        """
        deadline = time.monotonic() + limit
        while self.recorder.wait(self._is_settled, deadline - time.monotonic()):
            if not happens(lambda: not self.hindrances(), deadline - time.monotonic()):
                return False
            if not self.recorder.wait(lambda: not self._is_settled(), STEADY_S):
                return True
        return False

    def hindrances(self) -> List[str]:
        """Return why members could not take over."""
        return [found for found in (one.hindrance() for one in self.members.values()) if found]

    def _is_settled(self) -> bool:
        return all(self._is_right(vip) for vip in self.plan.vips)

    def _is_right(self, vip: Any) -> bool:
        view = self.recorder.views(vip.address)[-1][1]
        expected = vip.order[0] if self.play.settings["preempt"] else view.announcer
        return view.served and view.announcer == expected and view.holders == [expected]
