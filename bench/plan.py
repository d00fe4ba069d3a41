"""How long the controller thinks: plans of pairs and clusters by themselves, and whole runs of the playbooks.

    python3 bench/plan.py                            # everything
    python3 bench/plan.py "pair of 40" "agent"       # what has one of these texts in its name
    LIMIT=600 python3 bench/plan.py                  # seconds, after which a measurement is given up

Each measurement is a process of its own, so that its memory is its own. No host is needed: the forecast connects to
none, and the members of the rendered runs are answered by `connection/recorded.py`.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support import collection  # noqa: E402
from support.paths import COLLECTIONS  # noqa: E402

LIMIT = float(os.environ.get("LIMIT", "900"))
PLAYBOOK = Path(sys.executable).parent / "ansible-playbook"
VIPS = "10.0.1"
MEMBERS = "10.0.2"
BALANCERS = {"native": "haproxy", "agent": "onprem-lb-proxy"}  # by engine: the program that listens
LINK = 16  # the prefix length of the members' subnet


class Size(NamedTuple):
    """How large an inventory is: the members of a pair, or the masters of a cluster and its workers."""

    members: int = 2
    vips: int = 1
    backends: int = 10
    workers: int = 0
    pairs: int = 1  # each in a subnet of its own

    @property
    def is_cluster(self) -> bool:
        return self.workers > 0


class Case(NamedTuple):
    """One measurement, and how many seconds it may take at most; 150 MiB are the limit of all."""

    name: str
    kind: str
    size: Size
    goal: Optional[float] = None
    engine: str = "native"


CASES = (
    Case("plan, pair of 2, 1 VIP", "plan", Size()),
    Case("plan, pair of 40, 1 VIP", "plan", Size(40)),
    Case("plan, pair of 20, 20 VIPs", "plan", Size(20, 20)),
    Case("plan, pair of 40, 20 VIPs", "plan", Size(40, 20), 5),
    Case("plan, 10,000 backends", "plan", Size(backends=10_000)),
    Case("plan, 3 masters, 30 workers", "plan", Size(3, workers=30)),
    Case("plan, 3 masters, 100 workers", "plan", Size(3, workers=100)),
    Case("forecast, pair of 2", "forecast", Size()),
    Case("forecast, pair of 40, 20 VIPs", "forecast", Size(40, 20)),
    Case("forecast, 10,000 backends", "forecast", Size(backends=10_000), 4),
    Case("forecast, 200 pairs", "forecast", Size(pairs=200), 20),
    Case("forecast, 3 masters, 30 workers", "forecast", Size(3, workers=30), 10),
    Case("forecast, 3 masters, 100 workers", "forecast", Size(3, workers=100), 30),
    Case("status, pair of 2", "status", Size(), 3),
    Case("rendered, pair of 2, native", "site", Size()),
    Case("rendered, 10,000 backends, native", "site", Size(backends=10_000), 8),
    Case("rendered, 10,000 backends, agent", "site", Size(backends=10_000), 10, "agent"),
)


def names(size: Size) -> Dict[str, str]:
    """Return the addresses of the members by name."""
    prefix = "m" if size.is_cluster else "lb"
    nodes = [f"{prefix}{at}" for at in range(size.members)] + [f"w{at}" for at in range(size.workers)]
    return {name: f"{MEMBERS}.{at + 1}" for at, name in enumerate(nodes)}


def settings(size: Size) -> Dict[str, Any]:
    """Return the variables of the layout, without its prefix."""
    if size.is_cluster:
        masters = list(names(size))[: size.members]
        return {
            "masters": masters,
            "cluster_name": "lab",
            "api_vips": [f"{VIPS}.1"],
            "ingress_vips": [f"{VIPS}.2"],
        }
    servers = [{"name": f"s{at}", "address": f"10.1.{at // 250}.{at % 250 + 1}"} for at in range(size.backends)]
    service = {"name": "web", "port": 443, "servers": servers}
    return {"vips": [f"{VIPS}.{at + 1}" for at in range(size.vips)], "vrid": 51, "services": [service]}


def inventory(size: Size, engine: str) -> Dict[str, Any]:
    """Return the inventory of a run. The members answer as new hosts, which have their packages."""
    own = settings(size)
    prefix = "ipi" if size.is_cluster else "pair"
    masters = own.pop("masters", list(names(size)))
    hosts: Dict[str, Any] = {name: {"ansible_host": address} for name, address in names(size).items()}
    hosts[masters[0]]["recorded_holds"] = own.get("vips", [])
    groups = {"ipi_masters": masters, "ipi_workers": [name for name in hosts if name not in masters]}
    found = groups if size.is_cluster else {"pair": masters}
    return {
        "all": {
            "hosts": hosts,
            "vars": {
                **{f"{prefix}_{key}": value for key, value in own.items()},
                f"{prefix}_engine": engine,
                "ansible_connection": "recorded",
                "recorded_balancer": BALANCERS[engine],
                "ansible_python_interpreter": "/usr/bin/python3",
                "ansible_become": False,
            },
            "children": {group: {"hosts": dict.fromkeys(members)} for group, members in found.items()},
        }
    }


def many(size: Size) -> Dict[str, Any]:
    """Return the inventory of several pairs, as roles/pair/README.md has it."""

    def pair(at: int) -> Dict[str, Any]:
        subnet = f"10.2.{at}"
        own = {"pair_members": f"{{{{ groups['pair{at}'] }}}}", "pair_vips": [f"{subnet}.10"]}
        services = [{**service, "servers": [f"{subnet}.21", f"{subnet}.22"]} for service in settings(size)["services"]]
        hosts = {f"lb{at}-{number}": {"ansible_host": f"{subnet}.{number}"} for number in (1, 2)}
        return {"hosts": hosts, "vars": {**own, "pair_services": services}}

    return {"pair": {"children": {f"pair{at}": pair(at) for at in range(size.pairs)}}}


def plan(case: Case) -> None:
    """Compute a plan in this process."""
    collection.make_importable()
    from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
    from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair

    link = {"interface": "eth0", "prefix": LINK, "mac": ""}
    members = [
        {
            "name": name,
            "address": address,
            "settings": settings(case.size),
            "host": {"addresses": [{**link, "address": address}]},
        }
        for name, address in names(case.size).items()
    ]
    found = (ipi if case.size.is_cluster else pair).plan(members)
    assert not found.faults, found.faults


def playbook(case: Case) -> None:
    """Run a playbook as a user does."""
    collection.make_importable()
    with tempfile.TemporaryDirectory() as folder:
        hosts = Path(folder, "hosts.json")
        asked = many(case.size) if case.size.pairs > 1 else inventory(case.size, case.engine)
        hosts.write_text(json.dumps(asked))
        environment = {
            **os.environ,
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
            "ANSIBLE_CONNECTION_PLUGINS": str(ROOT / "bench" / "connection"),
            "ANSIBLE_HOME": folder,
        }
        done = subprocess.run(
            [PLAYBOOK, "-i", hosts, f"onprem.lb.{case.kind}"],
            env=environment,
            cwd=folder,
            check=False,
            text=True,
            capture_output=True,
        )
    if done.returncode:
        sys.exit(done.stdout[-4000:] + done.stderr[-4000:])


KINDS: Dict[str, Callable[[Case], None]] = {"plan": plan, "forecast": playbook, "site": playbook, "status": playbook}


def measure(case: Case) -> None:
    """Print the seconds, the seconds of processor time, and the memory in MiB."""
    begin = time.monotonic()
    KINDS[case.kind](case)
    seconds = time.monotonic() - begin
    usage = resource.getrusage(resource.RUSAGE_SELF if case.kind == "plan" else resource.RUSAGE_CHILDREN)
    print(json.dumps([seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024]))


def measured(case: Case) -> List[str]:
    """Measure a case in a process of its own, and return the cells of its line."""
    try:
        done = subprocess.run(
            [sys.executable, __file__, "--case", case.name], check=True, stdout=subprocess.PIPE, timeout=LIMIT
        )
    except subprocess.TimeoutExpired:
        return [f"> {LIMIT:g}", "", ""]
    seconds, processor, memory = json.loads(done.stdout)
    return [f"{seconds:.1f}", f"{processor:.1f}", f"{memory:.0f}"]


def main() -> None:
    if sys.argv[1:2] == ["--case"]:
        measure(next(case for case in CASES if case.name == sys.argv[2]))
        return
    print(f"{'':<36}{'seconds':>10}{'CPU s':>10}{'MiB':>8}{'goal, s':>10}")
    for case in CASES:
        if not sys.argv[1:] or any(wanted in case.name for wanted in sys.argv[1:]):
            goal = f"{case.goal:g}" if case.goal else ""
            cells = "".join(f"{cell:>{width}}" for cell, width in zip(measured(case), (10, 10, 8)))
            print(f"{case.name:<36}{cells}{goal:>10}", flush=True)


if __name__ == "__main__":
    main()
