# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A worker in a process of its own, between clients and servers of this one; the test is its master."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import signal
import socket
import sys
import time
import traceback

from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy import settings
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.worker.worker import Worker

from support.waiting import until

LOCAL = "127.0.0.1"
LIMIT = 10.0  # seconds for anything that is to happen
SERVICE = "service"


def listening(backlog: int = 128, address: str = LOCAL) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = socket.create_server((address, 0), family=family, backlog=backlog)
    server.settimeout(LIMIT)
    return server


class Proxy:
    """One worker with one service. ``servers`` are listening sockets, or (address, port); they are called 0, 1, 2, ...

    At the end what is left of its sessions is cut off, and it has reported its counters.
    """

    def __init__(self, *servers, descriptors=0, narrow=False, options=None, settings_options=None, **timeouts) -> None:
        """
        :param descriptors: how many files the worker may have open; 0: as many as we
        :param narrow: whether its master's channel has room for few messages only
        :param options: of the service; ``server_options`` in it are a list of those of each server
        :param settings_options: of everything
        :param timeouts: seconds
        """
        self.listener = listening(2048)
        self.address = self.listener.getsockname()
        self._settings = _settings(self.address[1], servers, options or {}, settings_options or {}, timeouts)
        self.channel, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel.settimeout(LIMIT)
        if narrow:
            self._theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        self.heard = []
        self.counters = {}
        self._descriptors = descriptors
        self._status = None

    def __enter__(self) -> Proxy:
        sys.stdout.flush()
        self.pid = os.fork()
        if not self.pid:
            self._live()
        self._theirs.close()
        self.listener.close()
        self.hear_of("counters")  # it is ready
        return self

    def __exit__(self, kind, *_fault) -> None:
        with contextlib.suppress(OSError):  # it has ended already
            self.send(drain=0)
            if kind is None:
                self.hear_of("drained")
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
        """Wait until it has ended, as it should."""
        until(self._reaped)
        assert self._status == 0, "the worker has ended badly"

    def _reaped(self) -> bool:
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._status = status if pid else None
        return self._status is not None

    def _live(self) -> None:
        code = 1
        try:
            _keep_only(self.listener.fileno(), self._theirs.fileno())
            if self._descriptors:
                resource.setrlimit(resource.RLIMIT_NOFILE, (self._descriptors, self._descriptors))
            self.listener.setblocking(False)
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
        """Both ends of a session."""
        with self.connect(**options) as client, server.accept()[0] as accepted:
            accepted.settimeout(LIMIT)
            yield client, accepted

    # -- as its master

    def send(self, **message) -> None:
        self.channel.send(json.dumps(message).encode())

    def set_server(self, number: int, state: str, weight: int = 1, shutdown: bool = False) -> None:
        self.send(servers={f"{SERVICE}/{number}": {"state": state, "weight": weight, "shutdown": shutdown}})

    def hear(self):
        """Wait for a message; return it."""
        data = self.channel.recv(1 << 16)
        if not data:
            raise ConnectionResetError("the worker has gone")
        message = json.loads(data)
        self.heard.append(message)
        self.counters.update(message.get("counters", {}))
        return message

    def hear_of(self, kind: str):
        """Wait for the next message of a kind; return what it says."""
        while True:
            message = self.hear()
            if kind in message:
                return message[kind]

    def count(self, what: str, number=None):
        key = SERVICE if number is None else f"{SERVICE}/{number}"
        return self.counters.get(key, {}).get(what, 0)

    def wait_for(self, what: str, value: int, number=None) -> None:
        """Wait until a counter has a value."""
        late = time.monotonic() + LIMIT
        while self.count(what, number) != value:
            assert time.monotonic() < late, f"{what} is {self.count(what, number)}, and not {value}"
            self.hear()

    def wait_for_report(self) -> None:
        """Wait until it has reported its counters again: then it has also executed the messages sent well before."""
        self.hear_of("counters")

    # -- as its host

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def resident(self) -> int:
        """Bytes of memory."""
        with open(f"/proc/{self.pid}/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * resource.getpagesize()

    def seconds_of_cpu(self) -> float:
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _settings(port, servers, options, settings_options, timeouts):
    extra = options.pop("server_options", [{}] * len(servers))
    service = settings.Service(
        name=SERVICE,
        bind=(LOCAL,),
        port=port,
        servers=tuple(
            settings.Server(str(number), *_place(server), **extra[number]) for number, server in enumerate(servers)
        ),
        **options,
    )
    given = {name: int(seconds * settings.MILLION) for name, seconds in timeouts.items()}
    return settings.Settings((service,), timeouts=settings.Timeouts(**given), **settings_options)


def _place(server):
    return server.getsockname()[:2] if isinstance(server, socket.socket) else server


def _keep_only(*kept: int) -> None:
    """Close what is the test's: a server that it closes must be closed."""
    gc.freeze()  # of what this closes there are still objects, which would close another descriptor of the same number
    for entry in os.listdir("/proc/self/fd"):
        if int(entry) not in (0, 1, 2, *kept):
            with contextlib.suppress(OSError):  # the one that listed them is closed already
                os.close(int(entry))
