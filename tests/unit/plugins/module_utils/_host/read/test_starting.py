# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A program that runs, and would not start again, is named with its own reason."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import start_options, starting
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader
from support.certificates import certificate
from support.programs import Programs

HAPROXY, PROXY, VRRP = "haproxy.service", "onprem-lb-proxy.service", "onprem-lb-vrrp.service"
FRONTEND = "defaults\n mode tcp\n timeout client 1s\nfrontend f\n bind 127.0.0.1:1 ssl crt {}\n"


@pytest.fixture
def configured(tmp_path, monkeypatch):
    """A host with the installed programs, whose configurations are in the test's folder."""
    paths = {unit: str(tmp_path / unit) for unit in (HAPROXY, PROXY, VRRP)}
    monkeypatch.setattr(starting, "CONFIGS", paths)
    monkeypatch.setattr(starting, "record_of", lambda program: str(tmp_path / f"{program}.loaded"))

    def run(command):
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    return Reader(run, shutil.which)


def test_a_haproxy_with_another_key_than_its_certificates_would_not_start_again(configured, tmp_path):
    pem, other = certificate(tmp_path, "web"), certificate(tmp_path, "other")
    (tmp_path / HAPROXY).write_text(FRONTEND.format(pem))
    assert list(starting.faults(configured, [HAPROXY])) == []
    key = other.read_text().partition("-----BEGIN PRIVATE KEY")
    pem.write_text(pem.read_text().partition("-----BEGIN PRIVATE KEY")[0] + "".join(key[1:]))
    (said,) = starting.faults(configured, [HAPROXY])
    assert said.startswith("haproxy.service would not start again: [ALERT]") and str(pem) in said


def test_the_file_that_it_has_loaded_is_asked_about_wherever_that_is(configured, tmp_path):
    elsewhere = tmp_path / "other.cfg"
    elsewhere.write_text("nonsense\n")
    (tmp_path / HAPROXY).write_text(FRONTEND.format(certificate(tmp_path)))
    (tmp_path / "haproxy.loaded").write_text(f"{'0' * 64}  {elsewhere}\n12.34 5.67\n")
    (said,) = starting.faults(configured, [HAPROXY])
    assert "nonsense" in said


@pytest.mark.parametrize("loads_it", [True, False])
def test_a_folder_that_its_unit_loads_too_is_a_part_of_the_configuration(configured, tmp_path, monkeypatch, loads_it):
    (tmp_path / HAPROXY).write_text(FRONTEND.format(certificate(tmp_path)))
    beside = tmp_path / "conf.d"
    beside.mkdir()
    monkeypatch.setattr(start_options, "BESIDE", str(beside))
    environment = f"Environment=CONFIG=/etc/haproxy/haproxy.cfg{f' CFGDIR={beside}' if loads_it else ''}\n"
    run = configured.run
    configured.run = lambda command: (0, environment, "") if command[0] == "systemctl" else run(command)
    assert list(starting.faults(configured, [HAPROXY])) == []
    (beside / "site.cfg").write_text("nonsense\n")
    assert ["site.cfg" in said for said in starting.faults(configured, [HAPROXY])] == [True] * loads_it


@pytest.mark.parametrize("unit", [PROXY, VRRP])
@pytest.mark.parametrize("code", [0, 1])
def test_the_agent_is_asked_about_its_configuration(configured, tmp_path, unit, code):
    def check(words):
        assert words[-4:] == [starting.AGENT_PROGRAM, "check-config", "--config", str(tmp_path / unit)]
        return code, "", "services (web).check.ca is '/ca.pem': it cannot be read.\n" if code else ""

    reader = Reader(check, shutil.which)
    said = [f"{unit} would not start again: services (web).check.ca is '/ca.pem': it cannot be read."]
    assert list(starting.faults(reader, [unit])) == (said if code else [])


def test_a_program_that_is_gone_would_not_start_again_and_no_other_unit_is_asked_about():
    programs = Programs({})
    reader = Reader(programs.run, lambda _name: None)
    assert list(starting.faults(reader, [HAPROXY, "keepalived.service", "onprem-lb-follow.service"])) == [
        "haproxy.service would not start again: haproxy is not installed."
    ]
