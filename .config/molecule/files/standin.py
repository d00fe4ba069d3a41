"""A stand-in for a program of a cluster's node, which answers a check with the statuses of the real one.

Its body is the host's name. The API server also lists the nodes in a file, and lets clients watch them.
"""

import contextlib
import json
import os
import socket
import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Dict, NamedTuple, Tuple
from urllib.parse import parse_qs, urlsplit

NODES = "/etc/standin/nodes.json"  # {"version": 1, "nodes": {NAME: ADDRESS}}; a change has another version
TOKENS = ("standin-token", "Token")  # the ends of those that are known: secrets.yml has a mark
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"  # the label of all of them
POLL = 0.1  # seconds
BOOKMARK = 60.0  # seconds from one to the next, as a kube-apiserver sends them: a watch without any is dead


class Check(NamedTuple):
    """How a path is answered: with another status while a file exists."""

    status: int
    file: str = ""
    meanwhile: int = 500


class Kind(NamedTuple):
    """A program: its ports, and its answers. Any other path has the status `otherwise`."""

    ports: Tuple[int, ...]
    tls: bool
    checks: Dict[str, Check]
    otherwise: int = 200


KINDS = {
    "api": Kind((6443,), True, {"/readyz": Check(200, "/run/api.failing")}),
    "machine-config": Kind((22623,), True, {"/healthz": Check(200)}),
    "registry": Kind((5000,), True, {"/v2/": Check(401)}),
    "router": Kind((80, 443, 1936), False, {"/healthz/ready": Check(200, "/run/router.draining")}),
    "router-health": Kind((1936,), False, {"/healthz/ready": Check(200)}),  # of a host that serves the rest otherwise
    # Both forbid anonymous requests. The supervisor can authenticate nobody for a while after its start.
    "rke2-api": Kind((6443,), True, {}, otherwise=401),
    "rke2-supervisor": Kind(
        (9345,),
        True,
        {"/ping": Check(200), "/cacerts": Check(200), "/v1-rke2/readyz": Check(403, "/run/supervisor.starting", 401)},
        otherwise=401,
    ),
}


class Server(ThreadingHTTPServer):
    address_family = socket.AF_INET6
    request_queue_size = 1024

    def server_bind(self):
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def handle_error(self, request, client_address):
        """Log nothing: a probe may speak no HTTP, or close early."""


def read_nodes():
    """Return the version of the nodes, and each of them as an API server writes it."""
    with open(NODES) as file:
        known = json.load(file)
    return known["version"], {name: node(name, address, known["version"]) for name, address in known["nodes"].items()}


def node(name, address, version):
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": name, "resourceVersion": str(version), "labels": {CONTROL_PLANE: ""}},
        "status": {
            "addresses": [{"type": "InternalIP", "address": address}],
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections may last

    def do_GET(self):
        kind, url = self.server.kind, urlsplit(self.path)
        if kind is KINDS["api"] and url.path == "/api/v1/nodes":
            self.answer_nodes({key: values[0] for key, values in parse_qs(url.query).items()})
            return
        check = kind.checks.get(self.path, Check(kind.otherwise))
        body = (socket.gethostname() + "\n").encode()
        self.send_response(check.meanwhile if os.path.exists(check.file) else check.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer_nodes(self, query):
        known = self.headers.get("Authorization", "").endswith(TOKENS)
        self.send_response(200 if known else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        if not known:
            self.write({"kind": "Status", "code": 401, "reason": "Unauthorized", "message": "a token is wanted"})
        elif "watch" in query:
            self.watch(float(query.get("timeoutSeconds", "300")), query.get("resourceVersion"))
        else:
            version, nodes = read_nodes()
            metadata = {"resourceVersion": str(version)}
            self.write({"kind": "NodeList", "apiVersion": "v1", "metadata": metadata, "items": list(nodes.values())})

    def watch(self, seconds, since):
        """Send each change of the file. An earlier version is forgotten, so that the client lists the nodes anew."""
        begun, (version, before) = time.monotonic(), read_nodes()
        until, bookmark = begun + seconds, begun + BOOKMARK
        if since != str(version):
            self.write({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}})
            return
        while time.monotonic() < until:
            time.sleep(POLL)
            now, after = read_nodes()
            if now == version:
                if time.monotonic() >= bookmark:
                    self.write({"type": "BOOKMARK", "object": node("", "", version)})
                    bookmark += BOOKMARK
                continue
            for name in before.keys() - after.keys():
                self.write({"type": "DELETED", "object": node(name, "", now)})
            for name, found in after.items():
                self.write({"type": "MODIFIED" if name in before else "ADDED", "object": found})
            version, before = now, after

    def write(self, item):
        self.wfile.write(json.dumps(item).encode() + b"\n")

    def log_message(self, format, *args):
        """Log nothing: there is a health check every second."""


class TlsHandler(Handler):
    def setup(self):
        """Shake hands in the thread of this connection, so that a slow client delays no other."""
        self.request.settimeout(5)
        try:
            self.request.do_handshake()
        except ssl.SSLError:
            # Answer a probe that speaks no TLS. Closing with unread data would send a reset, which may overtake the
            # answer.
            with contextlib.suppress(BlockingIOError):
                os.read(self.request.fileno(), 4096)
            os.write(self.request.fileno(), b"this port speaks TLS\n")
            raise
        self.request.settimeout(60)
        super().setup()


def serve(port, kind):
    server = Server(("::", port), TlsHandler if kind.tls else Handler)
    server.kind = kind
    if kind.tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain("/etc/standin/cert.pem", "/etc/standin/key.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.serve_forever()


if __name__ == "__main__":
    kind = KINDS[sys.argv[1]]
    first, *rest = kind.ports
    for port in rest:
        threading.Thread(target=serve, args=(port, kind), daemon=True).start()
    serve(first, kind)
