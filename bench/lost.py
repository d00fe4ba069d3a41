"""What clients see when a server is lost: the collection's two engines beside the published values of others.

    python3 bench/lost.py
    ROUNDS=3 BALANCE=source python3 bench/lost.py

Needs root and haproxy. One of two servers is lost behind each balancer, all at the same time. Sixteen clients open a
connection each 20 ms in turn, and ask on it. As many others have one that lasts, and ask on it twice a second. Prints
medians over the rounds, each with the worst value; of those that last, after how long the first and the last one of the
lost server had ended, or "-".
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import statistics
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Dict, List, NamedTuple

import stage as _collection  # noqa: F401, makes the collection importable
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi.presets import SERVER_CHECK
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent
from balancers import PYTHON, PYZ, Process, build, until
from support.netns.links import Link, sh
from support.rendering import haproxy as render

ROUNDS = int(os.environ.get("ROUNDS", "3"))
BALANCE = os.environ.get("BALANCE", "roundrobin")
LATE = 0.5  # seconds
SETTLE, WATCHED = 3, 20  # seconds: until the checks have found the servers, and how long clients ask after the loss
BALANCER, SERVERS, PORT = "192.0.2.1", ("192.0.2.2", "192.0.2.3"), 8443
CLIENTS = 16
ELSEWHERE = ("user ", "group ", "chroot ", "log ", "stats socket ")  # what needs the package's folders and users

# Answers a request as a web server would, and STAY as often as it comes.
SERVER = """
import socket, sys, threading
server = socket.create_server(("", int(sys.argv[1])), backlog=4096)
print("ready", flush=True)
def answer(connection):
    try:
        asked = connection.recv(4096)
        while asked.startswith(b"STAY"):
            connection.sendall(b"here")
            asked = connection.recv(4096)
        if asked:
            connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 4\\r\\nConnection: close\\r\\n\\r\\nhere")
    except OSError:
        pass
    connection.close()
while True:
    threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()
"""
# Opens a connection each 20 ms, each from the next address, and prints when each began, how long it took, and whether
# it was answered, and when those that last have ended; the line "open" comes first.
CLIENT = """
import asyncio, json, sys, time
vip, port, seconds, count = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
found, ended, LIMIT = [], [], 20
async def stay(number):
    try:
        reader, writer = await asyncio.open_connection(vip, port, local_addr=(f"192.0.2.{150 + number}", 0))
        while True:
            writer.write(b"STAY")
            if not await reader.read(4096):
                break
            await asyncio.sleep(0.5)
    except OSError:
        pass
    ended.append(time.monotonic())
async def ask(number):
    at, answered = time.monotonic(), False
    source = (f"192.0.2.{150 + number % count}", 0)
    try:
        reader, writer = await asyncio.wait_for(asyncio.open_connection(vip, port, local_addr=source), LIMIT)
        writer.write(b"GET / HTTP/1.0\\r\\n\\r\\n")
        answered = (await asyncio.wait_for(reader.read(4096), LIMIT)).startswith(b"HTTP/1.1 200")
        writer.close()
    except (OSError, asyncio.TimeoutError):
        pass
    found.append([at, time.monotonic() - at, answered])
async def main():
    lasting = [asyncio.ensure_future(stay(number)) for number in range(count)]
    tasks, begun = [], time.monotonic()
    print("open", flush=True)
    for number in range(int(seconds / 0.02)):
        await asyncio.sleep(max(0, begun + number * 0.02 - time.monotonic()))
        tasks.append(asyncio.ensure_future(ask(number)))
    await asyncio.wait(tasks, timeout=LIMIT + 1)
    print(json.dumps([found, ended]), flush=True)
asyncio.run(main())
"""


# Both ways, as a bad port of a switch.
LOSS = """
table inet loss {
    chain in { type filter hook input priority 0; numgen random mod 100 < 5 drop; }
    chain out { type filter hook output priority 0; numgen random mod 100 < 5 drop; }
}
"""


class Contender(NamedTuple):
    """A balancer: the engine, and what differs from the collection's defaults."""

    name: str
    engine: str = "haproxy"
    check: Dict[str, Any] = {}
    variables: Dict[str, Any] = {}
    weight: int = 1
    is_ours: bool = False


