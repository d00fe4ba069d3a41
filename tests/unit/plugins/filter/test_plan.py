# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The filters that plan, without netaddr. What they plan: the tests of the layouts."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.onprem.lb.plugins.filter.plan import FilterModule
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import subnets


@pytest.mark.parametrize("name", ["layout_plan", "ipi_preset_comparison"])
def test_without_netaddr_the_controller_is_told_what_to_install(monkeypatch, name):
    monkeypatch.setattr(subnets, "NETADDR_MISSING", ImportError("netaddr"))
    with pytest.raises(AnsibleFilterError) as refused:
        FilterModule().filters()[name]([])
    assert refused.value.message == "onprem.lb needs the Python package netaddr on the controller: install it."
