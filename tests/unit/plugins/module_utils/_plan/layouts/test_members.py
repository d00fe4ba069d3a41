"""What every layout asks of its members."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import members


@pytest.mark.parametrize("count", [1, 2, 3, 5, 12, 40, 253])
def test_priorities_fall_from_254_and_are_all_different(count):
    found = members.priorities(count)
    assert found[:2] == [254, 253][:count]
    assert len(set(found)) == count and found == sorted(found, reverse=True) and found[-1] >= 1


def test_from_the_third_on_nobody_can_be_as_quick_as_the_second():
    second, third, fourth = members.priorities(4)[1:]
    assert second - third == third - fourth == 25
