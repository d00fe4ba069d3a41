# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bytes that are known, or wrong. What is written comes back in test_packet_scapy.py."""

from __future__ import annotations

import re

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import packet
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core.packet import Advertisement, Discard
from hypothesis import given
from hypothesis import strategies as st
from support.vrrp import mutations
from support.vrrp.mutations import CARP, NONE, PASSWORD, UNICAST, V3, V3_IPV6, V3_UNICAST, V4, V6, repaired, words

OF_PASSWORD = Advertisement(2, 51, 250, 1_000_000, ("192.0.2.151",), 1, b"secret", "rfc3768")
OF_NONE = Advertisement(2, 52, 251, 1_000_000, ("192.0.2.152", "192.0.2.162"), checksum="rfc3768")
OF_V3 = Advertisement(3, 53, 252, 100_000, ("192.0.2.153",), checksum="rfc5798")
OF_V3_IPV6 = Advertisement(3, 54, 253, 10_000, ("fe80::154", "2001:db8::154"), checksum="rfc5798")
OF_V3_UNICAST = Advertisement(3, 55, 254, 200_000, ("192.0.2.155",), checksum="rfc5798")
# The words of V3 sum up to 0x1EFD9 without the checksum and the pseudo-header, so 0xFFFF - 0xEFDA is it.
V3_RFC9568 = bytes.fromhex("3135fc01000a1025c0000299")
# All of 12 bits of interval, giving up; and a password of eight bytes, every 255 s. Both added up by hand.
LONGEST_V3 = bytes.fromhex("31ff00010ffffb66c0000299")
LONGEST_V2 = bytes.fromhex("2101ff0101ff4a91c0000297") + b"12345678"

VECTORS = [
    pytest.param(PASSWORD, V4, OF_PASSWORD, id="v2 with password"),
    pytest.param(NONE, V4, OF_NONE, id="v2 without authentication"),
    pytest.param(V3, V4, OF_V3, id="v3"),
    pytest.param(V3_IPV6, V6, OF_V3_IPV6, id="v3 over IPv6"),
    pytest.param(V3_UNICAST, UNICAST, OF_V3_UNICAST, id="v3 unicast"),
    pytest.param(V3_RFC9568, V4, OF_V3._replace(checksum="rfc9568"), id="v3 without pseudo-header"),
    pytest.param(
        *(LONGEST_V3, V4, Advertisement(3, 255, 0, 40_950_000, ("192.0.2.153",), checksum="rfc9568")),
        id="v3 giving up",
    ),
    pytest.param(
        *(LONGEST_V2, V4, Advertisement(2, 1, 255, 255_000_000, ("192.0.2.151",), 1, b"12345678", "rfc3768")),
        id="v2 of the owner",
    ),
]

# --- what is on the wire ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("message", "way", "advertisement"), VECTORS)
def test_known_bytes_are_read(message, way, advertisement):
    assert packet.decode(message, *way) == advertisement


@pytest.mark.parametrize(("message", "way", "advertisement"), VECTORS)
def test_known_bytes_are_written(message, way, advertisement):
    assert packet.encode(advertisement, *way, checksum=advertisement.checksum) == message


@pytest.mark.parametrize(("message", "way", "advertisement"), VECTORS)
def test_padding_behind_the_message_is_no_fault(message, way, advertisement):
    for padding in (b"\x00", b"\x00" * 18, b"\xff" * 7, bytes(range(200))):
        assert packet.decode(message + padding, *way) == advertisement


def test_without_being_asked_for_another_one_version_3_has_the_checksum_of_rfc_5798():
    assert packet.encode(OF_V3, *V4) == V3


def test_ipv6_has_a_pseudo_header_by_every_reading():
    assert packet.encode(OF_V3_IPV6, *V6, checksum="rfc9568") == V3_IPV6


