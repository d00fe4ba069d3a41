# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line: one sentence for each fault, and an exit code that says which kind it is."""

from __future__ import annotations

import ast
import json
import socket
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
import yaml
from ansible_collections.onprem.lb.plugins.module_utils._agent import VERSION, cli, vrrp
from ansible_collections.onprem.lb.plugins.module_utils._agent.anycast import lifecycle as anycast_lifecycle
from ansible_collections.onprem.lb.plugins.module_utils._agent.certificates import keeper
from ansible_collections.onprem.lb.plugins.module_utils._agent.config import host
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.server import command as direct_server_command
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.master import admin, lifecycle
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import realtime, status_socket
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import settings
from support.anycast import configs as anycast_configs
from support.direct import configs as direct_configs
from support.direct.reports import REPORT as DIRECT_REPORT
from support.follow.reports import REPORT as FOLLOW_REPORT
from support.paths import MODULE_UTILS, ROOT
from support.proxy.reports import REPORT as PROXY_REPORT
from support.vrrp.configs import written
from support.vrrp.reports import REPORT

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
    command = [sys.executable, "-m", "_agent.cli", "--version"]

    assert subprocess.check_output(command, cwd=MODULE_UTILS, text=True, timeout=60).endswith(f"{VERSION}\n")


def test_a_good_configuration_is_called_good(config, capsys, monkeypatch):
    monkeypatch.setattr(host, "has_interface", lambda name: True)
    assert cli.main(["check-config", "--config", config]) == 0
    assert capsys.readouterr() == (f"{config} is good: 2 instances, 0 sync groups, 0 checks.\n", "")


def test_what_is_odd_about_a_good_configuration_is_a_note(config, capsys, monkeypatch):
    monkeypatch.setattr(host, "has_interface", lambda name: False)
    assert cli.main(["check-config", "--config", config]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        f"Note: {name}: this host has no interface eth0 now; until it has, this is a FAULT."
        for name in ("front", "six")
    ]


def test_every_fault_is_a_line_of_its_own(tmp_path, capsys):
    path = tmp_path / "bad.json"
    path.write_text(json.dumps({"instances": [{"name": "x", "vrid": 0, "auth_pass": "geheim" * 2}]}))
    assert cli.main(["check-config", "--config", str(path)]) == 1
    out, err = capsys.readouterr()
    assert out == "" and "geheim" not in err
    assert len(err.splitlines()) == 5
    assert all(line.startswith("instances[0] (x)") and line.endswith(".") for line in err.splitlines()), err


@pytest.mark.parametrize("command", ["check-config", "vrrp", "proxy"])
@pytest.mark.parametrize(
    "text, sentence",
    [(None, "cannot be read: No such file or directory."), ("{", "is not JSON: ")],
    ids=["missing", "no JSON"],
)
def test_a_file_that_is_none_is_one_sentence(command, text, sentence, tmp_path, capsys):
    path = tmp_path / "file"
    if text:
        path.write_text(text)
    assert cli.main([command, "--config", str(path)]) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"{path} {sentence}") and len(err.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["vrrp"],
        ["proxy"],
        ["server", "drain"],
        ["server", "stop", "a/b"],
        ["status", "--format", "xml"],
        ["vrrrp"],
    ],
)
def test_a_wrong_command_line_is_2(arguments):
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2


@pytest.fixture
def proxy_config(tmp_path):
    path = tmp_path / "proxy.json"
    services = [{"name": "web", "port": 80, "servers": ["192.0.2.1", "192.0.2.2"]}]
    path.write_text(json.dumps({"services": services}))
    return str(path)


def test_a_proxys_configuration_is_recognized_by_its_keys(proxy_config, capsys):
    assert cli.main(["check-config", "--config", proxy_config]) == 0
    assert capsys.readouterr() == (f"{proxy_config} is good: 1 service, 2 servers, 0 monitors.\n", "")


