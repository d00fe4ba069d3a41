# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Before ansible-core 2.19 a variable that a template makes of a number is a text, which is greater than no number."""

from __future__ import annotations

import re

from support.paths import PLAYBOOKS, ROLES

TEXTS = {
    path: path.read_text()
    for path in [*ROLES.glob("*/tasks/**/*.yml"), *ROLES.glob("*/vars/**/*.yml"), *PLAYBOOKS.rglob("*.yml")]
}
NUMBER = re.compile(r"^ *(__\w+): \"\{\{ .*\| (?:float|int|default\([\d.]+\)) \}\}\"", re.MULTILINE)
NAMES = {name for text in TEXTS.values() for name in NUMBER.findall(text)}


def uses(name):
    """Yield what stands around each use of a variable, without its definition."""
    for path, text in TEXTS.items():
        for found in re.finditer(rf"(.*?)\b{name}\b(?!:)(.*)", text):
            yield f"{path.name}: {found[0].strip()}", found[1], found[2]


def test_a_number_of_a_template_is_made_one_where_it_is_compared_or_added():
    assert {"__steps_delay"} <= NAMES
    wrong = [
        place
        for name in NAMES
        for place, before, behind in uses(name)
        if not re.match(r" \| (?:float|int)\b", behind) and not (before.endswith("{{ ") and behind.startswith(" }}"))
    ]
    assert wrong == []