def test_version_2_has_only_one_reading():
    assert {packet.encode(OF_PASSWORD, *V4, checksum=reading) for reading in packet.CHECKSUMS} == {PASSWORD}


def test_the_most_addresses_that_fit_are_written_and_read():
    many = tuple(f"2001:db8::{number:x}" for number in range(1, 256))
    message = packet.encode(OF_V3_IPV6._replace(addresses=many), *V6)
    assert len(message) == 8 + 255 * 16
    assert packet.decode(message, *V6).addresses == many


def test_keepalived_sends_to_the_groups_that_are_named_here():
    assert (V4[1], V6[1]) == (packet.GROUP, packet.GROUP6)


def test_what_was_not_received_has_no_reading_of_a_checksum():
    assert Advertisement(3, 53, 252, 100_000, ("192.0.2.153",)) == OF_V3._replace(checksum="")


def test_reserved_bits_are_ignored():
    """RFC 9568, 5.2.6."""
    assert packet.decode(repaired(V3[:4] + b"\xf0" + V3[5:], *V4, with_pseudo=True), *V4) == OF_V3


def test_authentication_data_without_authentication_are_ignored():
    """RFC 3768, 5.3.10."""
    message = repaired(NONE[:-8] + b"leftover", *V4, with_pseudo=False)
    assert packet.decode(message, *V4) == OF_NONE


def test_a_nul_within_a_password_is_part_of_it():
    message = repaired(PASSWORD[:-8] + b"\x00a\x00b\x00\x00\x00\x00", *V4, with_pseudo=False)
    assert packet.decode(message, *V4).auth_pass == b"\x00a\x00b"


def test_a_password_may_end_in_whatever_is_no_nul():
    for last in range(1, 256):
        advertisement = OF_PASSWORD._replace(auth_pass=b"mellon" + bytes([last]))
        assert packet.decode(packet.encode(advertisement, *V4), *V4) == advertisement


def test_a_checksum_of_all_ones_is_as_good_as_zero():
    """RFC 1071: the sum with the checksum in it has to be all ones, and there are two ways to write zero."""
    # The fourth word of the address is what makes up for all others.
    for checksum in (b"\x00\x00", b"\xff\xff"):
        message = V3_RFC9568[:6] + checksum + b"\xc0\x00" + (0x0299 + 0x1025).to_bytes(2, "big")
        assert packet.decode(message, *V4).checksum == "rfc9568"
    assert packet.encode(packet.decode(message, *V4), *V4, checksum="rfc9568")[6:8] == b"\x00\x00"


def repaired_whole(message):
    """The message with a checksum over all its bytes."""
    return message[:6] + (0xFFFF ^ words(message[:6] + b"\x00\x00" + message[8:])).to_bytes(2, "big") + message[8:]


# --- what is discarded --------------------------------------------------------------------------------------------


def with_byte(message, way, at, value):
    """The message with another byte in it and a checksum that is right for that."""
    changed = message[:at] + bytes([value]) + message[at + 1 :]
    return repaired(changed, *way, with_pseudo=message[0] >> 4 == 3)


# As a Cisco router sends it: 30 bytes of authentication data, and the checksum is over all of them.
MD5 = repaired_whole(bytes.fromhex("211e6401fe010000c0000229") + bytes(range(1, 31)))

