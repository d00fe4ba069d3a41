# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A link of its own for each test that asks for one, and another try if it failed while the machine stood still."""

from __future__ import annotations

from pathlib import Path

import pytest
from links import lent, why_not
from steadiness import LATE, Witness

AGAIN = 2  # times at most; a failure on a machine that kept going counts at once


def pytest_configure(config):
    config.witness = None if why_not() else Witness()


def pytest_unconfigure(config):
    if config.witness:
        config.witness.close()


def pytest_collection_modifyitems(config, items):
    here = Path(__file__).parent
    for item in items:
        if config.witness and here in item.path.parents:
            item.add_marker(pytest.mark.flaky(reruns=AGAIN, condition="config.witness.disturbed()"))


def pytest_runtest_setup(item):
    if item.config.witness:
        item.config.witness.begin()


def pytest_terminal_summary(terminalreporter, config):
    pauses = config.witness.pauses() if config.witness else []
    if pauses:
        longest = f"{LATE * 1000:.0f} ms, {max(pauses) * 1000:.0f} ms at most"
        terminalreporter.line(f"Meanwhile the machine stood still {len(pauses)} times for more than {longest}.")


@pytest.fixture
def link():
    with lent() as made:
        yield made


@pytest.fixture
def stage(link, tmp_path):
    """That link with agents on it, and a record of what they do."""
    from stages import Stage

    made = Stage(link, tmp_path)
    try:
        yield made
    finally:
        made.close()
