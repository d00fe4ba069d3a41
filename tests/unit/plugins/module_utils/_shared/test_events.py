# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each event is described where users read of it, forecast, and injected."""

from __future__ import annotations

import functools
import re

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.drill import faults
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair
from ansible_collections.onprem.lb.plugins.module_utils._shared import events
from support.documents import row
from support.paths import MODULES, ROLES
from support.plans import pairs, racks

SERVER = {"address": "192.0.2.21", "port": 8443, "services": {"web": ["a"]}}
WHERE = faults.Target("eth0", vip="192.0.2.10", server=SERVER, known=[("web", "a", "up"), ("web", "b", "up")])
DIRECT = {"name": "api", "port": 6443, "plane": "direct", "servers": ["192.0.2.21", "192.0.2.22"]}
EACH = pytest.mark.parametrize("event", events.EVENTS)


def test_each_event_is_one_row():
    named = {
        value for name, value in vars(events).items() if re.fullmatch(r"[A-Z]\w+", name) and isinstance(value, str)
    }
    assert named == {*events.EVENTS, events.API_FAILING} and len(set(events.EVENTS)) == len(events.ROWS)


@EACH
def test_the_readme_says_what_happens_and_whether_it_does_by_default(event):
    said = row(ROLES / "drill" / "README.md", f"`{event}`")["what happens on the holder"]
    assert ("Not among the default" in said or "not among the default" in said) == (event in events.ON_REQUEST)


@EACH
def test_the_module_says_what_it_does_and_how_that_is_reverted(event):
    documentation = re.search(r'DOCUMENTATION = r"""(.*?)"""', (MODULES / "drill_event.py").read_text(), re.DOTALL)[1]
    assert f"V({event})" in documentation


@functools.lru_cache(maxsize=None)
def forecast():
    found = pair.plan(pairs.pair(services=[DIRECT]))
    by_bgp = racks.plan(racks.racks())
    assert found.faults == by_bgp.faults == []
    return {line["event"] for line in [*found.outages, *by_bgp.outages]}


def test_what_is_of_bgp_alone_is_forecast_there_and_by_default_where_each_member_has_it():
    by_vrrp = {line["event"] for line in pair.plan(pairs.pair(services=[DIRECT])).outages}
    by_bgp = {line["event"] for line in racks.plan(racks.racks()).outages}
    assert set(events.OF_BGP) == (by_bgp - by_vrrp) & set(events.EVENTS)
    assert set(events.OF_BGP) & set(events.ON_REQUEST) == {events.ROUTER_GONE}


@EACH
def test_it_is_forecast_and_injected(event):
    """What is not forecast is not drilled, and nothing says so. The loss of a server has a forecast of its own."""
    assert event in (*forecast(), *events.ON_SERVER)
    assert faults.script_for(event, WHERE).inject
