# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module agent_info: what is asked of it and said by it. What is asked of the host: test_system."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import status_socket
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy.system import Host
from ansible_collections.onprem.lb.plugins.module_utils._host.read import facts
from ansible_collections.onprem.lb.plugins.modules import agent_info
from support.modules import refusal, run
from support.programs import Programs

PROXY, VRRP = "onprem-lb-proxy.service", "onprem-lb-vrrp.service"
UNITS = f"""\
Id={PROXY}
ActiveState=active
UnitFileState=enabled
NeedDaemonReload=no
MainPID=0

Id={VRRP}
ActiveState=inactive
UnitFileState=
NeedDaemonReload=no
MainPID=0
"""
KEEPALIVED = "Id=keepalived.service\nMainPID=77\nUnitFileState=enabled\n\nId=haproxy.service\nMainPID=0\n"


def systemctl(words):
    return 0, KEEPALIVED if "keepalived.service" in words else UNITS, ""


HOST = {"systemctl": systemctl, "python": "3 11\n"}


@pytest.fixture(autouse=True)
def host(monkeypatch, tmp_path):
    """Runs systemd and a balancer that says how it is; no router answers."""

    def fetch(path):
        if "proxy" in path:
            return {"state": "serving"}
        raise status_socket.Refused("none")

    monkeypatch.setattr(facts, "SYSTEMD", str(tmp_path))
    monkeypatch.setattr(status_socket, "fetch", fetch)
    monkeypatch.setattr(Host, "unwritable", lambda *_asked: ())
    (tmp_path / "python").write_text("")
    (tmp_path / "python").chmod(0o755)
    return {"python": str(tmp_path / "python")}


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({"vrrp": "perhaps"}, "argument 'vrrp' is of type str"),
        ({"replace": ["nginx"]}, "value of replace must be one or more of: haproxy, keepalived"),
        ({"daemon": "vrrp"}, "module: daemon. Supported parameters include"),
    ],
)
def test_a_wrong_argument_is_named(given, sentence):
    assert sentence in refusal(agent_info, given)


@pytest.mark.parametrize("check", [True, False])
def test_the_daemons_are_asked_and_their_units_in_both_modes(host, check):
    found = run(agent_info, host, Programs(HOST), check=check)
    assert (found["proxy"], found["vrrp"]) == ({"state": "serving"}, None)
    assert (found["units"][PROXY]["active"], found["units"][VRRP]["active"]) == (True, False)
    assert "changed" not in found and found["problems"] == []


def test_what_keeps_the_router_from_running_is_said_for_the_router_alone(host):
    def problems(**given):
        return run(agent_info, {**host, **given}, Programs(HOST))["problems"]

    assert problems(proxy=True) == []
    (said,) = [each for each in problems(vrrp=True) if "keepalived" in each]
    assert said.startswith("keepalived runs here (pid 77, keepalived.service, not this collection's)")
    assert not [each for each in problems(vrrp=True, replace=["keepalived"]) if "keepalived" in each]


def test_a_host_without_systemd_is_asked_nothing_of_it(host, monkeypatch, tmp_path):
    monkeypatch.setattr(facts, "SYSTEMD", str(tmp_path / "none"))
    found = run(agent_info, {**host, "proxy": True}, Programs({"python": "3 11\n"}))
    assert found["units"] == {} and found["problems"][0].startswith("systemd does not run here")


def test_a_python_that_is_too_old_is_named(host):
    found = run(agent_info, {**host, "proxy": True}, Programs({**HOST, "python": "3 6\n"}))
    assert found["problems"] == [
        f"{host['python']} is Python 3.6, and the agent needs 3.8 or later: name another (agent_python)."
    ]


def test_a_masked_unit_is_in_the_way_of_its_own_daemon_alone(host):
    masked = UNITS.replace(f"Id={VRRP}", f"Id={VRRP}\nLoadState=masked")
    programs = {**HOST, "systemctl": lambda words: (0, KEEPALIVED if "keepalived.service" in words else masked, "")}

    def problems(**given):
        return run(agent_info, {**host, "replace": ["keepalived"], **given}, Programs(programs))["problems"]

    sentence = f"{VRRP} is masked, so that it cannot start: run `systemctl unmask {VRRP}`."
    assert sentence in problems(vrrp=True) and problems(proxy=True) == []


def test_files_that_cannot_be_written_are_named(host, monkeypatch):
    monkeypatch.setattr(Host, "unwritable", lambda _host, daemons: tuple(f"no {each.name}." for each in daemons))
    assert run(agent_info, {**host, "proxy": True}, Programs(HOST))["problems"] == ["no proxy."]
