# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the host says is understood, and what is done to it is done whole."""

from __future__ import annotations

import os
import signal
import sys

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy import archive as _archive
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy import system
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy.steps import Unit
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy.system import Failed, Host
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy.units import Paths
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import Daemon
from support.agent.programs import run
from support.paths import AGENT

PROXY, VRRP = Daemon("proxy"), Daemon("vrrp")


class Systemctl:
    """Answers commands by their first words; what it was told is kept."""

    def __init__(self, answers=()):
        self.answers, self.told = list(answers), []

    def run(self, command):
        self.told.append(" ".join(command))
        for words, answer in self.answers:
            if words in self.told[-1]:
                return answer() if callable(answer) else answer
        return 0, "", ""


def host(tmp_path, *answers):
    paths = Paths(str(tmp_path / "lib"), str(tmp_path / "etc"), str(tmp_path / "units"))
    (tmp_path / "proc").mkdir(exist_ok=True)
    systemctl = Systemctl(answers)
    return Host(systemctl.run, lambda name: None, paths, str(tmp_path / "proc")), systemctl


def process(tmp_path, pid, comm="python3", maps="", caught="0000000000004803"):
    folder = tmp_path / "proc" / str(pid)
    folder.mkdir(parents=True)
    (folder / "comm").write_text(f"{comm}\n")
    (folder / "maps").write_text(maps)
    (folder / "status").write_text(f"Name:\t{comm}\nSigIgn:\tffffffffffffffff\nSigCgt:\t{caught}\n")


def mapped(tmp_path, digest):
    return f"7ffa8b542000-7ffa8b5ac000 r--s 00000000 00:30 1565454     {tmp_path}/lib/agent-{digest}.pyz\n"


SHOWN = """\
Id=onprem-lb-proxy.service
LoadState=loaded
ActiveState=active
UnitFileState=enabled
NeedDaemonReload=yes
MainPID=41

Id=onprem-lb-vrrp.service
LoadState=not-found
ActiveState=inactive
UnitFileState=
NeedDaemonReload=no
MainPID=0
"""


def test_a_masked_unit_is_told_from_one_that_is_not_there(tmp_path):
    shown = SHOWN.replace("LoadState=not-found", "LoadState=masked")
    found = host(tmp_path, ("systemctl show", (0, shown, "")))[0].units()
    assert (found[PROXY.unit].masked, found[VRRP.unit].masked) == (False, True)


def test_a_file_of_a_daemon_that_cannot_be_written_has_a_sentence_and_those_of_another_are_not_tried(tmp_path):
    for folder in ("lib", "units"):
        (tmp_path / folder).symlink_to("/proc/self")
    unwritable = host(tmp_path)[0].unwritable
    said = [sentence.partition(" cannot be written")[0] for sentence in unwritable([VRRP])]
    assert said == [f"{tmp_path}/lib/agent.pyz", f"{tmp_path}/units/onprem-lb-vrrp.service"]
    assert unwritable([]) == ()


def test_the_units_are_read_and_the_version_that_each_runs(tmp_path):
    process(tmp_path, 41, maps=f"some /lib/libc.so\n{mapped(tmp_path, 'aa11')}")
    found = host(tmp_path, ("systemctl show", (0, SHOWN, "")))[0].units()
    assert found == {
        PROXY.unit: Unit(True, True, True, 41, f"{tmp_path}/lib/agent-aa11.pyz"),
        VRRP.unit: Unit(),
    }


def test_a_version_is_removed_when_no_process_runs_it(tmp_path):
    here, _systemctl = host(tmp_path)
    for digest in ("aa", "bb", "cc", "dd"):
        here.write(f"{here.paths.library}/agent-{digest}.pyz", b"")
    here.point(here.paths.link, "agent-aa.pyz")
    process(tmp_path, 7, maps=mapped(tmp_path, "bb") * 2)
    here.remove_unused_versions(f"{here.paths.library}/agent-aa.pyz")
    assert sorted(os.listdir(here.paths.library)) == ["agent-aa.pyz", "agent-bb.pyz", "agent.pyz"]


