"""Direct return beside HAProxy with one thread and the agent's proxy with one worker: requests, bulk, latency and cost.

The client, the balancer and three servers have their own network namespaces on one bridge. All share the processors of
this machine, and the kernel balances in whichever program sends, so a balancer's cost is what the machine uses more
than without one.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

import wrk
from balancers import MAXCONN, ORIGIN, PYTHON, PYZ, Process, haproxy_config, until
from support.netns.direct import PORT, Plane, behind_balancers
from support.netns.links import VIP

ROUNDS = int(os.environ.get("ROUNDS", "5"))
SECONDS = os.environ.get("SECONDS", "3")
CLIENTS, STREAMS = 64, 8
BULK, BULK_BYTES = "/bulk", 1 << 20
NONE = "no balancer"

KEPT, NEW = "requests per second, keep-alive", "new connections per second"
MIDDLE, SLOWEST = "p50 of requests, ms", "p99 of requests, ms"
MIDDLE_NEW, SLOWEST_NEW = "p50 of new connections, ms", "p99 of new connections, ms"
RATE, COST = "eight bulk streams, Gbit/s", "CPU seconds per GB that the balancer adds"
AIMS = {
    KEPT: "1.6 or more",
    MIDDLE: "",
    SLOWEST: "0.5 or less",
    NEW: "1.8 or more",
    MIDDLE_NEW: "",
    SLOWEST_NEW: "0.5 or less",
    RATE: "",
    COST: "0.2 or less",
}

# A server answers with a mebibyte out of its memory.
BULK_RULE = "http-request return status 200 content-type text/plain file {file} if {{ path " + BULK + " }}"


def measure() -> None:
    values = defaultdict(list)
    for number in range(ROUNDS):
        for kind in sorted(KINDS, reverse=number % 2):
            with stage(kind) as client:
                for what, value in trial(client):
                    values[what, kind].append(value)
    show(values)


@contextlib.contextmanager
def stage(kind: str):
    """Yield a client's function that runs wrk against a balancer of some kind, and returns its output."""
    with tempfile.TemporaryDirectory(prefix="onpremlb-bench-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        made = behind_balancers(VIP, serve=lambda host: serve(host, folder, stack))
        cluster = stack.enter_context(made).arrange(folder)
        address = KINDS[kind](cluster, folder, stack)

        def run(connections: int, path: str, *options: str) -> str:
            url = f"http://{address}:{PORT}{path}"
            return wrk.checked(cluster.client.output(*wrk.command(connections, SECONDS, url, *options)))

        curl = ["ip", "netns", "exec", cluster.client.namespace, "curl", "--silent", "--output", "/dev/null"]
        answers = [*curl, "--max-time", "1", f"http://{address}:{PORT}/"]
        until(lambda: subprocess.run(answers, check=False).returncode == 0, f"{kind} does not answer")
        yield run


def serve(host, folder: Path, stack) -> None:
    """Start a web server, which ends with the stage."""
    bulk = folder / "bulk"
    bulk.write_bytes(os.urandom(BULK_BYTES))
    path = folder / f"{host.name}.cfg"
    origin = ORIGIN.format(port=PORT, rule=BULK_RULE.format(file=bulk))
    path.write_text(haproxy_config("http", origin, lines=f"tune.bufsize {2 * BULK_BYTES}"))
    stack.callback(Process(host, "haproxy", "-q", "-f", str(path)).stop)
    until(lambda: f":{PORT}" in host.output("ss", "-Hltn"), f"{host.name} does not listen")


def none(cluster, _folder, _stack) -> str:
    return cluster.own(cluster.hosts[0])


def haproxy(cluster, folder: Path, stack) -> str:
    servers = "\n".join(f"    server {host.name} {cluster.own(host)}:{PORT} check" for host in cluster.hosts)
    path = folder / "haproxy.cfg"
    path.write_text(haproxy_config("tcp", f"listen balanced\n    bind {VIP}:{PORT}\n{servers}\n"))
    stack.callback(Process(cluster.balancers[0], "haproxy", "-q", "-f", str(path)).stop)
    return VIP


def proxy(cluster, folder: Path, stack) -> str:
    servers = [{"name": host.name, "address": cluster.own(host), "port": PORT} for host in cluster.hosts]
    service = {"name": "balanced", "bind": [VIP], "port": PORT, "servers": servers}
    path = folder / "proxy.json"
    settings = {"workers": 1, "maxconn": MAXCONN, "status_socket": str(folder / "proxy.sock")}
    path.write_text(json.dumps({"services": [service], **settings}))
    command = (PYTHON, str(PYZ), "proxy", "--config", str(path))
    stack.callback(Process(cluster.balancers[0], *command).stop)
    return VIP


def direct(cluster, folder: Path, stack) -> str:
    stack.callback(Plane(cluster, folder, check={"type": "tcp", "interval": 2}).close)
    return VIP


KINDS = {"direct": direct, "haproxy": haproxy, "agent": proxy, NONE: none}


def trial(run):
    """Yield each quantity and its value. Those that leave the most state in the kernel come last."""
    yield from zip((KEPT, MIDDLE, SLOWEST), figures(run(CLIENTS, "/")))
    before = busy()
    output = run(STREAMS, BULK)
    used = busy() - before
    gigabytes = wrk.answered(output) * BULK_BYTES / 1e9
    yield RATE, gigabytes * 8 / wrk.lasted(output)
    yield COST, used / gigabytes
    yield from zip((NEW, MIDDLE_NEW, SLOWEST_NEW), figures(run(CLIENTS, "/", "--header", "Connection: close")))


def figures(output: str):
    """Return the answered requests per second, and the 50th and 99th percentile of the latency in milliseconds."""
    return wrk.rate(output), wrk.latency(output, 50), wrk.latency(output, 99)


def busy() -> float:
    """Return the seconds for which the processors of this machine have worked, with interrupts."""
    user, nice, system, _idle, _waiting, *interrupts = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def show(values) -> None:
    heads = "".join(f"{kind:>14}" for kind in KINDS)
    print(f"\n{f'medians of {ROUNDS} rounds':<44}{heads}   direct/haproxy   aim")
    for what, aim in AIMS.items():
        middle = {kind: statistics.median(values[what, kind]) for kind in KINDS}
        if what == COST:
            middle = {kind: value - middle[NONE] for kind, value in middle.items()}
        cells = "".join(f"{value:>14.{0 if value > 100 else 2}f}" for value in middle.values())
        print(f"{what:<44}{cells}{middle['direct'] / middle['haproxy']:>17.2f}   {aim}", flush=True)
