# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Agents on a link whose configuration a test writes itself, and a record of what they do."""

from __future__ import annotations

import itertools
import json
import signal
import threading

from support.netns.agents import Agent
from support.netns.links import VIP
from support.netns.recorder import Recorder, message_in
from support.waiting import LIMIT_S

INTERVAL = 0.1


class Living(Agent):
    """An agent whose configuration changes."""

    def prepare(self):
        self.write()

    def write(self, instances=None, **others):
        whole = {"instances": self.instances if instances is None else instances, "status_socket": self.socket}
        (self.folder / "agent.json").write_text(json.dumps({**whole, "script_user": "root", **others}))

    def reload(self):
        self.process.send_signal(signal.SIGHUP)

    def instance(self, name="front"):
        return next(each for each in self.report()["instances"] if each["name"] == name)


class Stage:
    """Agents on a link, and a record of it."""

    def __init__(self, link, folder):
        self.link, self.folder = link, folder
        self.recorder = Recorder(link, threading.Event())
        self.agents = []

    def close(self):
        for agent in self.agents:
            agent.close()
        self.stop_recording()

    def stop_recording(self):
        """Whatever comes now is too much to be read."""
        if self.recorder:
            self.recorder.close()
        self.recorder = None

    def agent(self, node, *instances, **others):
        """One that runs and answers."""
        agent = Living(node, self.folder / f"{node.name}-{len(self.agents)}", list(instances))
        self.agents.append(agent)
        if others:
            agent.write(**others)
        return self.start(agent)

    def start(self, agent):
        agent.starts()
        return agent

    def wait(self, condition, what):
        found = self.recorder.wait(condition, LIMIT_S)
        assert found, what + "\n" + "\n".join(agent.log() for agent in self.agents)

    def held_by(self, *names, address=VIP):
        """Wait until these hold the address, and no other."""
        self.wait(lambda: self.view(address).holders == list(names), f"{address} should be with {names}")

    def view(self, address=VIP):
        return self.recorder.views(address)[-1][1]

    def happened(self, begin, address=VIP, member="lb1"):
        """[(moment, what)]"""
        seen = [one for one in list(self.recorder.seen) if (one.address, one.member) == (address, member)]
        return [(one.at, one.what) for one in seen if one.at >= begin]

    def moved(self, begin, address=VIP):
        """How it came and went on the first member; that its flags changed is told as if it came again."""
        told = [what for _at, what in self.happened(begin, address) if what != "announced"]
        return [what for what, _again in itertools.groupby(told)]

    def is_announced(self, begin, times=1, address=VIP):
        """Wait until it has been."""
        self.wait(lambda: self._announced(begin, address) >= times, "it is not announced")

    def _announced(self, begin, address):
        return sum(what == "announced" for _at, what in self.happened(begin, address))

    def said(self, begin=0.0, member="lb1", vrid=51):
        """[(moment, priority)] of the advertisements."""
        found = [(one.at, one.member, message_in(one.packet)) for one in list(self.recorder.said) if one.at >= begin]
        return [(at, message[2]) for at, name, message in found if (name, message[1]) == (member, vrid)]


def instance(node, priority=254, vrid=51, name="front", vip=VIP, **changes):
    """Version 3, ten advertisements a second, to the other member."""
    peer = f"192.0.2.{3 - node.number}"
    return {
        "name": name,
        "interface": "eth0",
        "vrid": vrid,
        "version": 3,
        "priority": priority,
        "advert_interval": INTERVAL,
        "peers": [peer],
        "addresses": [f"{vip}/32"],
        **changes,
    }
