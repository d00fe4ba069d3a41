"""The test bed for VRRP routers: a link of network namespaces with the agent, or keepalived, on its members."""

from __future__ import annotations

import contextlib
import itertools
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support import collection  # noqa: E402

collection.make_importable()
from support.netns import agents  # noqa: E402
from support.netns.links import Link  # noqa: E402
from support.rendering import keepalived as render  # noqa: E402
from wire import Wire  # noqa: E402

PYZ = ROOT / ".cache" / "agent.pyz"
AGENT, KEEPALIVED = KINDS = ("agent", "keepalived")
# The priorities of the two members. The first is an address owner, which is Active at once.
OWNER, SECOND = 255, 253
LEARNING_ADVERTISEMENTS = 2  # after these a Backup knows its Active router


class Agent(agents.Agent):
    """The agent as it runs on a host: one file, which Python compiles at each start."""

    def command(self):
        return [sys.executable, str(PYZ), "vrrp", "--config", str(self.folder / "agent.json")]


class Keepalived(agents.Keepalived):
    """keepalived with its best settings: the agent's scheduling, and a short log in a file.

    Without a listener at /dev/log, syslog(3) would write to the console, which takes a millisecond for each line.
    """

    # Without the second line the kernel would kill it when it is busy for 10 ms.
    SCHEDULING = ["vrrp_rt_priority 10", "vrrp_rlimit_rttime 1000000", "vrrp_no_swap"]

    def prepare(self):
        settings = {
            "instances": [self._with_state(**instance) for instance in self.instances],
            "track_files": [{"name": agents.TRACKED, "path": str(self.tracked)}],
        }
        text = render(settings, self.node.name, keepalived_global_lines=self.SCHEDULING)
        (self.folder / "keepalived.conf").write_text(text)

    @staticmethod
    def _with_state(track, priority, **rest):
        """Return an instance for keepalived, where even an address owner starts as Backup unless its state is set."""
        state = "MASTER" if priority == OWNER else "BACKUP"
        return {**rest, "track_files": track, "priority": priority, "state": state}

    def command(self):
        return [*(word for word in super().command() if word != "--log-detail"), "--no-syslog"]


CLASSES = {AGENT: Agent, KEEPALIVED: Keepalived}


def instance(number: int, interval: float, priority: int, **more):
    """Return an instance in the collection's model; the number is its VRID."""
    return {
        "name": f"vr{number}",
        "interface": "eth0",
        "vrid": number,
        "version": 3,
        "priority": priority,
        "advert_interval": interval,
        "multicast": True,
        "addresses": [f"192.0.3.{number}/32"],
        "track": [],
        **more,
    }


class Stage:
    """A link and the daemons on it. The context removes them at its end."""

    def __init__(self, captured: int = 2) -> None:
        """
        :param captured: the number of members whose messages are captured
        """
        self._captured = captured
        self._serial = itertools.count()
        self._running: list[agents.Daemon] = []
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="onpremlb-bench-")))
            self.link = Link(2)
            stack.callback(self.link.stop)
            self.link.start()
            self.wire = Wire(self.link, self.link.members[: self._captured])
            stack.callback(self.wire.close)
            stack.callback(self.clear)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception):
        return self._stack.__exit__(*exception)

    def router(self, kind: str, node, instances) -> agents.Daemon:
        """Return a router that is not started yet."""
        daemon = CLASSES[kind](node, self.folder / str(next(self._serial)), instances)
        self._running.append(daemon)
        return daemon

    def pair(self, first: str, second: str, interval: float):
        """Start an Active router of one kind and a Backup of another, which knows the Active one."""
        lb1, lb2 = self.link.members
        active = self.router(first, lb1, [instance(1, interval, OWNER)])
        backup = self.router(second, lb2, [instance(1, interval, SECOND)])
        active.start()
        self.await_advertisements(lb1.name, 1, interval)
        backup.start()
        self.await_advertisements(lb1.name, LEARNING_ADVERTISEMENTS, interval)
        return active, backup

    def await_advertisements(self, member: str, count: int, interval: float) -> None:
        """Wait for a number of further Advertisements."""
        total = len(self.wire.advertisements(member)) + count
        try:
            self.wire.until(lambda: len(self.wire.advertisements(member)) >= total, 10 + 5 * interval)
        except TimeoutError as error:
            raise TimeoutError("\n".join(daemon.log() for daemon in self._running)) from error

    def clear(self) -> None:
        """End the daemons, and remove their addresses and the captured messages."""
        for daemon in self._running:
            daemon.close()
        self._running.clear()
        for node in self.link.members:
            flush = ["ip", "-n", node.namespace, "address", "flush", "dev", "eth0", "to", "192.0.3.0/24"]
            subprocess.run(flush, check=False, capture_output=True)
        self.wire.messages.clear()
