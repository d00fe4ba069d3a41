"""How long clients of a balancer that fails are not served where BGP carries the VIPs: the collection beside others.

    python3 bench/bgp.py
    ROUNDS=3 python3 bench/bgp.py

Needs root, haproxy and FRR. Two balancers announce a VIP to a router, which shares the connections of a client between
them (ECMP by addresses and ports). One of the two fails while the client opens a connection every 5 ms. Prints the
share of connections that failed meanwhile, and for how long, the median over the rounds and the worst. The last rows
have 64 VIPs, and then 16 peers besides. Exits with 1 if a median of the collection is over its bound.

"by hand" takes the VIP off lo in the moment of the failure, which nothing could that has to notice it first: what is
left is FRR's own time. "every 5 s" asks as OpenShift's kube-vip does: 3 failures in a row, each of 3 s, and no BFD.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

import stage as _collection  # noqa: F401, makes the collection importable
from lost import SERVER
from support import rendering
from support.netns.agents import Agent
from support.netns.links import Link, skip_reason
from support.netns.namespaces import inside
from support.netns.pairs import is_open
from support.netns.speakers import Speaker
from support.plans import racks
from support.waiting import until

ROUNDS = int(os.environ.get("ROUNDS", "3"))
PORT, ASN, ROUTER_ASN = 443, racks.ASN, racks.ROUTER_ASN
BEFORE, WATCHED = 2, 20  # seconds
VIPS = [f"203.0.113.{at}" for at in range(10, 74)]
KILLED, HUNG, CUT = "balancer killed", "balancer hung", "host cut off"
# The bounds that the forecast has of the first contender, in milliseconds.
BOUNDS = {KILLED: 200, HUNG: 2700, CUT: 250}
EVERY_S, TIMEOUT_S, FAILURES = 5, 3, 3

CLIENT = """
import json, sys
from ansible_collections.onprem.lb.plugins.module_utils._host.drill import prober
asks = b"GET / HTTP/1.0\\r\\n\\r\\n"
settings = prober.Settings(sys.argv[1], int(sys.argv[2]), duration_ms=float(sys.argv[3]), send=asks)
print("ready", flush=True)
print(json.dumps(prober.probe(settings)["impaired"]), flush=True)
"""


class Contender(NamedTuple):
    """Who notices that a balancer fails."""

    name: str
    gate: str = ""
    bfd: bool = True
    hold_time: int = 9
    vips: int = 1
    peers: int = 1


OURS = Contender("onprem.lb", "anycast")
CONTENDERS = (
    OURS,
    Contender("FRR, withdrawn by hand", "by hand"),
    Contender("a check every 5 s, hold time 90 s", "every 5 s", False, 90),
)
GROWTH = (
    OURS._replace(name="onprem.lb, 64 VIPs", vips=64),
    OURS._replace(name="the same, 16 peers", vips=64, peers=16),
)


class Gate(Agent):
    """The collection's health gate, with what is planned for a member."""

    kind = "health gate"

    def __init__(self, node: Any, folder: Path, planned: Dict[str, Any]) -> None:
        self.planned = planned
        super().__init__(node, folder, [])

    def prepare(self) -> None:
        checks = [{**each, "file": str(self.tracked)} if "file" in each else each for each in self.planned["checks"]]
        settings = {**self.planned, "checks": checks, "status_socket": self.socket, "held_back": []}
        (self.folder / "anycast.json").write_text(json.dumps(settings))

    def command(self) -> List[str]:
        return [sys.executable, "-m", "_agent.cli", "anycast", "--config", str(self.folder / "anycast.json")]