DISCARDED = [
    ("length", "0 bytes received, the header alone has 8", b"", V4, 255),
    ("length", "7 bytes received", V3[:7], V4, 255),
    ("length", "19 bytes received, 20 announced by 1 address", PASSWORD[:-1], V4, 255),
    ("length", "24 announced by 2 addresses", with_byte(PASSWORD, V4, 3, 2), V4, 255),
    ("length", "16 announced by 2 addresses", with_byte(V3, V4, 3, 2), V4, 255),
    ("hop_limit", "TTL or hop limit 254 received, 255 or more expected", V3, V4, 254),
    ("hop_limit", "TTL or hop limit 0 received", PASSWORD, V4, 0),
    ("version", "version 4 received over IPv4", with_byte(V3, V4, 0, 0x41), V4, 255),
    ("version", "version 1 received", with_byte(V3, V4, 0, 0x11), V4, 255),
    ("version", "version 2 received over IPv6", with_byte(V3_IPV6, V6, 0, 0x21), V6, 255),
    ("type", "type 2 received", with_byte(PASSWORD, V4, 0, 0x22), V4, 255),
    ("type", "type 0 received", with_byte(V3_IPV6, V6, 0, 0x30), V6, 255),
    ("checksum", "version 3, VRID 53, 12 bytes", V3[:-1] + b"\x9a", V4, 255),
    ("checksum", "version 2, VRID 51", PASSWORD[:8] + b"\xc1" + PASSWORD[9:], V4, 255),
    ("checksum", "version 2", NONE[:-1] + b"\x01", V4, 255),
    ("checksum", "version 3", V3_IPV6, ("fe80::2", "ff02::12"), 255),
    ("checksum", "version 3", repaired(V3_IPV6, *V6, with_pseudo=False), V6, 255),
    ("checksum", "version 3", V3_UNICAST, V4, 255),
    ("checksum", "version 2", repaired(PASSWORD, *V4, with_pseudo=True), V4, 255),
    # Version 3 has no authentication data: this is version 2 with all its fields in another place.
    ("checksum", "version 2", repaired(PASSWORD[:-8], *V4, with_pseudo=False) + PASSWORD[-8:], V4, 255),
    ("vrid", "VRID 0 received", with_byte(V3, V4, 1, 0), V4, 255),
    ("count", "without any address received for VRID 53", with_byte(V3, V4, 3, 0), V4, 255),
    ("count", "without any address received for VRID 51", with_byte(PASSWORD, V4, 3, 0), V4, 255),
    ("interval", "interval of 0 received for VRID 53", with_byte(V3, V4, 5, 0), V4, 255),
    ("interval", "interval of 0", with_byte(with_byte(V3, V4, 5, 0), V4, 4, 0xF0), V4, 255),
    ("interval", "interval of 0 received for VRID 51", with_byte(PASSWORD, V4, 5, 0), V4, 255),
    ("authentication", "type 2 received for VRID 51", with_byte(PASSWORD, V4, 4, 2), V4, 255),
    ("authentication", "type 255 received", with_byte(NONE, V4, 4, 255), V4, 255),
    ("authentication", "type 254 received for VRID 30", MD5, V4, 255),
    ("authentication", "type 254 received for VRID 30", MD5 + bytes(1), V4, 255),
    ("checksum", "version 2", MD5[:4] + b"\x01" + MD5[5:], V4, 255),
    ("carp", "a CARP advertisement of VHID 7", CARP, V4, 255),
    ("carp", "a CARP advertisement", CARP, V6, 255),
]


@pytest.mark.parametrize(("reason", "text", "message", "way", "hop_limit"), DISCARDED)
def test_a_message_with_a_fault_is_discarded_for_that(reason, text, message, way, hop_limit):
    assert mutations.faults(mutations.Case(message, *way, hop_limit)) == {reason}
    verdict = packet.decode(message, *way, hop_limit)
    assert isinstance(verdict, Discard)
    assert verdict.reason == reason
    assert text in verdict.detail


def test_a_damaged_message_with_unknown_authentication_is_called_damaged():
    assert packet.decode(MD5[:-1] + b"\x00", *V4).reason == packet.CHECKSUM


def test_what_a_router_says_that_authenticates_in_an_unknown_way_is_kept():
    said = packet.decode(MD5, *V4).advertisement
    assert said == Advertisement(2, 30, 100, 1_000_000, ("192.0.2.41",), 254, checksum="rfc3768")
    assert packet.decode(PASSWORD[:-1], *V4).advertisement is None


