# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole runs of the deployment, with the real agent and real files, and a fake systemd that records its commands."""

from __future__ import annotations

import grp
import hashlib
import os
import sys

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy import archive as _archive
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy import deployment
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy.deployment import Deployment, Request
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy.system import Failed
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy.units import Options
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import Daemon
from support import paths
from support.agent.hosts import PROXY, VRRP, FakeHost

AGENT = _archive.build(str(paths.AGENT))
OTHER = AGENT + b"\0"


@pytest.fixture(autouse=True)
def own_group(monkeypatch):
    """An ordinary user who runs the tests can give files to their own groups only."""
    monkeypatch.setattr(deployment.files.grp, "getgrnam", lambda name: grp.getgrgid(os.getgid()))


@pytest.fixture
def host(tmp_path):
    return FakeHost(tmp_path)


def request(**configs):
    return Request({"proxy": PROXY, "vrrp": VRRP, **configs}, Options(), sys.executable, [])


def run(host, requested=None, agent=AGENT, dry=False):
    host.commands = []
    return Deployment(host, os.rename).present(requested or request(), agent, dry)


def files(host):
    folder = os.path.dirname(host.paths.library)
    return sorted(
        os.path.relpath(os.path.join(at, name), folder) for at, _folders, names in os.walk(folder) for name in names
    )


def test_a_first_run_sets_all_of_it_up_and_a_second_one_does_nothing(host):
    assert run(host).steps
    digest = hashlib.sha256(AGENT).hexdigest()[:16]
    assert files(host) == [
        "etc/proxy.json",
        "etc/vrrp.json",
        f"lib/agent-{digest}.pyz",
        "lib/agent.pyz",
        "lib/onprem-lb-proxy",
        "lib/onprem-lb-vrrp",
        "units/onprem-lb-proxy.service",
        "units/onprem-lb-vrrp.service",
    ]
    assert os.stat(host.paths.configuration + "/vrrp.json").st_mode & 0o777 == 0o640
    again = run(host)
    assert (again.steps, again.diff, host.commands) == ([], [], [])


@pytest.mark.parametrize("given", [{"proxy": None}, {"proxy": {"services": [], "maxconn": 7}}])
def test_a_daemon_that_is_kept_runs_on_as_it_was_whatever_is_said_of_it(host, given):
    run(host)
    before = host.content(f"{host.paths.configuration}/proxy.json")
    slower = {"instances": [{**VRRP["instances"][0], "advert_interval": 2}]}
    wanted = request(vrrp=slower, **given)._replace(options=Options(down_file="/run/x.down"), keep=["proxy"])
    run(host, wanted, OTHER)
    assert host.commands == ["restart onprem-lb-vrrp.service at once"]
    assert host.content(f"{host.paths.configuration}/proxy.json") == before
    assert b"x.down" not in host.content(host.paths.unit(Daemon("proxy")))
    assert run(host, wanted, OTHER).steps == []


def test_a_dry_run_says_the_same_and_leaves_nothing(host):
    said = run(host, dry=True)
    assert (files(host), host.commands) == ([], [])
    assert said == run(host)


def test_a_password_is_in_no_diff_also_the_one_before(host):
    before = {"instances": [{**VRRP["instances"][0], "auth_pass": 'o"ld one'}]}
    run(host, request(vrrp=before))
    shown = str(run(host, request(vrrp={"instances": [{**VRRP["instances"][0], "vrid": 52}]})).diff)
    assert "********" in shown and '"vrid": 52' in shown
    assert "s3cret" not in shown and "ld one" not in shown


def test_both_configurations_are_shown_to_the_new_version_before_anything_changes(host):
    run(host)
    before = files(host)
    wrong = {"instances": [{**VRRP["instances"][0], "vrid": 300}]}
    with pytest.raises(Failed, match="vrid is 300") as refused:
        run(host, request(proxy={"services": []}, vrrp=wrong))
    assert host.commands == [] and files(host) == before and "s3cret" not in str(refused.value)
    assert b'"vrid": 51' in host.content(f"{host.paths.configuration}/vrrp.json")


def test_a_version_that_does_not_take_the_old_configuration_is_not_installed(host):
    run(host)
    with pytest.raises(Failed, match="without a word|SyntaxError|refused"):
        run(host, agent=b"this is no Python")
    assert host.commands == [] and len([name for name in files(host) if "agent-" in name]) == 1


