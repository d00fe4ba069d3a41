# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What settings mean to the state machine and to a message."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import notation, settings
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import machine, packet
from support.vrrp.fakes import FRONT, SECOND, SIX

OTHERS = {
    "name": "other",
    "interface": "eth9",
    "vrid": 9,
    "version": 3,
    "family": 6,
    "priority": 7,
    "interval": 2 * SECOND,
    "addresses": ("192.0.2.77/32",),
    "preempt": False,
    "preempt_delay": SECOND,
    "auth_pass": b"x",
    "multicast": True,
    "source": "192.0.2.77",
    "peers": ("192.0.2.77",),
    "track": (settings.Tracked("x"),),
    "announce_again": 0,
    "notify": ("/bin/true",),
    "checksum": packet.RFC9568,
    "min_ttl": 64,
    "notify_user": "ops",
    "dont_track_primary": True,
    "excluded_addresses": ("2001:db8::77/128",),
    "virtual_routes": (notation.Route("10.0.0.0/8", dev="eth9"),),
}
IDENTITY = {"interface", "vrid", "version", "family"}


@pytest.mark.parametrize("field", settings.Instance._fields)
def test_only_what_makes_a_virtual_router_this_one_and_no_other_is_its_identity(field):
    other = FRONT._replace(**{field: OTHERS[field]})
    assert (settings.identity(other) != settings.identity(FRONT)) == (field in IDENTITY)


def test_the_state_machine_is_given_what_concerns_it():
    instance = FRONT._replace(version=3, priority=254, interval=SECOND // 10, preempt=False, preempt_delay=7)
    assert settings.router(instance, "192.0.2.1", ("a", "b")) == machine.VirtualRouter(
        version=3,
        priority=254,
        interval=SECOND // 10,
        source="192.0.2.1",
        preempt=False,
        preempt_delay=7,
        tracked=frozenset({"a", "b"}),
    )


def test_an_advertisement_has_the_addresses_without_their_prefix_lengths():
    assert settings.advertisement(SIX) == packet.Advertisement(
        3, 51, 100, SECOND, ("fe80::10", "2001:db8::10"), packet.NO_AUTHENTICATION, b""
    )


def test_a_password_makes_authentication():
    said = settings.advertisement(FRONT._replace(auth_pass=b"geheim"))
    assert (said.auth_type, said.auth_pass) == (packet.PASSWORD, b"geheim")
