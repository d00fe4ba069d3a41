# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How soon a node that joins the cluster is a server of HAProxy."""

from __future__ import annotations

import contextlib
import time

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.settings import Api
from support.agent.certificates import Certificate
from support.follow.api_server import TOKEN, ApiServer
from support.follow.nodes import node
from support.follow.running import Follow, Haproxy
from support.netns.links import skip_reason
from support.netns.stalls import StallDetector
from support.rounds import ROUNDS, percentile
from support.waiting import until

pytestmark = pytest.mark.skipif(bool(skip_reason("haproxy")), reason=skip_reason("haproxy"))
JOINS_S = 2


def test_a_node_that_joins_becomes_a_server_within_two_seconds(tmp_path):
    (tmp_path / "token").write_text(TOKEN)
    with contextlib.ExitStack() as stack:
        certificate = Certificate(tmp_path, "IP:127.0.0.1")
        server = stack.enter_context(ApiServer(certificate))
        haproxy = stack.enter_context(contextlib.closing(Haproxy(tmp_path)))
        server.put(node("a", "10.0.0.1"))
        api = Api((server.url,), ca=certificate.file, token=str(tmp_path / "token"))
        stack.callback(Follow(tmp_path, api, haproxy, {}).stop)
        until(lambda: server.watches)
        detector = stack.enter_context(contextlib.closing(StallDetector()))
        joined = [joins(server, haproxy, f"n{number}", f"10.0.1.{number}", detector) for number in range(ROUNDS)]
    print(joined)
    assert percentile(joined) < JOINS_S


def joins(server, haproxy, name, address, detector):
    began = time.time()
    server.put(node(name, address))
    until(lambda: haproxy.present().get(name) == address)
    ended = time.time()
    return ended - began - detector.stalled(began, ended)
