# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared by the scenarios' tests: the lab's hosts, and the inventory's variables."""

from __future__ import annotations

import pytest
from support.drill_lock import wait_for_drills


@pytest.fixture(autouse=True)
def no_drill_is_disturbed():
    wait_for_drills()


@pytest.fixture(scope="session")
def inventory(request):
    return request.config.getoption("--ansible-inventory")


@pytest.fixture(scope="session")
def hosts(inventory):
    """Every lab host by name."""
    import testinfra
    from testinfra.utils.ansible_runner import AnsibleRunner

    names = AnsibleRunner.get_runner(inventory).get_hosts()
    return {name: testinfra.get_host(f"ansible://{name}?ansible_inventory={inventory}", sudo=True) for name in names}


@pytest.fixture(scope="session")
def variables(hosts):
    """The inventory's variables of all hosts, such as the VIPs."""
    return hosts["client"].ansible.get_variables()
