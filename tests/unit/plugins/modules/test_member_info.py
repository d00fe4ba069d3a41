# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module member_info: what is asked of it and said by it. What it reads: test_member."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import member
from ansible_collections.onprem.lb.plugins.modules import member_info
from support.modules import refusal, run


@pytest.mark.parametrize("check", [True, False])
def test_it_reads_the_vips_and_changes_nothing_in_either_mode(monkeypatch, check):
    asked = []
    monkeypatch.setattr(member, "read", lambda _reader, *given: asked.append(given) or {"engine": "native"})
    given = {"vips": ["192.0.2.10"], "members_record": "/etc/record.json"}
    found = run(member_info, given, check=check)
    assert asked == [(["192.0.2.10"], "/etc/record.json", False, False)]
    run(member_info, {**given, "asks_start": True}, check=check)
    run(member_info, {**given, "asks_firewall": True}, check=check)
    assert [each[2:] for each in asked[1:]] == [(True, False), (False, True)]
    assert found["engine"] == "native" and "changed" not in found


def test_without_the_right_to_probe_the_link_it_says_what_is_missing(monkeypatch):
    def forbidden(*_given):
        raise PermissionError

    monkeypatch.setattr(member, "read", forbidden)
    assert refusal(member_info, {}) == (
        "There is no permission to open raw sockets: use become, or give the container NET_RAW."
    )


@pytest.mark.parametrize("given, sentence", [({"vips": {}}, "unable to convert to list"), ({"vip": 1}, "Unsupported")])
def test_a_wrong_argument_is_named(given, sentence):
    assert sentence in refusal(member_info, given)
