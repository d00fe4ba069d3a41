# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A planned handover between two members with a router and a proxy each: no client's connection attempt notices.

An attempt that loses a packet waits a second for the next one (RFC 6298, 2). Who had a connection through the member
that leaves is another matter: nobody here shares them.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import sys
import time

import pytest
from support.netns.links import PORT, VIP
from support.netns.namespaces import inside
from support.netns.stages import instance
from support.proxy.masters import Echo, Running
from support.waiting import LIMIT_S

EVERY_MS, LONG_MS = 2, 2500  # a connection is opened, and for how long
LATE_MS = 200  # long before a packet would be sent again, and after whatever a busy machine may cost
PRIORITIES = 254, 200  # so far apart that who leaves and does not wait would be missed by many
SERVER = "192.0.2.3"  # on the client's host: what becomes of the servers is not of interest here

ATTEMPTS = """
import json, sys
from ansible_collections.onprem.lb.plugins.module_utils._host.drill.prober import Prober, Settings
settings = Settings(*json.loads(sys.argv[1]))
print("ready", flush=True)
seen = Prober(settings).run(settings.duration_ms, None)
print(json.dumps([list(each) for each in seen.attempts]), flush=True)
"""


class Member:
    """A host with both daemons, in the order in which their units start."""

    def __init__(self, stage, stack, node, priority, **changes):
        self.node = node
        folder = stage.folder / f"proxy-{node.name}"
        folder.mkdir()
        program = ["ip", "netns", "exec", node.namespace, sys.executable, "-m", "_agent.cli"]
        service = {"name": "web", "bind": [VIP], "port": PORT, "servers": [SERVER]}
        # Whose client has moved on has nobody to hear its end from: such sessions are only waited for.
        whole = {"services": [service], "hard_stop_after": 1}
        self.proxy = stack.enter_context(Running(folder, whole, program=program))
        self.router = stage.agent(node, instance(node, priority, **changes))

    def stops_router(self):
        self.router.stops()

    def stops(self):
        """As its units do: what was started last first, and each has ended before the next one is told."""
        self.stops_router()
        self.proxy.process.terminate()
        assert self.proxy.process.wait(LIMIT_S) == 0, self.proxy.log

    def reboots(self):
        self.stops()
        self.node.ip("link", "set", "eth0", "down")


@pytest.fixture
def pair(stage):
    """Returns what starts both of them; the first one holds the address."""
    with contextlib.ExitStack() as stack:
        with inside(stage.link.client.namespace):
            stack.enter_context(Echo("a", PORT, SERVER))

        def start(**changes):
            members = [
                Member(stage, stack, node, priority, **changes)
                for node, priority in zip(stage.link.members, PRIORITIES)
            ]
            stage.held_by("lb1")
            stage.wait(lambda: stage.view().believed == "lb1", "it is not announced")
            return members

        yield start


def attempts_during(stage, event):
    """[(start, end, outcome)] of attempts in milliseconds; in the middle of them something happens."""
    client = stage.link.client.python(ATTEMPTS, json.dumps([VIP, PORT, EVERY_MS, 1000, LONG_MS]))
    assert client.stdout.readline() == "ready\n"
    time.sleep(LONG_MS / 5000)  # attempts before it
    event()
    return json.loads(client.communicate(timeout=60)[0])


def moves(stage, begin):
    """Whom clients believed, one after the other."""
    views = stage.recorder.views(VIP)
    before = [view for at, view in views if at < begin][-1:]
    return [who for who, _again in itertools.groupby(view.believed for view in [*before, *stage_since(views, begin)])]


def stage_since(views, begin):
    return [view for at, view in views if at >= begin]


WAYS = {
    "0.1 s, version 3": {},
    "1 s, version 2": {"version": 2, "advert_interval": 1},
}


@pytest.mark.timed
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("event", ["stops_router", "stops", "reboots"])
def test_no_connection_attempt_fails_or_waits(stage, pair, way, event):
    leaving, _staying = pair(**WAYS[way])
    begin = time.time()
    tried = attempts_during(stage, getattr(leaving, event))
    stage.held_by("lb2")
    assert moves(stage, begin) == ["lb1", "lb2"]
    assert len(tried) > LONG_MS / EVERY_MS / 2, "the client had no time"
    assert {outcome for _start, _end, outcome in tried} == {"ok"}
    slowest = max(end - start for start, end, _outcome in tried)
    assert slowest < LATE_MS
