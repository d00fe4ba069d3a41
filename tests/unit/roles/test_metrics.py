# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the service that writes metrics reads and writes, beside what it is given."""

from __future__ import annotations

import json
from pathlib import Path

from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible_collections.onprem.lb.plugins.module_utils._agent import cli
from ansible_collections.onprem.lb.plugins.module_utils._agent.metrics import host as metrics_of_host
from ansible_collections.onprem.lb.plugins.module_utils._agent.metrics import parts, writer
from ansible_collections.onprem.lb.plugins.module_utils._plan.dns import resolver
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import direct, follow
from ansible_collections.onprem.lb.plugins.module_utils._shared import engines, paths
from support.paths import GOLDEN, ROLES

FILES = "onprem.lb.config_files"
FILE = "/var/lib/prometheus/node-exporter/onprem-lb.prom"


def test_a_folder_that_is_gone_is_named_in_its_log(tmp_path, capsys):
    folder = Path(FILE).parent
    assert f" -{folder}\n" in (GOLDEN / "metrics.service").read_text(), "systemd would not start it, and not say why"
    assert cli.main(["metrics", "--file", str(tmp_path / "gone" / "lb.prom")]) == cli.REFUSED
    assert "gone/lb.prom cannot be written: No such file or directory." in capsys.readouterr().err


def test_what_a_drill_records_on_the_members_is_what_is_read_there():
    loader = DataLoader()
    tasks = loader.load_from_file(str(ROLES / "drill" / "tasks" / "rounds.yml"), trusted_as_template=True)
    ((task, (file,)),) = [(task, task[FILES]["files"]) for task in tasks if FILES in task]
    written = Templar(loader=loader, variables={"__drill_ended": 1790000000}).template(file["content"])
    assert (file["path"], metrics_of_host.last_drill(json.loads(written))) == (writer.DRILL, 1790000000)
    assert task["delegate_to"] == "{{ item }}" and task["loop"] == "{{ __drill_names }}"


def test_a_router_is_looked_for_where_a_run_sets_it_up():
    (_balancer, router), drop_in = engines.UNITS[engines.AGENT], paths.drop_in(engines.KEEPALIVED)
    assert {*writer.OF_ROUTERS} == {engines.CONFIGS[router], drop_in}


def test_the_parts_are_looked_for_where_their_configurations_are_written():
    written = {
        "proxy": engines.CONFIGS[engines.UNITS[engines.AGENT].balancer],
        "direct": direct.CONFIG,
        "follow": follow.CONFIG,
        "resolver": resolver.CONFIG,
        "anycast": paths.GATE_CONFIG,
        "frr": paths.GATE_CONFIG,  # without which FRR announces nothing of ours
    }
    assert written == {part.name: part.config for part in parts.PARTS}
