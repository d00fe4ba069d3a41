"""What the agent's proxy has to bear under load: reloads, the death of a server, and time. Needs what bench/proxy does.

    python3 bench/ordeals.py
    ONLY=growth GROWTH=600 python3 bench/ordeals.py     # reloads, death, growth: ten minutes in which nothing may grow

Each says what was found and what is wanted; the exit code is 1 if it is not.
"""

from __future__ import annotations

import hashlib
import os
import re
import signal
import statistics
import subprocess
import sys
import time

import balancers
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import status_socket
from balancers import BALANCER, BULK, FILE, FILES, PAIR, REQUESTS, SPARE, Stage, until
from support.netns.links import why_not

GROWTH = int(os.environ.get("GROWTH", "30"))  # seconds
RELOADS, BETWEEN = 20, 0.5  # seconds
DOWNLOADS, RATE = 4, "5M"  # bytes per second of each, so that they outlast the reloads
CLIENTS = 64
ROOM = 1.03  # of what may be called no growth
SPARE_DESCRIPTORS = 16  # of pipes that were used by four streams and are kept


class Ordeal:
    """Something to be borne; ``found`` and ``good`` are known once it is over."""

    title = wanted = found = ""
    good = False

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def bear(self) -> None:
        raise NotImplementedError


class Reloads(Ordeal):
    title = f"{RELOADS} reloads"
    wanted = "0 failed requests, 0 broken downloads"

    def bear(self) -> None:
        digest = hashlib.sha256((self.stage.folder / FILE).read_bytes()).hexdigest()
        duration = int(RELOADS * BETWEEN) + 2
        loads = [wrk(self.stage, REQUESTS, duration, *more) for more in (NEW, ())]
        downloads = [download(self.stage) for _each in range(DOWNLOADS)]
        until(lambda: current(self.stage, "files") == DOWNLOADS, "the downloads have not begun")
        for _each in range(RELOADS):
            reload(self.stage)
            time.sleep(BETWEEN)  # of load on what is new, before the next one comes
        under_way = sum(each.poll() is None for each in downloads)
        broken = sum(each.communicate()[0].split()[:1] != [digest] for each in downloads)
        requests, errors = (sum(each) for each in zip(*map(outcome, loads)))
        self.found = (
            f"{errors} of {requests} requests failed, {broken} of {DOWNLOADS} downloads are broken "
            f"({under_way} outlasted all reloads)"
        )
        self.good = errors == broken == 0 < under_way


class Death(Ordeal):
    title = "a server is killed"
    wanted = "only its own connections fail"

    def bear(self) -> None:
        loads = [wrk(self.stage, PAIR, 6, *more) for more in (NEW, ())]
        time.sleep(3)  # of load before it, so that all of its clients are counted, and 3 s after it
        own = sum(each["current"] for each in servers(self.stage, "pair") if each["name"] == f"at-{SPARE}")
        self.stage.servers[SPARE].stop()
        requests, errors = (sum(each) for each in zip(*map(outcome, loads)))
        refused = next(each for each in report(self.stage)["services"] if each["name"] == "pair")["refused"]
        self.found = f"{errors} of {requests} requests failed, about {own} were at it, {refused} found no server"
        # What it was asked on a connection that the report does not know of yet fails, too: at most all clients.
        self.good = errors <= 2 * CLIENTS and not refused


class Growth(Ordeal):
    title = f"{GROWTH} seconds under load"
    wanted = "no growth in memory or descriptors"

    def bear(self) -> None:
        idle = self.stage.balancer.descriptors()
        loads = [wrk(self.stage, REQUESTS, GROWTH, *more) for more in (NEW, ())]
        iperf = ["iperf3", "--client", BALANCER, "--port", str(BULK), "--parallel", "4", "--time", str(GROWTH)]
        bulk = self.stage.spawn(*iperf, "--reverse", "--interval", "0")  # nobody reads what it would say meanwhile
        samples = []
        while bulk.poll() is None:
            samples.append((self.stage.balancer.resident(), self.stage.balancer.descriptors()))
            time.sleep(GROWTH / 100)  # between two samples
        errors = sum(outcome(load)[1] for load in loads) + bulk.returncode
        quarter = len(samples) // 4
        first, last = (
            [statistics.median(each) for each in zip(*part)]
            for part in (samples[quarter : 2 * quarter], samples[-quarter - 3 : -3])
        )
        time.sleep(2)  # for the last clients to be gone
        left = self.stage.balancer.descriptors() - idle
        self.found = (
            f"resident {first[0] / 1e6:.1f} then {last[0] / 1e6:.1f} MB, descriptors {first[1]:.0f} then "
            f"{last[1]:.0f}, {left} more than before it (spare pipes), {errors} errors"
        )
        # Under load descriptors come and go with the clients: what counts is how many are left of them.
        self.good = last[0] <= ROOM * first[0] and left <= SPARE_DESCRIPTORS and not errors


ORDEALS = {"reloads": Reloads, "death": Death, "growth": Growth}
NEW = ("--header", "Connection: close")


def wrk(stage: Stage, port: int, duration: int, *options: str) -> subprocess.Popen:
    """Begin to ask."""
    command = ["wrk", "--threads", "1", "--connections", str(CLIENTS), "--duration", str(duration), *options]
    return stage.spawn(*command, f"http://{BALANCER}:{port}/")


def outcome(load: subprocess.Popen):
    """Return how many requests were answered, and how many failed."""
    told = load.communicate()[0]
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", told)
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", told)
    failed = sum(map(int, errors.groups())) if errors else 0
    return int(re.search(r"(\d+) requests in", told)[1]), failed + (int(bad[1]) if bad else 0)


def download(stage: Stage) -> subprocess.Popen:
    """Begin to fetch the file; prints its digest in the end, or what curl has to say."""
    curl = f"curl --silent --show-error --limit-rate {RATE} http://{BALANCER}:{FILES}/{FILE}"
    return stage.spawn("sh", "-c", f"{curl} | sha256sum")


def report(stage: Stage):
    return status_socket.fetch(str(stage.folder / "proxy.sock"))


def servers(stage: Stage, service: str):
    return next(each for each in report(stage)["services"] if each["name"] == service)["servers"]


def current(stage: Stage, service: str) -> int:
    """Return how many sessions a service has."""
    return sum(each["current"] for each in servers(stage, service))


def reload(stage: Stage) -> None:
    """Have its configuration read anew; return when new workers are there."""
    before = generation(stage)
    stage.balancer.signal(signal.SIGHUP)
    until(lambda: generation(stage) > before, "the reload is not done")


def generation(stage: Stage) -> int:
    return max(each["generation"] for each in report(stage)["workers"])


def main() -> int:
    if why_not(*balancers.NEEDED):
        print(f"bench/ordeals.py: skipped: {why_not(*balancers.NEEDED)}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_ignored: sys.exit(1))  # ended like that it still removes what it has made
    balancers.build()
    good = True
    for name in os.environ.get("ONLY", ",".join(ORDEALS)).split(","):
        with Stage("agent") as stage:
            ordeal = ORDEALS[name](stage)
            ordeal.bear()
        good = good and ordeal.good
        print(
            f"{'good' if ordeal.good else 'BAD '}  {ordeal.title}: {ordeal.found}; wanted: {ordeal.wanted}", flush=True
        )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
