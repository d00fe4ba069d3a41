# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module vip_probe, run as Ansible runs it, on a real link on which the test moves an address.

The probe and the test measure time separately, and this machine may stall either of them. So a test waits until the
probe has asked often enough who holds the address, and compares what it reports with what the test has measured.
"""

from __future__ import annotations

import contextlib
import ipaddress
import itertools
import json
import os
import re
import signal
import time

import pytest
from support.netns.recorder import open_capture, receive_frame
from support.scope import FULL
from support.waiting import LIMIT_S, pause
from support.waiting import until as wait_until

VIP, VIP6 = "192.0.2.100", "2001:db8::100"
PORT = 8443
families = pytest.mark.parametrize("address", [VIP, VIP6] if FULL else [VIP])  # of what IPv6 has not for itself
INTERVAL = 5.0
TAKEN_OVER = {"duration": LIMIT_S, "until": {"holder": "lb2", "quiet_ms": 300}}
PATIENT = {"interval_ms": 8, "timeout_ms": 4000}  # for servers that this machine may stall

PROBE = """
import json, os, sys
from ansible.module_utils.testing import patch_module_args
from ansible_collections.onprem.lb.plugins.modules import vip_probe
options = json.loads(sys.argv[1])
if options.pop("unprivileged", False):
    os.setgid(65534), os.setuid(65534)
with patch_module_args(options):
    vip_probe.main()
"""

# Listens without accepting: the kernel completes connections up to the backlog.
MUTE = """
import signal, socket, sys
port = int(sys.argv[1])
server = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=4000)
print("ready", flush=True)
signal.pause()
"""

# A server that hands its listening socket to a new process every 50 connections.
HAND_OVER = """
import os, socket, sys
port = int(sys.argv[1])
server = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=512)
print("ready", flush=True)
count = 0
while True:
    try:
        connection, _ = server.accept()
        connection.settimeout(1)
        if connection.recv(64):
            connection.send(b"here")
        connection.close()
    except OSError:
        pass
    count += 1
    if count % 50 == 0 and os.fork():
        server.close()
        os.wait()