class Member:
    """A host with haproxy, FRR, and whatever takes its VIPs away."""

    def __init__(self, node: Any, folder: Path, contender: Contender, planned: Any) -> None:
        self.node, self.folder, self.contender, self.planned = node, folder, contender, planned
        self.vips = VIPS[: contender.vips]
        self.stopped = threading.Event()

    def start(self, stack: contextlib.ExitStack) -> None:
        self.folder.mkdir()
        answer_port = self.planned.balancer.answer_port
        service = {"name": "web", "port": PORT, "servers": [self.node.link.client.addresses[0]]}
        text = rendering.haproxy([service], haproxy_answer_port=answer_port)
        (self.folder / "haproxy.cfg").write_text(text.replace("/run/haproxy/admin.sock", str(self.folder / "sock")))
        command = ["ip", "netns", "exec", self.node.namespace, "haproxy", "-W", "-f", str(self.folder / "haproxy.cfg")]
        with (self.folder / "haproxy.log").open("w") as log:
            self.balancer = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        stack.callback(self.balancer.wait)
        stack.callback(self._signal, signal.SIGKILL)
        with inside(self.node.namespace):
            until(lambda: is_open("127.0.0.1", answer_port), "haproxy does not answer")
        self.speaker = Speaker(self.node)
        stack.callback(self.speaker.close)
        self.speaker.configure(self._frr())
        self._start_gate(stack)

    def _frr(self) -> str:
        given = self.planned.bgp["frr"]
        timers = {"hold_time": self.contender.hold_time, "keepalive_time": max(1, self.contender.hold_time // 3)}
        peers = [
            {**given["peers"][0], **timers, "address": router, "local_address": own, "bfd": self.contender.bfd}
            for own, router in sessions(self.node.number, self.contender.peers)
        ]
        prefixes = [f"{vip}/32" for vip in self.vips]
        return rendering.frr((), **{**given, "peers": peers, "prefixes": prefixes})

    def _start_gate(self, stack: contextlib.ExitStack) -> None:
        if self.contender.gate == "anycast":
            (vip,) = self.planned.bgp["anycast"]["vips"]
            vips = [{**vip, "address": each, "name": f"vip-{each}"} for each in self.vips]
            self.gate = Gate(self.node, self.folder / "gate", {**self.planned.bgp["anycast"], "vips": vips})
            stack.callback(self.gate.close)
            self.gate.start()
            return
        for vip in self.vips:
            self.node.ip("addr", "add", f"{vip}/32", "dev", "lo")
        if self.contender.gate == "every 5 s":
            asking = threading.Thread(target=self._ask)
            asking.start()
            stack.callback(asking.join)
            stack.callback(self.stopped.set)

    def _ask(self) -> None:
        failed, due = 0, time.monotonic() + EVERY_S
        while failed < FAILURES and not self.stopped.wait(max(0, due - time.monotonic())):
            due += EVERY_S
            with inside(self.node.namespace):
                failed = 0 if answers(self.planned.balancer.answer_port) else failed + 1
        if not self.stopped.is_set():
            self.withdraw()

    def withdraw(self) -> None:
        for vip in self.vips:
            self.node.ip("addr", "del", f"{vip}/32", "dev", "lo")

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.balancer.pid, number)

    def fail(self, what: str) -> None:
        if what == CUT:
            subprocess.run(["ip", "-n", self.node.link.bridge, "link", "set", self.node.port, "nomaster"], check=True)
            return
        self._signal(signal.SIGKILL if what == KILLED else signal.SIGSTOP)
        if self.contender.gate == "by hand":
            self.withdraw()
        if self.contender.gate == "anycast" and what == KILLED:
            self.gate.fail_tracking()  # as haproxy's unit does when it ends


def answers(port: int) -> bool:
    """Whether haproxy answers a request in time."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as connection:
        connection.settimeout(TIMEOUT_S)
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return bool(connection.recv(64))
    return False


def sessions(number: int, peers: int) -> Iterator[Tuple[str, str]]:
    """Yield the addresses of each session of a member, its own and the router's."""
    yield f"192.0.2.{number}", "192.0.2.3"
    for at in range(1, peers):
        yield f"192.0.2.{20 * number + 10 + at}", f"192.0.2.{100 + at}"


def router_config(contender: Contender) -> str:
    every = [(own, router) for number in (1, 2) for own, router in sessions(number, contender.peers)]
    keepalive, hold = max(1, contender.hold_time // 3), contender.hold_time
    lines = ["bfd", " profile members", "  transmit-interval 50", "  receive-interval 50", " exit", "exit"]
    lines += [f"router bgp {ROUTER_ASN}", " bgp router-id 192.0.2.3", " no bgp ebgp-requires-policy"]
    for member, own in every:
        neighbor = f" neighbor {member}"
        lines += [
            f"{neighbor} remote-as {ASN}",
            f"{neighbor} timers {keepalive} {hold}",
            f"{neighbor} timers connect 1",
        ]
        lines += [
            f"{neighbor} update-source {own}",
            *([f"{neighbor} bfd", f"{neighbor} bfd profile members"] * contender.bfd),
        ]
    return "\n".join([*lines, " address-family ipv4 unicast", "  maximum-paths 64", " exit-address-family", "exit", ""])


class Found(NamedTuple):
    """What the client saw: how many of how many connections failed, and for how many milliseconds."""

    failed: int
    tried: int
    window: float


def measure(contender: Contender, what: str) -> Found:
    """Set two members, a router and a client up, and have one member fail."""
    planned = racks.plan(racks.racks()).members
    with tempfile.TemporaryDirectory(prefix="onpremlb-bench-") as name, contextlib.ExitStack() as stack:
        link = Link(3)
        stack.callback(link.stop)
        link.start()
        router = link.members[2]
        prepare(link, router, contender)
        server = link.client.python(SERVER, PORT)
        assert server.stdout.readline() == "ready\n"
        members = [Member(node, Path(name, node.name), contender, planned[node.name]) for node in link.members[:2]]
        speaker = Speaker(router)
        stack.callback(speaker.close)
        speaker.configure(router_config(contender))
        for member in members:
            member.start(stack)
        until(lambda: are_shared(router, contender), "the router does not share the VIPs between both")
        until(lambda: are_watched(speaker, contender), "BFD does not watch the sessions")
        seconds = BEFORE + (WATCHED if contender.gate == "every 5 s" else 5)
        client = link.client.python(CLIENT, VIPS[contender.vips - 1], PORT, 1000 * seconds)
        assert client.stdout.readline() == "ready\n"
        time.sleep(BEFORE)
        members[1].fail(what)
        seen = json.loads(client.stdout.readline())
        return Found(seen["late"] + seen["failed"] + seen["open"], seen["attempts"], seen["window_ms"])


def prepare(link: Link, router: Any, contender: Contender) -> None:
    """Have the client reach the VIPs through the router alone, and the router share them."""
    router.set_forwarding(True)
    for name, value in (("ip_forward", 1), ("fib_multipath_hash_policy", 1), ("conf/all/send_redirects", 0)):
        router.set_sysctl(f"ipv4/{name}", value)
    router.set_sysctl("ipv4/conf/eth0/send_redirects", 0)
    link.client.ip("route", "add", "203.0.113.0/24", "via", router.addresses[0])
    for member in (1, 2):
        for own, of_router in [*sessions(member, contender.peers)][1:]:
            link.members[member - 1].ip("addr", "add", f"{own}/24", "dev", "eth0")
            if member == 1:
                router.ip("addr", "add", f"{of_router}/24", "dev", "eth0")


def are_shared(router: Any, contender: Contender) -> bool:
    routes = json.loads(router.output("ip", "-json", "route", "show", "proto", "bgp") or "[]")
    shared = [each for each in routes if len(each.get("nexthops", ())) == 2 * contender.peers]
    return len(shared) == contender.vips


def are_watched(speaker: Speaker, contender: Contender) -> bool:
    known = json.loads(speaker.say("show bfd peers json") or "[]")
    return not contender.bfd or [each["status"] for each in known] == ["up"] * 2 * contender.peers


def main() -> None:
    if skip_reason("haproxy", "vtysh"):
        print(f"bench/bgp.py: skipped: {skip_reason('haproxy', 'vtysh')}")
        return
    signal.signal(signal.SIGTERM, lambda *_ignored: sys.exit(1))  # so that contexts clean up
    missed = []
    print(f"{ROUNDS} rounds, a connection every 5 ms; median (worst)")
    for what, bound in BOUNDS.items():
        print(f"\n{what:<38}{'failed':>10}{'for, ms':>18}   aim", flush=True)
        for contender in (*CONTENDERS, *(GROWTH if what != HUNG else ())):
            found = [measure(contender, what) for _round in range(ROUNDS)]
            is_ours = contender.gate == "anycast"
            row(contender.name, found, f"{bound} ms" if is_ours else "")
            middle = statistics.median(each.window for each in found)
            missed += [f"{what}, {contender.name}: {middle:.0f} ms, {bound} at most"] * (is_ours and middle > bound)
    if missed:
        sys.exit("\n".join(["\nout of bounds:", *missed]))


def row(name: str, found: List[Found], aim: str) -> None:
    tried = sum(each.tried for each in found)
    share = f"{100 * sum(each.failed for each in found) / tried:.0f} %" if tried else "none"
    windows = [each.window for each in found]
    longest = (WATCHED - 1) * 1000
    shown = [f"> {longest}" if each > longest else f"{each:.0f}" for each in (statistics.median(windows), max(windows))]
    print(f"  {name:<36}{share:>10}{f'{shown[0]} ({shown[1]})':>18}   {aim}".rstrip(), flush=True)


if __name__ == "__main__":
    main()
