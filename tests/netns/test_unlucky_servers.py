# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No server that answers is taken off by a burst of connections, nor by a link that loses a packet in twenty.

Both engines, with the pace that they have by default. A machine that stalls may make a server late, and that is none
that is down.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.netns import two_servers
from support.netns.two_servers import ONE, OTHER, Embedded, Native, ask, lossy, watched
from support.scope import FULL
from support.waiting import pause, until

link, pages = two_servers.link, two_servers.pages
CONNECTIONS, AT_ONCE = (10_000, 400) if FULL else (300, 100)
CHECKS = 8  # of each server, while packets are lost: for a minute in tests/timing


@pytest.fixture(params=[Native, Embedded])
def running(request, link, pages, tmp_path):
    with request.param(link, tmp_path) as made:
        until(lambda: made.states() == {ONE: "up", OTHER: "up"})
        yield made


def test_a_burst_of_connections_is_answered_and_takes_no_server_off(link, running):
    seen = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        asked = [pool.submit(ask, link) for _connection in range(CONNECTIONS)]
        while not asked[-1].done():
            seen += running.states().values()
            pause(0.05)
    answers = Counter(each.result() for each in asked)
    assert {*answers} == {ONE, OTHER} and "down" not in seen
    until(lambda: running.states() == {ONE: "up", OTHER: "up"})


def test_a_link_that_loses_a_packet_in_twenty_takes_no_server_off_and_fails_no_client(link, running, pages):
    with lossy(link):
        states, answers = watched(link, running, pages, CHECKS)
    assert "down" not in states and "" not in answers
    until(lambda: running.states() == {ONE: "up", OTHER: "up"})