"""


def probing(link, address=VIP, **more):
    members = [{"name": name, "macs": [getattr(link, name).mac.upper()]} for name in ("lb1", "lb2")]
    options = {"address": address, "port": PORT, "duration": 1.5, "members": members, **more}
    return link.client.python(PROBE, json.dumps(options), packages=True)


def result(process):
    out, _err = process.communicate(timeout=LIMIT_S)
    return json.loads(out)


class Watched:
    """A probe whose questions for the holder of an address are captured where the client joins the bridge."""

    def __init__(self, link, address=VIP, **more):
        self.asked = []  # when each question was sent
        self._target = ipaddress.ip_address(address).packed
        self._capture = open_capture(link.bridge, link.client.port)
        self._capture.setblocking(False)
        self.began = time.time()
        self.process = probing(link, address, **more)

    def _questions(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                at, frame = receive_frame(self._capture)
                arp_probe = (frame[12:14], frame[28:32], frame[38:42]) == (b"\x08\x06", bytes(4), self._target)
                solicitation = (frame[12:14], frame[54:55], frame[62:78]) == (b"\x86\xdd", b"\x87", self._target)
                if arp_probe or solicitation:
                    self.asked.append(at)
        return len(self.asked)

    def wait(self, milliseconds):
        """Wait until the probe has asked as often as it does in this time; return how long that took."""
        begin, enough = time.monotonic(), self._questions() + milliseconds / INTERVAL
        wait_until(lambda: self._questions() >= enough or self.process.poll() is not None, "it does not ask")
        assert self.process.poll() is None, "the probe has ended"
        return (time.monotonic() - begin) * 1000

    def result(self):
        report = result(self.process)
        ended = time.time()
        self._questions()
        self._capture.close()
        times = [self.began, *self.asked, ended]
        silences = [(later - earlier) * 1000 for earlier, later in zip(times, times[1:])]
        assert report["longest_stall_ms"] <= max(silences)
        return report


@pytest.fixture
def serving(link):
    """A link on which both members serve, and the first one holds the addresses."""
    link.servers = [link.lb1.serve(), link.lb2.serve()]
    link.lb1.take_over(VIP, VIP6)
    return link


def wait_until_served(link, member=0):
    """Wait until a member has served a connection."""
    assert link.servers[member].stdout.readline() == "served\n"


def watched(link, address=VIP, **more):
    """Return a probe that runs, and knows the holder."""
    made = Watched(link, address, **more)
    wait_until_served(link)
    made.wait(300)
    return made


@families
def test_a_steady_holder_serves_without_a_failure(serving, address):
    report = Watched(serving, address, send="hello", **PATIENT).result()
    assert (report["failed_attempts"], report["outages"], report["takeover"]["outage_ms"]) == (0, [], 0.0)
    assert report["tried"] > 0
    assert report["timeline"] == [{"at_ms": 0.0, "holders": ["lb1"]}]
    assert (report["holders_known"], report["reason"], report["changed"]) == (True, "", False)


@pytest.mark.parametrize("address", [VIP, VIP6])
def test_two_holders_are_seen(serving, address):
    serving.lb2.take_over(address)
    report = result(probing(serving, address))
    assert report["timeline"] == [{"at_ms": 0.0, "holders": ["lb1", "lb2"]}]
    assert (report["most_holders"], report["two_holders_ms"]) == (2, report["probed_ms"])


@pytest.mark.parametrize("address", [VIP, VIP6])
def test_an_address_without_a_holder_has_no_holders_in_the_timeline(link, address):
    report = result(probing(link, address, timeout_ms=100))
    assert report["timeline"] == [{"at_ms": 0.0, "holders": []}]
    assert report["no_holder_ms"] == report["probed_ms"]
    assert report["failed_attempts"] == report["tried"]


def shortest(length, report):
    """Return the shortest measurement that is right for an outage of this length.

    The probe connects once in each interval, and later by the length of a stall of its own host, which it reports.
    `Watched` bounds that by the time for which it has sent nothing.
    """
    return length - 2 * INTERVAL - report["longest_stall_ms"]


@pytest.mark.parametrize("address", [VIP, VIP6])
def test_an_outage_and_the_time_without_a_holder_are_measured(serving, address):
    probe = watched(serving, address, **TAKEN_OVER)
    begin = time.monotonic()
    serving.lb1.release(address)
    length = probe.wait(400)
    serving.lb2.take_over(address)
    report = probe.result()
    longest = (time.monotonic() - begin) * 1000
    assert len(report["outages"]) == 1
    assert shortest(length, report) <= report["takeover"]["outage_ms"] <= longest
    assert report["takeover"]["response_gap_ms"] >= shortest(length, report)
    assert shortest(length, report) <= report["no_holder_ms"] <= longest
    seen = [step["holders"] for step in report["timeline"]]
    # One that is late with an answer is missed for a moment, and seen again.
    assert [holders for holders, _steps in itertools.groupby(filter(None, seen))] == [["lb1"], ["lb2"]]
    assert seen[seen.index(["lb2"]) - 1] == []
    assert report["failback"]["failed"] == 0
    assert report["failback"]["tried"] > 0


def unanswered(client):
    """Return how many questions in a row nobody has answered, for each connection that is kept alive."""
    lines = client.output("ss", "-Htno", "state", "established", "dport", "=", f":{PORT}")
    return [int(number) for number in re.findall(r"keepalive,[^,]*,(\d+)", lines)]


@families
def test_lasting_connections_end_when_another_member_has_the_address(link, tmp_path, address):
    for node in (link.lb1, link.lb2):
        assert node.python(MUTE, PORT).stdout.readline() == "ready\n"
    link.lb1.take_over(address)
    assert result(probing(link, address, lasting=5))["lasting"] == {"held": 5, "lost": 0, "closed": 0}
    assert result(probing(link, address, lasting=5, lasting_port=PORT + 1))["lasting"]["held"] == 0, "nobody listens"
    enough = tmp_path / "enough"
    process = probing(link, address, lasting=5, duration=LIMIT_S, until={"holder": "lb2", "path": str(enough)})
    wait_until(lambda: len(unanswered(link.client)) == 5)
    link.lb1.release(address)
    link.lb2.take_over(address)
    wait_until(lambda: not unanswered(link.client), "the kernel does not ask for them")
    enough.touch()
    assert result(process)["lasting"] == {"held": 5, "lost": 5, "closed": 0}


@families
def test_lasting_connections_outlive_an_outage(link, tmp_path, address):
    assert link.lb1.python(MUTE, PORT).stdout.readline() == "ready\n"
    link.lb1.take_over(address)
    enough = tmp_path / "enough"
    process = probing(link, address, lasting=5, duration=LIMIT_S, until={"holder": "lb1", "path": str(enough)})
    wait_until(lambda: len(unanswered(link.client)) == 5)
    link.lb1.release(address)
    wait_until(lambda: min(unanswered(link.client)) > 2, "somebody answers")
    link.lb1.take_over(address)
    wait_until(lambda: unanswered(link.client) == [0] * 5, "nobody answers")
    enough.touch()
    assert result(process)["lasting"] == {"held": 5, "lost": 0, "closed": 0}


@families
def test_lasting_connections_are_lost_where_nobody_answers_at_the_end(link, address):
    assert link.lb1.python(MUTE, PORT).stdout.readline() == "ready\n"
    link.lb1.take_over(address)
    process = probing(link, address, lasting=5, duration=12)
    wait_until(lambda: len(unanswered(link.client)) == 5)
    link.lb1.release(address)
    assert result(process)["lasting"] == {"held": 5, "lost": 5, "closed": 0}


def test_a_probe_reports_a_stall_of_its_host_and_an_outage_that_is_shorter_by_no_more(serving):
    probe = watched(serving, VIP6, **TAKEN_OVER)
    os.kill(probe.process.pid, signal.SIGSTOP)
    stopped = time.monotonic()
    pause(0.1)
    serving.lb1.release(VIP6)
    released = time.monotonic()
    pause(1.5)  # much longer than what follows the outage
    continued = time.monotonic()
    os.kill(probe.process.pid, signal.SIGCONT)
    length = (continued - released) * 1000 + probe.wait(200)
    serving.lb2.take_over(VIP6)
    report = probe.result()
    visible = (time.monotonic() - continued) * 1000
    assert report["longest_stall_ms"] >= (continued - stopped) * 1000 - INTERVAL
    assert shortest(length, report) <= report["takeover"]["outage_ms"] < visible


def test_an_outage_hidden_by_a_former_holder_that_forwards_is_seen_as_a_response_gap(serving):
    """It queues the SYNs until it has resolved the new holder (RFC 1122, 2.3.2.2), so the answers come late."""
    serving.lb1.set_forwarding(True)
    probe = watched(serving, **TAKEN_OVER)
    serving.lb1.release(VIP)
    length = probe.wait(250)
    serving.lb2.take_over(VIP)
    report = probe.result()
    assert report["takeover"]["response_gap_ms"] >= shortest(length, report)
    assert report["takeover"]["outage_ms"] < report["takeover"]["response_gap_ms"]


def test_a_failback_is_measured_apart_from_the_takeover_and_ends_the_probe_early(serving, tmp_path):
    enough = tmp_path / "enough"
    until = {"holder": "lb1", "minimum": 2.5, "quiet_ms": 300, "path": str(enough)}
    probe = watched(serving, duration=LIMIT_S, until=until)
    begin = time.monotonic()
    serving.lb1.release(VIP)
    away = probe.wait(300)
    serving.lb2.take_over(VIP)
    wait_until_served(serving, 1)
    over = time.monotonic()
    probe.wait(300)
    second = time.monotonic()
    serving.lb2.release(VIP)
    back = probe.wait(100)
    serving.lb1.take_over(VIP)
    enough.touch()
    report = probe.result()
    assert (report["holder_before"], report["holder_after"], report["settled"]) == ("lb1", "lb1", True)
    costs = [report[phase]["outage_ms"] for phase in ("takeover", "failback")]
    assert costs == [outage["length_ms"] for outage in report["outages"]]
    assert shortest(away, report) <= costs[0] <= (over - begin) * 1000
    assert shortest(back, report) <= costs[1] <= (time.monotonic() - second) * 1000
    assert report["probed_ms"] >= 2500


def test_attempts_at_a_port_without_a_listener_are_refused(link):
    link.lb1.take_over(VIP)
    report = result(probing(link))
    assert report["failures"] == {"refused": report["tried"]}
    assert report["outages"][0]["ended"] is False
    assert report["holder_before"] == "lb1"


def test_a_service_that_listens_but_does_not_answer_fails_if_the_probe_sends_data(link):
    link.lb1.python(MUTE, PORT).stdout.readline()
    link.lb1.take_over(VIP)
    assert result(probing(link))["failed_attempts"] == 0
    report = result(probing(link, send="hello", timeout_ms=100))
    assert report["failures"] == {"timeout": report["tried"]}


def test_a_service_that_listens_but_does_not_answer_fails_if_the_probe_begins_tls(link):
    link.lb1.python(MUTE, PORT).stdout.readline()
    link.lb1.take_over(VIP)
    report = result(probing(link, tls=True, server_name="a.example", timeout_ms=100))
    assert report["failures"] == {"timeout": report["tried"]}


# Answers with an alert of TLS where a ClientHello begins, and else with a status of HTTP.
ASKED = """
import socket, sys
server = socket.create_server(("::", int(sys.argv[1])), family=socket.AF_INET6, dualstack_ipv6=True, backlog=4000)
print("ready", flush=True)
while True:
    try:
        with server.accept()[0] as connection:
            hello = connection.recv(4096).startswith(bytes((0x16, 3, 1)))
            connection.sendall(bytes((0x15, 3, 3, 0, 2, 2, 40)) if hello else b"HTTP/1.1 503 Service Unavailable")
    except OSError:
        pass
