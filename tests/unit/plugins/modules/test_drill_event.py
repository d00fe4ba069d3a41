# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module drill_event: what is asked of it, said by it, and done by it. What a failure is made of: test_faults."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import facts, member
from ansible_collections.onprem.lb.plugins.modules import drill_event
from support.modules import refusal, run
from support.programs import Programs

KILLED = {"event": "haproxy_killed", "after": 1, "revert_after": 5}
TIMERS = ["onprem-lb-drill-revert.timer", "onprem-lb-drill-inject.timer"]
CHANGING = ("systemd-run", "systemctl stop", "systemctl start", "nft add")


class Host(Programs):
    """Runs systemd, nft and a haproxy, and has the timers and tables of earlier drills that it is given."""

    def __init__(self, left=(), nft=True, arms=(0, "", "")):
        answers = {
            "find": "",
            "test": self._test,
            "rm": "",
            "df": self._df,
            "systemctl": self._systemctl,
            "systemd-run": lambda _words: arms,
            "ip": self._ip,
        }
        super().__init__({**answers, **({"nft": self._nft} if nft else {})})
        self.left = left

    def _systemctl(self, words):
        if words[1] == "is-active":
            return (0 if words[-1] in self.left else 3), "", ""
        return 0, "LoadState=loaded\nActiveState=active\nUnitFileState=enabled\n", ""

    def _test(self, words):
        return (0 if words[-1] in self.left else 1), "", ""

    def _df(self, words):
        if words[-1] == "/none":
            return 1, "", "df: /none: No such file or directory\n"
        return 0, "Type Avail Mounted on\next4 1048576 /\n", ""

    def _ip(self, words):
        if "neighbour" in words:
            found = [{"dev": "eth1", "lladdr": "02:00:00:00:00:01"}] if words[-1] == "192.0.2.1" else []
            return 0, json.dumps(found), ""
        if "route" in words:
            return 0, "default via 192.0.2.1\n" if words[1] == "-4" else "", ""
        return 0, f"2: {words[-1]}: <BROADCAST,UP,LOWER_UP>", ""

    def _nft(self, words):
        return (1 if words[1] == "list" else 0), "", ""

    @property
    def changes(self):
        return [command for command in self.ran if command.startswith(CHANGING)]


@pytest.fixture(autouse=True)
def systemd(monkeypatch, tmp_path):
    monkeypatch.setattr(facts, "SYSTEMD", str(tmp_path))


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({}, "missing required arguments: event"),
        ({"event": "haproxy_frozen"}, "There is no event haproxy_frozen; there are haproxy_killed, "),
        ({"event": "host_cut"}, "event is host_cut but all of the following are missing: interface"),
        ({"event": "host_cut", "interface": "eth0; reboot"}, "'eth0; reboot' is not the name of one."),
        ({"event": "host_cut", "interface": "no-such-link"}, "There is no interface no-such-link on this host."),
        ({"event": "own", "command": {"revert": "true"}}, "missing required arguments: inject found in command"),
        ({"event": "haproxy_killed", "after": "soon"}, "argument 'after' is of type str"),
        ({"event": "haproxy_killed", "after": -1}, "after and revert_after cannot be negative."),
        ({"event": "haproxy_killed", "engine": "both"}, "value of engine must be one of: native, agent"),
        ({"event": "port_down"}, "event is port_down but all of the following are missing: interface"),
        ({"event": "port_down", "interface": "eth0; reboot"}, "'eth0; reboot' is not the name of one."),
        (
            {"event": "link_flapping", "interface": "x", "flap_seconds": 0},
            "flap_seconds is 0: it must be at least 0.01.",
        ),
        ({"event": "stranger_with_vip", "interface": "lo"}, "all of the following are missing: vip"),
        ({"event": "stranger_with_vip", "interface": "nil0", "vip": "192.0.2.10"}, "There is no interface nil0 on "),
        (
            {"event": "disk_full", "folders": ["/none"]},
            "disk_full cannot fill /none: df: /none: No such file or directory",
        ),
        ({"event": "server_cut"}, "event is server_cut but all of the following are missing: server"),
        ({"event": "router_gone", "vip": "192.0.2.10"}, "all of the following are missing: router"),
        (
            {"event": "router_gone", "vip": "192.0.2.10", "router": "r1"},
            "router_gone needs router, and 'r1' is not an address.",
        ),
        (
            {"event": "router_gone", "vip": "no; reboot", "router": "192.0.2.1"},
            "router_gone needs vip, and 'no; reboot' is not an address.",
        ),
        (
            {"event": "router_gone", "vip": "192.0.2.10", "router": "192.0.2.9"},
            "the kernel has no neighbour 192.0.2.9.",
        ),
        ({"event": "bgp_killed"}, "There is no /run/frr/bgpd.pid, so bgp_killed does not know"),
        ({"event": "haproxy_killed", "when": "now"}, "module: when. Supported parameters include"),
    ],
)
def test_a_wrong_argument_is_named_and_nothing_is_injected(given, sentence):
    host = Host()
    assert sentence in refusal(drill_event, given, programs=host)
    assert not [command for command in host.ran if command.startswith("systemd-run")]


