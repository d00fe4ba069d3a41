# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`agent anycast` with a real lo: addresses come and go by events, and outlive whatever happens to the daemon."""

from __future__ import annotations

import json
import os
import signal

import pytest
from support.netns.health_gates import VIP, VIP6, HealthGate
from support.netns.links import skip_reason, temporary_link
from support.waiting import MOMENT_S, stays, until

pytestmark = pytest.mark.skipif(bool(skip_reason()), reason=skip_reason())


@pytest.fixture(scope="module")
def node():
    with temporary_link() as link:
        yield link.lb1


@pytest.fixture
def stopped(node, tmp_path):
    """A health gate that was not started."""
    found = HealthGate(node, tmp_path / "gate")
    yield found
    found.close()
    found.clear()


@pytest.fixture
def gate(stopped):
    stopped.start()
    until(lambda: stopped.has(VIP, VIP6), stopped.log)
    return stopped


def test_the_vips_are_on_lo_while_the_down_file_says_that_the_balancer_lives(gate):
    for _again in range(3):
        gate.tracked.write_text("1\n")
        until(gate.has, gate.log)
        gate.tracked.write_text("0\n")
        until(lambda: gate.has(VIP, VIP6), gate.log)
    report = gate.report()
    assert [(vip["held"], vip["reason"]) for vip in report["vips"]] == [(True, "serves")] * 2
    assert report["restored"] == 0


def test_an_ipv6_address_is_usable_at_once_and_no_source_of_this_hosts_own_connections(gate):
    shown = json.loads(gate.node.output("ip", "-6", "-json", "addr", "show", "dev", "lo"))
    (found,) = [known for link in shown for known in link["addr_info"] if known.get("local") == VIP6]
    assert found["nodad"] and found["deprecated"] and "tentative" not in found
    assert (found["scope"], found["preferred_life_time"]) == ("global", 0)


@pytest.mark.parametrize("text", [None, "", "perhaps\n"])
def test_a_down_file_that_says_nothing_leaves_what_is_there(gate, text):
    gate.tracked.unlink() if text is None else gate.tracked.write_text(text)
    until(lambda: {vip["reason"] for vip in gate.report()["vips"]} == {"not_known"}, gate.log)
    stays(lambda: gate.has(VIP, VIP6), MOMENT_S)


def test_with_nothing_known_nothing_is_added_and_what_was_there_stays(stopped):
    stopped.tracked.unlink()
    stopped.node.ip("addr", "add", f"{VIP}/32", "dev", "lo")
    stopped.start()
    until(lambda: stopped.report()["checks"][0]["up"] is not None, stopped.log)
    stays(lambda: stopped.has(VIP), MOMENT_S)
    stopped.tracked.write_text("1\n")
    until(stopped.has, stopped.log)


# -- the daemon's ends


def test_a_stop_takes_the_vips_away(gate):
    assert gate.end(signal.SIGTERM) == 0 and gate.has()
    assert "goodbye" in gate.said() and not os.path.exists(gate.socket)
    assert not (gate.folder / "record.json").exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGBUS, signal.SIGABRT, signal.SIGUSR1, signal.SIGUSR2])
def test_every_other_end_leaves_them_and_the_next_process_finds_them(gate, number):
    gate.end(number)
    assert gate.has(VIP, VIP6)
    gate.tracked.unlink()
    gate.start()
    stays(lambda: gate.has(VIP, VIP6), MOMENT_S)
    gate.tracked.write_text("1\n")
    until(gate.has, gate.log)


def test_what_died_while_the_daemon_was_dead_is_known_at_its_start(gate):
    gate.end(signal.SIGKILL)
    gate.tracked.write_text("1\n")
    gate.start()
    until(gate.has, gate.log)


def test_a_vip_that_left_the_file_while_the_daemon_was_dead_goes_at_its_start(gate):
    gate.end(signal.SIGKILL)
    gate.write(VIP6)
    gate.start()
    until(lambda: gate.has(VIP6), gate.log)


