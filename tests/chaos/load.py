# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clients that ask through the VIPs all the time, and the servers behind the balancers."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import List, NamedTuple, Tuple

from support.netns.namespaces import inside
from support.waiting import until

PAUSE_S = 0.02  # between two questions
TIMEOUT_S = 0.5  # for one of them: less than TCP waits until it repeats a SYN

# Answers each question on some ports.
SERVER = """
import socketserver, sys, threading

class Answer(socketserver.BaseRequestHandler):
    def handle(self):
        try:
            if self.request.recv(64):
                self.request.sendall(b"here")
        except OSError:
            pass

class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    request_queue_size = 512

servers = [Server(("0.0.0.0", int(port)), Answer) for port in sys.argv[1:]]
threads = [threading.Thread(target=server.serve_forever) for server in servers]
for thread in threads:
    thread.start()
print("ready", flush=True)
"""


class Answer(NamedTuple):
    """One question through a VIP, by the clock that stamps frames."""

    vip: str
    begin: float
    end: float
    fault: str  # empty if it was answered

    def __str__(self) -> str:
        return f"{self.begin:.3f} {self.vip}: {self.fault or 'answered'} after {1000 * (self.end - self.begin):.0f} ms"


class Load:
    """A client for each VIP."""

    def __init__(self, namespace: str, vips: List[str], port: int) -> None:
        self.answers: List[Answer] = []
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(namespace, (vip, port)), daemon=True) for vip in vips]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, namespace: str, target: Tuple[str, int]) -> None:
        with inside(namespace):
            while not self._over.wait(PAUSE_S):
                begin = time.time()
                self.answers.append(Answer(target[0], begin, *_asked(target)))

    def since(self, begin: float) -> List[Answer]:
        return [answer for answer in list(self.answers) if answer.begin >= begin]

    def wait_for_answers(self, vips: List[str], count: int, limit: float) -> None:
        """Wait until each VIP has answered a number of times in a row from now on."""
        begin = time.time()
        for vip in vips:
            until(lambda vip=vip: self._in_a_row(vip, begin) >= count, f"{vip} does not answer", limit)

    def _in_a_row(self, vip: str, begin: float) -> int:
        faults = [answer.fault for answer in self.since(begin) if answer.vip == vip]
        return len(faults) - max((at + 1 for at, fault in enumerate(faults) if fault), default=0)


def _asked(target: Tuple[str, int]) -> Tuple[float, str]:
    """Ask once; return when it was over, and what was wrong."""
    fault = ""
    try:
        with contextlib.closing(socket.create_connection(target, TIMEOUT_S)) as client:
            client.sendall(b"question")
            if client.recv(64) != b"here":
                fault = "closed without an answer"
    except OSError as error:
        fault = str(error)
    return time.time(), fault
