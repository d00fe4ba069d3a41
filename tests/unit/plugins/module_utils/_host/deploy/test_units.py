# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the units say; the whole of them is in tests/golden."""

from __future__ import annotations

import re
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.settings import Settings
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy.units import Options, Paths, option_faults, unit
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import DAEMONS, Daemon

PATHS = Paths()
VRRP, PROXY = Daemon("vrrp"), Daemon("proxy")
SCRIPT = {"name": "load", "type": "script", "command": "/usr/bin/true"}


def lines(daemon, config=None, **options):
    return unit(daemon, config or {}, PATHS, Options(**options)).splitlines()


def test_each_has_a_user_of_its_own_and_only_what_it_needs():
    assert "User=onprem-lb-vrrp" in lines(VRRP)
    assert "AmbientCapabilities=CAP_NET_ADMIN CAP_NET_RAW CAP_SYS_NICE CAP_IPC_LOCK" in lines(VRRP)
    assert "User=onprem-lb-proxy" in lines(PROXY)
    assert "CapabilityBoundingSet=CAP_NET_BIND_SERVICE" in lines(PROXY)


@pytest.mark.parametrize("daemon", DAEMONS)
@pytest.mark.parametrize("line", ["NoNewPrivileges=yes", "ProtectSystem=strict", "SystemCallFilter=@system-service"])
def test_both_are_shut_in(daemon, line):
    assert line in lines(daemon)


@pytest.mark.parametrize("daemon", DAEMONS)
def test_the_kernel_ends_other_processes_first(daemon):
    assert "OOMScoreAdjust=-900" in lines(daemon)


PROCESS = {"name": "alive", "type": "process", "process": "x"}
FILE = {"name": "down", "type": "file", "file": "/run/x"}
HTTPS = {"name": "web", "type": "https", "ca": "/etc/ca.pem"}


def test_other_processes_are_hidden_except_from_a_router_that_checks_them():
    assert {"ProtectProc=invisible", "ProcSubset=pid"} <= set(lines(PROXY))
    for checks, hidden in (([], True), ([FILE, HTTPS], True), ([FILE, PROCESS], False), ([SCRIPT], False)):
        assert ("ProtectProc=invisible" in lines(VRRP, {"checks": checks})) == hidden


def test_only_programs_of_the_user_s_may_make_code_while_they_run():
    assert "MemoryDenyWriteExecute=yes" in lines(PROXY) and "MemoryDenyWriteExecute=yes" in lines(
        VRRP, {"checks": [FILE]}
    )
    assert "MemoryDenyWriteExecute=yes" not in lines(VRRP, {"checks": [SCRIPT]})


# As systemd-analyze(1) rates a unit, from 0 to 10. Half of the router's is what it is for: raw and packet sockets,
# addresses, real-time scheduling, and the system call with which the checks process drops its capabilities.
RATINGS = {
    "the balancer": (PROXY, {}, 1.7),
    "a router": (VRRP, {"checks": [FILE, HTTPS]}, 2.3),
    "a router that checks a process": (VRRP, {"checks": [PROCESS]}, 2.5),
    "a router that runs programs": (VRRP, {"checks": [SCRIPT]}, 3.1),
}


@pytest.mark.parametrize("daemon, config, rating", RATINGS.values(), ids=RATINGS)
def test_systemd_rates_each_unit_as_confined(daemon, config, rating, tmp_path):
    file = tmp_path / daemon.unit
    file.write_text(unit(daemon, config, PATHS, Options()))
    command = ("systemd-analyze", "security", "--offline=true", "--no-pager", str(file))
    report = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    exposure = re.search(r"Overall exposure level for \S+: ([0-9.]+) ", report)
    assert float(exposure[1]) <= rating, report


def test_systemd_waits_longer_for_the_end_than_the_proxy_does():
    (limit,) = [line for line in lines(PROXY) if line.startswith("TimeoutStopSec=")]
    assert int(limit.partition("=")[2][:-1]) > Settings(()).stop_within / 1_000_000
    assert "TimeoutStopSec=302s" in lines(PROXY, {"stop_within": 300})
    assert "TimeoutStopSec=2.5s" in lines(PROXY, {"stop_within": 0.5})


