# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Workers have no capability, the master none but that to bind low ports; only root can show it."""

from __future__ import annotations

import contextlib
import os
import pwd
import resource
import shutil
import signal
from pathlib import Path

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.master import privileges
from support.agent import programs
from support.marks import as_root
from support.proxy.masters import AS_NOBODY, Echo, Running, ask, free_ports_of_root
from support.proxy.proxies import LOCAL
from support.waiting import until

USER = "nobody"
SYSTEMS = shutil.which("python3", path="/usr/bin:/bin")  # one that everybody may run
PROGRAM = (*AS_NOBODY, SYSTEMS, "-m", "_agent.cli")
BIND = 1 << 10  # CAP_NET_BIND_SERVICE


def status(pid):
    """Return some fields of what the kernel says of a process."""
    fields = {}
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        key, _colon, value = line.partition(":")
        fields[key] = value.split()
    return fields


@as_root
def test_a_process_without_capabilities_has_none_of_any_kind():
    def drop():
        privileges.drop_capabilities()
        found = status("self")
        return [int(found[what][0], 16) for what in ("CapPrm", "CapEff", "CapInh", "CapAmb")]

    assert programs.in_a_child(drop) == [0, 0, 0, 0]


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
def test_a_proxy_of_user_nobody_still_binds_and_upgrades_itself(open_folder):
    shutil.chown(open_folder, USER)
    low = free_ports_of_root(2)
    with Echo("a") as echo:
        service = {"name": "web", "bind": LOCAL, "port": low[0], "servers": [{"address": LOCAL, "port": echo.port}]}
        given = {"services": [service]}
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
                until(lambda: _capabilities(_checks_of(proxy.process.pid)) == {0})
            proxy.process.send_signal(signal.SIGUSR2)
            until(lambda: proxy.generation() == 5)
            _assert_is_nobodys(proxy.process.pid, BIND)
            proxy.reload(given)
            assert proxy.report()["config_fault"] is None and ask(low[0]) == b"a:hello"


def _checks_of(master):
    """Return the process that runs the checks of a proxy."""
    children = Path(f"/proc/{master}/task/{master}/children").read_text().split()
    return next(pid for pid in children if Path(f"/proc/{pid}/comm").read_text() == "proxy-checks\n")


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
