# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The frame around netlink's messages."""

from __future__ import annotations

import struct

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import messages
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.messages import Message
from hypothesis import given
from hypothesis import strategies as st

ONE, TWO = Message(16, 2, 7, b"abcde"), Message(20, 0, 8, b"")

numbers = st.integers(0, 0xFFFF)
long_numbers = st.integers(0, 0xFFFFFFFF)
any_message = st.builds(Message, numbers, numbers, long_numbers, st.binary(max_size=50), long_numbers)


def padded(message):
    data = messages.encode(message)
    return data + b"\0" * (-len(data) % 4)


def test_a_message_is_written_as_netlink_wants_it():
    assert messages.encode(ONE) == struct.pack("=IHHII", 21, 16, 2, 7, 0) + b"abcde"


@given(st.lists(any_message, max_size=5))
def test_every_message_of_a_datagram_is_read_as_it_was_written(many):
    assert list(messages.decode(b"".join(map(padded, many)))) == many


def test_an_acknowledgement_is_distinguished_from_everything_else():
    def answer(kind=messages.ERROR, serial=7, number=0):
        return messages.encode(Message(kind, 0x100, serial, struct.pack("=i", -number) + bytes(16)))

    assert messages.acknowledges(answer(), 7)
    for other in (answer(serial=6), answer(number=1), answer(kind=messages.DONE), answer()[:19], b""):
        assert not messages.acknowledges(other, 7)


def test_a_message_that_was_cut_is_left_out_and_those_before_it_are_read():
    data = padded(TWO) + messages.encode(ONE)
    assert list(messages.decode(data)) == [TWO, ONE]
    for end in range(16, len(data)):
        assert list(messages.decode(data[:end])) == [TWO]
    assert list(messages.decode(data[:15])) == []


@pytest.mark.parametrize("length", [0, 15])
def test_a_length_that_cannot_be_ends_the_reading(length):
    data = padded(TWO) + struct.pack("=I", length) + padded(ONE)[4:]
    assert list(messages.decode(data)) == [TWO]


def test_attributes_are_aligned_and_read_by_kind():
    data = messages.attribute(3, b"eth0\0") + messages.attribute(1, b"\1" * 6)
    assert (len(data), data[:4]) == (12 + 12, struct.pack("=HH", 9, 3))
    assert messages.attributes(data) == {3: b"eth0\0", 1: b"\1" * 6}


def test_the_marks_on_an_attributes_kind_do_not_count():
    assert messages.attributes(messages.attribute(0x8000 | 18, b"x")) == {18: b"x"}
    assert messages.attributes(messages.attribute(0x4000 | 18, b"x")) == {18: b"x"}


@pytest.mark.parametrize("cut", [b"\0\0\1\0", b"\3\0\1\0", b"\x0c\0\1\0abc", b"\5"])
def test_attributes_behind_one_that_makes_no_sense_are_left_out(cut):
    assert messages.attributes(messages.attribute(3, b"x") + cut) == {3: b"x"}


@given(st.binary(max_size=100))
def test_noise_never_breaks_the_readers(noise):
    for message in messages.decode(noise):
        messages.attributes(message.body)
    messages.attributes(noise)


@pytest.mark.parametrize("body, number", [(struct.pack("=i", -17) + b"more", 17), (b"\0" * 4, 0), (b"", 0)])
def test_the_end_of_an_answer_tells_what_went_wrong(body, number):
    assert messages.failure(Message(messages.ERROR, 0, 1, body)) == number