def test_a_new_version_is_brought_in_and_the_old_one_goes(host):
    run(host)
    done = run(host, agent=OTHER)
    assert host.commands == ["upgrade onprem-lb-proxy.service", "restart onprem-lb-vrrp.service at once"]
    assert [name for name in files(host) if "agent-" in name] == [f"lib/{os.path.basename(done.archive)}"]


def test_a_router_that_is_restarted_comes_back_to_its_addresses_but_gives_up_one_that_it_loses(host):
    run(host)
    told = []
    for address in ("192.0.2.10", "192.0.2.11"):
        elsewhere = {"instances": [{**VRRP["instances"][0], "addresses": [address]}]}
        with open(host.paths.unit(Daemon("vrrp")), "a") as unit:
            unit.write("# by hand\n")
        run(host, request(vrrp=elsewhere), agent=OTHER + address.encode())
        told.append(host.commands[-1])
    assert told == [f"restart onprem-lb-vrrp.service {how}" for how in ("at once", "gracefully")]


def test_a_router_that_loses_an_address_gives_it_up_by_a_reload_and_then_comes_back_to_the_others(host, monkeypatch):
    run(host)
    reload = "reload onprem-lb-vrrp.service"

    def report(_path):
        held = [] if reload in host.commands else ["192.0.2.10/32"]
        return {"instances": [{"interface": "eth0", "held": held}]}

    monkeypatch.setattr(host, "report", report)
    elsewhere = {"instances": [{**VRRP["instances"][0], "addresses": ["192.0.2.11"]}]}
    run(host, request(vrrp=elsewhere), agent=OTHER)
    assert host.commands[-2:] == [reload, "restart onprem-lb-vrrp.service at once"]


@pytest.mark.parametrize(
    "where",
    ["useradd", "daemon-reload", "enable onprem-lb-vrrp", "start onprem-lb-proxy", "start onprem-lb-vrrp"],
)
def test_a_run_that_broke_off_anywhere_is_completed_by_the_next(host, where):
    host.failing = where
    with pytest.raises(Failed):
        run(host)
    host.failing = ""
    run(host)
    assert all(unit.active and unit.enabled for unit in host.units().values())
    assert not os.path.exists(host.paths.unfinished)
    assert run(host).steps == []


def test_a_reload_that_broke_off_is_done_again(host):
    run(host)
    host.failing = "reload onprem-lb-proxy"
    other = request(proxy={"services": [{**PROXY["services"][0], "port": 444}]})
    with pytest.raises(Failed):
        run(host, other)
    host.failing = ""
    run(host, other)
    assert "reload onprem-lb-proxy.service" in host.commands
    assert run(host, other).steps == []


def test_an_archive_that_was_cut_off_is_written_again(host):
    archive = run(host).archive
    with open(archive, "wb") as file:
        file.write(AGENT[:1000])
    assert run(host).steps == [f"install {archive}"]
    assert host.content(archive) == AGENT


def test_what_a_run_that_was_cut_off_has_left_beside_its_files_goes(host):
    requested = run(host)
    left = [f"{host.paths.configuration}/.vrrp.json.x1.new", f"{host.paths.library}/agent-new-x.pyz"]
    for path in left:
        host.write(path, b"s3cret")
    other = f"{host.paths.configuration}/.vrrp.json.mine"
    host.write(other, b"")
    assert run(host, agent=OTHER).archive != requested.archive
    assert not [path for path in left if os.path.exists(path)] and os.path.exists(other)


def test_a_daemon_without_a_configuration_is_removed_with_its_files(host):
    run(host)
    run(host, request(vrrp=None))
    assert host.commands[0] == "stop onprem-lb-vrrp.service"
    assert not [name for name in files(host) if "vrrp.json" in name or "vrrp.service" in name]
    assert run(host, request(vrrp=None)).steps == []


def test_nothing_is_left_of_it(host):
    run(host)
    engine = Deployment(host, os.rename)
    assert engine.absent(dry=True).steps and files(host)
    assert engine.absent(dry=False).steps
    assert (files(host), host.known) == ([], set())
    assert engine.absent(dry=False).steps == []
