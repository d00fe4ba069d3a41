# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.drill import faults
from hypothesis import given
from hypothesis import strategies as st

events = st.sampled_from(faults.EVENTS)
seconds = st.floats(0, 3600, allow_nan=False)
SERVER = {"address": "192.0.2.21", "port": 8443, "services": {"web": ["a"]}}
BOTH_UP = [("web", "a", "up"), ("web", "b", "up")]
ON_ETH0 = faults.Target("eth0", vip="192.0.2.10", server=SERVER, known=BOTH_UP)


class Host:
    """A host on which chosen commands fail or say something; everything that ran is in ``ran``."""

    def __init__(self, says=None, fails=()):
        self.says, self.fails, self.ran = says or {}, list(fails), []

    def __call__(self, command):
        line = " ".join(command)
        self.ran.append(line)
        failed = any(part in line for part in self.fails)
        out = next((text for part, text in self.says.items() if part in line), "")
        return (1 if failed else 0), out, "Error: no such thing\nmore" if failed else ""

    def index(self, part):
        return next(n for n, line in enumerate(self.ran) if part in line)


RUNNING = {"systemctl show": "LoadState=loaded\nActiveState=active\n"}


@given(events, seconds, seconds)
def test_what_reverts_a_failure_is_armed_before_it_and_fires_after_it(event, after, revert_after):
    script = faults.script_for(event, ON_ETH0)
    armed = faults.timers(event, script, after, revert_after)
    assert [a.name for a in armed] == ([faults.REVERT, faults.INJECT] if script.revert else [faults.INJECT])
    assert armed[-1].in_s == after
    assert armed[0].in_s >= after


@given(events)
def test_no_command_holds_anything_that_systemd_would_expand(event):
    script = faults.script_for(event, ON_ETH0)
    assert not set("$%") & set(script.inject + script.revert)


@pytest.mark.parametrize("event", [e for e in faults.EVENTS if not e.endswith(("_reloaded", "_rebooted"))])
def test_everything_but_a_reload_and_a_reboot_is_reverted(event):
    assert faults.script_for(event, ON_ETH0).revert
    assert faults.script_for("haproxy_reloaded").revert == ""


def test_killing_means_every_process_of_the_unit_and_no_other():
    script = faults.script_for("keepalived_killed")
    assert script.inject == "systemctl kill --signal=KILL keepalived.service"
    assert script.revert.endswith("systemctl start keepalived.service")


def test_what_hangs_goes_on_and_starts_where_a_watchdog_has_ended_it():
    script = faults.script_for("haproxy_hung")
    assert script.inject == "systemctl kill --signal=STOP haproxy.service"
    first, *then = script.revert.split("; ")
    assert (first, then[-1]) == ("systemctl kill --signal=CONT haproxy.service", "systemctl start haproxy.service")


def test_with_a_full_table_of_connections_the_first_syn_is_dropped_both_ways_and_nothing_else():
    script = faults.script_for("conntrack_full")
    rules = [rule for rule in script.rules.split("; ") if rule.startswith("add rule")]
    dropped = "tcp flags & (syn | ack) == syn drop"
    assert rules == [f"add rule inet onprem_lb_drill {hook} {dropped}" for hook in ("input", "output")]
    assert script.revert == "nft 'add table inet onprem_lb_drill; delete table inet onprem_lb_drill'"


def test_a_host_reboots_only_if_both_programs_start_at_boot():
    script = faults.script_for("host_rebooted")
    assert (script.inject, script.revert) == ("systemctl reboot", "")
    shown = RUNNING["systemctl show"]
    faults.check(script, [], [], Host({"systemctl show": f"{shown}UnitFileState=enabled\n"}), False)
    with pytest.raises(faults.Refused, match=r"^keepalived.service does not start at boot \(disabled\): enable it\.$"):
        states = {"keepalived.service": f"{shown}UnitFileState=disabled\n"}
        faults.check(script, [], [], Host({**states, "systemctl show": f"{shown}UnitFileState=enabled\n"}), False)


