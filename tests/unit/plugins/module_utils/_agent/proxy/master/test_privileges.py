# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whoever relays for others may nothing; only a root can show it."""

from __future__ import annotations

import contextlib
import os
import pwd
import resource
import shutil
import signal
from pathlib import Path

import pytest
from ansible_collections.onprem.lb.plugins.module_utils import _agent
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.master import privileges
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy import archive as _archive
from support.agent import programs
from support.marks import as_root
from support.proxy.masters import Echo, Running, ask, free_ports, free_ports_of_root
from support.proxy.proxies import LOCAL
from support.waiting import until

USER = "nobody"
SYSTEMS = shutil.which("python3", path="/usr/bin:/bin")  # one that everybody may run
PROGRAM = (SYSTEMS, "-m", "_agent.cli")
BIND = 1 << privileges.CAP_NET_BIND_SERVICE


def status(pid):
    """Return some fields of what the kernel says of a process."""
    fields = {}
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        key, _colon, value = line.partition(":")
        fields[key] = value.split()
    return fields


@as_root
def test_another_user_has_one_right_left_which_outlives_an_execve():
    def become():
        privileges.switch_user(USER, "daemon", [])
        with pytest.raises(PermissionError):
            os.setuid(0)
        return programs.run(["/bin/cat", "/proc/self/status"])

    _code, told, _errors = programs.in_a_child(become)
    fields = dict(line.split(":\t", 1) for line in told.splitlines())
    entry = pwd.getpwnam(USER)
    assert fields["Uid"].split() == [str(entry.pw_uid)] * 4
    assert set(fields["Gid"].split()) == {"1"}
    for what in ("CapPrm", "CapEff", "CapAmb"):
        assert int(fields[what], 16) == BIND, what
    assert fields["NoNewPrivs"] == "1"


@as_root
def test_who_forsakes_all_has_nothing():
    def forsake():
        privileges.drop_capabilities()
        found = status("self")
        return [int(found[what][0], 16) for what in ("CapPrm", "CapEff", "CapInh", "CapAmb")]

    assert programs.in_a_child(forsake) == [0, 0, 0, 0]


def test_who_is_not_root_goes_on_and_says_so(monkeypatch):
    monkeypatch.setattr(os, "geteuid", os.getuid if os.getuid() else lambda: pwd.getpwnam("daemon").pw_uid)
    me = pwd.getpwuid(os.geteuid()).pw_name
    assert privileges.switch_user("root", "", []) == [f"the user root: only root can become another one than {me}"]
    assert privileges.switch_user(me, "", []) == []


@as_root
@pytest.mark.parametrize("user, group, sentence", [("x-x", "", "there is no user x-x"), (USER, "y-y", "no group y-y")])
def test_who_does_not_exist_is_named(user, group, sentence):
    with pytest.raises(LookupError, match=sentence):
        privileges.switch_user(user, group, [])


def test_the_limit_of_open_files_is_raised_as_far_as_it_can_be():
    def raise_it(needed, liked, hard):
        def action():
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
            missing = privileges.raise_nofile(needed, liked)
            return resource.getrlimit(resource.RLIMIT_NOFILE)[0], missing

        return tuple(programs.in_a_child(action))

    assert raise_it(100, 200, 300) == (200, None)
    if not os.access("/proc/1/mem", os.W_OK) or int(status("self")["CapEff"][0], 16) >> 24 & 1 == 0:
        sentence = "400 open files, for its maxconn: the limit is 300 (ulimit -n)"
        assert raise_it(100, 400, 300) == (300, None)
        assert raise_it(400, 500, 300) == (300, sentence)


@as_root
@pytest.mark.skipif(not SYSTEMS, reason="there is no Python that another user may run")
def test_a_whole_proxy_is_nobodys_and_still_binds_and_renews_itself(open_folder):
    low = free_ports_of_root(2)
    with Echo("a") as echo:
        service = {"name": "web", "bind": LOCAL, "port": low[0], "servers": [{"address": LOCAL, "port": echo.port}]}
        given = {"services": [service], "user": USER}
        with Running(open_folder, given, program=PROGRAM) as proxy:
            assert proxy.report()["limits"] == [each for each in proxy.report()["limits"] if "open files" in each]
            for generation, change in enumerate(({}, {"bind": "*"}, {"port": low[1]}), 1):
                port = change.get("port", low[0])
                if change:
                    proxy.reload({**given, "services": [{**service, **change}]})
                    assert proxy.report()["config_fault"] is None
                (worker,) = (each for each in proxy.report()["workers"] if each["generation"] == generation)
                # One who was queued at the socket of before has lost its place.
                until(lambda port=port: _asked(port) == b"a:hello")
                _assert_is_nobodys(proxy.process.pid, BIND)
                # The one before may still be answering, while this one begins.
                until(lambda pid=worker["pid"]: _capabilities(pid) == {0})
                _assert_is_nobodys(worker["pid"], 0)
            proxy.process.send_signal(signal.SIGUSR2)
            until(lambda: proxy.generation() == 5)
            _assert_is_nobodys(proxy.process.pid, BIND)
            proxy.reload(given)
            assert proxy.report()["config_fault"] is None and ask(low[0]) == b"a:hello"


def _asked(port):
    with contextlib.suppress(ConnectionResetError):
        return ask(port)
    return None


def _assert_is_nobodys(pid, capabilities):
    uid = str(pwd.getpwnam(USER).pw_uid)
    assert status(pid)["Uid"] == [uid] * 4
    assert _capabilities(pid) == {capabilities}


def _capabilities(pid):
    return {int(status(pid)[what][0], 16) for what in ("CapEff", "CapPrm")}


@as_root
@pytest.mark.skipif(not SYSTEMS, reason="there is no Python that another user may run")
def test_a_program_that_the_user_may_not_read_is_said_at_the_start(open_folder):
    (port,) = free_ports(1)
    service = {"name": "web", "bind": LOCAL, "port": port, "servers": [{"address": LOCAL, "port": 1}]}
    archive = open_folder / "agent.pyz"
    archive.write_bytes(_archive.build(_agent.__path__[0]))
    for mode in (0o600, 0o644):
        archive.chmod(mode)
        with Running(open_folder, {"services": [service], "user": USER}, program=(SYSTEMS, archive)) as proxy:
            said = [limit for limit in proxy.report()["limits"] if "may not be read" in limit]
            wanted = f"new versions: {archive} may not be read by the user that it runs as"
            assert said == ([] if mode & 0o004 else [wanted])


@as_root
@pytest.mark.skipif(not SYSTEMS, reason="there is no Python that another user may run")
def test_a_configuration_that_the_user_may_not_read_is_said_at_the_start(tmp_path):
    (port,) = free_ports(1)
    service = {"name": "web", "bind": LOCAL, "port": port, "servers": [{"address": LOCAL, "port": 1}]}
    tmp_path.chmod(0o700)
    with Running(tmp_path, {"services": [service], "user": USER}, program=PROGRAM) as proxy:
        assert any(limit.startswith("reloads: ") for limit in proxy.report()["limits"])
        proxy.reload()
        assert "cannot be read: Permission denied" in proxy.report()["config_fault"]
