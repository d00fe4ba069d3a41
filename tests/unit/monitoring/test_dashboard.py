# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The dashboard for Grafana: its panels stand side by side, and Prometheus reads each of their expressions."""

from __future__ import annotations

import itertools
import json
import re

import pytest
import yaml
from ansible_collections.onprem.lb.plugins.module_utils._agent.anycast import show as anycast
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct import show as direct
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow import show as follow
from ansible_collections.onprem.lb.plugins.module_utils._agent.metrics import frr, host
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.views import metrics as proxy
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import show
from support.metrics import OF_BLACKBOX_EXPORTER, named, of_agent, of_haproxy
from support.paths import MONITORING

from .test_rules import EVERY, promtool

BOARD = json.loads((MONITORING / "dashboard.json").read_text())
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]
COLUMNS = 24


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    recorded = {rule["record"] for rule in EVERY if "record" in rule}
    return of_agent() | of_haproxy(tmp_path_factory.mktemp("haproxy")) | OF_BLACKBOX_EXPORTER | recorded


@pytest.mark.parametrize("expression", [*EXPRESSIONS, *(rule["expr"] for rule in EVERY)])
def test_each_metric_that_is_named_exists(expression, known):
    assert named(expression) and named(expression) <= known


def test_what_is_named_is_found_in_any_expression():
    text = 'sum by (a) (rate(x_total{b="c_d"}[5m])) / on (e) group_left y:z > 2 or count(up == bool 1)'
    assert named(text) - {"group_left"} == {"x_total", "y:z", "up"}


def test_the_members_are_listed_by_a_metric_of_each_engine(known):
    (wanted,) = re.findall(r'__name__=~"([^"]+)"', BOARD["templating"]["list"][1]["query"]["query"])
    found = {name.split("_")[0] for name in known if re.fullmatch(wanted, name)}
    assert found == {"onprem", "haproxy"}


def test_both_engines_are_shown_wherever_servers_are():
    shown = [{name.split("_")[0] for target in panel["targets"] for name in named(target["expr"])} for panel in PANELS]
    assert all("onprem" in found for found in shown)
    assert [panel["title"] for panel, found in zip(PANELS, shown) if "haproxy" in found] == [
        panel["title"] for panel in PANELS if "onprem_lb_proxy" in json.dumps(panel)
    ]


def test_prometheus_reads_each_expression(tmp_path):
    texts = [text.replace("$__rate_interval", "1m").replace("$instance", ".*") for text in EXPRESSIONS]
    rules = [{"record": f"one:{number}", "expr": text} for number, text in enumerate(texts)]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "board", "rules": rules}]}))
    promtool("check", "rules", tmp_path / "rules.yml")


@pytest.mark.parametrize("module", [show, proxy, direct, follow, anycast, frr], ids=lambda module: module.PREFIX)
def test_what_each_part_of_a_member_reports_has_an_alert_and_a_panel(module):
    own = {f"{module.PREFIX}_{metric.name}" for metric in module.METRICS}
    for expressions in (EXPRESSIONS, [rule["expr"] for rule in EVERY]):
        assert own & {name for text in expressions for name in named(text)}


def test_what_a_member_reports_of_itself_has_an_alert_and_all_but_its_router_a_panel():
    own = {f"{host.PREFIX}_{metric.name}" for metric in host.METRICS}
    assert own <= {name for rule in EVERY for name in named(rule["expr"])}
    assert own - {name for text in EXPRESSIONS for name in named(text)} == {"onprem_lb_host_router_answers"}


def test_the_panels_stand_side_by_side():
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
    places = [panel["gridPos"] for panel in BOARD["panels"]]
    cells = [
        cell
        for at in places
        for cell in itertools.product(range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"]))
    ]
    assert len(cells) == len(set(cells)) == COLUMNS * max(at["y"] + at["h"] for at in places)


def test_every_panel_asks_the_chosen_prometheus_and_names_its_lines():
    for panel in PANELS:
        assert panel["title"] and panel["datasource"]["uid"] == "${datasource}"
        for target in panel["targets"]:
            assert target["datasource"] == panel["datasource"] and "{{" in target["legendFormat"]