@pytest.mark.parametrize("down", ["haproxy.service", "keepalived.service"])
def test_both_are_reloaded_at_once_where_both_run(down):
    script = faults.script_for("both_reloaded")
    assert script.inject == "systemctl reload haproxy.service keepalived.service"
    faults.check(script, [], [], Host(RUNNING), False)
    host = Host({down: "LoadState=not-found\nActiveState=inactive\n", **RUNNING})
    with pytest.raises(faults.Refused, match=f"There is no {down} on this host."):
        faults.check(script, [], [], host, False)


def test_a_cut_drops_both_ways_on_that_interface_alone():
    rules = faults.cut_rules("eth0")
    assert rules.count('device "eth0"') == 2
    assert "hook ingress" in rules and "hook egress" in rules
    assert rules.count("policy drop") == 2


def test_where_vrrp_has_a_link_of_its_own_a_cut_is_of_both_and_advertisements_are_lost_there():
    apart = ON_ETH0._replace(vrrp_interface="eth1")
    cut, lost = (faults.script_for(event, apart).rules for event in ("host_cut", "vrrp_lost"))
    assert [cut.count(f'device "{name}"') for name in ("eth0", "eth1")] == [2, 2]
    assert len({chain.split()[4] for chain in cut.split("; ") if chain.startswith("add chain")}) == 4
    assert (lost.count("eth0"), lost.count("eth1")) == (0, 1)
    assert "eth1" not in str(faults.script_for("port_down", apart))
    with pytest.raises(faults.Refused, match="There is no interface eth1 on this host"):
        faults.check(faults.script_for("host_cut", apart), apart.interfaces, ["eth0"], Host(), True)
    with pytest.raises(faults.Refused, match="is not the name of one"):
        faults.script_for("host_cut", ON_ETH0._replace(vrrp_interface="eth1;x"))


def test_lost_advertisements_are_dropped_on_their_way_out_and_nothing_else():
    rules = faults.loss_rules("eth0").split("; ")
    assert [rule.partition(" egress ")[2] for rule in rules if rule.startswith("add rule")] == [
        "ip protocol 112 drop",
        "ip6 nexthdr 112 drop",
    ]
    assert 'hook egress device "eth0"' in faults.loss_rules("eth0") and "policy accept" in rules
    assert faults.script_for("vrrp_lost", ON_ETH0).revert == faults.script_for("host_cut", ON_ETH0).revert


@pytest.mark.parametrize("vip", ["", "eth0", "192.0.2.10/24", "192.0.2.10'; reboot"])
def test_a_stranger_needs_an_address_that_the_shell_cannot_misread(vip):
    with pytest.raises(faults.Refused, match=r"^stranger_with_vip needs vip, and .* is not an address\.$"):
        faults.script_for("stranger_with_vip", ON_ETH0._replace(vip=vip))


def test_a_stranger_leaves_with_the_unit_that_runs_it():
    script = faults.script_for("stranger_with_vip", ON_ETH0)
    assert script.inject.endswith(" eth0 192.0.2.10") and script.inject.count("'") == 2
    assert script.revert == f"systemctl stop {faults.INJECT}.service"


@given(st.text(max_size=20))
def test_an_interface_that_the_shell_or_nft_could_misread_is_refused(name):
    try:
        script = faults.script_for("host_cut", faults.Target(name))
    except faults.Refused:
        return
    assert faults.INTERFACE.fullmatch(name)
    assert script.inject.count("'") == 2
    assert script.inject.count('"') == 4


def test_the_timers_are_exact_and_go_when_they_have_fired():
    command = faults.arm_command("x", 2.5, "true", "d")
    assert "--on-active=2500ms" in command
    assert "--timer-property=AccuracySec=1ms" in command
    assert "--collect" in command
    assert command[-3:] == ["/bin/sh", "-c", "true"]


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ("LoadState=not-found\nActiveState=inactive\n", "There is no haproxy.service on this host."),
        (
            "LoadState=loaded\nActiveState=failed\n",
            "haproxy.service is not running (failed): it cannot fail.",
        ),
    ],
)
def test_a_unit_that_cannot_fail_is_refused(state, sentence):
    with pytest.raises(faults.Refused) as refused:
        faults.check(faults.script_for("haproxy_killed"), [], [], Host({"systemctl show": state}), False)
    assert str(refused.value) == sentence


def test_a_running_unit_is_accepted():
    faults.check(faults.script_for("haproxy_killed"), [], [], Host(RUNNING), False)


