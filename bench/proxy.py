"""Compares the agent's proxy with HAProxy, in turns, in network namespaces. Needs root, haproxy, wrk and iperf3.

    python3 bench/proxy.py
    ROUNDS=9 SECONDS=5 python3 bench/proxy.py

Prints medians, each with the lowest and the highest value, and their ratios; on a noisy machine only the ratios are
meaningful.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
from collections import defaultdict

import balancers
import wrk
from balancers import BALANCER, BULK, KINDS, REQUESTS, Stage
from support.netns.links import skip_reason

ROUNDS = int(os.environ.get("ROUNDS", "5"))
SECONDS = os.environ.get("SECONDS", "3")
CLIENTS = 64
IDLE = 5000
NEW = ("--header", "Connection: close")
URL = f"http://{BALANCER}:{REQUESTS}/"

CONNECTIONS, REQUESTS_KEPT = "new connections per second", "requests per second, keep-alive"
LATENCY_NEW, LATENCY_KEPT = "p99 latency of new connections, ms", "p99 latency of requests, keep-alive, ms"
STREAMS = {1: "one bulk stream, Gbit/s", 8: "eight bulk streams, Gbit/s"}
COSTS = {1: "CPU seconds per GB, one stream", 8: "CPU seconds per GB, eight streams"}
COST_OF_CONNECTIONS = {
    1: "CPU seconds per 100,000 connections, one at a time",
    CLIENTS: f"CPU seconds per 100,000 connections, {CLIENTS} at a time",
}
MEMORY = f"KB resident for each of {IDLE} idle connections"
AIMS = {
    CONNECTIONS: "0.9 or more",
    REQUESTS_KEPT: "0.9 or more",
    STREAMS[1]: "1.2 or more",
    STREAMS[8]: "1.2 or more",
    LATENCY_NEW: "1.3 or less",
    LATENCY_KEPT: "1.3 or less",
    COSTS[1]: "1 or less",
    COSTS[8]: "1 or less",
    COST_OF_CONNECTIONS[1]: "1.5 or less",
    COST_OF_CONNECTIONS[CLIENTS]: "1.5 or less",
    MEMORY: "8 KB or less",
}

# Opens connections, sends a request on each, prints "idle" when all are answered, and waits until its input ends.
IDLE_CLIENTS = f"""
import socket, sys
clients = []
for _each in range({IDLE}):
    clients.append(socket.create_connection(("{BALANCER}", {REQUESTS})))
    clients[-1].sendall(b"GET / HTTP/1.1\\r\\nHost: idle\\r\\n\\r\\n")
    assert clients[-1].recv(4096)
print("idle", flush=True)
sys.stdin.read()
"""


def measure(stage: Stage):
    """Yield each quantity and its value. Those that leave the most state in the kernel come last."""
    yield from zip((REQUESTS_KEPT, LATENCY_KEPT), requests(stage))
    for number in STREAMS:
        yield from zip((STREAMS[number], COSTS[number]), bulk(stage, number))
    yield COST_OF_CONNECTIONS[1], cost_of_connections(stage, 1)
    yield COST_OF_CONNECTIONS[CLIENTS], cost_of_connections(stage, CLIENTS)
    yield from zip((CONNECTIONS, LATENCY_NEW), requests(stage, *NEW))
    yield MEMORY, idle_memory(stage)


def requests(stage: Stage, *options: str):
    """Return the answered requests per second, and the 99th percentile of the latency in milliseconds."""
    output = wrk.checked(stage.run(*wrk.command(CLIENTS, SECONDS, URL, *options)))
    return wrk.rate(output), wrk.latency(output, 99)


def cost_of_connections(stage: Stage, clients: int) -> float:
    """Return the processor time in seconds for 100,000 connections, with so many at a time."""
    before = stage.balancer.seconds()
    output = stage.run(*wrk.command(clients, SECONDS, URL, *NEW))
    used = stage.balancer.seconds() - before
    return used / wrk.answered(output) * 100_000


def bulk(stage: Stage, streams: int):
    """Return the throughput in Gbit/s, and the processor time in seconds per GB."""
    iperf = ["iperf3", "--client", BALANCER, "--port", str(BULK), "--parallel", str(streams), "--time", SECONDS]
    before = stage.balancer.seconds()
    received = json.loads(stage.run(*iperf, "--reverse", "--json"))["end"]["sum_received"]
    used = stage.balancer.seconds() - before
    return received["bits_per_second"] / 1e9, used / (received["bytes"] / 1e9)


def idle_memory(stage: Stage) -> float:
    """Return the resident memory in KB per idle connection."""
    before = stage.balancer.resident()
    with subprocess.Popen(
        ["ip", "netns", "exec", stage.client.namespace, sys.executable, "-c", IDLE_CLIENTS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as clients:
        assert clients.stdout.readline() == b"idle\n"
        used = stage.balancer.resident() - before
        clients.communicate()
    return used / 1024 / IDLE


def show(values) -> None:
    print(f"\n{'median (lowest to highest)':<50}{'agent':>26}{'haproxy':>26}{'ratio':>8}   aim")
    for what, aim in AIMS.items():
        agent, haproxy = (values[what, kind] for kind in KINDS)
        ratio = statistics.median(agent) / statistics.median(haproxy)
        print(f"{what:<50}{cell(agent):>26}{cell(haproxy):>26}{ratio:>8.2f}   {aim}")


def cell(values) -> str:
    form = "{:.0f}" if min(values) > 100 else "{:.2f}"
    return "{} ({} to {})".format(*(form.format(one) for one in (statistics.median(values), min(values), max(values))))


def main() -> None:
    if skip_reason(*balancers.NEEDED):
        print(f"bench/proxy.py: skipped: {skip_reason(*balancers.NEEDED)}")
        return
    # So that contexts clean up.
    signal.signal(signal.SIGTERM, lambda *_ignored: sys.exit(1))
    balancers.build()
    values = defaultdict(list)
    for number in range(ROUNDS):
        print(f"round {number + 1} of {ROUNDS}", file=sys.stderr)
        for kind in sorted(KINDS, reverse=number % 2):
            with Stage(kind) as stage:
                for what, value in measure(stage):
                    values[what, kind].append(value)
    show(values)


if __name__ == "__main__":
    main()
