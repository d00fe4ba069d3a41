"""Compares how long a pair takes to deploy, with either engine and with popular roles, in turns on new lab hosts.

    make bench                                       # installs the peers' roles from Galaxy into .cache/peers
    PEERS=/folder/of/roles ROUNDS=5 make bench       # or takes them from this folder
    CONTENDERS="native agent" python3 bench/deploy.py

Prints medians and ratios; on a noisy machine only the ratios are meaningful. A second run of this collection that
changes something is an error.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PEERS = Path(os.environ.get("PEERS", ROOT / ".cache" / "peers"))
ROUNDS = int(os.environ.get("ROUNDS", "3"))
ROLES = ("geerlingguy.haproxy", "evrardjp.keepalived")
SCENARIO = "bench"
INVENTORY = ROOT / ".cache" / "lab" / SCENARIO / "inventory.yml"
PLAYBOOK = ["ansible-playbook", "-i", str(INVENTORY)]
OURS = [*PLAYBOOK, "-i", "lab/demo.yml", "playbooks/site.yml"]
COMMANDS = {
    "native": [*OURS, "-e", "pair_engine=native"],
    "agent": [*OURS, "-e", "pair_engine=agent"],
    "peers": [*PLAYBOOK, "bench/peers.yml"],
}
CONTENDERS = os.environ.get("CONTENDERS", " ".join(COMMANDS)).split()
RATIOS = (("agent", "native"), ("native", "peers"))
RUNS = ("first", "second")


def run(*command: str) -> str:
    """Run a command and return its output. If it fails, print the output and exit."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        text=True,
        capture_output=True,
        check=False,
        env={**os.environ, "ANSIBLE_ROLES_PATH": str(PEERS)},
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def fresh_hosts() -> None:
    """Start new hosts and update their package lists, which an ordinary server has."""
    run(sys.executable, "lab", "down", "--scenario", SCENARIO)
    run(sys.executable, "lab", "up", "--scenario", SCENARIO)
    run("ansible", "pair", "-i", str(INVENTORY), "--become", "-m", "ansible.builtin.apt", "-a", "update_cache=true")


def deploy(name: str) -> list[float]:
    """Return how many seconds the first and the second run take on fresh hosts."""
    fresh_hosts()
    times = []
    for which in RUNS:
        started = time.monotonic()
        output = run(*COMMANDS[name])
        times.append(time.monotonic() - started)
        if which == "second" and name != "peers" and changes(output):
            sys.exit(f"{name}: the second run changed something:\n{output[-4000:]}")
    return times


def changes(output: str) -> int:
    """Return how many tasks have changed something, by the recap of all hosts."""
    return sum(map(int, re.findall(r"\bchanged=(\d+)", output)))


def main() -> None:
    for role in ROLES if "peers" in CONTENDERS else ():
        if not (PEERS / role).is_dir():
            run("ansible-galaxy", "role", "install", "--roles-path", str(PEERS), role)
    times: dict[str, list[list[float]]] = {name: [] for name in CONTENDERS}
    try:
        for number in range(ROUNDS):
            # The order alternates, so that a machine that gets slower affects all alike.
            for name in CONTENDERS[:: -1 if number % 2 else 1]:
                times[name].append(deploy(name))
                text = " ".join(f"{seconds:6.1f} s" for seconds in times[name][-1])
                print(f"round {number + 1} of {ROUNDS}: {name:<7}{text}", flush=True)
    finally:
        run(sys.executable, "lab", "down", "--scenario", SCENARIO)
    for index, which in enumerate(RUNS):
        report(which, {name: [each[index] for each in rounds] for name, rounds in times.items()})


def report(which: str, times: dict[str, list[float]]) -> None:
    for name, values in times.items():
        each = ", ".join(f"{value:.1f}" for value in values)
        print(f"{which} run, {name:<7} median {statistics.median(values):5.1f} s   all {each}")
    for one, other in RATIOS:
        if one in times and other in times:
            # The ratio within each round, because the machine's speed may differ between rounds.
            ratios = [ours / theirs for ours, theirs in zip(times[one], times[other])]
            print(f"{which} run, {one} / {other}: median {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
