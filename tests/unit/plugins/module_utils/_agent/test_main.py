# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line: one sentence for each fault, and an exit code that says which kind it is."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ansible_collections.onprem.lb.plugins.module_utils._agent import VERSION, __main__, status, vrrp
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import settings

from .configs import written
from .reports import REPORT

ROOT = Path(__file__).resolve().parents[5]
HEAVY = {"ssl", "http", "subprocess", "asyncio", "inspect", "dataclasses", "urllib", "difflib", "logging", "email"}


@pytest.fixture
def config(tmp_path):
    """A configuration that is good on every host."""
    path = tmp_path / "vrrp.json"
    instances = json.loads(written())["instances"]
    bare = [{key: item[key] for key in item if key not in ("notify", "track")} for item in instances]
    path.write_text(json.dumps({"instances": bare}))
    return str(path)


def test_the_version_is_the_collections():
    assert yaml.safe_load((ROOT / "galaxy.yml").read_text())["version"] == VERSION


def test_it_runs_beside_its_package_too():
    command = [sys.executable, "-m", "_agent", "--version"]
    folder = ROOT / "plugins" / "module_utils"
    assert subprocess.check_output(command, cwd=folder, text=True, timeout=60).endswith("0.1.0\n")


def test_a_good_configuration_is_called_good(config, capsys):
    assert __main__.main(["check-config", "--config", config]) == 0
    assert capsys.readouterr() == (f"{config} is good: 2 instances, 0 sync groups, 0 checks.\n", "")


def test_every_fault_is_a_line_of_its_own(tmp_path, capsys):
    path = tmp_path / "bad.json"
    path.write_text(json.dumps({"instances": [{"name": "x", "vrid": 0, "auth_pass": "geheim" * 2}]}))
    assert __main__.main(["check-config", "--config", str(path)]) == 1
    out, err = capsys.readouterr()
    assert out == "" and "geheim" not in err
    assert len(err.splitlines()) == 5
    assert all(line.startswith("instances[0] (x)") and line.endswith(".") for line in err.splitlines()), err


@pytest.mark.parametrize("command", ["check-config", "vrrp"])
@pytest.mark.parametrize(
    "text, sentence",
    [(None, "cannot be read: No such file or directory."), ("{", "is no JSON: ")],
    ids=["missing", "no JSON"],
)
def test_a_file_that_is_none_is_one_sentence(command, text, sentence, tmp_path, capsys):
    path = tmp_path / "file"
    if text:
        path.write_text(text)
    assert __main__.main([command, "--config", str(path)]) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"{path} {sentence}") and len(err.splitlines()) == 1


@pytest.mark.parametrize("arguments", [[], ["vrrp"], ["status", "--format", "xml"], ["vrrrp"]])
def test_a_wrong_command_line_is_2(arguments):
    with pytest.raises(SystemExit) as ended:
        __main__.main(arguments)
    assert ended.value.code == 2


class Router:
    """Stands for the daemon."""

    def __init__(self, monkeypatch):
        self.started = []
        monkeypatch.setitem(sys.modules, f"{vrrp.__name__}.life", self)
        monkeypatch.setattr(vrrp, "life", self, raising=False)

    def main(self, path, wanted, log, notifier):
        self.started.append((path, wanted, log, notifier))
        return 7


def test_the_router_starts_with_what_was_read(config, monkeypatch):
    router = Router(monkeypatch)
    monkeypatch.setattr(__main__, "_missing_right", lambda: None)
    assert __main__.main(["vrrp", "--config", config]) == 7
    path, wanted, _log, _notifier = router.started[0]
    assert path == config and isinstance(wanted, settings.Settings) and len(wanted.instances) == 2


@pytest.mark.parametrize("refuses", ["open", "administer"])
def test_without_the_right_to_raw_sockets_nothing_starts(config, monkeypatch, capsys, refuses):
    router = Router(monkeypatch)

    def deny(*_arguments):
        raise PermissionError(1, "Operation not permitted")

    class Probe:
        setsockopt = deny

        def __enter__(self):
            return self

        def __exit__(self, *_error):
            pass

    monkeypatch.setattr(socket, "socket", deny if refuses == "open" else lambda *_arguments: Probe())
    assert __main__.main(["vrrp", "--config", config]) == 1
    assert "wants CAP_NET_RAW and CAP_NET_ADMIN, or root." in capsys.readouterr().err
    assert router.started == []


@pytest.mark.parametrize(
    "form, begins", [("json", '{\n  "agent"'), ("table", "onprem.lb 0.1.0, process 4711"), ("prometheus", "# HELP ")]
)
def test_the_report_is_shown_in_each_format(form, begins, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(status, "fetch", lambda path: asked.append(path) or REPORT)
    assert __main__.main(["status", "--format", form]) == 0
    assert capsys.readouterr().out.startswith(begins)
    assert asked == ["/run/onprem-lb-agent/vrrp.sock"]


def test_no_agent_is_a_sentence(tmp_path, capsys):
    path = str(tmp_path / "none.sock")
    assert __main__.main(["status", "--socket", path]) == 1
    assert capsys.readouterr().err == f"no agent answers at {path}: is it running?\n"


def test_what_the_router_needs_brings_nothing_heavy_along():
    code = "import sys; sys.path.insert(0, '.'); before = set(sys.modules); import _agent.vrrp.life; "
    command = [sys.executable, "-I", "-c", f"{code}print(*(sys.modules.keys() - before))"]
    folder = ROOT / "plugins" / "module_utils"
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=True)
    assert "_agent.config" in ran.stdout.split()
    assert HEAVY & set(ran.stdout.split()) == set()