def test_each_reason_has_its_case():
    assert {case[0] for case in DISCARDED} == set(packet.REASONS)
    assert len(set(packet.REASONS)) == len(packet.REASONS)
    # They become names of counters.
    assert all(re.fullmatch("[a-z]+(_[a-z]+)*", reason) for reason in packet.REASONS)


@pytest.mark.parametrize(("message", "way", "_advertisement"), VECTORS)
def test_every_shorter_message_is_discarded_for_its_length(message, way, _advertisement):
    reasons = {packet.decode(message[:length], *way).reason for length in range(len(message))}
    assert reasons == {packet.LENGTH}


@pytest.mark.parametrize(("message", "way", "_advertisement"), VECTORS)
def test_no_single_bit_may_be_wrong(message, way, _advertisement):
    for bit in range(len(message) * 8):
        damaged = bytearray(message)
        damaged[bit // 8] ^= 1 << bit % 8
        assert isinstance(packet.decode(bytes(damaged), *way), Discard), bit


def test_what_was_damaged_on_its_way_is_not_blamed_on_a_setting():
    for at in (1, 3, 5):
        assert packet.decode(V3[:at] + b"\x00" + V3[at + 1 :], *V4).reason == packet.CHECKSUM


def test_how_long_another_type_has_to_be_is_not_ours_to_know():
    assert packet.decode(b"\x32" + V3[1:8], *V4).reason == packet.TYPE


def test_an_interval_of_256_centiseconds_is_not_0():
    message = with_byte(with_byte(V3, V4, 4, 1), V4, 5, 0)
    assert packet.decode(message, *V4).interval == 2_560_000


@pytest.mark.parametrize("version", [2, 3])
def test_seven_addresses_are_not_taken_for_carp(version):
    seven = Advertisement(version, 7, 100, 1_000_000, tuple(f"192.0.2.{number}" for number in range(7)))
    message = packet.encode(seven, *V4)
    assert len(message) == {2: 44, 3: 36}[version]
    assert packet.decode(message, *V4)[:7] == seven[:7]


def test_36_bytes_are_not_taken_for_carp():
    five = Advertisement(2, 7, 100, 1_000_000, tuple(f"192.0.2.{number}" for number in range(5)))
    message = packet.encode(five, *V4)
    assert len(message) == 36
    assert packet.decode(message, *V4)[:7] == five[:7]


@given(st.binary(max_size=80), st.sampled_from(mutations.PATHS), st.integers(0, 255))
def test_no_message_makes_the_decoder_raise(message, way, hop_limit):
    assert isinstance(packet.decode(message, *way, hop_limit), (Advertisement, Discard))


@pytest.mark.parametrize(
    ("way", "text"),
    [
        (("192.0.2.1", "ff02::12"), "ff02::12 is not an IPv4 address"),
        (("fe80::1", "224.0.0.18"), "224.0.0.18 is not an IPv6 address"),
        (("fe80::1%eth0", "ff02::12"), "fe80::1%eth0 is not an IPv6 address"),
        (("", "224.0.0.18"), "is not an IPv4 address"),
    ],
)
def test_a_way_that_cannot_be_is_the_callers_mistake(way, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        packet.decode(V3, *way)
    with pytest.raises(ValueError, match=re.escape(text)):
        packet.encode(OF_V3, *way)


# --- what cannot be written ---------------------------------------------------------------------------------------

IMPOSSIBLE = [
    (OF_V3._replace(version=1), V4, "no VRRP version 1"),
    (OF_V3._replace(version=4), V4, "no VRRP version 4"),
    (OF_NONE._replace(addresses=("fe80::1",)), V6, "version 2 knows no IPv6"),
    (OF_V3._replace(vrid=0), V4, "1 to 255, not 0"),
    (OF_V3._replace(vrid=256), V4, "1 to 255, not 256"),
    (OF_V3._replace(priority=-1), V4, "0 to 255, not -1"),
    (OF_V3._replace(priority=256), V4, "0 to 255, not 256"),
    (OF_V3._replace(interval=0), V4, "1 to 4095 times 10000 us, not 0 us"),
    (OF_V3._replace(interval=-10_000), V4, "not -10000 us"),
    (OF_V3._replace(interval=40_960_000), V4, "not 40960000 us"),
    (OF_V3._replace(interval=15_000), V4, "not 15000 us"),
    (OF_NONE._replace(interval=0), V4, "1 to 255 times 1000000 us, not 0 us"),
    (OF_NONE._replace(interval=256_000_000), V4, "not 256000000 us"),
    (OF_NONE._replace(interval=1_500_000), V4, "not 1500000 us"),
    (OF_V3._replace(addresses=()), V4, "1 to 255 addresses, not 0"),
    (OF_V3._replace(addresses=("192.0.2.1",) * 256), V4, "1 to 255 addresses, not 256"),
    (OF_V3._replace(addresses=("2001:db8::1",)), V4, "2001:db8::1 is not an IPv4 address"),
    (OF_V3_IPV6._replace(addresses=("192.0.2.1",)), V6, "192.0.2.1 is not an IPv6 address"),
    (OF_NONE._replace(auth_type=2), V4, "0 or 1, not 2"),
    (OF_V3._replace(auth_type=1), V4, "version 3 has no authentication"),
    (OF_V3._replace(auth_pass=b"mellon"), V4, "would not be sent"),
    (OF_NONE._replace(auth_pass=b"mellon"), V4, "would not be sent"),
    (OF_PASSWORD._replace(auth_pass=b"mellonmel"), V4, "at most 8 bytes"),
    (OF_PASSWORD._replace(auth_pass=b"mellon\x00"), V4, "does not end in a NUL"),
]


@pytest.mark.parametrize(("advertisement", "way", "text"), IMPOSSIBLE)
def test_what_no_message_can_say_is_refused(advertisement, way, text):
    with pytest.raises(ValueError, match=re.escape(text)) as refused:
        packet.encode(advertisement, *way)
    assert "mellon" not in str(refused.value)


def test_an_unknown_checksum_is_refused():
    with pytest.raises(ValueError, match="rfc3768, rfc5798, rfc9568, not crc32"):
        packet.encode(OF_V3, *V4, checksum="crc32")


# --- what others are set to ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("received", "own", "reason", "text"),
    [
        (OF_V3, OF_PASSWORD, "version", "version 3 received, 2 expected"),
        (OF_NONE, OF_PASSWORD, "authentication", "type 0 received, 1 expected"),
        (OF_PASSWORD, OF_NONE, "authentication", "type 1 received, 0 expected"),
        (OF_PASSWORD._replace(auth_pass=b"mellon"), OF_PASSWORD, "authentication", "the password received is not ours"),
        (OF_NONE._replace(interval=2_000_000), OF_NONE, "interval", "2 s received, 1 s expected"),
    ],
)
def test_another_setting_of_a_neighbour_is_named_without_any_password(received, own, reason, text):
    verdict = packet.mismatch(received, own)
    assert verdict.reason == reason
    assert text in verdict.detail
    assert not re.search("mellon|secret", verdict.detail)


@pytest.mark.parametrize(
    ("received", "own"),
    [
        (OF_V3, OF_V3),
        (OF_PASSWORD, OF_PASSWORD),
        # RFC 9568, 6.4.2: the sender's interval is adopted.
        (OF_V3._replace(interval=4_000_000), OF_V3),
        (OF_V3._replace(checksum="rfc9568"), OF_V3),
        (OF_NONE._replace(addresses=("192.0.2.9",)), OF_NONE),
        (OF_NONE._replace(priority=255), OF_NONE._replace(priority=255)),
        (OF_NONE._replace(priority=0), OF_NONE),
    ],
)
def test_what_may_differ_is_not_discarded(received, own):
    assert packet.mismatch(received, own) is None
