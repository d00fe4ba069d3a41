# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A separate link for each test that requests one."""

from __future__ import annotations

import pytest
from support import collection, leaks
from support.netns.links import VIP, VIP6, temporary_link
from support.scope import FULL

collection.make_importable()
nothing_is_left = leaks.nothing_is_left
# What takes longest. It begins first, because one process plays all tests of a file.
LONGEST = (
    *("answers", "frr", "direct_planes", "direct_agent", "direct", "late_servers", "direct_proof", "vrrp_info"),
    *("interop", "direct_server", "vip_probe", "forecast", "leaks", "direct_faults", "agent_upgrade", "standstill"),
    *("drill_events", "redirect", "agent_lifecycle", "names_as_before", "proxy_lifecycle", "agent_handover"),
)


def pytest_collection_modifyitems(items):
    begins = {f"test_{name}.py": at for at, name in enumerate(LONGEST)}
    items.sort(key=lambda item: begins.get(item.path.name, len(begins)))


@pytest.fixture(scope="module", params=[VIP, VIP6] if FULL else [VIP], ids=str)
def vip(request):
    """In the quick scope IPv4 alone. A test of what IPv6 has for itself has both: `support.netns.links.families`."""
    return request.param


@pytest.fixture
def link():
    with temporary_link() as made:
        yield made


@pytest.fixture
def stage(link, tmp_path):
    """The link with a recorder, on which the test starts agents."""
    from support.netns.stages import temporary_stage

    with temporary_stage(link, tmp_path) as made:
        yield made
