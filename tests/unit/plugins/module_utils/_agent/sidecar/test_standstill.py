# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which routers are found to stand still, and which of those are ended."""

from __future__ import annotations

import itertools
import random

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.keepalived import conf
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import netlink, raw_sockets
from ansible_collections.onprem.lb.plugins.module_utils._agent.sidecar import standstill
from ansible_collections.onprem.lb.plugins.module_utils._agent.sidecar.standstill import Seen
from support.agent.loops import SECOND, run_until

TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
   1: 00000000:0001 00000000:0000 07 00000000:00000300 00:00000000 00000000     0        0 11 2 0000000000000000 0
 112: 00000000:0070 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 12 2 0000000000000000 0
 112: 0100007F:0070 00000000:0000 07 00000000:00000900 00:00000000 00000000     0        0 13 2 0000000000000000 0
"""
CONF = """\
vrrp_instance api {
    interface lo
    virtual_router_id 7
    virtual_ipaddress {
        127.0.0.1/8
    }
}
"""


def test_only_the_sockets_of_vrrp_count_and_only_those_that_are_not_empty():
    assert raw_sockets.unread(TABLE) == {13: 0x900}
    assert raw_sockets.unread("") == {}


def looks(queues, lateness=0):
    """Return what was seen in the end of the queues of a socket, each look that much later than it should be."""
    seen, now = Seen(), 0
    over = 0
    for size in queues:
        seen = seen.look({1: size} if size else {}, now)
        over += seen.is_over
        now = (seen.wait.wake if seen.wait else now + standstill.LOOK_EVERY) + lateness
    return over


def test_a_queue_that_only_grows_is_not_read():
    assert looks([100 * number for number in range(1, 8)]) == 1
    assert looks([100] * 7) == 1


@pytest.mark.parametrize("seed", range(50))
def test_a_router_that_reads_now_and_then_does_not_stand_still(seed):
    """Whatever waits: within half a second its queue has become shorter once."""
    draw = random.Random(seed)
    rounds = [sorted(draw.sample(range(200, 9000), draw.randint(1, 4))) + [100] for _round in range(40)]
    assert looks(itertools.chain(*rounds)) == 0


def test_what_the_sidecar_is_late_by_itself_counts_for_nothing():
    assert looks([100] * 200, lateness=SECOND) == 0


class Case:
    """A router with an address of lo, and what is known of it."""

    def __init__(self, loop, tmp_path):
        self.unread, self.held, self.elsewhere, self.ended, self.said = {1: 100}, True, True, [], []
        self.loop = loop
        self.watch = standstill.Standstill(
            loop,
            self,
            lambda: conf.routers(CONF if self.held else CONF.replace("127.0.0.1", "127.0.0.99")),
            netlink.Netlink,
            lambda: dict(self.unread),
            self.end,
            lambda _routers: self.elsewhere,
        )

    def end(self):
        self.ended.append(1)
        self.unread = {}

    def warning(self, text):
        self.said.append(text)

    def fault(self, _key, text):
        self.said.append(text)


@pytest.fixture
def case(loop, tmp_path):
    return Case(loop, tmp_path)


def runs_on(case, seconds=3):
    end = case.loop.now() + seconds * SECOND
    run_until(case.loop, lambda: case.loop.now() > end)


def test_one_that_holds_what_another_holds_too_is_ended_once(case):
    case.watch.start()
    run_until(case.loop, lambda: case.ended)
    runs_on(case, 1)
    assert len(case.ended) == 1 and case.said == [
        "The router has read nothing for a while, and another host holds api: it is ended."
    ]


def test_one_that_nobody_replaces_keeps_its_addresses(case):
    case.elsewhere = False
    case.watch.start()
    runs_on(case)
    assert case.ended == []


def test_one_that_reads_again_before_the_answer_is_left_alone(case):
    case.elsewhere = False
    case.watch.start()
    runs_on(case, 1)
    case.elsewhere = True
    case.unread = {}
    runs_on(case, 2)
    assert case.ended == []


def test_one_that_holds_nothing_is_ended_later(case, monkeypatch):
    case.held = False
    monkeypatch.setattr(standstill, "IDLE", 3)
    case.watch.start()
    run_until(case.loop, lambda: case.ended)
    assert case.said == ["The router has read nothing for a while, and holds no address: it is ended."]


def test_one_that_cannot_be_ended_is_said(case, monkeypatch):
    def end():
        raise OSError(6, "No such device or address")

    case.watch._end = end
    case.watch.start()
    run_until(case.loop, lambda: case.said)
    assert case.said[0] == "The router stands still, and cannot be ended: No such device or address."


def test_what_it_holds_is_not_known_without_its_configuration(case):
    def routers():
        raise OSError(2, "No such file or directory")

    case.watch._routers = routers
    case.watch.start()
    run_until(case.loop, lambda: case.said)
    assert case.ended == []
