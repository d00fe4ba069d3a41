# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A planned handover between two members, each with a router and a proxy, costs no connection attempt.

An attempt that loses a packet waits for a second before it sends another one (RFC 6298, 2). Open connections through
the old holder end, because members do not share connections; that is not tested here.
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

INTERVAL_MS, DURATION_MS = 2, 2500  # between attempts, and of all attempts
LATE_MS = 200  # well below the retransmission timeout, and above the delays of a busy machine
PRIORITIES = 254, 200  # so far apart that a holder that does not wait would cost many attempts
SERVER = "192.0.2.3"  # on the client's host, because a handover does not affect servers

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
        # Sessions of the old holder never learn that their clients have moved on, so they end by this limit.
        whole = {"services": [service], "hard_stop_after": 1}
        self.proxy = stack.enter_context(Running(folder, whole, program=program))
        self.router = stage.agent(node, instance(node, priority, **changes))

    def stop_router(self):
        self.router.stop()

    def stop(self):
        """Stop both as their units do: in reverse order, each after the other one has ended."""
        self.stop_router()
        self.proxy.process.terminate()
        assert self.proxy.process.wait(LIMIT_S) == 0, self.proxy.log

    def reboot(self):
        self.stop()
        self.node.ip("link", "set", "eth0", "down")


@pytest.fixture
def pair(stage):
    """Return a function that starts both members, of which the first one holds the address."""
    with contextlib.ExitStack() as stack:
        with inside(stage.link.client.namespace):
            stack.enter_context(Echo("a", PORT, SERVER))

        def start(**changes):
            members = [
                Member(stage, stack, node, priority, **changes)
                for node, priority in zip(stage.link.members, PRIORITIES)
            ]
            stage.wait_for_holders("lb1")
            stage.wait(lambda: stage.view().announcer == "lb1", "it is not announced")
            return members

        yield start


def attempts_during(stage, event):
    """Return the attempts as [(start, end, outcome)] in milliseconds; the event happens in the middle of them."""
    client = stage.link.client.python(ATTEMPTS, json.dumps([VIP, PORT, INTERVAL_MS, 1000, DURATION_MS]))
    assert client.stdout.readline() == "ready\n"
    time.sleep(DURATION_MS / 5000)  # some attempts before the event
    event()
    return json.loads(client.communicate(timeout=60)[0])


def announcers(stage, begin):
    """Return the members to which clients sent, one after the other."""
    views = stage.recorder.views(VIP)
    before = [view for at, view in views if at < begin][-1:]
    since = [view for at, view in views if at >= begin]
    return [name for name, _repeats in itertools.groupby(view.announcer for view in [*before, *since])]


VARIANTS = {
    "0.1 s, version 3": {},
    "1 s, version 2": {"version": 2, "advert_interval": 1},
}


@pytest.mark.timed
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("event", ["stop_router", "stop", "reboot"])
def test_no_connection_attempt_fails_or_waits(stage, pair, variant, event):
    leaving, _staying = pair(**VARIANTS[variant])
    begin = time.time()
    attempts = attempts_during(stage, getattr(leaving, event))
    stage.wait_for_holders("lb2")
    assert announcers(stage, begin) == ["lb1", "lb2"]
    assert len(attempts) > DURATION_MS / INTERVAL_MS / 2, "the client was too slow"
    assert {outcome for _start, _end, outcome in attempts} == {"ok"}
    slowest = max(end - start for start, end, _outcome in attempts)
    assert slowest < LATE_MS