# Of a cluster's API servers, without what the events choose.
CLUSTER = {key: value for key, value in SERVER_CHECK.items() if key not in ("type", "path")}
# The values of kolla-ansible's haproxy role, kubeadm's ha-considerations.md and OpenShift's on-premises haproxy.cfg.
CONTENDERS = (
    Contender("pair, HAProxy", is_ours=True),
    Contender("pair, agent", "agent", is_ours=True),
    Contender("cluster, HAProxy", check=CLUSTER, weight=256, is_ours=True),
    Contender("cluster, agent", "agent", check=CLUSTER, weight=256, is_ours=True),
    Contender("kolla", check={"interval": 2, "fall": 5}, variables={"timeout_connect": "10s", "timeout_check": "10s"}),
    Contender(
        "kubeadm",
        check={"interval": 2, "fall": 3},
        variables={"timeout_connect": "5s", "timeout_check": "10s", "retries": 1},
    ),
    Contender(
        "OpenShift",
        check={"interval": 5, "fall": 3, "rise": 1},
        variables={"timeout_connect": "10s", "timeout_check": "10s"},
    ),
)


class Trial:
    """A balancer, two servers and sixteen clients on a link of their own. The context removes them at its end."""

    def __init__(self, contender: Contender, folder: Path, check: str) -> None:
        self.contender, self.folder, self._check = contender, folder, check
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.folder.mkdir()
            self.link = Link(3)
            stack.callback(self.link.stop)
            self.link.start()
            balancer, *self.nodes = self.link.members
            for number in range(CLIENTS):
                self.link.client.ip("addr", "add", f"192.0.2.{150 + number}/24", "dev", "eth0")
            self.servers = [node.python(SERVER, PORT) for node in self.nodes]
            assert all(server.stdout.readline() == "ready\n" for server in self.servers)
            command = getattr(self, f"_{self.contender.engine}")()
            process = Process(balancer, *command, errors=subprocess.DEVNULL)
            stack.callback(process.stop)
            until(lambda: f":{PORT}" in balancer.output("ss", "-Hltn"), f"{self.contender.name} does not listen")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception):
        return self._stack.__exit__(*exception)

    def _services(self) -> List[Dict[str, Any]]:
        check = {**self.contender.check, "type": self._check}
        weight = {"weight": self.contender.weight}
        servers = [{"name": f"s{at}", "address": address, **weight} for at, address in enumerate(SERVERS)]
        return [{"name": "web", "port": PORT, "balance": BALANCE, "check": check, "servers": servers}]

    def _haproxy(self) -> List[str]:
        text = render(self._services(), **{f"haproxy_{key}": value for key, value in self.contender.variables.items()})
        # As without root's folders and users; and others have no `redispatch 1`, and no consistent hash.
        lines = [line for line in text.splitlines() if not line.strip().startswith(ELSEWHERE)]
        if not self.contender.is_ours:
            lines = [line.replace("redispatch 1", "redispatch") for line in lines if "hash-type" not in line]
        (self.folder / "haproxy.cfg").write_text("\n".join(lines) + "\n")
        return ["haproxy", "-q", "-db", "-f", str(self.folder / "haproxy.cfg")]

    def _agent(self) -> List[str]:
        proxy = agent.translate({"services": self._services(), "stats_enabled": False})["proxy"]
        (self.folder / "proxy.json").write_text(json.dumps({**proxy, "status_socket": str(self.folder / "sock")}))
        return [PYTHON, str(PYZ), "proxy", "--config", str(self.folder / "proxy.json")]

    def cut(self) -> None:
        sh("ip", "-n", self.link.bridge, "link", "set", self.nodes[1].port, "nomaster")

    def power_off(self) -> None:
        self.nodes[1].ip("link", "set", "eth0", "down")

    def come_back(self) -> None:
        sh("ip", "-n", self.link.bridge, "link", "set", self.nodes[1].port, "master", "br0")

    def end(self) -> None:
        self.servers[1].kill()

    def hang(self) -> None:
        self.servers[1].send_signal(signal.SIGSTOP)

    def drop(self) -> None:
        self.nodes[1].output("nft", LOSS)

    def measure(self, happen: str) -> Found:
        if happen == "come_back":
            self.cut()
            time.sleep(WATCHED)  # until the slowest checks have found that
        client = self.link.client.python(CLIENT, BALANCER, PORT, SETTLE + WATCHED, CLIENTS)
        assert client.stdout.readline() == "open\n"
        time.sleep(SETTLE)
        at = time.monotonic()
        getattr(self, happen)()
        asked, ended = json.loads(client.stdout.readline())
        after = [each for each in asked if each[0] >= at]
        lasting = [each - at for each in ended if each >= at]
        late = [each for each in after if each[2] and each[1] > LATE]
        failed = [each for each in after if not each[2]]
        window = max((each[0] - at for each in late + failed), default=0)
        within = [each for each in after if each[0] - at <= window] if window else []
        share = 100 * len(late) / len(within) if within else 0
        return Found(share, window, max((each[1] for each in after if each[2]), default=0), len(failed), lasting)


