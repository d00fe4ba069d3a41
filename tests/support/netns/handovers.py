# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Two members, each with a router and a proxy, and a client that connects all the time while one leaves."""

from __future__ import annotations

import contextlib
import itertools
import json
import sys
import time
from typing import Dict, List, Tuple

from support.netns.links import PORT, VIP
from support.netns.namespaces import inside
from support.netns.recorder import message_in, open_capture, receive_frame
from support.netns.stages import instance
from support.proxy.masters import Echo, Running
from support.waiting import LIMIT_S, until

INTERVAL_MS = 5  # between two attempts
SOME = 20  # attempts before, and after a handover
# An owner is Active at once. The other's Skew_Time is long, so a holder that does not wait would cost many attempts.
PRIORITIES = 255, 200
SERVER = "192.0.2.3"  # on the client's host, because a handover does not affect servers

ATTEMPTS = """
import json, sys
from ansible_collections.onprem.lb.plugins.module_utils._host.drill.prober import Goal, Prober, Settings
address, port, interval, limit, path = json.loads(sys.argv[1])
settings = Settings(address, port, interval, 1000, limit)
seen = Prober(settings).run(settings.duration_ms, Goal(path=path))
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


@contextlib.contextmanager
def members(stage, **changes):
    """Run both members, of which the first one holds the address."""
    with contextlib.ExitStack() as stack:
        with inside(stage.link.client.namespace):
            stack.enter_context(Echo("a", PORT, SERVER))
        both = [Member(stage, stack, *each, **changes) for each in zip(stage.link.members, PRIORITIES)]
        stage.wait_for_holders("lb1")
        stage.wait(lambda: stage.view().announcer == "lb1", "it is not announced")
        yield both


class Attempts:
    """Connects until it is told to end. The client's SYNs are captured where it joins the bridge."""

    def __init__(self, stage):
        self.stage, self.enough = stage, stage.folder / "enough"
        self.begin = time.time()
        self.syns: Dict[bytes, List[Tuple[float, bytes]]] = {}  # by connection: when each was sent, and to which MAC
        self._capture = open_capture(stage.link.bridge, stage.link.client.port)
        self._capture.setblocking(False)
        options = [VIP, PORT, INTERVAL_MS, LIMIT_S * 1000, str(self.enough)]
        self._client = stage.link.client.python(ATTEMPTS, json.dumps(options))

    def wait_for_some(self, node):
        """Wait until some more SYNs have gone to a member."""
        enough = self._sent_to(node) + SOME
        until(lambda: self._sent_to(node) >= enough, "the client does not connect")

    def _sent_to(self, node):
        with contextlib.suppress(BlockingIOError):
            while True:
                at, frame = receive_frame(self._capture)
                if frame[12:14] == b"\x08\x00" and frame[23] == 6 and frame[47] & 0x12 == 0x02:
                    connection = frame[26:36] + frame[38:42]  # addresses, source port, sequence number
                    self.syns.setdefault(connection, []).append((at, frame[:6]))
        mac = bytes.fromhex(node.mac.replace(":", ""))
        return sum(sent[0][1] == mac for sent in self.syns.values())

    def end(self):
        """Return the outcomes."""
        self.enough.touch()
        outcomes = [outcome for _start, _end, outcome in json.loads(self._client.communicate(timeout=LIMIT_S)[0])]
        self._sent_to(self.stage.link.client)
        self._capture.close()
        return outcomes

    def sent_again(self):
        """Return when each SYN was sent first that was sent more than once."""
        return sorted(sent[0][0] for sent in self.syns.values() if len(sent) > 1)

    def announcers(self):
        """Return the members to which clients sent, one after the other."""
        views = self.stage.recorder.views(VIP)
        before = [view for at, view in views if at < self.begin][-1:]
        since = [view for at, view in views if at >= self.begin]
        return [name for name, _repeats in itertools.groupby(view.announcer for view in [*before, *since])]

    def unserved(self, longest_skew_s):
        """Return the period in which nobody has to serve the address: from when the old holder need not wait any more
        until the new one announces it. It is empty unless the new one is late."""
        recorder = self.stage.recorder
        sent = [(one.at, one.member, message_in(one.packet)[2]) for one in recorder.advertisements]
        resigned = next(at for at, member, priority in sent if (member, priority) == ("lb1", 0))
        announced = next(at for at, view in recorder.views(VIP) if at >= self.begin and view.announcer == "lb2")
        return resigned + longest_skew_s, announced
