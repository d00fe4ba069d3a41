# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/agent.md says what the agent does."""

from __future__ import annotations

import json
import re

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks import config as check_config
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks import settings
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import config, show
from support.paths import DOCS
from support.vrrp.reports import REPORT

TEXT = (DOCS / "agent.md").read_text()
LINES = [line for line in TEXT.splitlines() if line.startswith("| `")]
ROWS = {line.split("|")[1].strip(): line for line in reversed(LINES)}  # the first of a name counts


def second_column(key):
    return ROWS[f"`{key}`"].split("|")[2].strip().strip("`")


@pytest.mark.parametrize("schema", [config.CONFIGURATION, config.INSTANCE, check_config.EVERY_CHECK])
def test_every_key_has_its_default_in_a_table(schema):
    for key, field in schema.items():
        default = field.default if isinstance(field.default, str) and field.default else json.dumps(field.default)
        left_out = {"null": "", "[]": ""} if key in ("source", "notify") else {}
        assert second_column(key) == ("required" if field.required else left_out.get(default, default)), key


@pytest.mark.parametrize("kind", settings.CHECK_TYPES)
def test_every_type_of_check_has_its_keys_in_the_table(kind):
    own = check_config.TYPE_KEYS[kind].keys() - (check_config.TYPE_KEYS["http"].keys() if kind == "https" else set())
    described = TEXT[TEXT.index("| type | its own keys |") :]
    row = next(line for line in described.splitlines() if line.startswith(f"| `{kind}` |"))
    for key in own:
        assert f"`{key}`" in row.split("|")[2], key


def test_every_field_of_the_report_is_described():
    for part in (REPORT, REPORT["instances"][0], REPORT["checks"][0], REPORT["groups"][0]):
        for key in part:
            assert f"`{key}`" in TEXT, key


def test_every_metric_is_named():
    for metric in show.METRICS:
        assert re.search(rf"`(onprem_lb_vrrp)?_{metric.name}`", TEXT), metric.name
