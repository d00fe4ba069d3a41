# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What systemd and keepalived run beside keepalived, as one file: those modules of the agent that it needs, no others.

``hook ended CONFIG`` resigns for a keepalived that was killed, and ``hook yielded CONFIG INSTANCE``
tells the peers of an instance that it has yielded. Clients wait for both, so it is small: Python compiles it at each
start. A run that replaces kube-vip calls ``hook take-over CONFIG``. ``hook answers CONFIG QUESTION...`` is a service:
it asks what a member must answer to hold a VIP, and writes a track file for each question.
"""

from __future__ import annotations

from typing import Mapping

from . import archive

ENDED = (
    "__init__.py",
    "keepalived/__init__.py",
    "keepalived/conf.py",
    "keepalived/resignation.py",
    "keepalived/senders.py",
    "keepalived/unread.py",
    "net/__init__.py",
    "net/bpf.py",
    "net/ip.py",
    "net/linux.py",
    "net/messages.py",
    "net/neighbour_table.py",
    "net/netlink.py",
    "net/routing.py",
    "net/sockets.py",
    "net/vrrp_filter.py",
    "runtime/__init__.py",
    "runtime/log.py",
    "vrrp/__init__.py",
    "vrrp/core/__init__.py",
    "vrrp/core/packet.py",
)
TAKEN_OVER = ("keepalived/predecessor.py",)
YIELDED = ("keepalived/peers.py", "net/arp.py", "net/ndisc.py", "net/neighbours.py")
ASKING = (
    "checks/__init__.py",
    "checks/dialogues.py",
    "checks/haproxy.py",
    "checks/http.py",
    "checks/network.py",
    "checks/outcome.py",
    "checks/patience.py",
    "checks/periodic.py",
    "checks/protocols.py",
    "checks/rise_fall.py",
    "checks/settings.py",
    "checks/tls.py",
    "keepalived/answers.py",
    "keepalived/offers.py",
    "runtime/loop.py",
    "runtime/realtime.py",
    "runtime/sd_notify.py",
    "vrrp/core/offers.py",
)
START = b"""\
import sys

if sys.argv[1] == "ended":
    from _agent.keepalived.resignation import main
elif sys.argv[1] == "answers":
    from _agent.keepalived.answers import main
elif sys.argv[1] == "take-over":
    from _agent.keepalived.predecessor import main
else:
    from _agent.keepalived.peers import main

sys.exit(main(*sys.argv[2:]))
"""


def build(sources: Mapping[str, bytes]) -> bytes:
    """Return the program, which any host's Python may run.

    :param sources: of the agent
    """
    return archive.pack({path: sources[path] for path in (*ENDED, *TAKEN_OVER, *YIELDED, *ASKING)}, START)
