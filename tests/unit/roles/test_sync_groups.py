# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user writes of a sync group stands in keepalived.conf, each in the group that it was written for.

A layout's own groups reach both engines.
"""

from __future__ import annotations

import re

import pytest
import yaml
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import Router
from support.paths import ROLES
from support.rendering import keepalived


def instance(name, vrid):
    return {"name": name, "interface": "eth0", "vrid": vrid, "addresses": [f"192.0.2.{vrid}"], "peers": ["192.0.2.2"]}


def test_a_groups_own_lines_stand_in_that_group():
    groups = [
        {"name": "one", "instances": ["front"], "lines": ["global_tracking", "smtp_alert"], "notify": "/usr/bin/told"},
        {"name": "two", "instances": ["back"]},
    ]
    written = keepalived({"instances": [instance("front", 16), instance("back", 17)], "sync_groups": groups}, "lb1")
    found = dict(re.findall(r"^vrrp_sync_group (\w+) \{\n(.*?)^\}", written, re.M | re.S))
    assert [line.strip() for line in found["one"].splitlines()[-3:]] == [
        'notify "/usr/bin/told"',
        "global_tracking",
        "smtp_alert",
    ]
    assert [line.strip() for line in found["two"].splitlines()] == ["group {", "back", "}"]


def set_by(tasks):
    """Return the variables that tasks and blocks set for others, with their values."""
    if isinstance(tasks, dict):
        yield from (tasks.get("vars") or {}).items()
        tasks = list(tasks.values())
    for task in tasks if isinstance(tasks, list) else []:
        yield from set_by(task)


@pytest.mark.parametrize("file, router", [("present", "router"), ("routers/together", "replaced_router")])
@pytest.mark.parametrize("engine", ["keepalived", "agent"])
def test_a_layout_hands_all_of_its_router_to_each_engine(file, router, engine):
    given = dict(set_by(yaml.safe_load((ROLES / "layout" / "tasks" / f"{file}.yml").read_text())))
    for part in Router._fields:
        assert given[f"{engine}_{part}"] == f"{{{{ __layout_me.{router}.{part} }}}}"
