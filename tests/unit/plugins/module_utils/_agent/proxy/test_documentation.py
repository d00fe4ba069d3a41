# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/proxy.md says what the proxy does."""

from __future__ import annotations

import re

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy import config, settings
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.views import metrics
from support.key_tables import expected, rows
from support.paths import DOCS
from support.proxy.reports import REPORT

TEXT = (DOCS / "proxy.md").read_text()
SCHEMAS = {
    "## The configuration": config.CONFIGURATION,
    "### A service": config.SERVICE,
    "| key of a server |": config.SERVER,
    "| key of a route |": config.ROUTE,
    "### A check": config.CHECK,
    "| key of a step |": config.STEP,
    "### A monitor": config.MONITOR,
    "### The page": config.PAGE,
    "### Timeouts": config.TIMEOUTS,
}


@pytest.mark.parametrize("heading", SCHEMAS)
def test_every_key_has_its_default_in_a_table_and_there_are_no_others(heading):
    assert rows(TEXT, heading) == expected(SCHEMAS[heading])


def test_every_field_of_the_report_is_described():
    service = REPORT["services"][0]
    server = service["servers"][0]
    parts = (REPORT, service, server, server["check"], server["weight"], REPORT["workers"][0], REPORT["monitors"][0])
    for part in parts:
        for key in part:
            assert f"`{key}`" in TEXT, key


def test_every_metric_is_named():
    for metric in metrics.METRICS:
        assert re.search(rf"`(onprem_lb_proxy)?_{metric.name}`", TEXT), metric.name


def test_every_order_is_described():
    for order in settings.ADMIN_STATES:
        assert f"| `server {order} web/a` |" in TEXT