def test_a_link_is_replaced_even_if_an_interrupted_run_left_a_temporary_one(tmp_path):
    here, _systemctl = host(tmp_path)
    here.point(here.paths.link, "one")
    os.symlink("half", f"{here.paths.link}.new")
    here.point(here.paths.link, "two")
    assert here.pointer(here.paths.link) == "two" and os.listdir(here.paths.library) == ["agent.pyz"]
    assert here.pointer("/nowhere/at/all") == ""


def test_the_version_asked_is_the_one_that_answers_and_it_speaks_of_the_real_path(tmp_path):
    archive = tmp_path / "agent.pyz"
    archive.write_bytes(_archive.build(str(AGENT)))
    here, _systemctl = host(tmp_path)
    here.run = run
    good = '{"services": [{"name": "web", "port": 443, "servers": ["192.0.2.1"]}]}'
    assert here.check_config(sys.executable, str(archive), good, "/etc/x/proxy.json") == []
    assert here.check_config(sys.executable, str(archive), '{"services": 1}', "/etc/x/proxy.json") == [
        "configuration.services is 1: a list is required."
    ]
    (sentence,) = here.check_config(sys.executable, str(archive), "{", "/etc/x/proxy.json")
    assert sentence.startswith("/etc/x/proxy.json is not JSON")
    (tmp_path / "broken.pyz").write_text("raise SystemExit(3)")
    (sentence,) = here.check_config(sys.executable, str(tmp_path / "broken.pyz"), good, "/etc/x/proxy.json")
    assert sentence == "/etc/x/proxy.json is refused without a word (exit code 3)."


def test_a_python_is_one_that_says_its_version(tmp_path):
    here, _systemctl = host(tmp_path)
    here.run = run
    assert here.python_version(sys.executable) == sys.version_info[:2]
    assert here.python_version("/bin/true") == () == here.python_version("/nowhere")


def test_a_conflicting_service_is_known_by_its_unit_or_by_its_name(tmp_path):
    shown = "Id=keepalived.service\nMainPID=12\n\nId=haproxy.service\nMainPID=0\n"
    here, _systemctl = host(tmp_path, ("systemctl show", (0, shown, "")))
    process(tmp_path, 33, "haproxy")
    process(tmp_path, 4, "haproxy")
    for pid in (4, 33):
        (tmp_path / "proc" / str(pid) / "cgroup").write_text(f"0::/system.slice/docker-{'4' * 64}.scope\n")
    (tmp_path / "units" / "keepalived.service.d").mkdir(parents=True)
    (tmp_path / "units" / "keepalived.service.d" / "onprem-lb.conf").touch()
    assert [tuple(other) for other in here.conflicting()] == [
        ("haproxy", 4, "", False, "the docker container 444444444444"),
        ("keepalived", 12, "keepalived.service", True, ""),
    ]
    (tmp_path / "proc" / "4" / "ns").mkdir()
    os.symlink("net:[2]", tmp_path / "proc" / "4" / "ns" / "net")
    assert [other.program for other in here.conflicting()] == ["keepalived"], "it is in a network of its own"


class Changing:
    """A unit that changes some looks after it was signalled."""

    def __init__(self, looks=2):
        self.looks, self.sent = looks, []

    def show(self):
        self.looks -= 1 if self.sent else 0
        state = "reload" if self.looks == 1 else "running"
        return 0, f"StateChangeTimestampMonotonic={0 if self.looks > 1 else 1}\nSubState={state}\n", ""


@pytest.fixture
def signalled(monkeypatch):
    sent = []
    monkeypatch.setattr(system.os, "kill", lambda pid, number: sent.append((pid, number)))
    monkeypatch.setattr(system, "POLL_INTERVAL", 0.001)
    return sent


