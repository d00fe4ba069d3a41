"""What becomes of a thousand lasting connections through direct return: at failovers, and while its table changes."""

from __future__ import annotations

import contextlib
import io
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from balancers import until
from stage import OWNER, SECOND, Agent, instance
from support.netns.direct import PORT, Plane, behind_balancers
from support.netns.links import VIP, sh

ROUNDS = int(os.environ.get("ROUNDS", "5"))
CHANGES = int(os.environ.get("CHANGES", "200"))
CONNECTIONS = 1000
INTERVAL = 0.1  # seconds between Advertisements
STALL_AIM = 250  # ms
ANSWER_LIMIT = 2  # seconds; a connection that gets no answer within them is lost

# Asks on each connection once a second. For each line of its input it prints how many connections are lost so far, and
# the longest time in milliseconds that an answer took since the last line.
CLIENT = """
import asyncio, json, sys, time
vip, port, count, limit = sys.argv[1], *map(int, sys.argv[2:])
lost, longest = set(), [0.0]
async def last(number, reader, writer):
    name = None
    await asyncio.sleep(number / count)
    while True:
        at = time.monotonic()
        try:
            writer.write(b"who?\\n")
            answer = await asyncio.wait_for(reader.readline(), limit)
        except (OSError, asyncio.TimeoutError):
            answer = b""
        longest[0] = max(longest[0], time.monotonic() - at)
        name = name or answer
        if not answer or answer != name:
            return lost.add(number)
        await asyncio.sleep(1)
async def main():
    opened = [await asyncio.open_connection(vip, port) for _number in range(count)]
    tasks = [asyncio.ensure_future(last(number, *each)) for number, each in enumerate(opened)]
    await asyncio.sleep(2)
    longest[0] = 0.0
    print("open", flush=True)
    loop = asyncio.get_event_loop()
    while await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps([len(lost), round(longest[0] * 1000)]), flush=True)
        longest[0] = 0.0
asyncio.run(main())
"""


class Lasting:
    """The connections of the client."""

    def __init__(self, cluster) -> None:
        self._process = cluster.client.python(CLIENT, VIP, PORT, CONNECTIONS, ANSWER_LIMIT, stdin=subprocess.PIPE)
        assert self._process.stdout.readline() == "open\n", "the connections cannot be opened"

    def outcome(self):
        """Return how many are lost so far, and the longest answer since the last call, in milliseconds."""
        time.sleep(ANSWER_LIMIT + 1.5)  # until each has asked once more, and was answered or is lost
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def measure() -> int:
    """Print the figures; return how many connections were lost."""
    print(f"\n{f'{CONNECTIONS} connections that ask once a second':<58}{'lost':>6}{'longest answer, ms':>33}   aim")
    rounds = [failovers() for _round in range(ROUNDS)]
    lost = 0
    for what in rounds[0]:
        lost += row(f"{what}, {ROUNDS} rounds", [each[what] for each in rounds], f"0 lost, {STALL_AIM} ms")
    return lost + row(f"{CHANGES} changes of the table", [changes()], "0 lost")


def row(what: str, outcomes, aim: str) -> int:
    lost, stalls = (list(each) for each in zip(*outcomes))
    print(f"{what:<58}{sum(lost):>6}{statistics.median(stalls):>26.0f} ({max(stalls)})   {aim}", flush=True)
    return sum(lost)


def failovers():
    """Return what became of the connections in each event: lost ones, and the longest stall."""
    found, before = {}, 0
    with tempfile.TemporaryDirectory(prefix="onpremlb-bench-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        cluster = stack.enter_context(behind_balancers(VIP, balancers=2)).arrange(folder)
        first, second = cluster.balancers
        first.release(VIP)
        routers = [router(node, folder, stack, priority) for node, priority in ((first, OWNER - 1), (second, SECOND))]
        for node in cluster.balancers:
            (folder / f"plane-{node.name}").mkdir()
            stack.callback(Plane(cluster, folder / f"plane-{node.name}", node=node).close)
        until(lambda: holds(first), routers[0].log())
        lasting = Lasting(cluster)
        port = ("ip", "-n", cluster.client.link.bridge, "link", "set", first.port)
        events = {
            "the Active router stops": (routers[0].stop, second),
            "it returns": (routers[0].start, first),
            "its host is cut off": (lambda: sh(*port, "nomaster"), second),
            "it is back": (lambda: sh(*port, "master", "br0"), first),
        }
        for what, (happen, holder) in events.items():
            happen()
            until(lambda holder=holder: holds(holder), f"{what}: {holder.name} does not hold the VIP")
            lost, stall = lasting.outcome()
            found[what], before = (lost - before, stall), lost
    return found


def router(node, folder: Path, stack, priority: int) -> Agent:
    made = Agent(node, folder / f"vrrp-{node.name}", [instance(1, INTERVAL, priority, addresses=[f"{VIP}/32"])])
    stack.callback(made.close)
    made.start()
    return made


def holds(node) -> bool:
    return f" {VIP}/" in node.output("ip", "-oneline", "address")


def changes():
    """Take a server out and in again so often; return the lost connections and the longest stall."""
    with tempfile.TemporaryDirectory(prefix="onpremlb-bench-") as name, contextlib.ExitStack() as stack:
        cluster = stack.enter_context(behind_balancers(VIP)).arrange(Path(name))
        plane = Plane(cluster, Path(name))
        stack.callback(plane.close)
        lasting = Lasting(cluster)
        before = plane.report()["table"]["transactions"]
        for number in range(CHANGES):
            with contextlib.redirect_stdout(io.StringIO()):
                plane.order("ready" if number % 2 else "drain", cluster.hosts[-1])
            made = before + number + 1
            until(lambda made=made: plane.report()["table"]["transactions"] >= made, plane.log)
        return lasting.outcome()
