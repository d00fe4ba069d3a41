# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers that are slow for the balancer alone. What a kernel makes of the rules: test_drill_events."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.drill import backend, faults
from ansible_collections.onprem.lb.plugins.module_utils._host.read import processes


def process(root, pid, unit, uid):
    folder = root / str(pid)
    folder.mkdir()
    (folder / "cgroup").write_text(f"0::/system.slice/{unit}\n")
    (folder / "status").write_text(f"Name:\tprogram\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nGid:\t0\t0\t0\t0\n")


def test_the_users_of_a_unit_are_those_of_its_own_processes(tmp_path):
    process(tmp_path, 1, "init.scope", 0)
    process(tmp_path, 10, "haproxy.service", 0)
    process(tmp_path, 11, "haproxy.service", 106)
    process(tmp_path, 12, "nginx.service", 33)
    assert processes.users("haproxy.service", str(tmp_path)) == {0, 106}


def test_root_is_no_user_by_which_a_balancer_is_known(monkeypatch):
    monkeypatch.setattr(processes, "users", lambda _unit: {0, 106})
    assert backend.users("haproxy.service") == [106]
    monkeypatch.setattr(processes, "users", lambda _unit: {0})
    with pytest.raises(backend.Refused, match=r"^haproxy.service runs as root, .*: give it a user of its own\.$"):
        backend.users("haproxy.service")


@pytest.mark.parametrize("engine, unit", [("native", "haproxy.service"), ("agent", "onprem-lb-proxy.service")])
def test_the_balancer_that_runs_is_the_one_whose_servers_are_slow(engine, unit):
    script = faults.script_for("slow_backend", faults.Target(engine=engine, uids=(106, 107)))
    assert script.units == (unit,) and "meta skuid { 106, 107 }" in script.inject
    assert script.revert == "nft 'add table inet onprem_lb_drill; delete table inet onprem_lb_drill'"


def test_only_the_first_syn_to_another_host_is_dropped_in_both_families():
    lines = [line for line in backend.rules([106]).split("; ") if line.startswith("add rule")]
    for line, family in zip(lines, ("ip", "ip6")):
        connection = f"{family} daddr . tcp sport . tcp dport"
        assert line == (
            'add rule inet onprem_lb_drill output oifname != "lo" meta skuid { 106 } tcp flags & (syn | ack) == syn '
            f"{connection} != @seen_{family} add @seen_{family} {{ {connection} }} drop"
        )
    assert len(lines) == 2
