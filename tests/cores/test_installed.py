# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The installed archive gives the README's inventory the same forecast beside every supported ansible-core."""

from __future__ import annotations

import re
from typing import Any, Dict

import yaml
from support.documents import blocks
from support.paths import README, ROOT

from .conftest import NATIVE, OLDEST, Controller, printed

forecasts: Dict[str, Any] = {}


def test_the_oldest_one_is_what_the_collection_requires():
    runtime = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text())
    assert runtime["requires_ansible"] == f">={OLDEST}.0"


def test_the_inventory_of_the_readme_is_forecast(controller: Controller):
    inventory = controller.home / "inventory.yml"
    inventory.write_text(blocks(README, "yaml")[0])
    (forecast,) = printed(controller.play("onprem.lb.forecast", "-i", inventory))
    assert printed(controller.play("onprem.lb.forecast", "-i", inventory, **NATIVE)) == [forecast]
    assert re.match(r"192\.0\.2\.10 \(VRID \d+\): held by lb1, then lb2", forecast[0])
    forecasts[controller.core] = forecast
    assert forecast == forecasts[OLDEST]
