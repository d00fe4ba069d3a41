# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module agent: what is asked of it, said by it, and left by it. What it does in which order: test_deployment."""

from __future__ import annotations

import grp
import os

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy import archive
from ansible_collections.onprem.lb.plugins.module_utils._host.write import files as _files
from ansible_collections.onprem.lb.plugins.module_utils._host.write import programs
from ansible_collections.onprem.lb.plugins.modules import agent
from support import modules
from support.agent.hosts import PROXY, VRRP, FakeHost
from support.paths import AGENT

PASSWORD = VRRP["instances"][0]["auth_pass"]
WANTED = {"vrrp": VRRP, "proxy": PROXY}
PACKED = programs.handed(archive.build(str(AGENT)))


def run(module, given, **others):
    return modules.run(module, {**given, "packed": PACKED}, **others)


def refusal(module, given, **others):
    return modules.refusal(module, {**given, "packed": PACKED}, **others)


@pytest.fixture
def host(monkeypatch, tmp_path):
    """A host whose root runs the module; its files are real ones in a folder."""
    host = FakeHost(tmp_path)
    monkeypatch.setattr(agent, "Host", lambda _run, _find: host)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    # An ordinary user who runs the tests can give files to their own groups only.
    monkeypatch.setattr(_files.grp, "getgrnam", lambda _name: grp.getgrgid(os.getgid()))
    return host


def files(tmp_path):
    return {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({"state": "started"}, "value of state must be one of: present, absent"),
        ({"vrrp": "front"}, "dictionary requested"),
        ({"options": {"stop_pause": "long"}}, "argument 'stop_pause' is of type str found in 'options'"),
        ({"options": {"down": "/x"}}, "module: options.down. Supported parameters include"),
        ({"replace": ["nginx"]}, "value of replace must be one or more of: haproxy, keepalived"),
        ({"instances": []}, "module: instances. Supported parameters include"),
        ({"proxy": PROXY, "python": "/no/python"}, "/no/python is not a working Python: name another in python"),
        ({"proxy": {**PROXY, "maxconn": "many"}}, "maxconn is 'many'"),
        ({"vrrp": {"instances": ["front"]}}, "instances[0] is 'front'"),
        ({"vrrp": {"instances": 5}}, "instances is 5"),
        ({"vrrp": {"instances": [{**VRRP["instances"][0], "vrid": 300}]}}, "vrid is 300"),
    ],
)
def test_a_wrong_argument_is_named_and_nothing_is_done(host, tmp_path, given, sentence):
    for check in (True, False):
        said = refusal(agent, given, check=check)
        assert sentence in said and PASSWORD not in said and "Traceback" not in said
    assert (files(tmp_path), host.commands, host.known) == ({}, [], set())


def test_without_root_the_module_asks_to_become_root(host, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert refusal(agent, WANTED) == "Only root may install the agent: use become."


def test_check_mode_says_the_same_and_does_nothing(host, tmp_path):
    said = run(agent, WANTED, check=True)
    assert (files(tmp_path), host.commands, host.known) == ({}, [], set())
    done = run(agent, WANTED)
    assert "start onprem-lb-vrrp.service" in done["steps"] and files(tmp_path)
    keys = ("changed", "steps", "archive", "diff")
    assert [said[key] for key in keys] == [done[key] for key in keys] and said["changed"]
    again = run(agent, WANTED)
    assert (again["changed"], again["steps"], again["diff"]) == (False, [], [])


def test_a_removal_in_check_mode_says_the_same_and_removes_nothing(host, tmp_path):
    run(agent, WANTED)
    before = files(tmp_path)
    said = run(agent, {"state": "absent"}, check=True)
    assert files(tmp_path) == before
    done = run(agent, {"state": "absent"})
    assert files(tmp_path) == {} and done["changed"]
    assert [said[key] for key in ("steps", "diff")] == [done[key] for key in ("steps", "diff")]
    assert not run(agent, {"state": "absent"})["changed"]


@pytest.mark.parametrize("check", [True, False])
def test_no_password_is_in_a_result_named_as_a_secret_or_not(host, check):
    before = {"instances": [{**VRRP["instances"][0], "auth_pass": "before77"}]}
    for named in ({}, {"secrets": [PASSWORD]}):
        run(agent, {"vrrp": before})
        result = run(agent, {"vrrp": VRRP, **named}, check=check)
        assert PASSWORD not in str(result) and "before77" not in str(result)
        (diff,) = result["diff"]
        assert '"auth_pass": "********"' in diff["before"] and diff["before"] == diff["after"]


def test_a_secret_is_in_no_result_wherever_it_stands(host):
    script = {"name": "own", "type": "script", "command": "/bin/true --token tok3n77"}
    result = run(agent, {"vrrp": {**VRRP, "checks": [script]}, "secrets": ["tok3n77"]}, check=True)
    assert result["changed"] and "/bin/true --token" in str(result) and "tok3n77" not in str(result)


def test_a_daemon_that_does_not_start_is_said_in_a_sentence(host):
    host.failing = "start onprem-lb-vrrp"
    assert refusal(agent, WANTED) == "start onprem-lb-vrrp failed"