@pytest.mark.parametrize("daemon", DAEMONS)
def test_both_are_watched_and_always_started_again(daemon):
    for line in ("Type=notify", "WatchdogSec=10s", "Restart=always", "StartLimitIntervalSec=0"):
        assert line in lines(daemon)


@pytest.mark.parametrize("daemon", DAEMONS)
def test_the_kernel_knows_the_process_by_a_name_that_it_does_not_cut(daemon):
    assert len(daemon.program) <= 15
    assert f"ExecStart={PATHS.library}/{daemon.program} -I" in unit(daemon, {}, PATHS, Options())


@pytest.mark.parametrize(
    "config",
    [
        {"checks": [SCRIPT]},
        {"instances": [{"name": "front", "notify": "/usr/bin/tell"}]},
        {"sync_groups": [{"name": "both", "notify": "/usr/bin/tell"}]},
    ],
)
def test_a_router_that_runs_programs_as_other_users_is_root_with_the_capabilities_for_that_only(config):
    found = lines(VRRP, config)
    assert not [line for line in found if line.startswith("User=")], "systemd 257 would take CAP_SETUID away"
    (bounded,) = [line for line in found if line.startswith("CapabilityBoundingSet=")]
    assert bounded.endswith("CAP_SETUID CAP_SETGID CAP_KILL") and "CAP_SYS_ADMIN" not in bounded
    assert not [line for line in found if line.startswith("AmbientCapabilities=")]


def test_checks_of_its_own_need_no_root():
    assert "User=onprem-lb-vrrp" in lines(VRRP, {"checks": [PROCESS, FILE]})


def test_the_vip_is_told_before_the_proxy_stops_and_after_it_died():
    found = lines(PROXY, down_file="/run/down", stop_pause=0.5)
    assert "ExecStartPost=+/bin/sh -c 'echo 0 > /run/down'" in found
    assert "ExecStop=+/bin/sh -c 'echo 1 > /run/down; sleep 0.5'" in found
    assert "ExecStopPost=+/bin/sh -c 'echo 1 > /run/down'" in found
    assert not [line for line in lines(PROXY) if line.startswith(("ExecStop", "ExecStartPost"))]


def test_what_is_tied_to_the_proxy_runs_as_root_and_means_what_it_says():
    found = lines(PROXY, start_commands=("/usr/sbin/nft -f /etc/100%$x",), stop_commands=("/bin/undo",))
    assert "ExecStartPost=-+/usr/sbin/nft -f /etc/100%%$$x" in found
    assert "ExecStop=-+/bin/undo" in found and "ExecStopPost=-+/bin/undo" in found


def test_an_option_that_a_unit_cannot_have_is_refused():
    options = Options(down_file="/run/a\nb", start_commands=("/bin/x 'open",), stop_commands=("undo",))
    assert option_faults(options) == [
        r"options.down_file has '/run/a\nb': one line of printable characters is required.",
        """options.start_commands has "/bin/x 'open": a quote has no end: close it.""",
        "options.stop_commands has 'undo': an absolute path to the program is required first, of letters, "
        "digits and . _ + - / only.",
    ]
    assert option_faults(Options(down_file="/run/a", start_commands=("/bin/x",))) == []


def test_the_proxy_may_open_as_many_files_as_its_sessions_want():
    assert "LimitNOFILE=61024" in lines(PROXY)
    assert "LimitNOFILE=1624" in lines(PROXY, {"maxconn": 100})


def test_when_memory_runs_out_the_kernel_ends_other_processes_first():
    for daemon in (VRRP, PROXY):
        assert [line for line in lines(daemon) if line.startswith("OOMScoreAdjust")] == ["OOMScoreAdjust=-900"]


def test_a_router_without_programs_may_make_no_privileged_system_call_but_drop_its_capabilities():
    """The deny list must follow the allow list, because the first line decides which of both a filter is."""
    found = [line.partition("=")[2] for line in lines(VRRP) if line.startswith("SystemCallFilter=")]
    assert found == ["@system-service", "~@privileged", "capset"]
