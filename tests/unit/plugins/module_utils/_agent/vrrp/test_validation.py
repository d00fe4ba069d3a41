# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether an incoming message counts: the order of RFC 9568 section 7.1, and what keepalived adds to it."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.ip import Datagram
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import settings, validation
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import packet
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.validation import LocalInstance, validate
from support.vrrp.fakes import FRONT, OTHER, OWN, SECOND, SIX, THIRD
from support.vrrp.packets import flip

SECRET = FRONT._replace(auth_pass=b"geheim12")
GROUP = FRONT._replace(multicast=True, peers=())
THREE = FRONT._replace(version=3)


def ours(instance=FRONT, source=OWN):
    return LocalInstance(instance, settings.advertisement(instance), source)


def theirs(of=FRONT, source=OTHER, destination=OWN, hop_limit=255, mangle=lambda message: message, **changes):
    said = settings.advertisement(of)._replace(**changes)
    return Datagram(source, destination, hop_limit, mangle(packet.encode(said, source, destination)), whole=True)


def reason(datagram, who):
    said = validate(datagram, who)
    return said.reason if isinstance(said, packet.Discard) else said


@pytest.mark.parametrize(
    "instance, source, destination",
    [
        (FRONT, OTHER, OWN),
        (SECRET, OTHER, OWN),
        (GROUP, THIRD, packet.GROUP),
        (THREE, OTHER, OWN),
        (SIX, "fe80::2", packet.GROUP6),
        (SIX._replace(multicast=False, peers=("fe80::2",)), "fe80::2", "fe80::1"),
    ],
)
def test_what_another_router_of_the_same_settings_sends_counts(instance, source, destination):
    said = validate(theirs(instance, source, destination, priority=7), ours(instance))
    assert said.priority == 7
    assert said._replace(checksum="") == settings.advertisement(instance)._replace(priority=7)


def summed(message):
    """A message that no router would send, with a checksum that is right."""
    total = int.from_bytes(message, "big") % 0xFFFF
    return message[:6] + (-total % 0xFFFF).to_bytes(2, "big") + message[8:]


DISCARDED = {
    "fragment": (FRONT, theirs()._replace(whole=False)),
    "length": (FRONT, theirs(mangle=lambda message: message[:7])),
    "hop_limit": (GROUP, theirs(GROUP, destination=packet.GROUP, hop_limit=254)),
    "carp": (FRONT, theirs(mangle=lambda message: b"\x21\x33\x00\x07" + bytes(32))),
    "version": (THREE, theirs()),
    "type": (FRONT, theirs(mangle=lambda message: b"\x22" + message[1:])),
    "checksum": (FRONT, theirs(mangle=flip)),
    "vrid": (FRONT, theirs(mangle=lambda message: summed(b"\x21\x00" + message[2:6] + bytes(2) + message[8:]))),
    "count": (FRONT, theirs(mangle=lambda message: summed(bytes.fromhex("2133640000010000") + bytes(8)))),
    "interval": (FRONT, theirs(interval=2 * SECOND)),
    "authentication": (SECRET, theirs(SECRET, auth_pass=b"falsch")),
    "own": (GROUP, theirs(GROUP, source=OWN, destination=packet.GROUP)),
    "destination": (GROUP, theirs(GROUP)),
    "peer": (FRONT, theirs(source=THIRD)),
}


@pytest.mark.parametrize("why", validation.REASONS)
def test_each_reason_to_discard_a_message_is_found(why):
    instance, datagram = DISCARDED[why]
    assert reason(datagram, ours(instance)) == why


def test_multicast_does_not_count_for_a_router_configured_for_unicast():
    assert reason(theirs(destination=packet.GROUP), ours()) == "destination"
    assert reason(theirs(SIX, "fe80::2", packet.GROUP6), ours(SIX._replace(multicast=False))) == "destination"


def test_without_a_password_of_ours_one_of_theirs_is_wrong_too():
    assert reason(theirs(SECRET), ours()) == "authentication"
    assert reason(theirs(), ours(SECRET)) == "authentication"


def test_a_unicast_message_that_a_router_has_forwarded_is_discarded():
    instance = SIX._replace(multicast=False, peers=("fe80::2",))
    assert reason(theirs(hop_limit=254), ours()) == "hop_limit"
    assert reason(theirs(instance, "fe80::2", "fe80::1", hop_limit=64), ours(instance)) == "hop_limit"


def test_min_ttl_accepts_a_lower_hop_limit_of_unicast_alone():
    """Over IPv6 keepalived sends unicast with a hop limit of 64."""
    instance = SIX._replace(multicast=False, peers=("fe80::2",), min_ttl=64)
    assert validate(theirs(instance, "fe80::2", "fe80::1", hop_limit=64), ours(instance)).vrid == 51
    assert reason(theirs(instance, "fe80::2", "fe80::1", hop_limit=63), ours(instance)) == "hop_limit"
    both = ours(SIX._replace(min_ttl=64))
    assert reason(theirs(SIX, "fe80::2", packet.GROUP6, hop_limit=254), both) == "hop_limit"


@pytest.mark.parametrize("checksum", [packet.RFC5798, packet.RFC9568])
def test_both_readings_of_the_checksum_count(checksum):
    message = packet.encode(settings.advertisement(THREE), OTHER, OWN, checksum)
    assert validate(Datagram(OTHER, OWN, 255, message, True), ours(THREE)).checksum == checksum


def test_the_interval_of_version_3_is_the_senders_own():
    assert validate(theirs(THREE, interval=SECOND // 10), ours(THREE)).interval == SECOND // 10


def test_another_list_of_addresses_is_heard():
    assert validate(theirs(addresses=("192.0.2.99",)), ours()).addresses == ("192.0.2.99",)


@pytest.mark.parametrize("message", [b"", b"\x21", b"\x21\x33", b"\xff" * 8, b"\x21" * 4096])
def test_anything_can_be_asked_for_its_vrid_and_be_judged(message):
    assert validation.vrid_of(message) == (message[1] if len(message) > 1 else 0)
    assert isinstance(validate(Datagram(OTHER, OWN, 255, message, True), ours()), packet.Discard)


def test_no_reason_shows_a_password():
    said = validate(theirs(SECRET, auth_pass=b"falsch"), ours(SECRET))
    assert "falsch" not in said.detail
    assert "geheim" not in said.detail
