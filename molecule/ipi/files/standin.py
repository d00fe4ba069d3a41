"""A stand-in for a node's API server or ingress router: TLS on 6443, or HTTP on 80, 443 and 1936.

`/readyz` fails while /run/api.failing exists, and `/healthz/ready` while /run/router.draining does.
"""

import contextlib
import os
import socket
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FLAGS = {"/readyz": "/run/api.failing", "/healthz/ready": "/run/router.draining"}
PORTS = {"api": (6443,), "router": (80, 443, 1936)}


class Server(ThreadingHTTPServer):
    address_family = socket.AF_INET6
    request_queue_size = 1024

    def server_bind(self):
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def handle_error(self, request, client_address):
        """Log nothing: a probe may speak no HTTP, or close early."""


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        failing = self.path in FLAGS and os.path.exists(FLAGS[self.path])
        body = (socket.gethostname() + "\n").encode()
        self.send_response(500 if failing else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

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
        super().setup()


def serve(port, kind):
    server = Server(("::", port), TlsHandler if kind == "api" else Handler)
    if kind == "api":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain("/etc/standin/cert.pem", "/etc/standin/key.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.serve_forever()


if __name__ == "__main__":
    kind = sys.argv[1]
    first, *rest = PORTS[kind]
    for port in rest:
        threading.Thread(target=serve, args=(port, kind), daemon=True).start()
    serve(first, kind)
