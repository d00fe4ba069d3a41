# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Asks an API server for nodes, over HTTPS. It blocks: ``follower`` calls it in a thread of its own.

The files of the credentials are read for each connection: kubelets and token projection replace them.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import time
from typing import Any, Callable, Dict, Iterator, Optional, Union
from urllib.parse import urlencode, urlsplit

from .. import VERSION
from ..checks.outcome import in_words
from .settings import MILLION, Api
from .watching import (
    PAGE,
    SILENT,
    Ended,
    Failed,
    Outcome,
    Page,
    PageRequest,
    Refused,
    Silent,
    Unusable,
    WatchRequest,
    page_of,
    refusal,
)

NODES = "/api/v1/nodes"
PORT = 443  # of a URL without one, as for kubectl
OK = 200
MAX_PAGE = 64 * 1024 * 1024  # bytes
MAX_LINE = 4 * 1024 * 1024  # bytes of an event; etcd takes 1.5 MB for an object
MAX_REFUSAL = 65536  # bytes of a refusal's explanation
MAX_FILE = 1024 * 1024  # bytes of a token
CHUNK = 65536
OUT_OF_TIME = (9, 10)  # of OpenSSL's codes: a certificate is not valid yet, or has expired
GRACE = 30  # seconds for which a watch may last longer than was asked
SLOWEST = 1000  # bytes a second: a page that comes faster is waited for, however long it is
# A host that is gone is noticed within 25 s. A process that hangs is not: its kernel answers.
KEEPALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 25_000),
)


class Unreadable(Exception):
    """A file of the credentials is of no use; the text says which and why."""


class Client:
    """One request after the other, each with a connection of its own."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._timeout = api.timeout / MILLION
        self._socket: Optional[socket.socket] = None
        self._closed = False

    def page(self, request: PageRequest) -> Outcome:
        """Return a page of the list of nodes."""
        query = {"limit": PAGE, **({"continue": request.page} if request.page else {})}

        def read(response: http.client.HTTPResponse) -> Union[Page, Failed]:
            return page_of(json.loads(b"".join(_chunks(response, 2 * self._timeout, MAX_PAGE))))

        return self._ask(request.server, query, read)

    def watch(self, request: WatchRequest, opened: Callable[[], None], line: Callable[[Any], None]) -> Outcome:
        """Call ``line`` for each event until the watch ends; return how.

        :param line: may raise Unusable
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": request.version,
            "timeoutSeconds": request.seconds,
        }

        def read(response: http.client.HTTPResponse) -> Outcome:
            began = time.monotonic()
            opened()
            if self._socket:
                self._socket.settimeout(SILENT)
            try:
                _read_lines(response, began + request.seconds + GRACE, line)
            except socket.timeout:
                lasted = time.monotonic() - began
                return Ended(lasted) if lasted > request.seconds else Silent()
            except (OSError, http.client.HTTPException) as fault:
                return Ended(time.monotonic() - began, _words(fault))
            return Ended(time.monotonic() - began)

        return self._ask(request.server, query, read)

    def close(self) -> None:
        """End the request that runs, from another thread; there will be no further one."""
        self._closed = True
        connection = self._socket
        if connection:
            with contextlib.suppress(OSError):  # it is closed already
                # Not that of TLS, which would wait for the other thread.
                socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def _ask(self, server: int, query: Dict[str, Any], read: Callable[[http.client.HTTPResponse], Outcome]) -> Outcome:
        url = urlsplit(self._api.servers[server])
        target = f"{url.path.rstrip('/')}{NODES}?{urlencode(query)}"
        connection = http.client.HTTPConnection(url.hostname or "", url.port or PORT)
        try:
            headers = self._headers()
            connection.sock = self._socket = self._connect(connection.host, connection.port)
            if self._closed:
                return Failed("the client is closed")
            connection.request("GET", target, headers=headers)
            response = connection.getresponse()
            return read(response) if response.status == OK else _refused(response, self._timeout)
        except Unusable as unusable:
            return unusable.outcome
        except (Unreadable, OSError, http.client.HTTPException, ValueError, RecursionError) as fault:
            return Failed(_words(fault))
        finally:
            self._socket = None
            connection.close()

    def _headers(self) -> Dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": f"onprem.lb-follow/{VERSION}"}
        if self._api.token:
            headers["Authorization"] = f"Bearer {_token(self._api.token)}"
        return headers

    def _connect(self, host: str, port: int) -> socket.socket:
        context = _context(self._api)
        plain = socket.create_connection((host, port), self._timeout)
        try:
            for option in KEEPALIVE:
                plain.setsockopt(*option)
            return context.wrap_socket(plain, server_hostname=self._api.server_name or host)
        except BaseException:
            plain.close()
            raise


