# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a layout starts, reloads, upgrades and stops the direct plane of its members."""

from __future__ import annotations

import re
import signal

import pytest
from ansible_collections.onprem.lb.plugins.filter import plan
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.lifecycle import Lifecycle
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import direct
from support.rendering import render
from support.roles import calls, tasks, variables_of

SYSTEMD, COMMAND = "ansible.builtin.systemd_service", "ansible.builtin.command"
FILES = "onprem.lb.config_files"
RUNS = {"active_units": [direct.UNIT], "enabled_units": [direct.UNIT], "existing_units": [direct.UNIT]}
NOTHING = {"active_units": [], "enabled_units": [], "existing_units": []}
CONFIG = {"path": direct.CONFIG, "content": "{}\n", "unit": direct.UNIT}


SERVER = {"interface": "eth0", "services": [{"name": "masters"}]}


def called(
    host,
    *modules,
    file="direct.yml",
    archive=False,
    config=False,
    unit=False,
    check=False,
    prefix="pair",
    server=None,
):
    """Return the calls on a host, for an archive, a configuration and a unit that were changed or not."""
    variables = {
        **variables_of("layout"),
        "ansible_check_mode": check,
        "layout_definition": {"prefix": prefix},
        "__layout_host": {"missing_packages": [], **host},
        "__layout_me": {"direct": CONFIG, "direct_server": server or {}, "engine": "native"},
        "__layout_direct_files": [],
        "__layout_undo": {"run": ""},
        "__layout_direct_written": {"changed": archive, "python": "/usr/bin/python3"},
        "__layout_direct_configured": {"changed": config},
        "__layout_direct_unit_written": {"changed": unit},
        "__layout_direct_deleted": {"changed": True},
    }
    return calls("layout", variables, *modules, tasks_from=file)


def steps(host, **changed):
    """Return what systemd is asked for, in a word each."""
    found = []
    for module, given in called(host, SYSTEMD, COMMAND, **changed):
        words = "upgraded" if module == COMMAND else given.get("state", "loaded")
        found.append(words)
    return found


@pytest.mark.parametrize(
    "host, changed, expected",
    [
        (NOTHING, {"archive": True, "config": True, "unit": True}, ["loaded", "started"]),
        (RUNS, {"archive": True, "unit": True}, ["loaded", "upgraded"]),
        (RUNS, {"unit": True, "config": True}, ["loaded", "upgraded"]),
        (RUNS, {"config": True}, ["reloaded"]),
        ({**RUNS, "active_units": []}, {}, ["started"]),
        ({**RUNS, "active_units": []}, {"config": True}, ["started"]),
        ({**RUNS, "enabled_units": []}, {}, ["started"]),
        (RUNS, {}, []),
        (NOTHING, {"archive": True, "unit": True, "check": True}, []),
    ],
    ids=[
        "first run",
        "a new version",
        "a new unit",
        "new services",
        "stopped",
        "stopped, and new services",
        "disabled",
        "second run",
        "check mode",
    ],
)
def test_it_runs_what_is_wanted_and_no_change_removes_its_table(host, changed, expected):
    """A restart would remove it, and cut the lasting connections."""
    assert steps(host, **changed) == expected


def test_the_upgrade_is_the_signal_on_which_the_table_stays():
    ((_module, given),) = called(RUNS, COMMAND, archive=True)
    assert "--signal=USR2" in str(given) and direct.UNIT in str(given)


@pytest.mark.parametrize("host, stopped", [(RUNS, ["stopped"]), (NOTHING, [])])
def test_a_plane_that_is_not_wanted_leaves_nothing(host, stopped):
    found = called(host, SYSTEMD, file="direct_absent.yml")
    assert [given["state"] for _module, given in found if "state" in given] == stopped
    ((_module, given),) = called(host, FILES, file="direct_absent.yml")
    assert [(each["path"], each["state"]) for each in given["files"]] == [
        (f"/etc/systemd/system/{direct.UNIT}", "absent"),
        ("/run/onprem-lb-direct.down", "absent"),
    ]
    assert given["folders"] == ["/usr/local/lib/onprem-lb-direct", "/etc/onprem-lb-direct"]


ROLE = "ansible.builtin.include_role"


@pytest.mark.parametrize("server, roles", [(SERVER, ["onprem.lb.direct_server"]), (None, [])])
def test_a_member_that_is_a_server_is_made_one_before_its_plane_starts(server, roles):
    found = called(NOTHING, ROLE, SYSTEMD, archive=True, config=True, unit=True, server=server)
    assert [given["name"] for module, given in found if module == ROLE] == roles
    states = [given.get("state") or given.get("name") for _module, given in found]
    assert states[-1] == "started" and (not roles or states.index(roles[0]) < len(states) - 1)


@pytest.mark.parametrize(
    "prefix, host, roles",
    [("ipi", RUNS, ["onprem.lb.direct_server"]), ("ipi", NOTHING, []), ("pair", RUNS, [])],
    ids=["masters", "masters without a plane", "a pair, whose member the user has made a server"],
)
def test_it_is_none_any_more_once_its_plane_has_stopped(prefix, host, roles):
    found = called(host, ROLE, SYSTEMD, file="direct_absent.yml", prefix=prefix)
    assert [given["name"] for module, given in found if module == ROLE] == roles
    if roles:
        assert found[0][1]["state"] == "stopped" and found[1][0] == ROLE


def test_it_starts_before_the_router_tracks_it_and_stops_after_no_router_does():
    starts = [str(task.get("ansible.builtin.include_tasks")) for task in tasks("layout", "configure.yml")]
    wave = next(at for at, file in enumerate(starts) if "routers/wave.yml" in file)
    assert starts.index("direct.yml") < wave
    (block,) = tasks("layout", "present.yml")
    stages = [task["name"] for task in block["block"]]
    assert stages.index("Confirm") < stages.index("Remove what the plan no longer needs")
    removal = [task["name"] for task in tasks("layout", "absent.yml")]
    assert removal.index("Remove | keepalived, which gives the VIPs up") < removal.index(
        "Remove | Stop handing connections on"
    )


def test_the_file_is_in_a_folder_that_is_there_before_the_first_start():
    """keepalived 2.3.3 ends with a segmentation fault where a tracked file's folder is missing, in its test too."""
    assert direct.DOWN_FILE.rpartition("/")[0] == "/run"


def test_the_unit_writes_the_file_that_the_routers_track():
    assert plan.NAMED["direct_down_file"] == direct.DOWN_FILE
    assert plan.NAMED["direct"] == direct.UNIT


def test_a_restart_by_hand_leaves_the_table_as_a_new_version_does():
    named = {"command": "/usr/bin/python3 a", "config": "c", "checksum": "9f", "down_file": "d", "memory": 1}
    unit = render("layout", "direct.service.j2", **named)
    (name,) = re.findall("^RestartKillSignal=(.+)$", unit, re.MULTILINE)
    plane = Lifecycle("", None, None, {})
    assert plane._handlers()[signal.Signals[name]] == plane.upgrade
