# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What docs/services.md shows of a service is tried: each of its keys is in the services of a scenario, or in a test
that has the servers for it.
"""

from __future__ import annotations

from typing import Any, Iterator

import yaml
from support.documents import blocks
from support.paths import DOCS, ROOT

TRIED = ROOT / "molecule" / "examples" / "files" / "services.yml"
SERVICES = "pair_services"
ELSEWHERE = {
    f"{SERVICES}.check": "tests/netns/test_protocol_checks.py",  # by servers that speak each protocol
}


def keys(value: Any, place: str = "") -> Iterator[str]:
    """Yield each key of a value, below those that lead to it."""
    for key, each in value.items() if isinstance(value, dict) else []:
        yield f"{place}{key}"
        yield from keys(each, f"{place}{key}.")
    for each in value if isinstance(value, list) else []:
        yield from keys(each, place)


def of_services(block: Any) -> Any:
    """Return the variables of a block: the groups of an inventory are tried as examples/ are."""
    return block["balancers"]["vars"] if "balancers" in block else block


def test_each_key_that_the_page_shows_is_tried_on_hosts():
    variables = yaml.safe_load(TRIED.read_text())["pair"]["vars"]
    services = variables["with_tables"] + variables["without_tables"] + variables["with_contents"]
    shown = {key for block in blocks(DOCS / "services.md", "yaml") for key in keys(of_services(yaml.safe_load(block)))}
    assert f"{SERVICES}.rate_limit.except" in shown
    untried = shown - {*keys({**variables, SERVICES: services})} - {"pair_engine"}
    assert {key for key in untried if not key.startswith(tuple(ELSEWHERE))} == set()
    assert all((ROOT / file).exists() for file in ELSEWHERE.values())
