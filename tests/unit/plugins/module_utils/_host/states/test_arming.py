# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An undo that is armed, postponed, confirmed, taken over by the next run, or too late."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host import interpreter, records
from ansible_collections.onprem.lb.plugins.module_utils._host.states import arming, program
from ansible_collections.onprem.lb.plugins.module_utils._shared import engines, paths
from support.states import Systemd

RUN, OTHER_RUN = "20260131T120000Z", "20260201T120000Z"


@pytest.fixture
def host(monkeypatch, tmp_path):
    """A member whose folders are temporary."""
    for module in (arming, records):
        for name in ("UNDO", "DUE", "RETURNED", "WRITTEN", "PROGRAM", "UNITS", "WANTS", "BLOCKS", "ANNOUNCED"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, str(tmp_path) + getattr(module, name))
    return Systemd()


def due(role="alone", run=RUN):
    return arming.Due(run, run, role, 40, 5)


def arm(host, **given):
    arming.arm(host.run_command, due(**given), b"program")


def left(tmp_path):
    """The files of an undo that are there."""
    return sorted(os.path.basename(path) for path in tmp_path.rglob("*") if not path.is_dir())


def test_it_is_a_timer_of_the_host_and_comes_before_the_router_at_a_boot(host, tmp_path):
    arm(host, role="first")
    assert host.asked == ["systemctl daemon-reload", "systemctl restart onprem-lb-undo.timer"]
    timer, service = (
        (tmp_path / f"etc/systemd/system/onprem-lb-undo.{kind}").read_text() for kind in ("timer", "service")
    )
    assert "OnActiveSec=50s" in timer
    before = re.search("^Before=(.+)$", service, re.MULTILINE)[1].split()
    assert {*before} == {*(name for each in engines.UNITS.values() for name in each), paths.GATE}
    # FRR's own unit is before network.target, and this one after it: they would be in a circle.
    assert engines.FRR_UNIT not in before and "After=network-online.target\n" in service
    assert f"{interpreter.lasting()} -I {arming.PROGRAM}" in service
    assert os.readlink(f"{arming.WANTS}/onprem-lb-undo.service").endswith("onprem-lb-undo.service")
    assert records.due()["role"] == "first" and records.due()["boot"] == arming.boot_id()


@pytest.mark.parametrize("role, seconds", [("alone", 40), ("other", 40), ("first", 50)])
def test_the_first_one_gets_a_later_time(host, tmp_path, role, seconds):
    arm(host, role=role)
    assert f"OnActiveSec={seconds}s" in (tmp_path / "etc/systemd/system/onprem-lb-undo.timer").read_text()


def test_the_timer_elapses_in_its_second_so_that_the_first_one_comes_after_the_others(host, tmp_path):
    """By default systemd may put it off by a minute."""
    arm(host)
    assert "\nAccuracySec=100ms\n" in (tmp_path / "etc/systemd/system/onprem-lb-undo.timer").read_text()


def test_heartbeats_may_follow_each_other_within_seconds(host, tmp_path):
    """By default systemd refuses a sixth start of a unit within ten seconds, and of a timer as well."""
    arm(host)
    before_timer, _timer = (tmp_path / "etc/systemd/system/onprem-lb-undo.timer").read_text().split("[Timer]")
    assert "\nStartLimitIntervalSec=0\n" in before_timer


def test_a_heartbeat_lets_the_timer_begin_anew(host):
    arm(host)
    assert arming.postpone(host.run_command, due(), b"program")
    assert host.asked[-1] == "systemctl restart onprem-lb-undo.timer"


def test_the_others_accept_a_heartbeat_that_was_announced(host):
    arm(host, role="other")
    arming.announce()
    assert arming.postpone(host.run_command, due("other"), b"program")
    assert host.asked[-1] == "systemctl restart onprem-lb-undo.timer"


@pytest.mark.parametrize("seconds", [None, 9.0])
def test_the_others_keep_their_time_rather_than_accept_one_that_took_too_long(host, monkeypatch, seconds):
    arm(host, role="other")
    if seconds:
        arming.announce()
        later = arming.time.monotonic() + seconds
        monkeypatch.setattr(arming.time, "monotonic", lambda: later)
    before = list(host.asked)
    assert not arming.postpone(host.run_command, due("other"), b"program")
    assert host.asked == before
    arming.announce()
    assert arming.postpone(host.run_command, due("other"), b"program")


def test_the_next_run_postpones_the_others_only_as_announced(host):
    arm(host, role="other")
    before = list(host.asked)
    arming.take_over(host.run_command)
    assert host.asked == before
    arming.announce()
    arming.take_over(host.run_command)
    assert host.asked[-1] == "systemctl restart onprem-lb-undo.timer"


