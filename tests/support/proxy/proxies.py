# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A worker in a child process, between clients and servers in this one. The test is its master."""

from __future__ import annotations

import contextlib
import gc
import json
import mmap
import os
import resource
import signal
import socket
import struct
import sys
import traceback

from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy import settings
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.worker import frontend, session, worker
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.worker.worker import Worker

from support.ports import free_ports
from support.waiting import LIMIT_S, until

LOCAL = "127.0.0.1"
LIMIT = LIMIT_S
SERVICE = "service"


def listening(backlog: int = 128, address: str = LOCAL) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = socket.create_server((address, *free_ports(1)), family=family, backlog=backlog)
    server.settimeout(LIMIT)
    return server


class Clock:
    """A clock of a worker, in seconds, that moves only when the test says so."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, mmap.PAGESIZE)  # with the child
        self.set(1000.0)

    def __call__(self) -> float:
        return struct.unpack_from("d", self._shared)[0]

    def set(self, now: float) -> None:
        struct.pack_into("d", self._shared, 0, now)


class Proxy:
    """One worker with one service. ``servers`` are listening sockets, or (address, port); their names are 0, 1, 2, ...

    At the end it ends its open sessions and reports its counters.
    """

    def __init__(
        self,
        *servers,
        clock=None,
        descriptors=0,
        narrow=False,
        options=None,
        settings_options=None,
        routes=(),
        **timeouts,
    ) -> None:
        """
        :param clock: the worker's, if it is not to be the real one
        :param descriptors: the worker's limit of open files; 0: this process's
        :param narrow: whether the channel to the master has a small buffer
        :param options: of the service; ``server_options`` is a list with the options of each server
        :param settings_options: of the whole proxy
        :param routes: of the service: name, hosts and server
        :param timeouts: in seconds
        """
        self.listener = listening(2048)
        self.address = self.listener.getsockname()
        self._settings = _settings(self.address[1], servers, options or {}, settings_options or {}, timeouts, routes)
        self.channel, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel.settimeout(LIMIT)
        if narrow:
            self._theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        self.messages = []
        self.counters = {}
        self._serial = 0  # of the latest order
        self._clock, self._descriptors = clock, descriptors
        self._status = None

    def __enter__(self) -> Proxy:
        sys.stdout.flush()
        self.pid = os.fork()
        if not self.pid:
            self._run_worker()
        self._theirs.close()
        self.listener.close()
        self.wait_for_message("counters")  # it is ready
        return self

    def __exit__(self, kind, *_fault) -> None:
        with contextlib.suppress(OSError):  # it has already ended
            self.send(drain=0)
            if kind is None:
                self.wait_for_message("drained")
        self.channel.close()
        try:
            self.join()
        except AssertionError:
            if self._status is None:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
            if kind is None:
                raise

    def join(self) -> None:
        """Wait until the worker has ended with success."""
        until(self._reaped)
        assert self._status == 0, "the worker has failed"

    def _reaped(self) -> bool:
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._status = status if pid else None
        return self._status is not None

    def _run_worker(self) -> None:
        code = 1
        try:
            _keep_only(self.listener.fileno(), self._theirs.fileno())
            if self._descriptors:
                resource.setrlimit(resource.RLIMIT_NOFILE, (self._descriptors, self._descriptors))
            self.listener.setblocking(False)
            if self._clock:
                worker.monotonic = session.monotonic = frontend.monotonic = self._clock
            Worker(self._settings, [(SERVICE, self.listener)], self._theirs).run()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    @contextlib.contextmanager
    def suspended(self):
        """Stop the process meanwhile: it finds everything that clients do in this time at once."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    # -- as a client

    def connect(self, **options) -> socket.socket:
        client = socket.socket()
        client.settimeout(LIMIT)
        for option, value in options.items():
            client.setsockopt(socket.SOL_SOCKET, getattr(socket, option), value)
        client.connect(self.address)
        return client

    @contextlib.contextmanager
    def pair(self, server, **options):
        """Yield both ends of a session."""
        with self.connect(**options) as client, server.accept()[0] as accepted:
            accepted.settimeout(LIMIT)
            yield client, accepted

    # -- as its master

    def send(self, **message) -> None:
        self.channel.send(json.dumps(message).encode())

    def order(self, **message) -> None:
        """Send a message; return once it is executed."""
        self._serial += 1
        self.send(**message, confirm=self._serial)
        while self.wait_for_message("confirmed") != self._serial:
            pass

    def set_server(self, number: int, state: str, weight: int = 1, shutdown: bool = False) -> None:
        self.order(servers={f"{SERVICE}/{number}": {"state": state, "weight": weight, "shutdown": shutdown}})

    def receive(self):
        """Wait for a message; return it."""
        data = self.channel.recv(1 << 16)
        if not data:
            raise ConnectionResetError("the worker has ended")
        message = json.loads(data)
        self.messages.append(message)
        self.counters.update(message.get("counters", {}))
        return message

    def wait_for_message(self, kind: str):
        """Wait for the next message of a kind; return its content."""
        while True:
            message = self.receive()
            if kind in message:
                return message[kind]

    def count(self, what: str, number=None):
        key = SERVICE if number is None else f"{SERVICE}/{number}"
        return self.counters.get(key, {}).get(what, 0)

    def wait_for(self, what: str, value: int, number=None) -> None:
        """Wait until a counter has a value."""
        until(lambda: self.count(what, number) == value or self.receive() and False, lambda: f"{what}: {self.counters}")

    def let_pass(self, seconds: float) -> None:
        """Let time pass at its clock, at least REPORT_INTERVAL; return once it has done and reported what was due."""
        self._catch_up()
        self._clock.set(self._clock() + seconds)
        self.send()  # wakes it up
        self.wait_for_message("counters")

    def tick(self) -> None:
        """Let a tick pass at its clock; return once it has done what was due."""
        self._catch_up()
        self._clock.set(self._clock() + worker.TICK)
        self._catch_up()

    def _catch_up(self) -> None:
        """Wait until it has done everything for which it is time: the second round begins after the first has ended."""
        for _round in range(2):
            self.order()

    def seconds_until(self, condition) -> float:
        """Let ticks pass one by one until it reports that a condition is true; return how many seconds."""
        began = self._clock()
        until(lambda: condition() or self.tick())
        return self._clock() - began

    # -- as its host

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def resident(self) -> int:
        """Return the resident memory in bytes."""
        with open(f"/proc/{self.pid}/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * resource.getpagesize()

    def wait_until_idle(self) -> None:
        """Wait until it has waited some times: a process that always finds something to do waits for nothing."""
        enough = self._waits() + 3
        until(lambda: self._waits() >= enough, "it does not wait, it works")

    def _waits(self) -> int:
        with open(f"/proc/{self.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("voluntary_ctxt_switches"))


def _settings(port, servers, options, settings_options, timeouts, routes):
    extra = options.pop("server_options", [{}] * len(servers))
    service = settings.Service(
        name=SERVICE,
        bind=(LOCAL,),
        port=port,
        servers=tuple(
            settings.Server(str(number), *_address_of(server), **extra[number]) for number, server in enumerate(servers)
        ),
        **options,
    )
    microseconds = {name: int(seconds * settings.MILLION) for name, seconds in timeouts.items()}
    routed = [
        service._replace(
            name=name, bind=(), route_of=SERVICE, hosts=hosts, servers=(settings.Server("0", *_address_of(to)),)
        )
        for name, hosts, to in routes
    ]
    return settings.Settings((service, *routed), timeouts=settings.Timeouts(**microseconds), **settings_options)


def _address_of(server):
    return server.getsockname()[:2] if isinstance(server, socket.socket) else server


def _keep_only(*kept: int) -> None:
    """Close the test's descriptors, so that a server that the test closes is closed."""
    # The objects of closed descriptors must not be collected: they would close other descriptors of the same numbers.
    gc.freeze()
    for entry in os.listdir("/proc/self/fd"):
        if int(entry) not in (0, 1, 2, *kept):
            with contextlib.suppress(OSError):  # that of listdir() is already closed
                os.close(int(entry))


def is_cut_off(client):
    """Wait until the other end has closed a connection; return whether it has sent nothing before."""
    client.settimeout(LIMIT)
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True
