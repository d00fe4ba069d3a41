"""How long a pair takes to deploy, ours beside two popular roles, on fresh lab hosts, in turn, in one run.

    make bench                                       # peers' roles from Galaxy into .cache/peers
    PEERS=/where/they/are ROUNDS=5 make bench        # or from a folder that has them

Prints the medians and, what alone means anything on a noisy machine, the ratios.
"""

from __future__ import annotations

import os
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
CONTENDERS = {
    "ours": ["ansible-playbook", "-i", str(INVENTORY), "-i", "lab/demo.yml", "playbooks/site.yml"],
    "peers": ["ansible-playbook", "-i", str(INVENTORY), "bench/peers.yml"],
}


def run(*command: str) -> float:
    """Run a command to its end and return how long it took, in seconds; its output is shown only when it fails."""
    started = time.monotonic()
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
    return time.monotonic() - started


def fresh_hosts() -> None:
    """New hosts, with their package lists fetched, as an ordinary server has them."""
    run(sys.executable, "lab", "down", "--scenario", SCENARIO)
    run(sys.executable, "lab", "up", "--scenario", SCENARIO)
    run("ansible", "pair", "-i", str(INVENTORY), "--become", "-m", "ansible.builtin.apt", "-a", "update_cache=true")


def main() -> None:
    for role in ROLES:
        if not (PEERS / role).is_dir():
            run("ansible-galaxy", "role", "install", "--roles-path", str(PEERS), role)
    times: dict[str, list[float]] = {f"{name}, {which} run": [] for name in CONTENDERS for which in ("first", "second")}
    try:
        for number in range(ROUNDS):
            for name, command in CONTENDERS.items():
                print(f"round {number + 1} of {ROUNDS}: {name} ...", flush=True)
                fresh_hosts()
                for which in ("first", "second"):
                    times[f"{name}, {which} run"].append(run(*command))
    finally:
        run(sys.executable, "lab", "down", "--scenario", SCENARIO)
    report({what: statistics.median(values) for what, values in times.items()}, times)


def report(medians: dict[str, float], times: dict[str, list[float]]) -> None:
    for what, median in medians.items():
        print(f"{what:<18} median {median:5.1f} s   all {', '.join(f'{value:.1f}' for value in times[what])}")
    for which in ("first", "second"):
        print(f"{which} run, ours / peers: {medians[f'ours, {which} run'] / medians[f'peers, {which} run']:.2f}")


if __name__ == "__main__":
    main()
