# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fake links for tests of modules that listen: routers that advertise there, or the reason not to hear any."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core.packet import PASSWORD, SECOND, Advertisement
from ansible_collections.onprem.lb.plugins.module_utils._host.link import sniffer
from ansible_collections.onprem.lb.plugins.module_utils._shared.vrrp_routers import LinkView, Observation

AUTH_PASS = "overhear"
DEAF = "There is no permission to open raw sockets: use become, or give the container NET_RAW."


def hear(monkeypatch, *routers):
    """Have modules that listen receive these routers' advertisements: each ``(source, VRID)``, with AUTH_PASS."""

    def collect(_interface, _seconds):
        view = LinkView()
        for source, vrid in routers:
            advertisement = Advertisement(2, vrid, 100, SECOND, ("192.0.2.77",), PASSWORD, AUTH_PASS.encode())
            view.add(Observation(0.0, "eth0", "02:00:00:00:00:63", source, "224.0.0.18", advertisement))
        return view

    monkeypatch.setattr(sniffer, "collect", collect)


def deafen(monkeypatch):
    """Refuse each module the socket that it listens with."""

    def collect(_interface, _seconds):
        raise sniffer.CannotListen(DEAF)

    monkeypatch.setattr(sniffer, "collect", collect)
