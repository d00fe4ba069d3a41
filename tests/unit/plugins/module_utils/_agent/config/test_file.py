# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent's `check-config`: whatever it is given, it answers at once, in sentences, and without a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent import cli
from ansible_collections.onprem.lb.plugins.module_utils._agent.config import file, host
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy import config as proxy_config
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import config as vrrp_config
from support.paths import MODULE_UTILS

SERVICE = {"name": "web", "port": 443, "servers": ["192.0.2.31"]}
INSTANCE = {"name": "vip", "interface": "eth0", "vrid": 51, "addresses": ["192.0.2.10/24"], "peers": ["192.0.2.2"]}
SCRIPT = {"name": "own", "type": "script", "command": "/bin/sh"}


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/full", "/dev/urandom", "/dev/null", "/"])
def test_a_device_is_no_configuration(path, capsys):
    assert cli.main(["check-config", "--config", path]) == 1
    reason = "cannot be read: Is a directory." if path == "/" else "is not a regular file: name one that contains the"
    assert capsys.readouterr().err.startswith(f"{path} {reason}")


def test_a_fifo_is_no_configuration(tmp_path):
    os.mkfifo(str(tmp_path / "pipe"))
    assert file.load(str(tmp_path / "pipe"))[1] == [
        f"{tmp_path}/pipe is not a regular file: name one that contains the configuration."
    ]


def test_a_fifo_has_no_certificates(tmp_path):
    """The row `ca FIFO (hang)`."""
    os.mkfifo(str(tmp_path / "pipe"))
    check = {"type": "https", "verify": True, "host": "web.example", "ca": f"{tmp_path}/pipe"}
    text = json.dumps({"services": [{**SERVICE, "check": check}]})
    assert proxy_config.parse(text, host=host)[1] == [
        f"services[0] (web).check.ca is '{tmp_path}/pipe': it is not a regular file."
    ]


def test_a_large_file_is_refused_without_reading_it(tmp_path):
    path = tmp_path / "large.json"
    with path.open("wb") as large:
        large.truncate(file.MAX_SIZE + 1)
    assert file.load(str(path))[1] == [f"{path} has more than 16 MB, too large for a configuration: name another file."]


def test_a_file_of_16_mb_is_read(tmp_path):
    path = tmp_path / "large.json"
    path.write_text("{}" + " " * (file.MAX_SIZE - 2))
    assert file.load(str(path))[1] == []


MANY = 30_000
LARGE = {
    "30,000 keys of which the last two are equal": "{" + ", ".join(f'"k{at}": 1' for at in range(MANY)) + ', "k7": 1}',
    "20,000 servers": json.dumps(
        {"services": [{**SERVICE, "servers": [f"10.{at >> 16}.{at >> 8 & 255}.{at & 255}" for at in range(1, 20_001)]}]}
    ),
}


@pytest.mark.parametrize("text", LARGE.values(), ids=LARGE)
def test_a_large_configuration_takes_seconds(text):
    before = time.process_time()
    proxy_config.parse(text)
    assert time.process_time() - before < 3


def test_the_line_of_a_syntax_error_and_the_key_of_a_repetition_are_named():
    assert proxy_config.parse('{\n"services": [\n}')[1] == [
        "configuration is not JSON: Expecting value: line 3 column 1 (char 16)."
    ]
    assert proxy_config.parse('{"services": [{"port": 1, "port": 2}]}')[1] == [
        "configuration has the key 'port' more than once in services[0]: leave one out."
    ]


@pytest.mark.parametrize("mode, others_may", [(0o644, False), (0o646, True), (0o666, True)])
def test_a_configuration_with_programs_is_not_for_others_to_change(tmp_path, mode, others_may):
    """The row `world-writable or foreign-owned configuration accepted`."""
    path = tmp_path / "vrrp.json"
    path.write_text(json.dumps({"instances": [INSTANCE], "checks": [SCRIPT], "script_user": "root"}))
    path.chmod(mode)
    faults = vrrp_config.load(str(path)).faults
    assert faults == others_may * [
        f"configuration is '{path}': it has programs for the agent to run, and others than root may change "
        f"{path}: chown it to root, chmod go-w."
    ]


def test_a_configuration_without_programs_may_be_anyones(tmp_path):
    path = tmp_path / "vrrp.json"
    path.write_text(json.dumps({"instances": [INSTANCE]}))
    path.chmod(0o666)
    assert vrrp_config.load(str(path)).faults == []


def test_a_configuration_of_another_user_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "vrrp.json"
    path.write_text("{}")
    monkeypatch.setattr(host.os, "geteuid", lambda: 4711)
    monkeypatch.setattr(host, "ROOT", 4712)
    assert "may change /:" in host.configuration(str(path))


OUTPUTS = {"> /dev/full": ("No space left on device", "> /dev/full"), "a closed stdout": ("it is closed", ">&-")}


@pytest.mark.parametrize("reason, output", OUTPUTS.values(), ids=OUTPUTS)
def test_an_output_that_takes_nothing_is_a_sentence(tmp_path, reason, output):
    path = tmp_path / "proxy.json"
    path.write_text(json.dumps({"services": [SERVICE]}))
    command = f'exec "{sys.executable}" -m _agent.cli check-config --config "{path}" {output}'
    ran = subprocess.run(
        ["sh", "-c", command], cwd=MODULE_UTILS, stderr=subprocess.PIPE, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stderr) == (1, f"the output cannot be written: {reason}.\n")


def test_both_outputs_may_be_closed(tmp_path):
    command = f'exec "{sys.executable}" -m _agent.cli check-config --config "{tmp_path}" >&- 2>&-'
    assert subprocess.run(["sh", "-c", command], cwd=MODULE_UTILS, timeout=60, check=False).returncode == 1
