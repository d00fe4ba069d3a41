# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a layout starts, restarts and stops the service that writes metrics."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from ansible_collections.onprem.lb.plugins.module_utils._agent import cli
from ansible_collections.onprem.lb.plugins.module_utils._agent.metrics import host as metrics_of_host
from ansible_collections.onprem.lb.plugins.module_utils._agent.metrics import parts, writer
from ansible_collections.onprem.lb.plugins.module_utils._plan.dns import resolver
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import direct
from ansible_collections.onprem.lb.plugins.module_utils._shared import engines
from support.paths import GOLDEN, ROLES
from support.roles import calls, variables_of

FILES = "onprem.lb.config_files"
FILE = "/var/lib/prometheus/node-exporter/onprem-lb.prom"
UNIT = "onprem-lb-metrics.service"
RUNS = {"active_units": [UNIT], "enabled_units": [UNIT], "existing_units": [UNIT]}
NOTHING = {"active_units": [], "enabled_units": [], "existing_units": []}


def called(*modules, file=FILE):
    """Return the calls on a host, with the metrics in a file or without them."""
    variables = {
        **variables_of("layout"),
        "__layout_settings": {"metrics_file": file},
        "__layout_me": {"router": {"instances": [{}]}, "balancer": {"services": "[]"}},
        "__layout_metrics_unit": "[Unit]\n",  # see tests/golden/metrics.service
    }
    return calls("layout", variables, *modules, tasks_from="units/metrics.yml")


def test_a_new_unit_or_version_restarts_it():
    (_module, _archive), (_module, given) = called("onprem.lb.agent_archive", FILES)
    assert given["units"] == [{"name": UNIT, "state": "started"}] and given["folders"] == []
    ((path, state, unit),) = [(each["path"], each["state"], each["unit"]) for each in given["files"]]
    assert (path, state, unit) == (f"/etc/systemd/system/{UNIT}", "present", UNIT)
    assert "checksum=__layout_metrics_written.checksum" in variables_of("layout")["__layout_metrics_unit"]


def test_without_a_file_it_is_stopped_and_its_unit_and_program_deleted():
    ((_module, given),) = called("onprem.lb.agent_archive", FILES, file="")
    assert given["units"] == [{"name": UNIT, "state": "stopped"}]
    assert [each["state"] for each in given["files"]] == ["absent"]
    assert given["folders"] == ["/usr/local/lib/onprem-lb-metrics"]


@pytest.mark.parametrize(
    "file, host, wanted", [(FILE, NOTHING, True), ("", RUNS, True), ("", NOTHING, False)], ids=["on", "was on", "off"]
)
def test_a_host_that_never_had_it_costs_no_task(file, host, wanted):
    variables = {
        **variables_of("layout"),
        "__layout_host": host,
        "__layout_metrics_file": file,
    }
    assert (
        Templar(loader=DataLoader(), variables=variables).evaluate_conditional(
            trust_as_template("__layout_has_metrics")
        )
        is wanted
    )


@pytest.mark.parametrize("engine, socket", [("native", " --haproxy-socket /run/haproxy/admin.sock"), ("agent", "")])
def test_the_command_names_each_certificate_once_and_haproxys_socket(engine, socket):
    services = [{"tls": {"certificate": "/etc/a b.pem"}}, {"tls": None}, {"tls": {"certificate": "/etc/a b.pem"}}]
    variables = {
        **variables_of("layout"),
        "__layout_settings": {"metrics_file": FILE},
        "__layout_me": {
            "engine": engine,
            "pods": [],
            "router": {"instances": [{}]},
            "balancer": {"services": json.dumps(services)},
        },
        "__layout_metrics_written": {"python": "/usr/bin/python3"},
        "__layout_metrics_socket": "/run/haproxy/admin.sock",
    }
    found = Templar(loader=DataLoader(), variables=variables).template(variables["__layout_metrics_command"])
    assert found == (
        "/usr/bin/python3 -I /usr/local/lib/onprem-lb-metrics/agent.pyz metrics "
        f"--file {FILE}{socket} --certificate '/etc/a b.pem'"
    )


def test_a_folder_that_is_gone_is_named_in_its_log(tmp_path, capsys):
    folder = Path(FILE).parent
    assert f" -{folder}\n" in (GOLDEN / "metrics.service").read_text(), "systemd would not start it, and not say why"
    assert cli.main(["metrics", "--file", str(tmp_path / "gone" / "lb.prom")]) == cli.REFUSED
    assert "gone/lb.prom cannot be written: No such file or directory." in capsys.readouterr().err


def test_what_a_drill_records_on_the_members_is_what_is_read_there():
    loader = DataLoader()
    tasks = loader.load_from_file(str(ROLES / "drill" / "tasks" / "main.yml"), trusted_as_template=True)
    ((task, (file,)),) = [(task, task[FILES]["files"]) for task in tasks if FILES in task]
    written = Templar(loader=loader, variables={"__drill_ended": 1790000000}).template(file["content"])
    assert (file["path"], metrics_of_host.last_drill(json.loads(written))) == (writer.DRILL, 1790000000)
    assert task["delegate_to"] == "{{ item }}" and task["loop"] == "{{ __drill_names }}"


def test_the_parts_are_looked_for_where_their_configurations_are_written():
    written = {
        "proxy": engines.CONFIGS[engines.UNITS[engines.AGENT].balancer],
        "direct": direct.CONFIG,
        "follow": variables_of("layout")["__layout_follow_config"],
        "resolver": resolver.CONFIG,
    }
    assert written == {part.name: part.config for part in parts.PARTS}
