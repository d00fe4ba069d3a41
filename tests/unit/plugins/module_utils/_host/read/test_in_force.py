# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a daemon has loaded, and whether it is in FAULT, whatever its files say."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import facts, in_force
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader
from support.paths import GOLDEN
from support.programs import Programs

RUNNING = "ActiveState=active\nNeedDaemonReload=no\nMainPID=7\nInvocationID=5e1f\n"
HAPROXY, KEEPALIVED = "haproxy.service", "keepalived.service"
DROP_INS = {
    "haproxy": ("haproxy.unit.conf", "/etc/haproxy/haproxy.cfg"),
    "keepalived": ("keepalived.unit.conf", "/etc/keepalived/keepalived.conf"),
}


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host with a configuration, whose units have recorded it as their drop-ins do."""
    path = tmp_path / "daemon.conf"
    path.write_text("text\n")
    monkeypatch.setattr(in_force, "record_of", lambda program: str(tmp_path / f"{program}.loaded"))
    monkeypatch.setattr(facts, "youngest", lambda _pid, _stats: float("inf"))
    for program in DROP_INS:
        load(program, path)
    return path


def load(program, path):
    """Run the line of the program's drop-in that systemd runs at each reload."""
    name, config = DROP_INS[program]
    unit = (GOLDEN / name).read_text().replace(config, str(path))
    (line,) = [line for line in unit.splitlines() if line.startswith("ExecReload=-/bin/sh -c '{ sha256sum")]
    assert line.replace("ExecReload", "ExecStartPre") in unit.splitlines()
    command = line.partition(" -c ")[2].strip("'").replace("/run", str(path.parent))
    subprocess.run(["/bin/sh", "-c", command], check=True)


def reader(systemctl=RUNNING, log=""):
    programs = Programs({"systemctl": systemctl, "journalctl": log})
    return Reader(programs.run, programs.find)


@pytest.mark.parametrize("unit", [HAPROXY, KEEPALIVED])
def test_what_a_unit_has_recorded_is_what_its_daemon_has_loaded(host, unit):
    found = in_force.read(reader(), unit)
    assert (found.active, found.config, found.checksum) == (True, str(host), hashlib.sha256(b"text\n").hexdigest())
    assert in_force.unloaded(unit, found) == "" and in_force.stale(reader(), [(unit, str(host))]) == []


@pytest.mark.parametrize("unit", [HAPROXY, KEEPALIVED])
def test_a_file_that_changed_since_is_not_in_force_until_the_next_reload(host, unit):
    host.write_text("new text\n")
    sentence = f"{unit} has not loaded {host} since it changed."
    assert in_force.unloaded(unit, in_force.read(reader(), unit)) == sentence
    assert in_force.stale(reader(), [(unit, str(host))]) == [sentence]
    load(unit.partition(".")[0], host)
    assert in_force.stale(reader(), [(unit, str(host))]) == []


@pytest.mark.parametrize("unit, line", [(HAPROXY, "errorfile 503 {path}"), (KEEPALIVED, "include {path}")])
def test_a_file_that_it_names_and_that_changed_since_is_not_in_force(host, unit, line):
    """How the record comes about, and each kind of file: _shared/test_load_records.py."""
    other = host.with_name("other")
    other.write_text("of before\n")
    host.write_text(line.format(path=other) + "\n")
    load(unit.partition(".")[0], host)
    sentence = f"{unit} has not loaded {other} since it changed."
    older = f"The record of {unit} does not say whether it has loaded {other} as it is now."
    assert in_force.stale(reader(), [(unit, str(host))]) == [older]
    with open(host.with_name(f"{unit.partition('.')[0]}.loaded"), "a", encoding="utf-8") as record:
        record.write(f"{hashlib.sha256(other.read_bytes()).hexdigest()}  {other}\n")
    assert in_force.stale(reader(), [(unit, str(host))]) == []
    other.write_text("new\n")
    found = in_force.read(reader(), unit)
    assert in_force.stale(reader(), [(unit, str(host))]) == [in_force.replaced(unit, found)] == [sentence]
    assert in_force.unloaded(unit, found) == "", "what was proved is as good as before"
    stopped = "ActiveState=inactive\nNeedDaemonReload=no\nMainPID=0\n"
    assert in_force.stale(reader(stopped), [(unit, str(host))]) == []


def test_the_clock_does_not_matter(host):
    os.utime(host, (2**33, 2**33))
    assert in_force.stale(reader(), [(HAPROXY, str(host)), (KEEPALIVED, str(host))]) == []


@pytest.mark.parametrize("record", [None, "", "no record\n"])
def test_what_was_never_recorded_is_not_known_to_be_in_force(host, tmp_path, record):
    """Debian starts the daemons before their units are ours."""
    for program in DROP_INS:
        (tmp_path / f"{program}.loaded").unlink()
        if record is not None:
            (tmp_path / f"{program}.loaded").write_text(record)
    assert len(in_force.stale(reader(), [(HAPROXY, str(host)), (KEEPALIVED, str(host))])) == 2
    assert in_force.unloaded(HAPROXY, in_force.read(reader(), HAPROXY)) == (
        "haproxy.service has not loaded its configuration since it changed."
    )


