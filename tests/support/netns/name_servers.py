# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts with name servers of others, which look a name up: each in a process and namespaces of its own.

Of each, ``servers`` are what each of them says, and after how many seconds; ``resolv_conf`` is the host's; ``dnsmasq``
is the program of its own resolver, '' without one, and ``config`` what that has. Found are what getent finds, which
servers were asked, each once, in their order, and how often the resolver was asked again before it had answered.
"""

from __future__ import annotations

import asyncio
import functools
import multiprocessing
import pathlib
import socket
import struct
import subprocess
import tempfile

from ansible_collections.onprem.lb.plugins.module_utils._agent.resolver import relay

from support.netns import namespaces
from support.waiting import LIMIT_S

AT_ONCE = 8
OWN, NAME = "192.0.2.31", "x.example.org"
CODES = {"knows": 0, "nothing": 0, "unknown": 3, "fails": 2, "refuses": 5}
STARTED = 30  # seconds


def address(number):
    return f"127.0.1.{number}"


class Server(asyncio.DatagramProtocol):
    """The name server with a number, from 1 on."""

    def __init__(self, number, says, delay, asked):
        self.number, self.says, self.delay, self.asked = number, says, delay, asked

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, addr):
        if NAME.split(".")[1].encode() not in data:  # a question of dnsmasq's own, for loops
            return
        if self.number not in self.asked:
            self.asked.append(self.number)
        if self.says != "silent":
            asyncio.get_running_loop().call_later(self.delay, self.reply, data, addr)

    def reply(self, query, client):
        end = query.index(b"\0", 12) + 5
        knows = self.says == "knows" and query[end - 4 : end - 2] == b"\0\1"
        data = struct.pack("!HHHIH4s", 0xC00C, 1, 1, 30, 4, bytes([198, 51, 100, self.number])) if knows else b""
        head = query[:2] + struct.pack("!5H", 0x8180 | CODES[self.says], 1, int(knows), 0, 0)
        self.transport.sendto(head + query[12:end] + data, client)


async def main(given):
    asked, unanswered, loop = [], 0, asyncio.get_running_loop()
    for number, (says, delay) in enumerate(given["servers"], 1):
        if says != "closed":
            server = functools.partial(Server, number, says, delay, asked)
            await loop.create_datagram_endpoint(server, local_addr=(address(number), 53))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        resolver = await start(given, folder) if given["dnsmasq"] else None
        (folder / "resolv.conf").write_text(given["resolv_conf"])
        subprocess.run(["mount", "--bind", folder / "resolv.conf", "/etc/resolv.conf"], check=True)
        asked.clear()
        looking = await asyncio.create_subprocess_exec("getent", "ahostsv4", NAME, stdout=subprocess.PIPE)
        output, _errors = await looking.communicate()
        if resolver:
            resolver.kill()
            await resolver.wait()
            unanswered = pending((folder / "log").read_text())
        subprocess.run(["umount", "/etc/resolv.conf"], check=True)
    return {"found": output.decode().split()[:1], "asked": asked, "unanswered": unanswered}


def pending(log):
    """Return how many questions have no answer before the next one."""
    events = [word for line in log.splitlines() for word in ("query[", "reply ") if word in line]
    return sum(event == after == "query[" for event, after in zip(events, [*events[1:], "query["]))


async def start(given, folder):
    """Start dnsmasq, and return it once its port is open."""
    (folder / "upstreams").write_text(given["upstreams"])
    (folder / "dnsmasq.conf").write_text(given["config"].replace("FOLDER", str(folder)))
    last = relay.Relay()
    last.upstream = address(len(given["servers"]))
    last.start()
    command = [given["dnsmasq"], "--keep-in-foreground", "--user=root", "--pid-file", "--log-queries"]
    files = [f"--log-facility={folder / 'log'}", f"--conf-file={folder / 'dnsmasq.conf'}"]
    process = await asyncio.create_subprocess_exec(*command, *files)
    for _try in range(STARTED * 20):
        await asyncio.sleep(0.05)
        with socket.socket() as probe:
            if probe.connect_ex((OWN, 53)) == 0:
                return process
    raise SystemExit("dnsmasq does not start")


def host(given):
    """Be a host: in a process that does nothing else before or after."""
    namespaces.leave()
    for command in ("ip link set lo up", f"ip address add {OWN}/32 dev lo", "mount --make-rprivate /"):
        subprocess.run(command.split(), check=True)
    return asyncio.run(main(given))


def look_up(hosts):
    """Return what each of them finds, in their order. To fork a process costs a tenth of starting Python."""
    with multiprocessing.get_context("fork").Pool(AT_ONCE, maxtasksperchild=1) as pool:
        found = pool.map_async(host, hosts, chunksize=1).get(10 * LIMIT_S)
        pool.close()
        pool.join()
    return found