def test_each_fault_of_a_proxys_configuration_is_a_line(tmp_path, capsys):
    path = tmp_path / "bad.json"
    path.write_text(json.dumps({"services": [{"name": "web", "port": 0, "servers": []}]}))
    assert cli.main(["check-config", "--config", str(path)]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "services[0] (web).port is 0: a port from 1 to 65535 is required.",
        "services[0] (web).servers is []: a list of 1 or more is required.",
    ]


@pytest.mark.parametrize(
    "content, has",
    [
        ({}, "has keys of no configuration"),
        ([], "is []: a mapping is required, and"),
        ({"servics": []}, "has keys of no configuration"),
        ({"instances": [], "page": {}}, "has keys of several configurations"),
        ({"interface": "eth0", "services": [], "workers": 2}, "has keys of several configurations"),
    ],
)
def test_a_configuration_of_unclear_kind_is_one_sentence(content, has, tmp_path, capsys):
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(content))
    assert cli.main(["check-config", "--config", str(path)]) == 1
    sentence = (
        "the one of a VRRP router has the key 'instances', that of a proxy 'services', that of a direct plane "
        "'interface', that of follow 'api', that of a health gate 'vips'."
    )
    colon = "" if has.endswith("and") else ":"
    assert capsys.readouterr().err == f"{path} {has}{colon} {sentence}\n"


def test_a_proxy_with_a_fault_does_not_start(tmp_path, capsys):
    path = tmp_path / "bad.json"
    path.write_text("{}")
    assert cli.main(["proxy", "--config", str(path)]) == 1
    assert capsys.readouterr().err == "configuration lacks 'services': add it.\n"


def test_the_proxy_starts_with_what_was_read(proxy_config, monkeypatch):
    started = []
    monkeypatch.setattr(lifecycle, "main", lambda *arguments: started.append(arguments) or 7)
    monkeypatch.setenv("NOTIFY_SOCKET", "/run/systemd")
    assert cli.main(["proxy", "--config", proxy_config]) == 7
    path, found, _log, _notifier, environ = started[0]
    assert path == proxy_config and found.settings.services[0].name == "web"
    assert environ["NOTIFY_SOCKET"] == "/run/systemd"