def test_another_file_than_the_daemon_has_loaded_is_not_in_force(host):
    other = host.with_name("other.conf")
    other.write_text("text\n")
    assert in_force.stale(reader(), [(KEEPALIVED, str(other))])


def test_a_reload_that_haproxy_refused_left_the_old_worker(host, monkeypatch):
    recorded = in_force.read_record((host.parent / "haproxy.loaded").read_text()).uptime
    for started, loaded in ((recorded - 60, False), (recorded - 0.5, True), (recorded + 0.5, True)):
        monkeypatch.setattr(facts, "youngest", lambda _pid, _stats, started=started: started)
        assert bool(in_force.read(reader(), HAPROXY).checksum) is loaded


def test_a_unit_that_does_not_run_reads_its_files_when_it_starts(host):
    host.write_text("new text\n")
    stopped = "ActiveState=inactive\nNeedDaemonReload=no\nMainPID=0\n"
    assert in_force.stale(reader(stopped), [(HAPROXY, str(host)), (KEEPALIVED, str(host))]) == []


@pytest.mark.parametrize("unit", [HAPROXY, "onprem-lb-machine-config.service"])
@pytest.mark.parametrize("state", ["active", "inactive"])
def test_a_drop_in_that_systemd_has_not_read_is_not_in_force(host, unit, state):
    path = f"/etc/systemd/system/{unit}.d/onprem-lb.conf"
    outdated = f"ActiveState={state}\nNeedDaemonReload=yes\nMainPID=0\n"
    assert in_force.stale(reader(outdated), [(unit, path)]) == [f"systemd has not read {path} since it changed."]
    assert in_force.stale(reader(outdated.replace("yes", "no")), [(unit, path)]) == []


@pytest.mark.parametrize("unit", [f"onprem-lb-{name}.service" for name in ("follow", "direct", "metrics", "resolver")])
@pytest.mark.parametrize(
    "state, process, file, is_older",
    [
        ("active", 60, 50, True),
        ("active", 40, 50, False),
        ("inactive", 60, 50, False),
        ("active", 60, -50, False),
    ],
    ids=["a run was interrupted before the restart", "restarted since", "stopped", "the clock was set back"],
)
def test_a_process_that_is_older_than_its_unit_is_of_an_earlier_version(
    monkeypatch, unit, state, process, file, is_older
):
    path = f"/etc/systemd/system/{unit}"
    monkeypatch.setattr(in_force.time, "monotonic", lambda: 1000.0)
    monkeypatch.setattr(in_force, "age_of", lambda _path: float(file))
    started = (1000 - process) * 1_000_000
    shown = f"ActiveState={state}\nNeedDaemonReload=no\nMainPID=7\nExecMainStartTimestampMonotonic={started}\n"
    sentences = [f"{unit} has run since before {path} changed."]
    assert in_force.stale(reader(shown), [(unit, path)]) == (sentences if is_older else [])
    assert in_force.stale(reader(shown), [(HAPROXY, path)]) == []


def test_the_age_of_a_file_is_since_its_last_change(tmp_path):
    path = tmp_path / "unit"
    assert in_force.age_of(str(path)) < 0
    path.write_text("")
    os.utime(path, (0, 1000))
    assert in_force.age_of(str(path)) == pytest.approx(in_force.time.time() - 1000, abs=60)


class Kernel(Reader):
    """A host with these files."""

    def __init__(self, files):
        super().__init__(Programs({"systemctl": "ActiveState=active\nNeedDaemonReload=no\n"}).run, lambda _name: "")
        self.text = lambda path: files.get(path, "")


@pytest.mark.parametrize("value, is_stale", [("0\n", True), ("1\n", False), ("", False)])
def test_a_kernel_setting_that_an_interrupted_run_did_not_apply_is_not_in_force(value, is_stale):
    path = "/etc/sysctl.d/90-onprem-lb.conf"
    files = {
        path: (GOLDEN / "haproxy.sysctl.conf").read_text(),
        "/proc/sys/net/ipv4/ip_nonlocal_bind": "1\n",
        "/proc/sys/net/ipv6/ip_nonlocal_bind": value,
    }
    sentence = f"net.ipv6.ip_nonlocal_bind is 0, and {path} says 1."
    assert in_force.stale(Kernel(files), [("systemd-sysctl.service", path)]) == ([sentence] if is_stale else [])


# As keepalived 2.2.7 logs it.
TRACK_FILE_AT_THE_START = [
    "(web): entering FAULT state (tracked file haproxy_down has status -254)",
    "(web) entering FAULT state",
    "Startup complete",
]
SCRIPT = [
    "Script `alive` now returning 1",
    "VRRP_Script(alive) failed (exited with status 1)",
    "(web) Entering FAULT STATE",
]
FAILED = "script alive failed (exited with status 1)"
LINK = ["Netlink reports eth0 down", "(web) Entering FAULT STATE"]


