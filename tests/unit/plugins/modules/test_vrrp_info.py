# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module vrrp_info: what is asked of it and said by it. What a link says: test_vrrp_routers, test_sniffer."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.modules import vrrp_info
from support.modules import refusal, run
from support.segments import AUTH_PASS, DEAF, deafen, hear


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({"interface": "no-such-link"}, "There is no interface no-such-link: there are "),
        ({"seconds": 0.01}, "seconds is 0.01: "),
        ({"seconds": "long"}, "argument 'seconds' is of type str"),
        ({"with_auth_pass": "perhaps"}, "argument 'with_auth_pass' is of type str"),
        ({"vrid": 51}, "module: vrid. Supported parameters include"),
    ],
)
def test_a_wrong_argument_is_named(given, sentence):
    assert sentence in refusal(vrrp_info, given)


@pytest.mark.parametrize("check", [True, False])
def test_what_is_heard_is_returned_in_both_modes(monkeypatch, check):
    hear(monkeypatch, ("192.0.2.99", 51))
    found = run(vrrp_info, {}, check=check)
    assert [(router["source"], router["vrid"]) for router in found["routers"]] == [("192.0.2.99", 51)]
    assert (found["changed"], found["conflicts"], found["discarded"]) == (False, [], {})


def test_a_password_is_returned_only_on_request(monkeypatch):
    hear(monkeypatch, ("192.0.2.99", 51))
    assert AUTH_PASS not in str(run(vrrp_info, {}))
    assert run(vrrp_info, {"with_auth_pass": True})["routers"][0]["auth_pass"] == AUTH_PASS


def test_a_module_that_cannot_listen_fails_with_the_reason(monkeypatch):
    deafen(monkeypatch)
    assert refusal(vrrp_info, {}) == DEAF
