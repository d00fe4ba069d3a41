"""Connections that last, and a server that answers each of their lines with its host's name.

lasting.py serve PORT
lasting.py ask ADDRESS PORT COUNT: prints who answers each of COUNT connections.
lasting.py keep ADDRESS PORT COUNT ENDED: asks on COUNT connections, again and again, until the file ENDED exists. Then
it prints how many each server had, how often all were asked, and how many got another answer than at first.
"""

import asyncio
import collections
import json
import os
import socket
import sys
import time

PAUSE = 0.1  # seconds between two rounds
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


def keep(address: str, port: str, count: str, ended: str) -> None:
    lasting = connected(address, port, count)
    first = [answer_of(connection) for connection in lasting]
    now, rounds = first, 0
    known = {*first}

    def again(connection: socket.socket, before: str) -> str:
        """Ask once more; what became of a connection that was lost stays."""
        return answer_of(connection) if before in known else before

    while not os.path.exists(ended):
        now, rounds = list(map(again, lasting, now)), rounds + 1
        time.sleep(PAUSE)
    lost = collections.Counter(answer for answer, name in zip(now, first) if answer != name)
    print(json.dumps({"shares": collections.Counter(first), "rounds": rounds, "lost": lost}))


def ask(address: str, port: str, count: str) -> None:
    print(*map(answer_of, connected(address, port, count)), sep="\n")


def connected(address: str, port: str, count: str) -> "list[socket.socket]":
    return [socket.create_connection((address, int(port)), LONGEST) for _ in range(int(count))]


def answer_of(connection: socket.socket) -> str:
    """Return the server's name, or what happened instead."""
    try:
        connection.sendall(b"who?\n")
        return connection.recv(64).decode().strip() or "closed"
    except OSError as error:
        return type(error).__name__


if __name__ == "__main__":
    {"serve": serve, "keep": keep, "ask": ask}[sys.argv[1]](*sys.argv[2:])
