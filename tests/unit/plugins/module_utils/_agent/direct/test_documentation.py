# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/direct.md says what the direct plane does."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct import (
    config,
    lifecycle,
    macs,
    plane,
    prober,
    proofs,
    show,
    writer,
)
from support.agent.loops import SECOND
from support.direct.reports import REPORT
from support.key_tables import expected, rows
from support.paths import DOCS

TEXT = (DOCS / "direct.md").read_text()
SCHEMAS = {
    "## The configuration": config.CONFIGURATION,
    "| key of a service |": config.SERVICE,
    "| key of a server |": config.SERVER,
}


@pytest.mark.parametrize("heading", SCHEMAS)
def test_every_key_has_its_default_in_a_table_and_there_are_no_others(heading):
    assert rows(TEXT, heading) == expected(SCHEMAS[heading])


def test_every_metric_is_named():
    for line in show.prometheus(REPORT).splitlines():
        if not line.startswith("#"):
            assert line.split("{")[0].split(" ")[0].replace(show.PREFIX, "") in TEXT, line


def test_the_times_are_those_of_the_code():
    prose = " ".join(TEXT.split())  # whatever the line breaks are
    assert f"for at most {plane.JUDGEMENT // SECOND} seconds" in prose
    assert f"every {macs.KNOWN_INTERVAL // SECOND} seconds" in prose
    assert f"after {writer.FIRST_DELAY // SECOND} to {writer.LAST_DELAY // SECOND} seconds" in prose
    assert f"at the latest {prober.INTERVAL / SECOND:g} seconds after" in prose
    assert (f"{SECOND // prober.INTERVAL} a second", proofs.FALL) == ("2 a second", 2), "twice, and two in a row"
    assert f"in the last {lifecycle.COUNT_INTERVAL // SECOND} seconds" in prose
