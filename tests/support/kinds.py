# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A value of each kind that YAML has, and what a sentence about one never has: the words of Python."""

from __future__ import annotations

import datetime
import re

VALUES = {
    "null": None,
    "empty text": "",
    "text": "no such",
    "true": True,
    "number": 1.5,
    "date": datetime.date(2026, 11, 30),
    "list": [1],
    "list of null": [None],
    "list of lists": [["a"]],
    "mapping": {"a": 1},
    "list of mappings": [{}],
    "text with a line break": "a\nb",
}
PYTHONS = re.compile(r"\b(None|True|False|\w+Error|NoneType|dict|str|int|float|object|datetime)\b")


def is_of_mappings(value):
    """Whether its keys are judged one by one: of those that are missing or unknown each is said."""
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, dict) for item in value))
