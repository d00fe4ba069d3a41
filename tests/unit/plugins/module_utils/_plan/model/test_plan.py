# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plan says of a VIP."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import Vip


@pytest.mark.parametrize(
    "address, prefix, held_as", [("192.0.2.10", None, 32), ("fd00::10", None, 128), ("192.0.2.10", 24, 24)]
)
def test_a_vip_without_a_prefix_is_held_as_a_single_address(address, prefix, held_as):
    assert Vip(address, prefix, "vip").held_as == held_as
