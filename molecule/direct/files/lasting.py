"""Connections that last, and a server that answers each of their lines with its host's name.

lasting.py serve PORT
lasting.py ask ADDRESS PORT COUNT: prints who answers each of COUNT connections.
lasting.py keep ADDRESS PORT COUNT OPENED ENDED: opens COUNT connections, creates the file OPENED, and asks on all of
them again and again. When the file ENDED exists it asks twenty times more, and prints how many each server had, and how
many got another answer than at first.
"""

import asyncio
import collections
import json
import os
import pathlib
import socket
import sys
import time

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


def keep(address: str, port: str, count: str, opened: str, ended: str) -> None:
    lasting = connected(address, port, count)
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


def ask(address: str, port: str, count: str) -> None:
    print(*map(answer_of, connected(address, port, count)), sep="\n")


def connected(address: str, port: str, count: str) -> "list[socket.socket]":
    return [socket.create_connection((address, int(port)), LONGEST) for _number in range(int(count))]


def answer_of(connection: socket.socket) -> str:
    """Return the server's name, or what happened instead."""
    try:
        connection.sendall(b"who?\n")
        return connection.recv(64).decode().strip() or "closed"
    except OSError as error:
        return type(error).__name__


if __name__ == "__main__":
    {"serve": serve, "keep": keep, "ask": ask}[sys.argv[1]](*sys.argv[2:])
