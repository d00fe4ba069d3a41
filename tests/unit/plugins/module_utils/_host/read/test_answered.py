# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked of web servers of this host, with and without TLS, is answered or not as a router's check finds it."""

from __future__ import annotations

import contextlib
import http.server
import socket
import ssl
import threading

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import answered
from support.agent.certificates import Certificate
from support.waiting import LIMIT_S

STATUS = {"/good": 200, "/moved": 302, "/forbidden": 403, "/broken": 503}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(STATUS[self.path])
        self.end_headers()

    def log_message(self, *_args):
        pass


@contextlib.contextmanager
def server(certificate=None):
    """Yield the port of a web server."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate.file, certificate.key)
            serving.socket = context.wrap_socket(serving.socket, server_side=True)
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        try:
            yield serving.server_address[1]
        finally:
            serving.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    monkeypatch.setattr(answered, "TIMEOUT", LIMIT_S)


def paths(port, tls, address="127.0.0.1"):
    """Return the paths that are answered at a port."""
    return {each.path for each in answered.of([answered.Question(tls, address, port, path) for path in STATUS])}


def test_a_good_status_is_an_answer():
    with server() as port:
        assert paths(port, tls=False) == {"/good", "/moved"}
        assert paths(port, tls=False, address="localhost") == {"/good", "/moved"}


def test_no_certificate_is_verified(tmp_path):
    with server(Certificate(tmp_path, "DNS:other.example")) as port:
        assert paths(port, tls=True) == {"/good", "/moved"}


@pytest.mark.parametrize("with_tls", [False, True])
def test_the_other_protocol_is_no_answer(tmp_path, with_tls):
    with server(Certificate(tmp_path, "DNS:site.example") if with_tls else None) as port:
        assert paths(port, tls=not with_tls) == set()


def test_nobody_answers_at_a_port_where_nothing_listens():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    assert paths(port, tls=False) == set()


def test_a_server_that_is_late_may_answer(monkeypatch):
    monkeypatch.setattr(answered, "TIMEOUT", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        assert paths(listening.getsockname()[1], tls=False) == {*STATUS}