def test_a_second_one_does_not_start_and_changes_nothing(gate, tmp_path):
    second = HealthGate(gate.node, tmp_path / "second")
    second.write(VIP, status_socket=gate.socket)
    second.tracked.write_text("1\n")
    second.launch()
    assert second.process.wait(90) == 1 and "another agent answers at" in second.said()
    assert gate.has(VIP, VIP6) and gate.report()["pid"] == gate.process.pid


# -- the checks process


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_without_its_checks_process_the_last_results_stand_until_there_is_another_one(gate, number):
    before = gate.checks_process()
    os.kill(before, number)
    gate.tracked.unlink()
    until(lambda: gate.checks_process() not in (0, before), gate.log)
    stays(lambda: gate.has(VIP, VIP6), MOMENT_S)
    gate.tracked.write_text("1\n")
    until(gate.has, gate.log)


# -- reloads


def test_a_file_with_a_fault_changes_nothing_and_a_good_one_does(gate):
    gate.write(VIP, checks=[])
    gate.reload(fault=True)
    assert gate.has(VIP, VIP6) and "which is not defined" in gate.report()["config_fault"]
    gate.write(VIP)
    gate.reload()
    assert gate.has(VIP)
    gate.write(VIP6)
    gate.reload()
    until(lambda: gate.has(VIP6), gate.log)


# -- others


@pytest.mark.parametrize("vip", [VIP, VIP6])
def test_an_address_that_is_removed_by_hand_is_back(gate, vip):
    for times in (1, 2):
        gate.node.ip("addr", "del", f"{vip}/{128 if ':' in vip else 32}", "dev", "lo")
        until(lambda: gate.has(VIP, VIP6), gate.log)
        until(lambda times=times: gate.report()["restored"] == times, gate.log)
    assert "another program had removed it" in gate.said()


def test_an_address_that_is_added_by_hand_while_nothing_serves_goes(gate):
    gate.tracked.write_text("1\n")
    until(gate.has, gate.log)
    gate.node.ip("addr", "add", f"{VIP}/32", "dev", "lo")
    until(lambda: "another program had added it" in gate.said(), gate.log)
    until(gate.has, gate.log)


def test_the_same_address_on_another_interface_is_said_and_left_alone(gate):
    gate.node.ip("addr", "add", f"{VIP}/24", "dev", "eth0")
    until(lambda: gate.report()["vips"][0]["elsewhere"] == ["eth0"], gate.log)
    gate.tracked.write_text("1\n")
    until(gate.has, gate.log)
    assert gate.on("eth0") == {f"{VIP}/24"}
    gate.node.ip("addr", "del", f"{VIP}/24", "dev", "eth0")


def test_lo_may_be_another_interface_which_comes_later(gate):
    gate.write(VIP, VIP6, interface="vips0")
    gate.reload()
    assert gate.has()
    gate.node.ip("link", "add", "vips0", "type", "bridge")
    until(lambda: len(gate.on("vips0")) == 2, gate.log)
    until(lambda: all(vip["held"] for vip in gate.report()["vips"]), gate.log)
    said = gate.said()
    stays(lambda: gate.said() == said, MOMENT_S)
    gate.node.ip("link", "del", "vips0")
    until(lambda: not any(vip["held"] for vip in gate.report()["vips"]), gate.log)


# -- a host that is held back


def test_a_record_keeps_the_vips_away_as_long_as_it_is_there(gate):
    gate.record.write_text(json.dumps({"since": "now", "by": "anna", "to": "lb2"}))
    until(gate.has, gate.log)
    assert gate.report()["held_back"] == "held back since now by anna"
    gate.end(signal.SIGKILL)
    gate.start()
    until(lambda: gate.report()["checks"][0]["up"], gate.log)
    stays(gate.has, MOMENT_S)
    gate.record.unlink()
    until(lambda: gate.has(VIP, VIP6), gate.log)