def test_a_servers_state_is_changed_where_the_proxy_answers(monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(admin, "request", lambda *arguments: asked.append(arguments) or "web/a is drain.")
    assert cli.main(["server", "drain", "web/a"]) == 0
    assert cli.main(["server", "ready", "web/a", "--socket", "/x"]) == 0
    assert capsys.readouterr().out == "web/a is drain.\n" * 2
    assert asked == [("/run/onprem-lb-proxy/status.sock", "web/a", "drain"), ("/x", "web/a", "ready")]


def test_a_server_state_that_cannot_be_changed_is_a_sentence(tmp_path, capsys):
    path = str(tmp_path / "none.sock")
    assert cli.main(["server", "maint", "web/a", "--socket", path]) == 1
    assert capsys.readouterr().err == f"no agent answers at {path}: is it running?\n"


BOTH = ["/run/onprem-lb-proxy/status.sock", "/run/onprem-lb-direct/status.sock"]


def test_where_both_planes_are_the_one_that_has_the_server_changes_its_state(monkeypatch, capsys):
    asked = []

    def request(path, _server, _order):
        asked.append(path)
        if path == BOTH[0]:
            raise status_socket.Refused("there is no server api/a.")
        return "api/a is drain."

    monkeypatch.setattr("os.path.exists", lambda path: path in BOTH)
    monkeypatch.setattr(admin, "request", request)
    assert cli.main(["server", "drain", "api/a"]) == 0
    assert capsys.readouterr() == ("api/a is drain.\n", "")
    assert asked == BOTH


def test_a_server_that_no_plane_has_is_a_sentence_of_each(monkeypatch, capsys):
    def request(path, _server, _order):
        raise status_socket.Refused(f"{path} knows none.")

    monkeypatch.setattr("os.path.exists", lambda path: path in BOTH)
    monkeypatch.setattr(admin, "request", request)
    assert cli.main(["server", "drain", "api/a"]) == 1
    assert capsys.readouterr().err == "".join(f"{path} knows none.\n" for path in BOTH)


class Router:
    """Stands for the daemon."""

    def __init__(self, monkeypatch):
        self.started, self.scheduled = [], []
        monkeypatch.setattr(realtime, "schedule", lambda: self.scheduled.append("lifecycle" in vars(vrrp)))
        monkeypatch.delattr(vrrp, "lifecycle", raising=False)
        monkeypatch.setitem(sys.modules, f"{vrrp.__name__}.lifecycle", self)

    def main(self, path, found, log, notifier):
        self.started.append((path, found.settings, list(self.scheduled)))
        return 7


def test_the_router_starts_with_what_was_read(config, monkeypatch):
    router = Router(monkeypatch)
    monkeypatch.setattr(cli, "_missing_privilege", lambda: None)
    assert cli.main(["vrrp", "--config", config]) == 7
    path, wanted, scheduled = router.started[0]
    assert scheduled == [False], "it is on time before it loads the rest"
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
    assert cli.main(["vrrp", "--config", config]) == 1
    assert "needs CAP_NET_RAW and CAP_NET_ADMIN, or root." in capsys.readouterr().err
    assert router.started == []


@pytest.mark.parametrize(
    "form, begins", [("json", '{\n  "agent"'), ("table", "onprem.lb 1.0.0, process 4711"), ("prometheus", "# HELP ")]
)
def test_the_report_is_shown_in_each_format(form, begins, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr("os.path.exists", lambda path: False)
    monkeypatch.setattr(status_socket, "fetch", lambda path: asked.append(path) or REPORT)
    assert cli.main(["status", "--format", form]) == 0
    assert capsys.readouterr().out.startswith(begins)
    assert asked == ["/run/onprem-lb-vrrp/status.sock", "/run/onprem-lb-proxy/status.sock"]


def test_of_the_usual_sockets_those_that_are_there_are_asked(monkeypatch, capsys):
    monkeypatch.setattr("os.path.exists", lambda path: path.endswith("proxy/status.sock"))
    monkeypatch.setattr(status_socket, "fetch", lambda path: {"asked": path})
    assert cli.main(["status", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"asked": "/run/onprem-lb-proxy/status.sock"}


@pytest.mark.parametrize(
    "form, begins", [("json", '{\n  "agent"'), ("table", "onprem.lb 1.0.0, process 815"), ("prometheus", "# HELP ")]
)
def test_a_proxys_report_is_recognized_by_its_keys(form, begins, monkeypatch, capsys):
    monkeypatch.setattr(status_socket, "fetch", lambda path: PROXY_REPORT)
    assert cli.main(["status", "--socket", "/x", "--format", form]) == 0
    out = capsys.readouterr().out
    assert out.startswith(begins) and "web" in out


def test_no_agent_is_a_sentence(tmp_path, capsys):
    path = str(tmp_path / "none.sock")
    assert cli.main(["status", "--socket", path]) == 1
    assert capsys.readouterr().err == f"no agent answers at {path}: is it running?\n"


@pytest.mark.parametrize("life", [f"_agent.{each}.lifecycle" for each in ("vrrp", "proxy.master", "direct", "anycast")])
def test_what_lives_long_brings_nothing_heavy_along(life):
    code = f"import sys; sys.path.insert(0, '.'); before = set(sys.modules); import {life}; "
    command = [sys.executable, "-I", "-c", f"{code}print(*(sys.modules.keys() - before))"]

    ran = subprocess.run(command, cwd=MODULE_UTILS, capture_output=True, text=True, timeout=60, check=True)
    assert life in ran.stdout.split()
    assert HEAVY & set(ran.stdout.split()) == set()


def test_a_command_line_is_read_without_what_other_commands_need():
    """The archive is compiled at each start, and a Backup waits for it."""
    code = "import sys; sys.path.insert(0, '.'); from _agent import cli; cli._parse(['vrrp', '--config', 'x']); "
    listing = "print(*(name for name, found in sys.modules.items() if not hasattr(found, '__path__')))"
    command = [sys.executable, "-I", "-c", code + listing]
    ran = subprocess.run(command, cwd=MODULE_UTILS, capture_output=True, text=True, timeout=60, check=True)
    ours = {name for name in ran.stdout.split() if name.startswith("_agent.")}
    assert ours == {"_agent.cli", "_agent.checks.settings", "_agent.proxy.settings"}


def test_what_lives_long_imports_its_own_modules_at_its_start():
    """Later the archive may be a newer one, and what Python knows of the old one does not fit it."""
    late = [
        f"{path.name}:{found.lineno}"
        for path in Path(cli.__file__).parent.rglob("*.py")
        if path.name != "cli.py"
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef)
        for found in ast.walk(function)
        if isinstance(found, ast.ImportFrom) and found.level
    ]
    assert late == []


def test_the_status_of_follow_is_shown_where_it_runs(monkeypatch, capsys):
    monkeypatch.setattr("os.path.exists", lambda path: "follow" in path)
    monkeypatch.setattr(status_socket, "fetch", {"/run/onprem-lb-follow/status.sock": FOLLOW_REPORT}.get)
    assert cli.main(["status"]) == 0
    assert "3 nodes with master=" in capsys.readouterr().out
    assert cli.main(["status", "--format", "prometheus"]) == 0
    assert "onprem_lb_follow_nodes 3" in capsys.readouterr().out


@pytest.fixture
def follow_config(tmp_path):
    path = tmp_path / "follow.json"
    path.write_text(
        json.dumps({"api": {"servers": ["https://127.0.0.1:6443"]}, "proxy": {"services": [{"name": "a"}]}})
    )
    return path


def test_the_configuration_of_follow_is_recognized_by_its_keys(follow_config, capsys):
    assert cli.main(["check-config", "--config", str(follow_config)]) == 0
    assert capsys.readouterr().out == f"{follow_config} is good: 1 API server, 0 backends, 1 service.\n"


@pytest.mark.parametrize("command", ["check-config", "follow"])
def test_follow_refuses_a_kubeconfig_with_what_to_write_instead(command, tmp_path, capsys):
    path = tmp_path / "kubeconfig"
    path.write_text("apiVersion: v1\nclusters: []\n")
    assert cli.main([command, "--config", str(path)]) == 1
    assert capsys.readouterr().err.startswith(f"{path} is a kubeconfig, which the agent does not read: write ")


def test_the_faults_of_follow_have_their_lines(tmp_path, capsys):
    path = tmp_path / "follow.json"
    path.write_text('{\n"api": {\n"servers": ["http://x"]},\n"drain_for": -1}')
    assert cli.main(["check-config", "--config", str(path)]) == 1
    first, *_others = capsys.readouterr().err.splitlines()
    assert first.startswith("line 4: configuration.drain_for is -1: ")


@pytest.fixture
def direct_config(tmp_path):
    path = tmp_path / "direct.json"
    path.write_text(json.dumps(direct_configs.GOOD))
    return path


def test_the_configuration_of_a_direct_plane_is_recognized_by_its_keys(direct_config, capsys, monkeypatch):
    monkeypatch.setattr(host, "has_interface", lambda name: False)
    assert cli.main(["check-config", "--config", str(direct_config)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{direct_config} is good: 2 services, 5 servers.",
        "Note: this host has no interface eth0 now; until it has, there is no table.",
    ]


@pytest.mark.parametrize("command", [["check-config"], ["direct"], ["direct-server", "apply"]])
def test_a_direct_plane_with_a_fault_does_not_start(command, tmp_path, capsys):
    path = tmp_path / "bad.json"
    path.write_text(json.dumps({"interface": "eth0", "services": []}))
    assert cli.main([*command, "--config", str(path)]) == 1
    assert capsys.readouterr().err == "configuration.services is []: a list of 1 or more is required.\n"


@pytest.fixture
def direct_server(monkeypatch):
    """Return what is done to the kernel."""
    done = []
    monkeypatch.setattr(direct_server_command, "apply", lambda settings: done.append(settings.interface))
    monkeypatch.setattr(direct_server_command, "remove", lambda: done.append("removed"))
    monkeypatch.setattr(host, "program", lambda *_asked: None)
    return done


def test_a_server_of_direct_return_is_applied_and_removed(direct_config, direct_server):
    assert cli.main(["direct-server", "apply", "--config", str(direct_config)]) == 0
    assert cli.main(["direct-server", "remove"]) == 0
    assert direct_server == ["eth0", "removed"]


@pytest.mark.parametrize(
    "error, sentence",
    [
        (direct_server_command.Refused("nft refuses it."), "nft refuses it.\n"),
        (
            PermissionError(1, ""),
            "the server cannot be changed: operation not permitted; it needs CAP_NET_ADMIN, or root.\n",
        ),
    ],
)
def test_a_server_that_cannot_be_changed_says_why(direct_server, monkeypatch, capsys, error, sentence):
    monkeypatch.setattr(direct_server_command, "remove", mock.Mock(side_effect=error))
    assert cli.main(["direct-server", "remove"]) == 1
    assert capsys.readouterr().err == sentence


def test_the_status_of_a_direct_plane_is_shown_where_it_runs(monkeypatch, capsys):
    monkeypatch.setattr("os.path.exists", lambda path: "direct" in path)
    monkeypatch.setattr(status_socket, "fetch", {"/run/onprem-lb-direct/status.sock": DIRECT_REPORT}.get)
    assert cli.main(["status"]) == 0
    assert "The table on eth0 is there" in capsys.readouterr().out
    assert cli.main(["status", "--format", "prometheus"]) == 0
    assert "onprem_lb_direct_table_in_force 1" in capsys.readouterr().out


@pytest.fixture
def anycast_config(tmp_path):
    path = tmp_path / "anycast.json"
    path.write_text(json.dumps({**anycast_configs.GOOD, "interface": "vips0"}))
    return str(path)


def test_the_configuration_of_a_health_gate_is_recognized_by_its_vips(anycast_config, capsys):
    assert cli.main(["check-config", "--config", anycast_config]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{anycast_config} is good: 2 VIPs, 2 checks.",
        "Note: this host has no interface vips0 now; until it has, no VIP is here.",
    ]


def test_certificates_are_kept_as_the_command_line_says(monkeypatch):
    started = []
    monkeypatch.setattr(keeper, "main", lambda settings, _log: started.append(settings))
    options = ["--config", "/c", "--record", "/r", "--unit", "u", "--", "-a.pem", "/folder/"]
    cli.main(["certificates", *options])
    assert started == [keeper.Settings("/c", "/r", "u", ["-a.pem", "/folder/"])]


@pytest.mark.parametrize("command", ["check-config", "anycast"])
def test_a_health_gate_with_a_fault_does_not_start(command, tmp_path, capsys):
    path = tmp_path / "bad.json"
    path.write_text(json.dumps({"vips": []}))
    assert cli.main([command, "--config", str(path)]) == 1
    assert capsys.readouterr().err == "configuration.vips is []: a list of 1 or more is required.\n"


def test_the_health_gate_starts_with_what_was_read(anycast_config, monkeypatch):
    started = []
    monkeypatch.setattr(anycast_lifecycle, "main", lambda *arguments: started.append(arguments) or 7)
    assert cli.main(["anycast", "--config", anycast_config]) == 7
    assert started[0][1].settings.interface == "vips0"


def test_the_status_of_a_health_gate_is_shown_where_it_runs(monkeypatch, capsys):
    monkeypatch.setattr("os.path.exists", lambda path: "anycast" in path)
    monkeypatch.setattr(status_socket, "fetch", {"/run/onprem-lb-anycast/status.sock": anycast_configs.REPORT}.get)
    assert cli.main(["status"]) == 0
    assert "front  on lo" in capsys.readouterr().out
    assert cli.main(["status", "--format", "prometheus"]) == 0
    assert "onprem_lb_anycast_held" in capsys.readouterr().out