def test_a_failure_is_armed_after_its_revert():
    host = Host()
    done = run(drill_event, KILLED, host)
    assert (done["changed"], done["units"]) == (True, TIMERS)
    armed = [command for command in host.ran if command.startswith("systemd-run")]
    assert [f"--unit={name[:-6]} " in command for name, command in zip(TIMERS, armed)] == [True, True]
    assert "--on-active=6000ms" in armed[0] and "--on-active=1000ms" in armed[1]
    assert armed[1].endswith(done["commands"]["inject"]) and armed[0].endswith(done["commands"]["revert"])


@pytest.mark.parametrize(
    "given",
    [
        KILLED,
        {"event": "host_cut", "interface": "lo"},
        {"event": "port_down", "interface": "eth0"},
        {"event": "link_flapping", "interface": "eth0"},
        {"event": "host_rebooted"},
        {"event": "path_withdrawn"},
        {"event": "bfd_lost"},
        {"event": "router_gone", "vip": "192.0.2.10", "router": "192.0.2.1"},
        {"event": "disk_full", "folders": ["/var"]},
        {"event": "own", "command": {"inject": "touch /tmp/x", "revert": "rm /tmp/x"}},
        {"event": "none"},
    ],
    ids=lambda given: given["event"],
)
def test_check_mode_says_what_would_be_injected_and_injects_nothing(given):
    host, real = Host(left=TIMERS), Host(left=TIMERS)
    said, done = run(drill_event, given, host, check=True), run(drill_event, given, real)
    assert host.changes == [] and real.changes != []
    assert said["changed"]
    assert [said[key] for key in ("units", "commands")] == [done[key] for key in ("units", "commands")]
    assert sorted(said["cleared"]) == sorted(done["cleared"]) == sorted(TIMERS)


@pytest.mark.parametrize("check", [False, True])
def test_what_a_user_has_a_shell_run_is_not_said(check):
    own = {"event": "own", "command": {"inject": "curl http://x/?token=s3cret", "revert": "curl -u me:s3cret http://x"}}
    said = run(drill_event, own, Host(), check=check)
    assert said["units"] == TIMERS and "s3cret" not in str(said)


def test_where_nothing_is_left_none_changes_nothing():
    done = run(drill_event, {"event": "none"}, Host())
    assert (done["changed"], done["units"], done["injected_at"], done["reverted_at"]) == (False, [], None, None)


def test_a_disk_that_a_reboot_has_left_full_is_cleared_by_the_next_event():
    host = Host(left=["/run/.onprem-lb-drill"])
    assert run(drill_event, {"event": "none"}, host)["cleared"] == ["/run/.onprem-lb-drill"]
    assert host.ran[-1] == "rm --force /run/.onprem-lb-drill"


def test_a_failure_that_cannot_be_armed_takes_its_revert_back():
    host = Host(arms=(1, "", "Failed to start transient timer unit.\nmore\n"))
    assert refusal(drill_event, KILLED, programs=host) == (
        "systemd-run failed (exit code 1): Failed to start transient timer unit."
    )
    assert host.ran[-1] == "systemctl stop onprem-lb-drill-inject.timer onprem-lb-drill-revert.timer"


def test_a_host_without_systemd_is_refused_before_anything_is_asked(monkeypatch, tmp_path):
    monkeypatch.setattr(facts, "SYSTEMD", str(tmp_path / "none"))
    host = Host()
    assert refusal(drill_event, KILLED, programs=host).startswith("A drill needs systemd on the host")
    assert host.ran == []


def test_a_host_without_nft_cannot_be_cut_off():
    said = refusal(drill_event, {"event": "host_cut", "interface": "lo"}, programs=Host(nft=False))
    assert said == "The event needs the command nft: install the package nftables."


def test_what_is_no_running_unit_cannot_fail():
    host = Host()
    host.answers["systemctl"] = lambda words: (3, "LoadState=loaded\nActiveState=failed\n", "")
    assert refusal(drill_event, KILLED, programs=host) == "haproxy.service is not running (failed): it cannot fail."


def test_a_link_that_flaps_does_so_as_fast_as_asked_and_comes_back_with_its_routes():
    done = run(drill_event, {"event": "link_flapping", "interface": "eth0", "flap_seconds": 0.25}, Host())
    assert done["commands"]["inject"].count("sleep 0.25") == 2
    assert "ip -4 route replace default via 192.0.2.1 dev eth0" in done["commands"]["revert"]


LOST = {"event": "server_cut", "server": {"address": "192.0.2.21", "port": 80, "services": {"web": ["a"]}}}


def test_a_server_is_lost_only_while_the_balancer_says_that_another_one_is_up(monkeypatch):
    states = [("web", "a", "up"), ("web", "b", "up")]
    monkeypatch.setattr(member, "servers", lambda _reader: states)
    done = run(drill_event, LOST, Host())
    assert done["units"] == TIMERS and "ip daddr 192.0.2.21 tcp dport 80 drop" in done["commands"]["inject"]
    states[1:] = [("web", "b", "down")]
    host = Host()
    assert refusal(drill_event, LOST, programs=host) == (
        "No server of web is up besides a: a drill never takes the last one away."
    )
    assert host.changes == []


def test_a_balancer_that_is_not_set_up_here_says_nothing_of_its_servers():
    said = refusal(drill_event, LOST, programs=Host())
    assert said == "server_cut needs to know which servers of web are up, and the balancer does not say it."


def test_a_host_that_reboots_is_not_reverted():
    assert run(drill_event, {"event": "host_rebooted"}, Host())["units"] == ["onprem-lb-drill-inject.timer"]
