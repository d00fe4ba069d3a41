# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module resolver_info: what is asked of it and said by it. What it reads: test_resolver."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import resolver
from ansible_collections.onprem.lb.plugins.modules import resolver_info
from support.modules import refusal, run

ANSWER = {"name": "api.lab.example.com", "addresses": ["192.0.2.10"]}


@pytest.mark.parametrize("check", [True, False])
def test_it_returns_what_it_reads_and_the_wrong_answers_in_either_mode(monkeypatch, check):
    monkeypatch.setattr(resolver, "read", lambda _reader: {"resolved": True})
    monkeypatch.setattr(resolver, "wrong_answers", lambda server, wanted: [f"{server}: {each}" for each in wanted])
    found = run(resolver_info, {"server": "192.0.2.1", "answers": [ANSWER]}, check=check)
    assert (found["changed"], found["resolved"], found["wrong"]) == (False, True, [f"192.0.2.1: {ANSWER}"])


def test_an_answer_needs_its_addresses():
    assert "missing required arguments: addresses" in refusal(resolver_info, {"answers": [{"name": "api"}]})
