# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What HAProxy remembers of clients, as clients see it: two real balancers with the role's files, and two servers.

A client keeps its server, by a cookie or by a table, when its balancer fails and when a balancer is reloaded. One that
asks for too much is refused, also by the next balancer, and the members themselves never are.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import haproxy as _haproxy
from support import haproxies
from support.netns.links import PORT, temporary_link
from support.netns.namespaces import inside
from support.netns.two_servers import ELSEWHERE, ONE, OTHER, SERVER
from support.rendering import render
from support.waiting import LIMIT_S, until

ENTRIES, CLIENTS = 10_000, 20
AT_ONCE = 200  # commands in a line
LIMIT = 5
FAMILY = {"runtime_socket": "", "log_targets": [], "authorities": ""}
SESSION = "X-Session"
LEARNT = 3  # PEERS_F_RESYNC_LOCAL_FINISHED and PEERS_F_RESYNC_REMOTE_FINISHED in HAProxy's peers.c


# Gives a client a session of its own, and answers with its name.
APPLICATION = """
import http.server, sys, uuid
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        if "JSESSIONID" not in self.headers.get("Cookie", ""):
            self.send_header("Set-Cookie", f"JSESSIONID={uuid.uuid4().hex}; Path=/")
        self.end_headers()
        self.wfile.write(sys.argv[1].encode())
    def log_message(self, *_words):
        pass
server = http.server.ThreadingHTTPServer(("", int(sys.argv[2])), Answer)
print("ready", flush=True)
server.serve_forever()
"""


@pytest.fixture(scope="module")
def link():
    with temporary_link(3) as made:
        servers = [made.members[2].python(SERVER, name, port, stdin=subprocess.PIPE) for name, port in PORTS.items()]
        assert all(server.stdout.readline() == "ready\n" for server in servers)
        yield made
        for server in servers:
            server.stdin.close()


PORTS = {ONE: PORT + 1, OTHER: PORT + 2}


def service(link, **keys):
    there = link.members[2].addresses[0]
    servers = [{"name": name, "address": there, "port": port} for name, port in PORTS.items()]
    return {"name": "web", "port": PORT, "mode": "http", "servers": servers, **keys}


class Balancer:
    """A haproxy on a member, with the file of the role, and a socket of the test's."""

    def __init__(self, node, folder, peers=(), family=0):
        self.node, self._peers = node, [{"name": each.name, "address": each.addresses[family]} for each in peers]
        self._socket, self._config, self.process = folder / f"{node.name}.sock", folder / f"{node.name}.cfg", None

    def write(self, given):
        variables = {"services": [given], "peers": self._peers, "stats_enabled": False}
        model = _haproxy.model(_haproxy.settings_of(variables), [], self.node.name)
        assert model["faults"] == []
        text = render("haproxy", "haproxy.cfg.j2", model=_haproxy.for_template(model), family=FAMILY)
        lines = [line for line in text.splitlines() if line.split()[:1] and line.split()[0] not in ELSEWHERE]
        own = ["global", f"    stats socket {self._socket} level admin expose-fd listeners", ""]
        self._config.write_text("\n".join([*lines, *own]))

    def start(self, given):
        self.write(given)
        command = [shutil.which("haproxy"), "-W", "-db", "-f", str(self._config)]
        self.process = subprocess.Popen(["ip", "netns", "exec", self.node.namespace, *command], start_new_session=True)
        until(lambda: self.used("web") is not None and f":{PORT}" in self.node.output("ss", "-Hltn"))

    def reload(self, given):
        until(self.has_learnt)
        self.write(given)
        before = self.say("show info")
        haproxies.reload(self.process)
        until(lambda: _pid(self.say("show info")) not in ("", _pid(before)))

    def has_learnt(self):
        """Return whether it has asked all peers, some seconds after its start: before, it passes on nothing itself."""
        found = re.search(r" flags=0x([0-9a-f]+) resync_timeout", self.say("show peers"))
        return not found or int(found[1], 16) & LEARNT == LEARNT

    def kill(self):
        """End it, and its worker, as a loss of power would."""
        if self.process:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(LIMIT_S)
            self.process = None

    def say(self, command):
        """Return what it answers to a command at its socket; '' where nobody is there."""
        with socket.socket(socket.AF_UNIX) as client, contextlib.suppress(OSError):
            client.settimeout(LIMIT_S)
            client.connect(str(self._socket))
            client.sendall(f"{command}\n".encode())
            return client.makefile().read()
        return ""

    def used(self, table):
        """Return how many entries a table has; None where haproxy does not answer, "" if it has no such table."""
        answer = self.say(f"show table {table}")
        found = re.search(r"used:(\d+)", answer)
        return int(found[1]) if found else ("" if answer else None)

    def rates(self, table):
        """Return the rate of each entry of a table, as the peers have it by now."""
        return [int(rate) for rate in re.findall(r"_rate\(\d+\)=(\d+)", self.say(f"show table {table}"))]