"""


def test_an_alert_is_an_answer_and_a_balancer_without_a_server_is_one_unless_that_is_to_fail(link):
    link.lb1.python(ASKED, PORT).stdout.readline()
    link.lb1.take_over(VIP)
    request = {"send": "GET / HTTP/1.1", **PATIENT}
    for asked, outcome in (
        ({"tls": True, **PATIENT}, {}),
        (request, {}),
        ({**request, "gateway_errors_fail": True}, {"unavailable"}),
    ):
        report = result(probing(link, **asked))
        assert (report["tried"] > 0, set(report["failures"])) == (True, set(outcome))


def test_a_listener_that_passes_its_socket_to_a_new_process_costs_no_attempt(serving):
    """This is how HAProxy reloads: the new process has the socket before the old one ends."""
    serving.lb2.take_over(VIP)
    serving.lb1.release(VIP)
    relay = serving.lb2.python(HAND_OVER, PORT + 1)
    assert relay.stdout.readline() == "ready\n"
    report = result(probing(serving, port=PORT + 1, send="hello", duration=2, **PATIENT))
    assert report["tried"] > 0
    assert (report["failed_attempts"], report["takeover"]["outage_ms"]) == (0, 0.0)


def test_no_connection_of_the_client_stays_in_time_wait(serving):
    assert result(probing(serving))["tried"] > 0
    assert serving.client.output("ss", "-Htan", "state", "time-wait") == ""


def test_the_probe_waits_until_the_address_has_settled(serving):
    probe = watched(serving, settle={"holder": "lb2", "limit": LIMIT_S})
    serving.lb2.take_over(VIP)
    probe.wait(300)
    serving.lb1.release(VIP)
    report = probe.result()
    assert (report["holder_before"], report["failed_attempts"]) == ("lb2", 0)


def test_an_address_that_does_not_settle_fails_with_one_sentence(serving):
    report = result(probing(serving, settle={"holder": "lb2", "limit": 1}))
    assert report["failed"] is True
    assert "did not settle within 1 s" in report["msg"]
    assert report["msg"].endswith("and it should have been lb2.")


def test_without_raw_sockets_only_the_connections_are_measured(serving):
    report = result(probing(serving, unprivileged=True))
    assert (report["holders_known"], report["timeline"], report["failed_attempts"]) == (False, [], 0)
    assert "CAP_NET_RAW" in report["reason"]


def test_behind_a_router_only_the_connections_are_measured(serving):
    serving.client.ip("route", "add", "203.0.113.0/24", "via", "192.0.2.1")
    serving.lb1.ip("addr", "add", "203.0.113.1/32", "dev", "eth0")
    report = result(probing(serving, "203.0.113.1"))
    assert (report["holders_known"], report["failed_attempts"]) == (False, 0)
    assert "behind the router 192.0.2.1" in report["reason"]
