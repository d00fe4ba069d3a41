"""A backend of the lab: answers HTTP with the host's name, on each port from the command line."""

import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server(ThreadingHTTPServer):
    """Listens on IPv6 and IPv4 alike, or on IPv4 alone if the host has no IPv6; its accept queue is long."""

    address_family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    request_queue_size = 1024

    def server_bind(self) -> None:
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()


class NameHandler(BaseHTTPRequestHandler):
    """Answers every path with the name of this host."""

    protocol_version = "HTTP/1.1"
    name = (socket.gethostname() + "\n").encode()

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(self.name)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(self.name)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: there is a health check every second."""


if __name__ == "__main__":
    servers = [Server(("", int(port)), NameHandler) for port in sys.argv[1:]]
    for server in servers[1:]:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    servers[0].serve_forever()
