# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/follow.md says what follow does."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow import api, config, settings, show, watching
from support.follow.reports import REPORT
from support.key_tables import expected, rows
from support.paths import DOCS, GOLDEN

TEXT = (DOCS / "follow.md").read_text()
UNIT = (GOLDEN / "follow.service").read_text()
SCHEMAS = {
    "## The configuration": config.CONFIGURATION,
    "### The API": config.API,
    "### The nodes": config.NODES,
    "### HAProxy": config.HAPROXY,
    "| key of a backend |": config.BACKEND,
    "### The agent's proxy": config.PROXY,
    "| key of a service |": config.TARGET,
    "### The names of the nodes": config.HOSTS,
}


@pytest.mark.parametrize("heading", SCHEMAS)
def test_every_key_has_its_default_in_a_table_and_there_are_no_others(heading):
    assert rows(TEXT, heading) == expected(SCHEMAS[heading])


def test_every_metric_is_named():
    for line in show.prometheus(REPORT).splitlines():
        if not line.startswith("#"):
            assert line.split("{")[0].split(" ")[0].replace(show.PREFIX, "") in TEXT, line


def test_the_unit_has_the_folders_of_the_defaults():
    for path in (settings.STATUS_SOCKET, settings.Settings(settings.Api(())).state_file):
        assert f"Directory={path.split('/')[-2]}\n" in UNIT
    assert f"-{settings.Haproxy._field_defaults['config'].rpartition('/')[0]} " in UNIT


def test_the_times_are_those_of_the_code():
    assert f"Every {watching.LIST / 60:g} minutes it reads a new list" in TEXT
    assert f"After {watching.SILENT / 60:g} minutes without a line" in TEXT
    assert f"{watching.FLOOR:g} second after its beginning" in TEXT
    assert f"delivers {api.SLOWEST // 1000} kB a second" in TEXT
    assert f"from {watching.FIRST_DELAY:g} to {watching.LAST_DELAY:g} seconds" in TEXT