def test_a_confirmed_run_leaves_nothing_behind(host, tmp_path):
    arm(host)
    arming.announce()
    arming.confirm(host.run_command, due(), b"program")
    assert left(tmp_path) == []
    assert host.asked[-3:] == [
        "systemctl stop onprem-lb-undo.timer onprem-lb-undo.service",
        "systemctl stop onprem-lb-undo.timer",
        "systemctl daemon-reload",
    ]


@pytest.mark.parametrize("ask", [arming.postpone, arming.confirm])
@pytest.mark.parametrize("is_over", [True, False])
def test_a_run_that_is_too_late_is_refused_and_the_member_returns_once_more(host, ask, is_over):
    arm(host, role="other")
    records.write(records.RETURNED, {"run": RUN, "id": OTHER_RUN})
    if is_over:
        arming.clear(host.run_command)
    with pytest.raises(
        arming.Refused, match="For 40 s no heartbeat .* in time, so this member returns to its previous settings"
    ):
        ask(host.run_command, due("other"), b"program")
    assert host.asked[-1] == "systemctl restart --no-block onprem-lb-undo.service"
    assert records.due()["id"] == (OTHER_RUN if is_over else RUN)


@pytest.mark.parametrize("ask, asks", [(arming.postpone, "restart"), (arming.confirm, "stop")])
@pytest.mark.parametrize("begins", ["before", "meanwhile"])
def test_a_run_is_refused_from_the_moment_on_at_which_the_member_begins_to_return(host, monkeypatch, ask, asks, begins):
    """Its program records that it has begun, and needs a moment until then."""
    arm(host)
    host.active["onprem-lb-undo.service"] = begins == "before"
    obey = host.run_command

    def run_command(command, **options):
        if command == ["systemctl", asks, "onprem-lb-undo.timer"]:
            host.active["onprem-lb-undo.service"] = True
        return obey(command, **options)

    monkeypatch.setattr(host, "run_command", run_command)
    with pytest.raises(arming.Refused, match="so this member returns to its previous settings"):
        ask(host.run_command, due(), b"program")
    assert host.asked[-1] == "systemctl restart --no-block onprem-lb-undo.service" and records.due()


def test_a_run_that_has_failed_lets_the_timer_be_unless_the_member_has_returned_already(host):
    arm(host)
    arming.abandon(host.run_command, due(), b"program")
    assert host.asked[-1] == "systemctl restart onprem-lb-undo.timer"
    arming.clear(host.run_command)
    arming.abandon(host.run_command, due(), b"program")
    assert host.asked[-1] == "systemctl daemon-reload"
    records.write(records.RETURNED, {"run": RUN, "id": RUN})
    arming.abandon(host.run_command, due(), b"program")
    assert host.asked[-1] == "systemctl restart --no-block onprem-lb-undo.service"


def test_the_next_run_postpones_it_and_returns_to_the_same_state(host):
    arm(host)
    arming.take_over(host.run_command)
    assert host.asked[-1] == "systemctl restart onprem-lb-undo.timer"
    assert arming.target(due(run=OTHER_RUN)) == RUN


def test_the_next_run_ends_one_that_has_begun(host, tmp_path):
    arm(host)
    host.active["onprem-lb-undo.service"] = True
    arming.take_over(host.run_command)
    assert "systemctl stop onprem-lb-undo.timer onprem-lb-undo.service" in host.asked and left(tmp_path) == []


def test_a_member_that_returned_while_the_next_run_was_planned_refuses_it(host):
    assert arming.target(due()) == RUN
    records.write(records.RETURNED, {"run": OTHER_RUN, "id": OTHER_RUN})
    with pytest.raises(arming.Refused, match="while the run was planned: repeat the run"):
        arming.target(due())


def test_no_start_of_a_router_succeeds_until_it_is_unblocked(host, tmp_path):
    arming.block(host.run_command)
    blocks = [tmp_path / f"run/systemd/system/{unit}.service.d" for unit in ("keepalived", "onprem-lb-vrrp")]
    for block in blocks:
        text = (block / "onprem-lb-undo.conf").read_text()
        assert "AssertPathExists=!/var/lib/onprem.lb/undo/due.json" in text
    assert host.asked == ["systemctl daemon-reload"]
    arming.unblock(host.run_command)
    assert left(tmp_path) == []


def test_a_member_that_has_returned_has_no_timer_that_is_over(host, tmp_path):
    arm(host)
    arming.clear(host.run_command)
    assert "systemctl stop onprem-lb-undo.timer" in host.asked and left(tmp_path) == []


def test_a_timer_that_cannot_be_armed_stops_the_run(host):
    host.fails["systemctl restart"] = "no"
    with pytest.raises(arming.Refused, match="systemctl restart onprem-lb-undo.timer failed: no"):
        arm(host)


def test_the_program_runs_by_itself_and_does_nothing_where_nothing_is_due(tmp_path):
    path = tmp_path / "undo.pyz"
    path.write_bytes(program.build())
    done = subprocess.run([sys.executable, "-I", path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
