# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The oldest supported ansible-core sets a pair up on real hosts and changes it; the others find nothing to change."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, Tuple

import pytest
from support.paths import ROOT

from .conftest import NATIVE, OLDEST, Controller

SETTINGS = ROOT / "molecule" / "default" / "inventory" / "pair.yml"
LAB = (sys.executable, "lab")
SCENARIO = ("--scenario", "cores")
CHANGE = ("--extra-vars", "pair_advert_interval=2")  # of a pair that runs


@pytest.fixture(scope="module")
def inventories() -> Iterator[Tuple[str | Path, ...]]:
    """Start the hosts of a pair; they are removed in the end."""
    environment = {**os.environ, "LAB_IMAGE": "debian12"}
    try:
        subprocess.run([*LAB, "up", *SCENARIO], cwd=ROOT, env=environment, check=True)
        path = subprocess.run([*LAB, "inventory", *SCENARIO], cwd=ROOT, check=True, capture_output=True, text=True)
        yield "-i", path.stdout.strip(), "-i", SETTINGS
    finally:
        subprocess.run([*LAB, "down", *SCENARIO], cwd=ROOT, check=True)


def test_the_oldest_one_sets_a_pair_up_and_changes_it_and_no_other_does(controller: Controller, inventories):
    if controller.core == OLDEST:
        assert changes(controller.play("onprem.lb.pair", *inventories, "--check"))
        assert changes(controller.play("onprem.lb.pair", *inventories))
        assert changes(controller.play("onprem.lb.pair", *inventories, *CHANGE, **NATIVE))
    assert changes(controller.play("onprem.lb.pair", *inventories, *CHANGE)) == {}


def changes(run: Dict[str, Any]) -> Dict[str, int]:
    """Return how many tasks have changed each host that was changed."""
    return {name: recap["changed"] for name, recap in run["stats"].items() if recap["changed"]}