def _context(api: Api) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # which verifies the certificate and its name
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if api.ca:
        _load("ca", api.ca, lambda: context.load_verify_locations(api.ca))
    else:
        context.load_default_certs()
    if api.certificate:
        # Without a password OpenSSL would ask at the terminal for that of an encrypted key.
        _load("certificate", api.certificate, lambda: context.load_cert_chain(api.certificate, api.key or None, str))
    return context


def _load(key: str, path: str, load: Callable[[], None]) -> None:
    try:
        load()
    except ssl.SSLError as fault:
        wanted = "certificates in PEM" if key == "ca" else "a certificate in PEM and its key, without a password,"
        raise Unreadable(f"api.{key} is {path}: {wanted} are required there ({_reason(fault)})") from fault
    except (OSError, ValueError) as fault:
        raise Unreadable(f"api.{key} is {path}: it cannot be read: {in_words(fault)}") from fault


def _token(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            found = file.read(MAX_FILE).strip()
    except OSError as fault:
        raise Unreadable(f"api.token is {path}: it cannot be read: {in_words(fault)}") from fault
    except ValueError:
        found = ""
    if not found or not found.isprintable() or " " in found:
        raise Unreadable(f"api.token is {path}: there is no token in it")
    return found


def _chunks(response: http.client.HTTPResponse, patience: float, most: int) -> Iterator[bytes]:
    """Yield an answer as it arrives; a server that sends too slowly or too much fails."""
    size, began = 0, time.monotonic()
    while True:
        data = response.read1(CHUNK)
        size += len(data)
        if size > most:
            raise ValueError("the answer is too long")
        if not data:
            return
        yield data
        if time.monotonic() > began + patience + size / SLOWEST:
            raise socket.timeout


def _read_lines(response: http.client.HTTPResponse, deadline: float, line: Callable[[Any], None]) -> None:
    """Read the lines of a watch until it ends; one without a line for too long has a timeout, although bytes come."""
    rest, heard = bytearray(), time.monotonic()
    while True:
        data = response.read1(CHUNK)
        if not data:
            return
        rest += data
        if len(rest) > MAX_LINE + CHUNK:
            raise ValueError("a line of the watch is too long")
        if b"\n" in data:
            *lines, last = bytes(rest).split(b"\n")
            rest = bytearray(last)
            for each in filter(bytes.strip, lines):
                line(json.loads(each))
                heard = time.monotonic()  # after it: this program may be slow itself
        if time.monotonic() > min(deadline, heard + SILENT):
            raise socket.timeout


def _refused(response: http.client.HTTPResponse, patience: float) -> Refused:
    """Return why an API server has refused, from a Status in JSON if there is one."""
    try:
        status = json.loads(b"".join(_chunks(response, patience, MAX_REFUSAL)))
    except (OSError, http.client.HTTPException, ValueError, RecursionError):
        status = None
    seconds = response.headers.get("Retry-After", "")
    return refusal(status, response.status, float(seconds) if seconds.isdecimal() and len(seconds) < 9 else 0.0)


def _words(fault: BaseException) -> str:
    if isinstance(fault, ssl.SSLCertVerificationError):
        clock = ": renew it, or correct this host's clock" if fault.verify_code in OUT_OF_TIME else ""
        return f"its certificate is not trusted: {_reason(fault)}{clock}"
    if isinstance(fault, ssl.SSLError):
        return f"TLS: {_reason(fault)}"
    if isinstance(fault, socket.timeout):
        return "no answer in time"
    if isinstance(fault, http.client.IncompleteRead):
        return "the connection was cut"
    if isinstance(fault, http.client.HTTPException):
        return "not an answer of HTTP"
    if isinstance(fault, (json.JSONDecodeError, RecursionError, UnicodeDecodeError)):
        return "the answer is not JSON"
    return in_words(fault) if isinstance(fault, OSError) else str(fault)


def _reason(fault: ssl.SSLError) -> str:
    found = getattr(fault, "verify_message", "") or (fault.reason or "").replace("_", " ").lower()
    return str(found or fault.strerror or "an unknown fault")
