# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events about the ruleset as the kernel sends them. With a real one: tests/netns/test_direct_agent.py."""

from __future__ import annotations

import errno
import struct

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import messages
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.messages import Message
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.nftables import (
    Changes,
    Lost,
    Part,
    TableName,
    part_in,
)
from hypothesis import given
from hypothesis import strategies as st

NEW_TABLE, NEW_ELEMENT, NEW_GENERATION = 0, 12, 15
NETDEV, IP6 = 5, 10
OURS, OTHERS = TableName("netdev", "ours"), TableName("ip6", "others")


def event(kind, family=NETDEV, name=b"ours\0", port=4711, subsystem=10):
    body = struct.pack("=BBH", family, 0, 0) + messages.attribute(1, name)
    encoded = messages.encode(Message(subsystem << 8 | kind, 0, 0, body, port))
    return encoded.ljust((len(encoded) + 3) & ~3, b"\0")


END = event(NEW_GENERATION, 0, b"\0\0\0\7")


def test_a_datagram_says_which_tables_were_changed():
    data = event(NEW_TABLE) + event(NEW_ELEMENT) + event(NEW_TABLE, IP6, b"others\0")
    assert part_in(data) == Part(frozenset({OURS, OTHERS}))


def test_the_end_of_a_transaction_is_no_table():
    assert part_in(END) == Part(ended=True)


def test_what_was_changed_by_oneself_does_not_count():
    assert part_in(event(NEW_TABLE), [4711]) == part_in(END, [4711]) == Part()
    assert part_in(event(NEW_TABLE), [4712]).tables == {OURS}


def test_events_of_other_subsystems_are_left_out():
    assert part_in(event(NEW_TABLE, subsystem=1)) == Part()


@given(st.binary(max_size=80))
def test_no_datagram_raises(data):
    part_in(data)


class Socket:
    """What the kernel has sent: datagrams and errors."""

    def __init__(self, *sent):
        self.sent, self.options = list(sent), []

    def recv(self, _size):
        if not self.sent:
            raise BlockingIOError
        found = self.sent.pop(0)
        if isinstance(found, int):
            raise OSError(found, "error")
        return found

    def setblocking(self, _whether):
        pass

    def setsockopt(self, *option):
        self.options.append(option)

    def bind(self, _address):
        pass


def test_a_transaction_of_several_datagrams_is_told_once_when_it_has_ended():
    kernel = Socket(event(NEW_ELEMENT))
    changes = Changes(lambda: kernel)
    assert (270, 1, 7) in kernel.options
    assert changes.tables([]) == set()
    kernel.sent += [event(NEW_ELEMENT), END, event(NEW_TABLE, IP6, b"others\0")]
    assert changes.tables([]) == {OURS}
    kernel.sent += [END]
    assert changes.tables([]) == {OTHERS}


def test_lost_events_are_said():
    with pytest.raises(Lost):
        Changes(lambda: Socket(errno.ENOBUFS)).tables([])


def test_another_error_is_one():
    with pytest.raises(OSError, match="error"):
        Changes(lambda: Socket(errno.EBADF)).tables([])
