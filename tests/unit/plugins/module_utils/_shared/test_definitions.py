# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""When two definitions of a check are the same."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._shared.definitions import digest

CHECK = {"name": "storage", "command": "/bin/storage", "interval": 2, "timeout": 1}


def test_neither_the_order_nor_how_a_number_is_written_makes_a_difference():
    assert digest(CHECK) == digest(dict(reversed([*{**CHECK, "interval": 2.0}.items()])))


@pytest.mark.parametrize("other", [{"command": "/bin/other"}, {"interval": 3}, {"timeout": "1"}, {"user": "ops"}])
def test_every_other_difference_does(other):
    assert digest(CHECK) != digest({**CHECK, **other})