@pytest.mark.parametrize(
    "log, in_fault",
    [
        ([], {}),
        (["(web) Entering BACKUP STATE", "(web) Entering MASTER STATE"], {}),
        (TRACK_FILE_AT_THE_START, {"web": "tracked file haproxy_down has status -254"}),
        (SCRIPT, {"web": FAILED}),
        (LINK, {"web": ""}),
        (["VRRP_Script(alive) timed_out", "(web) Entering FAULT STATE"], {"web": "script alive timed out"}),
        ([*SCRIPT, "VRRP_Script(alive) succeeded", "(web) Entering BACKUP STATE"], {}),
        ([*SCRIPT, "VRRP_Script(alive) succeeded", "(web) Entering BACKUP STATE", *LINK], {"web": ""}),
        (["(web): entering FAULT state due to script alive"], {"web": "script alive"}),
        ([*SCRIPT, "(api) Entering FAULT STATE (init)"], dict.fromkeys(["web", "api"], FAILED)),
        (["(web) received lower priority (253) advert from 192.0.2.12 - discarding"], {}),
    ],
)  # fmt: skip
def test_instances_in_fault_are_read_from_keepaliveds_log(host, log, in_fault):
    assert in_force.read(reader(log="".join(f"{line}\n" for line in log)), KEEPALIVED).in_fault == in_fault


def test_the_scripts_that_fail_are_read_from_keepaliveds_log_also_those_that_only_lower_a_priority(host):
    log = [
        "VRRP_Script(gone) considered unsuccessful",
        "VRRP_Script(slow) timed_out",
        "VRRP_Script(ready) failed (exited with status 1)",
        "VRRP_Script(ready) succeeded",
        "VRRP_Script(gone) considered successful on reload",
        "VRRP_Script(storage) failed (due to signal 9)",
    ]
    found = in_force.read(reader(log="".join(f"{line}\n" for line in log)), KEEPALIVED)
    storage = "script storage failed (due to signal 9)"
    assert (found.failing, found.in_fault) == ({"slow": "script slow timed out", "storage": storage}, {})


def test_the_agent_says_itself_which_of_its_checks_fail(host, monkeypatch):
    checks = [{"name": "a", "up": True}, {"name": "b", "up": False, "detail": "exit code 1"}, {"name": "c", "up": None}]
    monkeypatch.setattr(in_force.status_socket, "fetch", lambda _path: {"instances": [], "checks": checks})
    assert in_force.read(reader(), "onprem-lb-vrrp.service").failing == {"b": "exit code 1"}


OTHERS = {"services": [], "balancers": [], "table": {}}
AGENTS = [f"onprem-lb-{daemon}.service" for daemon in ("vrrp", "proxy", "follow", "direct")]


def test_the_agents_daemons_say_themselves_what_they_have_loaded(host, monkeypatch):
    report = {"config": str(host), "config_sha256": hashlib.sha256(b"text\n").hexdigest()}
    instances = [{"name": "web", "state": "Fault", "reason": "alive failed"}, {"name": "api", "state": "Backup"}]
    monkeypatch.setattr(in_force.status_socket, "fetch", lambda _path: {**report, "instances": instances, **OTHERS})
    found = {unit: in_force.read(reader(), unit) for unit in AGENTS}
    assert {unit: each.in_fault for unit, each in found.items() if each.in_fault} == {
        AGENTS[0]: {"web": "alive failed"}
    }
    assert [in_force.unloaded(unit, each) for unit, each in found.items()] == [""] * len(AGENTS)
    host.write_text("new text\n")
    assert all(in_force.unloaded(unit, each) for unit, each in found.items())


def test_a_daemon_of_the_agent_that_does_not_answer_is_not_known_to_have_loaded_anything(host, monkeypatch):
    def refuse(_path):
        raise in_force.status_socket.Refused("nothing answers")

    monkeypatch.setattr(in_force.status_socket, "fetch", refuse)
    assert in_force.unloaded("onprem-lb-vrrp.service", in_force.read(reader(), "onprem-lb-vrrp.service"))


def test_the_last_state_of_each_instance_is_known_with_its_time():
    lines = [
        (1, "(one) Entering BACKUP STATE (init)"),
        (2, "(one) Entering MASTER STATE"),
        (3, "(two) entering FAULT state"),
        (4, "something else"),
    ]
    log = "".join(
        json.dumps({"__REALTIME_TIMESTAMP": str(second * 1_000_000), "MESSAGE": message}) + "\n"
        for second, message in lines
    )
    assert in_force.keepalived_states(reader(log=log)) == {
        "one": in_force.State("Active", 2.0),
        "two": in_force.State("Fault", 3.0),
    }
