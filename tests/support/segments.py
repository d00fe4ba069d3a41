# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Links for the tests of the modules that listen: what is heard there, or why nothing can be."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core.packet import PASSWORD, SECOND, Advertisement
from ansible_collections.onprem.lb.plugins.module_utils._host.link import sniffer
from ansible_collections.onprem.lb.plugins.module_utils._shared.vrrp_routers import LinkView, Observation

AUTH_PASS = "overhear"
DEAF = "There is no right to open raw sockets: use become, or give the container NET_RAW."


def hear(monkeypatch, *routers):
    """Have every listening module hear these routers, each ``(source, VRID)`` with the password AUTH_PASS."""

    def collect(_interface, _seconds):
        view = LinkView()
        for source, vrid in routers:
            said = Advertisement(2, vrid, 100, SECOND, ("192.0.2.77",), PASSWORD, AUTH_PASS.encode())
            view.add(Observation(0.0, "eth0", "02:00:00:00:00:63", source, "224.0.0.18", said))
        return view

    monkeypatch.setattr(sniffer, "collect", collect)


def deafen(monkeypatch):
    """Have no module hear anything: each is refused the socket for it."""

    def collect(_interface, _seconds):
        raise sniffer.CannotListen(DEAF)

    monkeypatch.setattr(sniffer, "collect", collect)