def test_a_cut_without_nft_names_the_package():
    with pytest.raises(faults.Refused, match="install the package nftables"):
        faults.check(faults.script_for("host_cut", ON_ETH0), ["eth0"], ["eth0"], Host(), False)


def test_a_cut_of_no_interface_is_refused_because_nft_would_not():
    with pytest.raises(faults.Refused, match=r"^There is no interface eth9 on this host\.$"):
        faults.check(faults.script_for("host_cut", faults.Target("eth9")), ["eth9"], ["eth0"], Host(), True)


def test_a_cut_that_the_kernel_cannot_make_is_refused_with_nfts_own_first_line():
    host = Host(fails=["nft --check"])
    with pytest.raises(faults.Refused, match=r"5\.16 or later.*Error: no such thing$"):
        faults.check(faults.script_for("host_cut", ON_ETH0), ["eth0"], ["eth0"], host, True)
    assert len(host.ran) == 1


def test_what_is_left_over_is_reverted_before_its_timer_goes():
    host = Host()
    found, tables = faults.clear(host, True), ("netdev onprem_lb_drill", "inet onprem_lb_drill")
    assert found == [f"{faults.INJECT}.timer", f"{faults.REVERT}.timer", *map("table {}".format, tables)]
    # No new failure may start, and the revert must have run before the timer that would still run it is gone.
    assert host.index(f"stop {faults.INJECT}.timer") < host.index(f"start {faults.REVERT}.service")
    assert host.index(f"start {faults.REVERT}.service") < host.index(f"stop {faults.REVERT}.timer")
    assert host.index("nft list table netdev onprem_lb_drill") < host.index(f"nft {faults.DELETE_TABLE}")


def test_where_nothing_is_left_over_nothing_is_reverted():
    host = Host(fails=["is-active", "nft list"])
    assert faults.clear(host, True) == []
    assert not [line for line in host.ran if line.startswith(("systemctl start", "nft add"))]


def test_a_revert_that_fails_keeps_its_timer_and_says_so():
    host = Host(fails=["systemctl start"])
    with pytest.raises(faults.Refused, match="systemctl failed"):
        faults.clear(host, True)
    assert f"systemctl stop {faults.REVERT}.timer" not in host.ran


def test_a_timer_that_cannot_be_set_takes_the_other_back():
    armed = faults.timers("haproxy_killed", faults.script_for("haproxy_killed"), 1, 2)
    host = Host(fails=[f"--unit={faults.INJECT}"])
    with pytest.raises(faults.Refused, match="systemd-run failed"):
        faults.arm(armed, host)
    assert host.ran[-1] == f"systemctl stop {faults.INJECT}.timer {faults.REVERT}.timer"


def test_the_schedule_tells_which_timers_fire_when():
    armed = faults.timers("haproxy_killed", faults.script_for("haproxy_killed"), 2, 10)
    assert faults.schedule(armed, 0.0) == {
        "units": [f"{faults.REVERT}.timer", f"{faults.INJECT}.timer"],
        "injected_at": "1970-01-01T00:00:02.000+00:00",
        "reverted_at": "1970-01-01T00:00:12.000+00:00",
    }
    assert faults.schedule([], 0.0) == {"units": [], "injected_at": None, "reverted_at": None}


def test_an_unknown_event_is_refused_with_those_there_are():
    with pytest.raises(faults.Refused, match="haproxy_killed"):
        faults.script_for("haproxy_painted")


@pytest.mark.parametrize(
    "event, unit",
    [
        ("haproxy_killed", "onprem-lb-proxy.service"),
        ("haproxy_stopped", "onprem-lb-proxy.service"),
        ("haproxy_hung", "onprem-lb-proxy.service"),
        ("haproxy_reloaded", "onprem-lb-proxy.service"),
        ("keepalived_killed", "onprem-lb-vrrp.service"),
        ("keepalived_stopped", "onprem-lb-vrrp.service"),
        ("direct_down", "onprem-lb-direct.service"),
    ],
)
def test_on_a_host_of_the_agent_its_own_daemons_fail(event, unit):
    script = faults.script_for(event, faults.Target(engine="agent"))
    assert script.units == (unit,) and unit in script.inject and "haproxy" not in script.inject + script.revert
