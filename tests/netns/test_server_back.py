# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server that a drill loses and gives back: its balancer finds both, and no client is refused."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.drill import lost_server
from ansible_collections.onprem.lb.plugins.module_utils._shared.events import SERVER_BACK
from support.netns import two_servers
from support.netns.links import PORT
from support.netns.two_servers import ONE, OTHER, Clients, Embedded, Native
from support.waiting import until

link, pages = two_servers.link, two_servers.pages


@pytest.mark.parametrize("engine", [Native, Embedded])
def test_it_gets_connections_again_and_nobody_is_refused(link, pages, tmp_path, engine):
    with engine(link, tmp_path) as running, Clients(link) as clients:
        clients.find(ONE, OTHER)
        before = len(clients.answers)
        link.lb1.output("nft", lost_server.rules(SERVER_BACK, link.members[1].addresses[0], PORT))
        try:
            clients.find(OTHER)
            until(lambda: running.states()[ONE] == "down")
        finally:
            link.lb1.output("nft", lost_server.DELETE_TABLE)
        until(lambda: running.states()[ONE] == "up")
        clients.find(ONE, OTHER)
    assert {*clients.answers[before:]} == {ONE, OTHER}
