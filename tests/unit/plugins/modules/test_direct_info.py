# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module direct_info: what is asked of it and said by it. What it finds: test_server of _host.direct."""

from __future__ import annotations

import errno

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.direct import host, wanted
from ansible_collections.onprem.lb.plugins.modules import direct_info
from support.modules import refusal, run

ASKED = {"server": {"interface": "", "services": []}}


@pytest.fixture(autouse=True)
def read(monkeypatch):
    monkeypatch.setattr(host, "read", lambda _reader: host.Host())


@pytest.mark.parametrize("check", [True, False])
def test_it_returns_what_it_finds_in_either_mode(monkeypatch, check):
    monkeypatch.setattr(wanted, "of_server", lambda given, _host: wanted.Found([f"{given} is wrong."]))
    found = run(direct_info, ASKED, check=check)
    assert found["faults"] == ["{'interface': '', 'services': []} is wrong."]
    assert (found["changed"], found["config"], found["differences"]) == (False, "", [])


def test_a_missing_privilege_is_a_sentence(monkeypatch):
    def denied(*_asked):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(wanted, "of_server", denied)
    assert (
        refusal(direct_info, ASKED) == "The network of this host cannot be read: Operation not permitted. Use become."
    )
