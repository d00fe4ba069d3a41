"""Connections that last, and a server that answers each of their lines with its host's name.

lasting.py serve PORT
lasting.py ask URL COUNT: prints who answers each of COUNT connections.
lasting.py keep URL COUNT OPENED ENDED: opens COUNT connections, creates the file OPENED, and asks on all of them again
and again. When the file ENDED exists it asks twenty times more, and prints how many each server had, and how many got
another answer than at first.

A URL is tcp://ADDRESS:PORT for such a server, and https://ADDRESS:PORT for one that answers with its name over HTTP.
"""

import asyncio
import collections
import json
import os
import pathlib
import socket
import ssl
import sys
import time
from urllib.parse import urlsplit

PAUSE, ROUNDS = 0.1, 20  # seconds between two rounds, and how many there are at the end
LONGEST = 5.0  # seconds without an answer, after which a connection counts as lost


def serve(port: str) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readline():
            writer.write(f"{socket.gethostname()}\n".encode())
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(answer, None, int(port), backlog=512)
        await server.serve_forever()

    asyncio.run(main())


def keep(url: str, count: str, opened: str, ended: str) -> None:
    lasting = connected(url, count)
    first = [answer_of(connection) for connection in lasting]
    pathlib.Path(opened).touch()
    now, rounds_left = first, ROUNDS
    while rounds_left:
        # What became of a connection that was lost stays.
        now = [answer_of(each) if was == name else was for each, was, name in zip(lasting, now, first)]
        rounds_left -= os.path.exists(ended)
        time.sleep(PAUSE)
    lost = collections.Counter(answer for answer, name in zip(now, first) if answer != name)
    print(json.dumps({"shares": collections.Counter(first), "lost": lost}))


def ask(url: str, count: str) -> None:
    print(*map(answer_of, connected(url, count)), sep="\n")


def connected(url: str, count: str) -> "list[socket.socket]":
    return [connection_to(url) for _number in range(int(count))]


def connection_to(url: str) -> socket.socket:
    place = urlsplit(url)
    connection = socket.create_connection((place.hostname, place.port), LONGEST)
    if place.scheme != "https":
        return connection
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(connection)


def answer_of(connection: socket.socket) -> str:
    """Return the server's name, or what happened instead."""
    try:
        if isinstance(connection, ssl.SSLSocket):
            return body_of(connection)
        connection.sendall(b"who?\n")
        return connection.recv(64).decode().strip() or "closed"
    except OSError as error:
        return type(error).__name__


def body_of(connection: socket.socket) -> str:
    connection.sendall(b"GET / HTTP/1.1\r\nHost: lasting\r\n\r\n")
    answer = ""
    while not answer.partition("\r\n\r\n")[2]:
        received = connection.recv(1024)
        if not received:
            return "closed"
        answer += received.decode()
    return answer.partition("\r\n\r\n")[2].strip()


if __name__ == "__main__":
    {"serve": serve, "keep": keep, "ask": ask}[sys.argv[1]](*sys.argv[2:])
