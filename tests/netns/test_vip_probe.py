# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module vip_probe, run as Ansible runs it, on a real link on which the test moves an address.

The probe and the test measure time separately, and this machine may be busy. So the tests compare measured lengths with
the real ones, and the upper bounds are generous.
"""

from __future__ import annotations

import json
import os
import signal
import time
from threading import Event

import pytest
from support.waiting import until as wait_until

VIP, VIP6 = "192.0.2.100", "2001:db8::100"
PORT = 8443
INTERVAL = 5.0
TAKEN_OVER = {"duration": 30, "until": {"holder": "lb2", "quiet_ms": 300}}  # however busy this machine is

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
    return link.client.python(PROBE, json.dumps(options))


def result(process):
    out, _err = process.communicate(timeout=60)
    return json.loads(out)


def pause(seconds):
    """Let an outage last for some seconds; return its real length in milliseconds."""
    begin = time.monotonic()
    Event().wait(seconds)
    return (time.monotonic() - begin) * 1000


@pytest.fixture
def serving(link):
    """A link on which both members serve, and the first one holds the addresses."""
    link.servers = [link.lb1.serve(), link.lb2.serve()]
    link.lb1.take_over(VIP, VIP6)
    return link


def wait_for_probe(link):
    """Wait until the first member has served a connection, because then the probe runs."""
    assert link.servers[0].stdout.readline() == "served\n"
    pause(0.3)


@pytest.mark.parametrize("address", [VIP, VIP6])
def test_a_steady_holder_serves_without_a_failure(serving, address):
    report = result(probing(serving, address, send="hello"))
    assert (report["failed_attempts"], report["outages"], report["takeover"]["outage_ms"]) == (0, [], 0.0)
    assert report["tried"] + report["skipped_samples"] == pytest.approx(300, abs=5)
    assert report["timeline"] == [{"at_ms": 0.0, "holders": ["lb1"]}]
    assert (report["holders_known"], report["reason"], report["changed"]) == (True, "", False)


@pytest.mark.parametrize("address", [VIP, VIP6])
def test_two_holders_are_seen(serving, address):
    serving.lb2.take_over(address)
    report = result(probing(serving, address))
    assert report["timeline"][0]["holders"] == ["lb1", "lb2"]
    assert report["most_holders"] == 2
    assert report["two_holders_ms"] > 1000


@pytest.mark.parametrize("address", [VIP, VIP6])
def test_an_address_without_a_holder_has_no_holders_in_the_timeline(link, address):
    report = result(probing(link, address, timeout_ms=100))
    assert report["timeline"] == [{"at_ms": 0.0, "holders": []}]
    assert report["no_holder_ms"] == report["probed_ms"]
    assert report["failed_attempts"] == report["tried"]


def shortest(length, report):
    """Return the shortest measurement that is right for an outage of this length.

    The probe connects once in each interval, and later by the length of a stall of its own host, which it reports.
    """
    return length - 2 * INTERVAL - report["longest_stall_ms"]


@pytest.mark.parametrize("address", [VIP, VIP6])
def test_an_outage_and_the_time_without_a_holder_are_measured(serving, address):
    process = probing(serving, address, **TAKEN_OVER)
    wait_for_probe(serving)
    begin = time.monotonic()
    serving.lb1.release(address)
    length = pause(0.4)
    serving.lb2.take_over(address)
    longest = (time.monotonic() - begin) * 1000 + 500
    report = result(process)
    assert len(report["outages"]) == 1
    assert shortest(length, report) <= report["takeover"]["outage_ms"] <= longest
    assert report["takeover"]["response_gap_ms"] >= shortest(length, report)
    assert shortest(length, report) <= report["no_holder_ms"] <= longest
    assert [step["holders"] for step in report["timeline"]] == [["lb1"], [], ["lb2"]]
    assert report["failback"]["failed"] == 0
    assert report["failback"]["tried"] > 0


@pytest.mark.parametrize("address", [VIP, VIP6])
def test_lasting_connections_end_when_another_member_has_the_address(link, address):
    for node in (link.lb1, link.lb2):
        assert node.python(MUTE, PORT).stdout.readline() == "ready\n"
    link.lb1.take_over(address)
    assert result(probing(link, address, lasting=5))["lasting"] == {"held": 5, "lost": 0}
    until = {**TAKEN_OVER["until"], "quiet_ms": 2500}  # in which the kernel asks for the connections
    process = probing(link, address, lasting=5, **{**TAKEN_OVER, "until": until})
    keepalive = ("ss", "-Htno", "state", "established", "dport", "=", f":{PORT}")
    wait_until(lambda: link.client.output(*keepalive).count("keepalive") == 5)
    link.lb1.release(address)
    link.lb2.take_over(address)
    assert result(process)["lasting"] == {"held": 5, "lost": 5}


@pytest.mark.parametrize("address", [VIP, VIP6])
@pytest.mark.parametrize("answers, lost", [(True, 0), (False, 5)])
def test_lasting_connections_outlive_an_outage_and_are_lost_where_nobody_answers_at_its_end(
    link, address, answers, lost
):
    assert link.lb1.python(MUTE, PORT).stdout.readline() == "ready\n"
    link.lb1.take_over(address)
    process = probing(link, address, lasting=5, duration=9)
    keepalive = ("ss", "-Htno", "state", "established", "dport", "=", f":{PORT}")
    wait_until(lambda: link.client.output(*keepalive).count("keepalive") == 5)
    link.lb1.release(address)
    pause(4.5)
    if answers:
        link.lb1.take_over(address)
    assert result(process)["lasting"] == {"held": 5, "lost": lost}


def test_a_probe_reports_a_stall_of_its_host_and_an_outage_that_is_shorter_by_no_more(serving):
    process = probing(serving, VIP6, **TAKEN_OVER)
    wait_for_probe(serving)
    os.kill(process.pid, signal.SIGSTOP)
    stopped = pause(0.1)
    serving.lb1.release(VIP6)
    hidden = pause(0.1)
    continued = time.monotonic()
    os.kill(process.pid, signal.SIGCONT)
    length = hidden + pause(0.2)
    serving.lb2.take_over(VIP6)
    visible = 1000 * (time.monotonic() - continued)
    report = result(process)
    assert report["longest_stall_ms"] >= stopped + 100 - INTERVAL
    assert shortest(length, report) <= report["takeover"]["outage_ms"] < visible + hidden / 2


def test_an_outage_hidden_by_a_former_holder_that_forwards_is_seen_as_a_response_gap(serving):
    """It queues the SYNs until it has resolved the new holder (RFC 1122, 2.3.2.2), so the answers come late."""
    serving.lb1.set_forwarding(True)
    process = probing(serving, **TAKEN_OVER)
    wait_for_probe(serving)
    serving.lb1.release(VIP)
    length = pause(0.25)
    serving.lb2.take_over(VIP)
    report = result(process)
    assert report["takeover"]["response_gap_ms"] >= shortest(length, report)
    assert report["takeover"]["outage_ms"] < report["takeover"]["response_gap_ms"]


def test_a_failback_is_measured_apart_from_the_takeover_and_ends_the_probe_early(serving):
    until = {"holder": "lb1", "minimum": 2.5, "quiet_ms": 300}
    process = probing(serving, duration=30, until=until)
    wait_for_probe(serving)
    serving.lb1.release(VIP)
    away = pause(0.3)
    serving.lb2.take_over(VIP)
    pause(0.3)
    serving.lb2.release(VIP)
    back = pause(0.1)
    serving.lb1.take_over(VIP)
    report = result(process)
    assert (report["holder_before"], report["holder_after"], report["settled"]) == ("lb1", "lb1", True)
    costs = [report[phase]["outage_ms"] for phase in ("takeover", "failback")]
    assert costs == [outage["length_ms"] for outage in report["outages"]]
    assert costs[0] >= shortest(away, report)
    assert costs[1] >= shortest(back, report)
    assert 2500 <= report["probed_ms"] < 15000


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


def test_a_listener_that_passes_its_socket_to_a_new_process_costs_no_attempt(serving):
    """This is how HAProxy reloads: the new process has the socket before the old one ends."""
    serving.lb2.take_over(VIP)
    serving.lb1.release(VIP)
    relay = serving.lb2.python(HAND_OVER, PORT + 1)
    assert relay.stdout.readline() == "ready\n"
    report = result(probing(serving, port=PORT + 1, send="hello", duration=2))
    assert report["tried"] > 100
    assert (report["failed_attempts"], report["takeover"]["outage_ms"]) == (0, 0.0)


def test_no_connection_of_the_client_stays_in_time_wait(serving):
    assert result(probing(serving))["tried"] > 100
    assert serving.client.output("ss", "-Htan", "state", "time-wait") == ""


def test_the_probe_waits_until_the_address_has_settled(serving):
    process = probing(serving, settle={"holder": "lb2", "limit": 20})
    wait_for_probe(serving)
    serving.lb1.release(VIP)
    serving.lb2.take_over(VIP)
    report = result(process)
    assert (report["holder_before"], report["failed_attempts"]) == ("lb2", 0)


def test_an_address_that_does_not_settle_fails_with_one_sentence(serving):
    report = result(probing(serving, settle={"holder": "lb2", "limit": 1}))
    assert report["failed"] is True
    assert report["msg"].endswith("at the end it was held by lb1, and it should have been lb2.")


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
