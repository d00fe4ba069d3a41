# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a router sends while its own balancer does not answer."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks import settings
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.settings import Check
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import offers
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.settings import Tracked
from support.vrrp.fakes import FRONT, SECOND, Host

ASKED = Check("answers", settings.HTTP)
OFFERING = FRONT._replace(track=(Tracked("answers", 1 - FRONT.priority, offers=True),))
EVERY_S, SETTLED_S = offers.EVERY / SECOND, offers.SETTLED / SECOND


@pytest.fixture
def host():
    """A host that is Active, and whose balancer answers."""
    found = Host()
    found.start(OFFERING, checks=(ASKED,))
    found.finds("answers")
    found.let(20)
    assert found.state == "Active"
    found.acts()
    return found


def resignations(host):
    return [act for act in host.acts() if act.startswith("send 0")]


def test_it_is_offered_once_the_lower_priority_has_settled_and_kept_until_somebody_takes_it(host):
    host.finds("answers", up=False)
    host.let(SETTLED_S)
    assert len(resignations(host)) == 1 and host.state == "Active"
    host.let(EVERY_S * 3)
    assert len(resignations(host)) == 2 and host.state == "Active" and host.held


def test_one_that_takes_over_ends_it(host):
    host.finds("answers", up=False)
    host.let(SETTLED_S)
    host.hears(200)
    assert host.state == "Backup"
    host.acts()
    host.let(2)
    assert resignations(host) == []


def test_a_balancer_that_answers_again_ends_it(host):
    host.finds("answers", up=False)
    host.let(0)
    host.finds("answers")
    host.let(5)
    assert resignations(host) == []


def test_a_check_that_does_not_ask_for_it_makes_no_offer():
    host = Host()
    host.start(FRONT._replace(track=(Tracked("answers", -10),)), checks=(ASKED,))
    host.finds("answers", up=False)
    host.let(30)
    assert host.state == "Active" and resignations(host) == []
