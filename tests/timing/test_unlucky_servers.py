# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A link that loses a packet in twenty for a minute takes no server off, not even beside another one, where a server
that is late would get no new connections."""

from __future__ import annotations

import pytest
from support.netns.links import skip_reason, temporary_link
from support.netns.two_servers import ONE, OTHER, Embedded, Native, lossy, pages_of, watched
from support.rounds import ROUNDS, SHARE
from support.waiting import until

pytestmark = pytest.mark.skipif(bool(skip_reason("haproxy")), reason=skip_reason("haproxy"))
CHECKS = 30  # of each server in each round: six seconds
UP = {ONE: "up", OTHER: "up"}


@pytest.mark.parametrize("engine", [Native, Embedded])
def test_each_server_stays_up_while_packets_are_lost(tmp_path, engine):
    rounds = []
    with temporary_link(3) as link, pages_of(link) as pages, engine(link, tmp_path) as running, lossy(link):
        for _round in range(ROUNDS):
            until(lambda: running.states() == UP)
            rounds.append(watched(link, running, pages, CHECKS))
    print(rounds)
    assert [states for states, _answers in rounds].count({"up"}) >= SHARE * ROUNDS
    assert all("" not in answers for _states, answers in rounds)
