"""The test bed for balancers: the agent's proxy with one worker and HAProxy with one thread, as they run on a host.

The client, the balancer and the server have their own network namespaces on one bridge. Each balancer gets new ones,
because TCP's state of past connections would slow down the next one.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.netns.links import Link  # noqa: E402

PYZ = ROOT / ".cache" / "agent.pyz"
# The system's Python by default, because a developer's build may not be optimised.
PYTHON = os.environ.get("PYTHON") or next(filter(os.path.exists, ["/usr/bin/python3", sys.executable]))
NEEDED = ("haproxy", "wrk", "iperf3", "curl")
LIMIT = 10  # seconds for any program to start or end
MAXCONN = 6000
BALANCER, SERVER = "192.0.2.1", "192.0.2.2"  # the first and the second member of a Link
REQUESTS, BULK = 8080, 5201  # ports of the balancer and of the server
FILES, PAIR, SPARE = 8081, 8082, 8083  # only for ``endurance``; SPARE is the second server of PAIR
FILE = "file"
FILE_SIZE = 100 << 20


def haproxy_config(mode: str, *proxies: str, lines: str = "") -> str:
    """Return a configuration of HAProxy with one thread.

    :param proxies: its sections of that mode
    :param lines: more lines of the section global
    """
    return f"""
global
    maxconn {MAXCONN}
    nbthread 1
    {lines}
defaults
    mode {mode}
    timeout connect 5s
    timeout client 10m
    timeout server 10m
""" + "\n".join(proxies)


# HAProxy is also the web server: answering by itself, it is faster than either balancer.
ORIGIN = """
frontend origin
    bind :{port}
    {rule}
    http-request return status 200 content-type text/plain string "here is what you asked for, and not a byte more"
"""

LISTENS = f"""
listen requests
    bind {BALANCER}:{REQUESTS}
    server one {SERVER}:{REQUESTS} check inter 2s
listen bulk
    bind {BALANCER}:{BULK}
    server one {SERVER}:{BULK}
"""


class Process:
    """A program in one of the namespaces, with its children."""

    def __init__(self, node, *command: str, errors=None) -> None:
        argv = ["ip", "netns", "exec", node.namespace, *command]
        self._process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True)

    def pids(self) -> list[int]:
        """Return the ids of the process and of its descendants."""
        pids = [self._process.pid]
        for pid in pids:
            with contextlib.suppress(OSError):
                pids += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        return pids

    def signal(self, number: int) -> None:
        """Send a signal to the program, but not to its children."""
        self._process.send_signal(number)

    def descriptors(self) -> int:
        return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in self.pids())

    def seconds(self) -> float:
        """Return the processor time of all its processes."""
        ticks = 0
        for pid in self.pids():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def resident(self) -> int:
        """Return the resident memory of all its processes in bytes."""
        pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in self.pids())
        return pages * os.sysconf("SC_PAGE_SIZE")

    def stop(self) -> None:
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()


def agent(node, folder: Path) -> Process:
    services = [
        _service("requests", REQUESTS, [REQUESTS], {"type": "tcp", "interval": 2}),
        _service("bulk", BULK, [BULK], {"type": "none"}),
        _service("files", FILES, [FILES], {"type": "none"}),
        _service("pair", PAIR, [REQUESTS, SPARE], {"type": "none"}),
    ]
    timeouts = {"connect": 5, "client": 600, "server": 600}
    config = {
        "services": services,
        "timeouts": timeouts,
        "maxconn": MAXCONN,
        "workers": 1,
        "status_socket": str(folder / "proxy.sock"),
    }
    (folder / "proxy.json").write_text(json.dumps(config))
    return Process(node, PYTHON, str(PYZ), "proxy", "--config", str(folder / "proxy.json"))


def _service(name: str, port: int, servers, check) -> dict:
    endpoints = [{"name": f"at-{each}", "address": SERVER, "port": each} for each in servers]
    return {"name": name, "bind": [BALANCER], "port": port, "servers": endpoints, "check": check}


def haproxy(node, folder: Path) -> Process:
    (folder / "haproxy.cfg").write_text(haproxy_config("tcp", LISTENS))
    return Process(node, "haproxy", "-q", "-f", str(folder / "haproxy.cfg"))


KINDS = {"agent": agent, "haproxy": haproxy}


class Stage:
    """A client, a balancer and a server. The context removes them at its end."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.folder = folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="onpremlb-bench-")))
            link = Link(2)
            stack.callback(link.stop)
            link.start()
            self.client = link.client
            balancer, server = link.members
            for node in link.nodes:
                # Many ports, because one client and one server stand for many.
                node.output("sysctl", "-qw", "net.ipv4.ip_local_port_range=1024 65535", "net.ipv4.tcp_tw_reuse=1")
            self.servers = dict(self._serve(server, stack, folder))
            self.balancer = KINDS[self.kind](balancer, folder)
            stack.callback(self.balancer.stop)
            until(self._answers, f"{self.kind} does not answer")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception):
        return self._stack.__exit__(*exception)

    def spawn(self, *command: str) -> subprocess.Popen:
        """Start a program at the client, with text output. It ends with the stage at the latest."""
        argv = ["ip", "netns", "exec", self.client.namespace, *command]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True)
        self._stack.callback(_end, process)
        return process

    def _serve(self, node, stack, folder: Path):
        """Yield each port with the process that listens there."""
        with open(folder / FILE, "wb") as file:
            file.write(os.urandom(FILE_SIZE))
        commands = {
            REQUESTS: _origin(folder, REQUESTS),
            SPARE: _origin(folder, SPARE),
            BULK: ["iperf3", "--server"],
            FILES: [sys.executable, "-m", "http.server", str(FILES), "--directory", str(folder)],
        }
        for port, command in commands.items():
            process = Process(node, *command, errors=subprocess.DEVNULL)
            stack.callback(process.stop)
            yield port, process
        until(lambda: all(f":{port}" in node.output("ss", "-Hltn") for port in commands), "the server does not listen")

    def run(self, *command: str) -> str:
        """Run a program at the client; return its output."""
        return self.client.output(*command)

    def _answers(self) -> bool:
        curl = ["curl", "--silent", "--output", "/dev/null", f"http://{BALANCER}:{REQUESTS}/"]
        return subprocess.run(["ip", "netns", "exec", self.client.namespace, *curl], check=False).returncode == 0


def _end(process: subprocess.Popen) -> None:
    """Kill a process with its children."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()


def build() -> None:
    """Build the agent's archive, as a host has it."""
    utils = ROOT / "plugins" / "module_utils"
    command = [sys.executable, str(utils / "_host" / "deploy" / "archive.py"), str(utils / "_agent"), str(PYZ)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _origin(folder: Path, port: int) -> list[str]:
    """Return the command of a web server."""
    path = folder / f"origin-{port}.cfg"
    path.write_text(haproxy_config("http", ORIGIN.format(port=port, rule="")))
    return ["haproxy", "-q", "-f", str(path)]


def until(condition: Callable[[], bool], complaint: str) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, complaint
        time.sleep(0.05)