def _pid(answer):
    found = re.search(r"^Pid: (\d+)", answer, re.MULTILINE)
    return found[1] if found else ""


@contextlib.contextmanager
def balancers(link, folder, given, count=2, family=0):
    peers = link.members[:count] if count > 1 else ()
    made = [Balancer(node, folder, peers, family) for node in link.members[:count]]
    try:
        for each in made:
            each.start(given)
        yield made
    finally:
        for each in made:
            each.kill()


def ask(node, to, path="/", **headers):
    """Return the status, the headers and the text that a node gets from a balancer; nothing where it is cut off."""
    with inside(node.namespace):
        connection = http.client.HTTPConnection(to, PORT, timeout=LIMIT_S)
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        except (http.client.HTTPException, ConnectionError):
            return 0, {}, ""
        finally:
            connection.close()


def at(balancer, family=0):
    return balancer.node.addresses[family]


def servers_of(link, through, sessions):
    return {each: ask(link.client, at(through), **{SESSION: each})[2] for each in sessions}


def fill(running, table):
    """Have a table know as many sessions as it is to have in all."""
    keys = [f"key-{number}" for number in range(ENTRIES - running.used(table))]
    for begin in range(0, len(keys), AT_ONCE):
        some = keys[begin : begin + AT_ONCE]
        running.say("; ".join(f"set table {table} key {key} data.server_id 1" for key in some))
    assert running.used(table) == ENTRIES


def test_a_table_is_there_after_a_failover_a_return_and_a_reload(link, tmp_path):
    given = service(link, sticky={"by": f"req.hdr({SESSION})"})
    with balancers(link, tmp_path, given) as (first, second):
        sessions = [f"s{number}" for number in range(CLIENTS)]
        known = servers_of(link, first, sessions)
        assert {*known.values()} == {ONE, OTHER}
        fill(first, "web-sticky")
        until(lambda: second.used("web-sticky") == ENTRIES)
        first.kill()
        assert servers_of(link, second, sessions) == known
        first.start(given)
        until(lambda: first.used("web-sticky") == ENTRIES)
        first.kill()
        second.reload(given)
        until(lambda: second.used("web-sticky") == ENTRIES)
        assert servers_of(link, second, sessions) == known


def test_a_host_alone_keeps_its_table_at_a_reload(link, tmp_path):
    given = service(link, sticky={"by": f"req.hdr({SESSION})"})
    with balancers(link, tmp_path, given, count=1) as (only,):
        fill(only, "web-sticky")
        only.reload(given)
        until(lambda: only.used("web-sticky") == ENTRIES)


def test_a_member_that_does_not_know_its_peers_yet_learns_the_table_with_its_change(link, tmp_path):
    """The members change one after the other."""
    given = service(link, sticky={"by": f"req.hdr({SESSION})"})
    first, second = (Balancer(node, tmp_path, link.members[:2]) for node in link.members[:2])
    try:
        second.start(service(link))
        first.start(given)
        known = servers_of(link, first, ["a", "b", "c"])
        assert {*known.values()} == {ONE, OTHER} and second.used("web-sticky") == ""
        second.reload(given)
        until(lambda: second.used("web-sticky") == len(known))
        assert servers_of(link, second, known) == known
    finally:
        first.kill()
        second.kill()


def test_members_that_have_their_servers_in_another_order_mean_the_same_server(link, tmp_path):
    given = service(link, sticky={"by": f"req.hdr({SESSION})"})
    with balancers(link, tmp_path, given) as (first, second):
        until(second.has_learnt)
        second.reload({**given, "servers": given["servers"][::-1]})
        known = servers_of(link, first, [f"s{number}" for number in range(CLIENTS)])
        until(lambda: second.used("web-sticky") == len(known))
        assert {*known.values()} == {ONE, OTHER} and servers_of(link, second, known) == known


