# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user writes of a sync group stands in keepalived.conf, each in the group that it was written for."""

from __future__ import annotations

import re

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
