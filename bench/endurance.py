"""Endurance of the agent's proxy under load: reloads, a killed server, memory over time. Needs what bench/proxy needs.

    python3 bench/endurance.py
    ONLY=growth GROWTH=600 python3 bench/endurance.py   # one of reloads, crash and growth; growth for ten minutes

Prints each result and its aim. The exit code is 1 if a result misses its aim.
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
import wrk
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import status_socket
from balancers import BALANCER, BULK, FILE, FILES, PAIR, REQUESTS, SPARE, Stage, until
from support.netns.links import skip_reason

GROWTH = int(os.environ.get("GROWTH", "30"))  # seconds
RELOADS, RELOAD_INTERVAL = 20, 0.5  # seconds
DOWNLOADS, RATE = 4, "5M"  # bytes per second of each, so that they outlast the reloads
CLIENTS = 64
TOLERANCE = 1.03  # a ratio up to this is no growth
SPARE_DESCRIPTORS = 16  # the pipes of four streams, which the proxy keeps for later sessions


class Trial:
    """One test. ``run`` sets ``result`` and ``good``."""

    title = aim = result = ""
    good = False

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def run(self) -> None:
        raise NotImplementedError


class Reloads(Trial):
    title = f"{RELOADS} reloads"
    aim = "0 failed requests, 0 broken downloads"

    def run(self) -> None:
        digest = hashlib.sha256((self.stage.folder / FILE).read_bytes()).hexdigest()
        duration = int(RELOADS * RELOAD_INTERVAL) + 2
        loads = [load(self.stage, REQUESTS, duration, *more) for more in (NEW, ())]
        downloads = [download(self.stage) for _each in range(DOWNLOADS)]
        until(lambda: current(self.stage, "files") == DOWNLOADS, "the downloads have not begun")
        for _each in range(RELOADS):
            reload(self.stage)
            time.sleep(RELOAD_INTERVAL)  # under load
        outlasting = sum(each.poll() is None for each in downloads)
        broken = sum(each.communicate()[0].split()[:1] != [digest] for each in downloads)
        requests, errors = (sum(each) for each in zip(*map(outcome, loads)))
        self.result = (
            f"{errors} of {requests} requests failed, {broken} of {DOWNLOADS} downloads are broken "
            f"({outlasting} outlasted all reloads)"
        )
        self.good = errors == broken == 0 < outlasting


class Crash(Trial):
    title = "a server is killed"
    aim = "only its own connections fail"

    def run(self) -> None:
        loads = [load(self.stage, PAIR, 6, *more) for more in (NEW, ())]
        time.sleep(3)  # half of the load's duration
        own = sum(each["current"] for each in servers(self.stage, "pair") if each["name"] == f"at-{SPARE}")
        self.stage.servers[SPARE].stop()
        requests, errors = (sum(each) for each in zip(*map(outcome, loads)))
        refused = next(each for each in report(self.stage)["services"] if each["name"] == "pair")["refused"]
        self.result = (
            f"{errors} of {requests} requests failed, about {own} were on that server, {refused} found no server"
        )
        # Sessions that began after the report fail, too: at most one for each client.
        self.good = errors <= 2 * CLIENTS and not refused


class Growth(Trial):
    title = f"{GROWTH} seconds under load"
    aim = "no growth in memory or descriptors"

    def run(self) -> None:
        idle = self.stage.balancer.descriptors()
        loads = [load(self.stage, REQUESTS, GROWTH, *more) for more in (NEW, ())]
        iperf = ["iperf3", "--client", BALANCER, "--port", str(BULK), "--parallel", "4", "--time", str(GROWTH)]
        bulk = self.stage.spawn(*iperf, "--reverse", "--interval", "0")  # without reports, which would fill the pipe
        samples = []
        while bulk.poll() is None:
            samples.append((self.stage.balancer.resident(), self.stage.balancer.descriptors()))
            time.sleep(GROWTH / 100)  # between two samples
        errors = sum(outcome(each)[1] for each in loads) + bulk.returncode
        quarter = len(samples) // 4
        first, last = (
            [statistics.median(each) for each in zip(*part)]
            for part in (samples[quarter : 2 * quarter], samples[-quarter - 3 : -3])
        )
        time.sleep(2)  # until the last sessions have ended
        left = self.stage.balancer.descriptors() - idle
        self.result = (
            f"resident {first[0] / 1e6:.1f} then {last[0] / 1e6:.1f} MB, descriptors {first[1]:.0f} then "
            f"{last[1]:.0f}, {left} more than before it (spare pipes), {errors} errors"
        )
        # Under load the number of descriptors varies with the clients, so only the leftover ones count.
        self.good = last[0] <= TOLERANCE * first[0] and left <= SPARE_DESCRIPTORS and not errors


TRIALS = {"reloads": Reloads, "crash": Crash, "growth": Growth}
NEW = ("--header", "Connection: close")


def load(stage: Stage, port: int, duration: int, *options: str) -> subprocess.Popen:
    """Start sending requests."""
    return stage.spawn(*wrk.command(CLIENTS, duration, f"http://{BALANCER}:{port}/", *options))


def outcome(process: subprocess.Popen):
    """Return how many requests were answered, and how many failed."""
    output = process.communicate()[0]
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", output)
    bad_status = re.search(r"Non-2xx or 3xx responses: (\d+)", output)
    failed = sum(map(int, errors.groups())) if errors else 0
    return wrk.answered(output), failed + (int(bad_status[1]) if bad_status else 0)


def download(stage: Stage) -> subprocess.Popen:
    """Start downloading the file; the process prints its digest, or curl's error."""
    curl = f"curl --silent --show-error --limit-rate {RATE} http://{BALANCER}:{FILES}/{FILE}"
    return stage.spawn("sh", "-c", f"{curl} | sha256sum")


def report(stage: Stage):
    return status_socket.fetch(str(stage.folder / "proxy.sock"))


def servers(stage: Stage, service: str):
    return next(each for each in report(stage)["services"] if each["name"] == service)["servers"]


def current(stage: Stage, service: str) -> int:
    """Return the number of a service's open sessions."""
    return sum(each["current"] for each in servers(stage, service))


def reload(stage: Stage) -> None:
    """Reload the proxy; return when the new workers serve."""
    before = generation(stage)
    stage.balancer.signal(signal.SIGHUP)
    until(lambda: generation(stage) > before, "the reload has not finished")


def generation(stage: Stage) -> int:
    return max(each["generation"] for each in report(stage)["workers"])


def main() -> int:
    if skip_reason(*balancers.NEEDED):
        print(f"bench/endurance.py: skipped: {skip_reason(*balancers.NEEDED)}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_ignored: sys.exit(1))  # so that contexts clean up
    balancers.build()
    good = True
    for name in os.environ.get("ONLY", ",".join(TRIALS)).split(","):
        with Stage("agent") as stage:
            trial = TRIALS[name](stage)
            trial.run()
        good = good and trial.good
        print(f"{'good' if trial.good else 'BAD '}  {trial.title}: {trial.result}; aim: {trial.aim}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
