"""A backend of the lab: answers HTTP with the host's name, on each port from the command line.

One loop without threads: it answers hundreds of probes and health checks a second beside what is tested.
"""

import functools
import selectors
import socket
import sys

NAME = (socket.gethostname() + "\n").encode()
HEAD = "HTTP/1.1 {}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n"
END = b"\r\n\r\n"
QUEUE = 1024  # connections that wait to be accepted


class Client:
    """Answers the requests of one connection, whatever their path, until either side closes it."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock, self.received = sock, b""

    def read(self) -> bool:
        """Return whether the connection goes on."""
        try:
            data = self.sock.recv(65536)
            *requests, self.received = (self.received + data).split(END)
            return bool(data) and all(self.answer(request) for request in requests)
        except OSError:
            return False

    def answer(self, request: bytes) -> bool:
        method, _space, line = request.partition(b"\r\n")[0].partition(b" ")
        known = method in (b"GET", b"HEAD")
        head = HEAD.format("200 OK" if known else "501 Not Implemented", len(NAME)).encode()
        self.sock.sendall(head if method == b"HEAD" else head + NAME)
        return known and line.endswith(b"HTTP/1.1") and b"connection: close" not in request.lower()


def listening(port: int) -> socket.socket:
    """Listen on IPv6 and IPv4 alike, or on IPv4 alone if the host has no IPv6."""
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    server = socket.create_server(("", port), family=family, backlog=QUEUE, dualstack_ipv6=both)
    server.setblocking(False)
    return server


def serve(servers: "list[socket.socket]") -> None:
    poll = selectors.DefaultSelector()
    for server in servers:
        poll.register(server, selectors.EVENT_READ, functools.partial(accept, poll, server))
    while True:
        for key, _events in poll.select():
            key.data()


def accept(poll: selectors.BaseSelector, server: socket.socket) -> None:
    """Accept a connection, unless its client has gone meanwhile."""
    try:
        sock, _address = server.accept()
    except OSError:
        return
    sock.setblocking(False)
    poll.register(sock, selectors.EVENT_READ, functools.partial(converse, poll, Client(sock)))


def converse(poll: selectors.BaseSelector, client: Client) -> None:
    """Answer what has arrived, and close the connection at its end."""
    if not client.read():
        poll.unregister(client.sock)
        client.sock.close()


if __name__ == "__main__":
    serve([listening(int(port)) for port in sys.argv[1:]])