def test_a_reload_is_waited_for(tmp_path, signalled):
    unit = Changing(looks=6)
    unit.sent = signalled
    here, _systemctl = host(tmp_path, ("systemctl show", unit.show))
    here.report = lambda path: {"config_fault": None}
    here.reload(PROXY, Unit(pid=5))
    assert signalled == [(5, signal.SIGHUP)] and unit.looks <= 1


def test_a_daemon_that_refuses_is_quoted(tmp_path, signalled):
    unit = Changing()
    unit.sent = signalled
    here, _systemctl = host(tmp_path, ("systemctl show", unit.show))
    here.report = lambda path: {"config_fault": "port 80 is taken."}
    with pytest.raises(Failed, match="keeps the old one: port 80 is taken"):
        here.reload(PROXY, Unit(pid=5))


def test_an_upgrade_is_over_when_the_process_runs_the_new_version(tmp_path, signalled):
    shown = iter(["StateChangeTimestampMonotonic=1\n", "StateChangeTimestampMonotonic=2\n", "SubState=running\n"])
    main = iter([5, 5, 6])

    def show():
        return 0, next(shown, None) or f"MainPID={next(main)}\n", ""

    here, systemctl = host(tmp_path, ("systemctl show", show))
    here.report = lambda path: {"config_fault": None}
    process(tmp_path, 5, maps=mapped(tmp_path, "aa"))
    process(tmp_path, 6, maps=mapped(tmp_path, "bb"))
    here.upgrade(PROXY, Unit(pid=5), f"{here.paths.library}/agent-bb.pyz")
    assert signalled == [(5, signal.SIGUSR2)] and next(main, None) is None


def test_a_new_version_that_is_refused_is_not_waited_for(tmp_path, signalled):
    unit = Changing()
    unit.sent = signalled
    here, _systemctl = host(tmp_path, ("systemctl show", unit.show))
    here.report = lambda path: {"config_fault": "The new version does not take over: it has ended."}
    with pytest.raises(Failed, match=r"keeps the old one: The new version does not take over: it has ended\.$"):
        here.upgrade(PROXY, Unit(pid=5), "/lib/agent-bb.pyz")


def test_a_new_version_that_does_not_come_is_said_with_the_last_words(tmp_path, signalled, monkeypatch):
    monkeypatch.setattr(system, "APPLY_TIMEOUT", 0.05)
    unit = Changing()
    unit.sent = signalled
    words = "onprem-lb-proxy.service: Scheduled restart\nThe new version is refused.\n"
    here, _systemctl = host(
        tmp_path,
        ("systemctl show --property=MainPID ", (0, "MainPID=5\n", "")),
        ("systemctl show", unit.show),
        ("journalctl", (0, words, "")),
    )
    here.report = lambda path: {"config_fault": None}
    process(tmp_path, 5, maps=mapped(tmp_path, "aa"))
    with pytest.raises(Failed, match=r"within 0.05 s: The new version is refused\.$"):
        here.upgrade(PROXY, Unit(pid=5), f"{here.paths.library}/agent-bb.pyz")
    assert signalled == [(5, signal.SIGUSR2)]


def test_a_router_is_told_to_end_with_its_addresses_in_place_but_not_where_some_are_to_go(tmp_path, signalled):
    here, systemctl = host(tmp_path)
    here.restart(VRRP, Unit(pid=5), gracefully=False)
    assert signalled == [(5, signal.SIGUSR1)] and systemctl.told == [f"systemctl restart {VRRP.unit}"]
    here.restart(VRRP, Unit(pid=6), gracefully=True)
    assert len(signalled) == 1


def test_a_daemon_that_does_not_start_is_said_with_its_reason(tmp_path):
    here, _systemctl = host(
        tmp_path,
        ("systemctl restart", (1, "", "Job for it failed.")),
        ("journalctl", (0, "Starting it...\nport 80 is taken.\n", "")),
    )
    with pytest.raises(Failed, match=r"^onprem-lb-proxy.service does not start: port 80 is taken\.$"):
        here.start(PROXY.unit)
