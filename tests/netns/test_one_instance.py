# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One instance carries many VIPs (pair_one_instance): both engines hold all of them, and hand all of them over."""

from __future__ import annotations

import threading

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair.one_instance import MOST
from support.netns.links import skip_reason
from support.netns.pairs import ENGINES, running
from support.waiting import LIMIT_S

PROGRAMS = ("haproxy", "keepalived")
pytestmark = pytest.mark.skipif(bool(skip_reason(*PROGRAMS)), reason=str(skip_reason(*PROGRAMS)))
VIPS = {
    "forty": [f"192.0.2.{number}" for number in range(100, 140)],
    "as many as an advertisement has room for": [f"2001:db8::{number:x}" for number in range(256, 256 + MOST[6])],
}


@pytest.fixture(params=VIPS)
def vips(request):
    return VIPS[request.param]


@pytest.mark.parametrize("engine", ENGINES)
def test_all_vips_of_an_instance_move_together(engine, vips, tmp_path):
    with running(engine, tmp_path / "pair", threading.Event(), vips=vips, vrid=51, one_instance=True) as cluster:
        assert cluster.settle(dict.fromkeys(vips, "lb1"))
        process = cluster.running.pop("lb1")
        process.terminate()
        process.wait(LIMIT_S)
        assert cluster.settle(dict.fromkeys(vips, "lb2"))
        cluster.start("lb1")
        assert cluster.settle(dict.fromkeys(vips, "lb1"))
