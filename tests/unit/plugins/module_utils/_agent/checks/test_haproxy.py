# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks import haproxy, network


class Stream:
    def __init__(self, reply):
        self.sent, self.reply, self.missing = b"", reply, ""

    def expect(self, what):
        self.missing = what

    def send(self, data):
        self.sent += data
        yield from ()

    def receive(self, _size):
        yield from ()
        return self.reply


def test_any_answer_is_one_and_a_connection_that_is_closed_is_none():
    stream = Stream(b"N")
    with pytest.raises(StopIteration) as ended:
        next(haproxy.show_info(stream))
    assert (ended.value.value, stream.sent, stream.missing) == ("answered", b"show info\n", "no answer")
    with pytest.raises(network.BadResponse, match="closed without an answer"):
        next(haproxy.show_info(Stream(b"")))