@pytest.mark.parametrize("family", [0, 1], ids=["IPv4", "IPv6"])
def test_by_its_address_a_client_keeps_its_server(link, tmp_path, family):
    given = service(link, mode="tcp", sticky={"by": "source"}, bind=["*", "::"])
    with balancers(link, tmp_path, given, family=family) as (first, second):
        (name,) = {ask(link.client, at(first, family))[2] for _request in range(CLIENTS)}
        until(lambda: second.used("web-sticky") == 1)
        answers = {ask(link.client, at(second, family))[2] for _request in range(CLIENTS)}
        assert name in (ONE, OTHER) and answers == {name}


def test_by_a_cookie_of_the_application_a_client_keeps_the_server_that_gave_it(link, tmp_path):
    there = link.members[2]
    applications = {name: there.python(APPLICATION, name, port) for name, port in ((ONE, PORT + 3), (OTHER, PORT + 4))}
    assert all(each.stdout.readline() == "ready\n" for each in applications.values())
    servers = [{"address": there.addresses[0], "name": name, "port": PORT + at} for at, name in ((3, ONE), (4, OTHER))]
    given = {**service(link, sticky={"by": "req.cook(JSESSIONID)"}), "servers": servers}
    with balancers(link, tmp_path, given) as (first, second):
        known = {}
        while {*known.values()} != {ONE, OTHER}:
            _status, headers, name = ask(link.client, at(first))
            known[headers["Set-Cookie"].partition(";")[0]] = name
        until(lambda: second.used("web-sticky") == len(known))
        for cookie, name in known.items():
            for through in (first, second):
                assert {ask(link.client, at(through), Cookie=cookie)[2] for _request in range(4)} == {name}


def test_by_a_cookie_a_client_keeps_its_server_at_every_balancer(link, tmp_path):
    with balancers(link, tmp_path, service(link, sticky={"by": "cookie", "cookie": "LB"})) as (first, second):
        given = {}
        while {*given} != {ONE, OTHER}:
            _status, headers, name = ask(link.client, at(first))
            given[name] = headers["Set-Cookie"]
        for name, cookie in given.items():
            value, _semicolon, rest = cookie.partition(";")
            assert value.startswith("LB=") and "HttpOnly" in rest
            for through in (first, second):
                answers = [ask(link.client, at(through), Cookie=value) for _request in range(CLIENTS)]
                assert {text for _status, _headers, text in answers} == {name}
                assert not any("Set-Cookie" in headers for _status, headers, _text in answers)


def test_who_asks_for_too_much_is_told_so_by_the_next_balancer_too_and_the_members_never_are(link, tmp_path):
    members = [node.addresses[0] for node in link.members]
    limit = {"requests": LIMIT, "period": "1d", "except": members}
    with balancers(link, tmp_path, service(link, rate_limit=limit)) as (first, second):
        statuses = [ask(link.client, at(first))[0] for _request in range(LIMIT + 3)]
        assert statuses == [200] * LIMIT + [429] * 3
        until(lambda: second.rates("web-rate") == [LIMIT + 3])
        first.kill()
        assert until(lambda: ask(link.client, at(second))[0]) == 429
        for node, to in ((link.lb1, at(second)), (link.lb2, at(second)), (link.lb2, "127.0.0.1")):
            assert {ask(node, to)[0] for _request in range(LIMIT + 3)} == {200}


def test_who_connects_too_often_is_cut_off_in_tcp_mode(link, tmp_path):
    limit = {"connections": LIMIT, "period": "1d"}
    with balancers(link, tmp_path, service(link, mode="tcp", rate_limit=limit), count=1) as (only,):
        assert [ask(link.client, at(only))[0] for _connection in range(LIMIT + 3)] == [200] * LIMIT + [0] * 3
        assert {ask(link.lb1, "127.0.0.1")[0] for _connection in range(LIMIT + 3)} == {200}


def test_raw_lines_of_a_service_have_two_tables_where_its_frontend_has_a_name(link, tmp_path):
    table = "stick-table type string len 32 size 1k expire 1h"
    lines = {"frontend_lines": [table, f"http-request track-sc0 req.hdr({SESSION})"]}
    own = service(link, frontend_name="web-in", backend_lines=[table, f"stick on req.hdr({SESSION})"], **lines)
    with balancers(link, tmp_path, own, count=1) as (only,):
        servers_of(link, only, ["a", "b"])
        assert (only.used("web-in"), only.used("web")) == (2, 2)
