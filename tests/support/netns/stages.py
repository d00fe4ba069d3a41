# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Agents on a link, with configurations that a test writes, and a recorder."""

from __future__ import annotations

import contextlib
import itertools
import json
import signal
import threading

from support.netns.agents import Agent
from support.netns.links import VIP
from support.netns.recorder import Recorder, message_in
from support.waiting import LIMIT_S

INTERVAL = 0.1


class ReloadableAgent(Agent):
    """An agent whose configuration can change."""

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
    """Agents on a link, and a recorder."""

    def __init__(self, link, folder):
        self.link, self.folder = link, folder
        self.recorder = Recorder(link, threading.Event())
        self.agents = []

    def close(self):
        for agent in self.agents:
            agent.close()
        self.stop_recording()

    def stop_recording(self):
        """Close the recorder, for tests that send too much to record."""
        if self.recorder:
            self.recorder.close()
        self.recorder = None

    def agent(self, node, *instances, **others):
        """Start an agent; return it when it answers at its status socket."""
        agent = ReloadableAgent(node, self.folder / f"{node.name}-{len(self.agents)}", list(instances))
        self.agents.append(agent)
        if others:
            agent.write(**others)
        return self.start(agent)

    def start(self, agent):
        agent.start()
        return agent

    def wait(self, condition, message):
        met = self.recorder.wait(condition, LIMIT_S)
        assert met, message + "\n" + "\n".join(agent.log() for agent in self.agents)

    def wait_for_holders(self, *names, address=VIP):
        """Wait until these members hold the address, and no others."""
        self.wait(lambda: self.view(address).holders == list(names), f"{address} should be held by {names}")

    def view(self, address=VIP):
        return self.recorder.views(address)[-1][1]

    def events(self, begin, address=VIP, member="lb1"):
        """Return the time and the kind of each event of an address on a member."""
        events = [event for event in list(self.recorder.events) if (event.address, event.member) == (address, member)]
        return [(event.at, event.kind) for event in events if event.at >= begin]

    def address_changes(self, begin, address=VIP):
        """Return how the first member added and removed the address. A change of its flags counts for nothing."""
        kinds = [kind for _at, kind in self.events(begin, address) if kind != "announced"]
        return [kind for kind, _repeats in itertools.groupby(kinds)]

    def wait_for_announcement(self, begin, times=1, address=VIP):
        self.wait(lambda: self._announcements(begin, address) >= times, f"{address} is not announced")

    def wait_for_resignation(self, begin, vrid=51):
        """Wait until the last Advertisement of the first member says that it resigns."""
        self.wait(lambda: [sent[1] for sent in self.advertisements(begin, vrid=vrid)][-1:] == [0], "it does not resign")

    def _announcements(self, begin, address):
        return sum(kind == "announced" for _at, kind in self.events(begin, address))

    def advertisements(self, begin=0.0, member="lb1", vrid=51):
        """Return the time and the priority of each advertisement of a Virtual Router on a member."""
        sent = [one for one in list(self.recorder.advertisements) if one.member == member and one.at >= begin]
        messages = [(one.at, message_in(one.packet)) for one in sent]
        return [(at, message[2]) for at, message in messages if message[1] == vrid]


@contextlib.contextmanager
def temporary_stage(link, folder):
    made = Stage(link, folder)
    try:
        yield made
    finally:
        made.close()


def instance(node, priority=254, vrid=51, name="front", vip=VIP, **changes):
    """Return an instance with VRRP version 3, ten advertisements a second, and the other member as its peer."""
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
