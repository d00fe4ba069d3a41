# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole proxy in its own processes, as a host runs it, with servers and clients."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import uuid

from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.master import admin
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import status_socket

from support import leaks
from support.agent.programs import PATIENT, PYTHONPATH
from support.paths import MODULE_UTILS
from support.proxy.proxies import LIMIT, LOCAL
from support.waiting import until

# As systemd starts it: User=nobody, AmbientCapabilities=CAP_NET_BIND_SERVICE.
AS_NOBODY = (
    *("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"),
    *("--inh-caps=-all,+net_bind_service", "--ambient-caps=+net_bind_service"),
)


QUICK_CHECK = {"interval": 0.1, "rise": 2, "fall": 2}


class Echo:
    """A server that answers each message with its name and the message, until the client has finished."""

    def __init__(self, name, port=0, address=LOCAL):
        self.name = name.encode()
        self.clients = 0
        self._socket = socket.create_server((address, port), backlog=1024)
        self.port = self._socket.getsockname()[1]
        self._connections = set()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_fault):
        self.close()

    def close(self):
        """Stop listening, and reset every client."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(LIMIT)
        self._socket.close()
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _serve(self):
        while True:
            try:
                connection = self._socket.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection):
        self._connections.add(connection)
        with connection, contextlib.suppress(OSError):
            while True:
                data = connection.recv(65536)
                if not data:
                    break
                self.clients += 1
                connection.sendall(self.name + b":" + data)
        self._connections.discard(connection)


def ask(port, question=b"hello", address=LOCAL):
    """Send a question and finish; return the whole answer."""
    with socket.create_connection((address, port), LIMIT) as client:
        client.sendall(question)
        try:
            client.shutdown(socket.SHUT_WR)
        except OSError as error:
            if error.errno == errno.ENOTCONN:  # it was reset before it could be shut
                raise ConnectionResetError(errno.ECONNRESET, "the connection is gone") from error
            raise
        answer = b""
        while True:
            data = client.recv(65536)
            if not data:
                return answer
            answer += data


def get(port, path="/", address=LOCAL):
    """Return the status and the body of a page."""
    answer = ask(port, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode(), address)
    head, _empty, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body.decode()


def service(port, echoes, **changes):
    """Return a service in front of some servers, by their names."""
    servers = [{"name": name, "address": LOCAL, "port": echo.port} for name, echo in echoes.items()]
    return {"name": "web", "bind": LOCAL, "port": port, "servers": servers, "check": QUICK_CHECK, **changes}


def is_refused(port, address=LOCAL):
    try:
        socket.create_connection((address, port), LIMIT).close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:
        pass  # this one came between the last accept() and close()
    return False


class Load:
    """Clients with short sessions, and one with a persistent session. Counts their answers and their faults."""

    def __init__(self, port, address=LOCAL, inside=contextlib.nullcontext, clients=3):
        """
        :param inside: returns the context in which each client runs
        """
        self._address, self._inside = (address, port), inside
        self.answers, self.faults, self.echoes = 0, [], 0
        self._over = threading.Event()
        clients = [*[self._repeat_sessions] * clients, self._keep_session]
        self._threads = [threading.Thread(target=self._run, args=(client,), daemon=True) for client in clients]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        until(lambda: self.faults or (self.answers > 20 and self.echoes > 2))
        return self

    def __exit__(self, *_fault):
        self._over.set()
        for thread in self._threads:
            thread.join(LIMIT)

    def more(self, count=20):
        """Wait for some more answers."""
        answers, echoes = self.answers, self.echoes
        until(lambda: self.faults or (self.answers >= answers + count and self.echoes > echoes))

    def _run(self, client):
        with self._inside():
            client()

    def _repeat_sessions(self):
        address, port = self._address
        while not self._over.is_set():
            try:
                answer = ask(port, address=address)
                if answer not in (b"a:hello", b"b:hello"):
                    self.faults.append(answer)
            except OSError as error:
                self.faults.append(error)
            self.answers += 1

    def _keep_session(self):
        try:
            with socket.create_connection(self._address, LIMIT) as client:
                while not self._over.wait(0.005):
                    client.sendall(b"still there")
                    answer = client.recv(100)
                    if answer not in (b"a:still there", b"b:still there"):
                        self.faults.append(answer)
                        return
                    self.echoes += 1
        except OSError as error:
            self.faults.append(error)


class Running:
    """A running proxy. The test may change its configuration.

    At the end all of its processes have ended, also those that a hand-over has started before the test failed.
    """

    def __init__(self, folder, configuration, wait=True, environ=None, program=PATIENT):
        self.folder = folder
        self.path, self.socket = folder / "proxy.json", str(folder / "run" / "proxy.sock")
        self._log = folder / "log"
        self.mark, self.limit = uuid.uuid4().hex, LIMIT
        self.write(configuration)
        command = [*map(str, program), "proxy", "--config", str(self.path)]
        marked = {**os.environ, "PYTHONPATH": PYTHONPATH, **(environ or {}), "ONPREM_LB_TEST_PROXY": self.mark}
        with open(self._log, "wb") as log:
            self.process = subprocess.Popen(command, cwd=MODULE_UTILS, stderr=log, stdout=log, env=marked)
        try:
            if wait:
                until(lambda: self.process.poll() is not None or self._serves())
                assert self.process.poll() is None, self.log
        except BaseException:
            self._end_all()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *fault):
        left = None
        try:
            workers = self._workers()
            # The first SIGTERM drains the sessions, and the second one ends them.
            self.process.send_signal(signal.SIGTERM)
            until(lambda: self.process.poll() is not None or self.lines("Stopping: "), limit=self.limit)
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(self.limit)
            left = [pid for pid in workers if os.path.exists(f"/proc/{pid}")]
        finally:
            self._end_all()
            if fault[0]:
                sys.stderr.write(self.log)
        assert left == []
        assert "Traceback" not in self.log, self.log

    def _end_all(self):
        """End what is left: a worker goes on when its main process was killed."""
        leaks.end_marked(self.mark)
        self.process.wait()

    def write(self, configuration):
        """Replace the configuration atomically."""
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps({"status_socket": self.socket, **configuration}))
        os.chmod(new, 0o644)
        new.rename(self.path)

    def reload(self, configuration=None):
        """Reload; return when the log says that it is done or refused."""
        if configuration:
            self.write(configuration)
        before = len(self.lines("is in force.", "is refused, and"))
        self.process.send_signal(signal.SIGHUP)
        until(lambda: len(self.lines("is in force.", "is refused, and")) > before)

    @property
    def log(self):
        return self._log.read_text()

    def lines(self, *parts):
        """Return the lines of the log that contain one of these texts."""
        return [line for line in self.log.splitlines() if any(part in line for part in parts)]

    def report(self):
        return status_socket.fetch(self.socket, self.limit)

    def server(self, key):
        service, _slash, name = key.partition("/")
        return next(each for each in self.service(service)["servers"] if each["name"] == name)

    def service(self, name="web"):
        return next(each for each in self.report()["services"] if each["name"] == name)

    def order(self, server, order):
        return admin.request(self.socket, server, order)

    def generation(self):
        """Return the number of the newest generation, 0 while the proxy does not answer."""
        return max((each["generation"] for each in self._reported_workers()), default=0)

    def _serves(self):
        return any(each["state"] == "serving" for each in self._reported_workers())

    def _workers(self):
        return [each["pid"] for each in self._reported_workers()]

    def _reported_workers(self):
        try:
            return self.report()["workers"]
        except status_socket.Refused:
            return []
