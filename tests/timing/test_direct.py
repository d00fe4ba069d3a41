# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How soon a direct plane takes a server out of the kernel's table, and finds that a path is there or lost."""

from __future__ import annotations

import contextlib
import time

import pytest
from support.netns.direct import Plane, behind_balancers
from support.netns.links import VIP, VIP6, skip_reason
from support.netns.stalls import StallDetector
from support.rounds import ROUNDS, percentile
from support.waiting import until

pytestmark = pytest.mark.skipif(bool(skip_reason("nft")), reason=skip_reason("nft"))
CHANGE_S = 0.2  # a transaction; docs/direct.md says 45 to 110 ms
PATH_S = 3  # until a path is found, or found to be lost


@pytest.fixture(params=[VIP, VIP6], ids=["IPv4", "IPv6"])
def cluster(request, tmp_path):
    with behind_balancers(request.param) as made:
        yield made.arrange(tmp_path)


@pytest.fixture
def plane(cluster, tmp_path):
    with contextlib.closing(Plane(cluster, tmp_path)) as made:
        yield made


@pytest.fixture
def detector():
    with contextlib.closing(StallDetector()) as made:
        yield made


def test_a_server_that_drains_is_out_of_the_table_at_once(plane, cluster, detector):
    lasted = []
    for _round in range(ROUNDS):
        began = time.time()
        assert plane.order("drain", cluster.hosts[0]) == 0
        lasted.append(plane.report()["table"]["took"] - detector.stalled(began, time.time()))
        assert plane.order("ready", cluster.hosts[0]) == 0
    print(lasted)
    assert percentile(lasted) <= CHANGE_S


@pytest.mark.parametrize("change, there", [("del", False), ("add", True)], ids=["lost", "found"])
def test_a_path_is_found_or_found_to_be_lost_within_seconds(plane, cluster, detector, change, there):
    host, back, lasted = cluster.hosts[0], "del" if there else "add", []

    def follows(word, wanted):
        host.ip("addr", word, cluster.on_lo, "dev", "lo")
        until(lambda: (host.name in plane.owners()) == wanted, lambda: plane.log)

    for _round in range(ROUNDS):
        if there:
            follows(back, not there)
        began = time.time()
        follows(change, there)
        ended = time.time()
        lasted.append(ended - began - detector.stalled(began, ended))
        if not there:
            follows(back, not there)
    print(lasted)
    assert percentile(lasted) <= PATH_S