class Found(NamedTuple):
    """What clients saw: the share that was late, in percent; for how long, and by how much, in seconds; failures."""

    late: float
    window: float
    worst: float
    failed: int
    lasting: List[float]  # after how many seconds connections that last have ended


EVENTS = {
    "a server is cut off": ("cut", "tcp"),
    "it is powered off": ("power_off", "tcp"),
    "it is back, after it was cut off": ("come_back", "tcp"),
    "its process ends": ("end", "tcp"),
    "its process hangs, http check": ("hang", "http"),
    "its link drops 5 % of the packets": ("drop", "tcp"),
}


def trial(contender: Contender, folder: Path, happen: str, check: str) -> Found:
    with Trial(contender, folder, check) as running:
        return running.measure(happen)


def played(happen: str, check: str) -> List[Found]:
    """Return what the clients of each contender saw. They all run at the same time, because they mostly wait."""
    with tempfile.TemporaryDirectory(prefix="onpremlb-bench-") as name, ThreadPoolExecutor(len(CONTENDERS)) as pool:
        folders = [Path(name, str(number)) for number in range(len(CONTENDERS))]
        jobs = [pool.submit(trial, each, at, happen, check) for each, at in zip(CONTENDERS, folders)]
        return [job.result() for job in jobs]


def main() -> None:
    build()
    print(f"balance {BALANCE}, {ROUNDS} rounds, a connection each 20 ms; late is more than {LATE} s")
    for what, (happen, check) in EVENTS.items():
        head = f"{'late':>8}{'for, s':>16}{'worst, s':>16}{'failed':>8}{'worst, ratio':>14}{'lasting end':>14}"
        print(f"\n{what:<38}{head}", flush=True)
        rounds: List[List[Found]] = []
        for _round in range(ROUNDS):
            rounds.append(played(happen, check))
        ours = statistics.median(each[0].worst for each in rounds)
        for number, contender in enumerate(CONTENDERS):
            _row(contender.name, [each[number] for each in rounds], ours)


def _row(name: str, found: List[Found], ours: float) -> None:
    late, window, worst, failed, lasting = (list(each) for each in zip(*found))
    middle = statistics.median(worst)
    print(
        f"  {name:<36}{statistics.median(late):>6.0f} %{_both(window):>16}{_both(worst):>16}{max(failed):>8}"
        f"{middle / ours:>14.1f}{_ends([each for ends in lasting for each in ends]):>14}",
        flush=True,
    )


def _ends(values: List[float]) -> str:
    return f"{min(values):.1f} - {max(values):.1f}" if values else "-"


def _both(values: List[float]) -> str:
    return f"{statistics.median(values):.2f} ({max(values):.2f})"


if __name__ == "__main__":
    main()
