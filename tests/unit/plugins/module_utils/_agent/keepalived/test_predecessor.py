# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each router gets priority 0 in the name of a predecessor that speaks no VRRP."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.keepalived import conf, predecessor
from support.paths import GOLDEN
from support.vrrp import fakes

ROUTERS = conf.routers((GOLDEN / "every-instance.keepalived.conf").read_text())


class Log:
    def __init__(self):
        self.lines = []
        self.warning = self.lines.append


@pytest.fixture
def host():
    network = fakes.Network([])
    for index, name in enumerate(("eth0", "eth1"), 1):
        network.netlink.link(name, index)
    network.netlink.put("192.0.2.1/24", "eth0")
    return network


def resign(host, log):
    return predecessor.resign(ROUTERS, host.netlink, host.open_socket, log)


def test_the_peers_of_each_router_get_it_and_no_address_changes(host):
    log = Log()
    for address in ("198.51.100.1/24", "2001:db8::1/64", "fe80::1/64"):
        host.netlink.put(address, "eth1")
    assert resign(host, log)
    assert log.lines == [] and set(host.journal) == {
        f"send 0 to {peer}" for router in ROUTERS for peer in router.peers or ("224.0.0.18",)
    }


def test_a_router_that_cannot_send_does_not_keep_the_others_from_it(host):
    log = Log()
    assert not resign(host, log)
    assert "send 0 to 224.0.0.18" in host.journal
    assert log.lines and all(
        "priority 0 cannot be sent: eth1 has no address to send from." in line for line in log.lines
    )


def test_a_configuration_that_is_not_there_is_said(tmp_path, capfd):
    assert predecessor.main(str(tmp_path / "keepalived.conf")) == 1
    assert "keepalived.conf cannot be read: No such file or directory." in capfd.readouterr().err
