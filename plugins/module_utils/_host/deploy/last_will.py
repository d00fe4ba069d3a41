# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The last will of keepalived as one file: those modules of the agent that it needs, and no others.

It starts right after keepalived has died, so it is small: Python compiles it at each start.
"""

from __future__ import annotations

from ... import _agent
from ..._agent.keepalived import last_will as _packed  # noqa: F401  # so that Ansible packs it
from . import archive

MODULES = (
    "__init__.py",
    "keepalived/__init__.py",
    "keepalived/conf.py",
    "keepalived/last_will.py",
    "net/__init__.py",
    "net/bpf.py",
    "net/ip.py",
    "net/linux.py",
    "net/messages.py",
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
START = b"""\
import sys

from _agent.keepalived.last_will import main

sys.exit(main(*sys.argv[1:]))
"""


def build(python: str) -> bytes:
    """Return the program.

    :param python: the path of the Python that runs it, isolated from its environment and without its site-packages
    """
    carried = archive.carried(_agent)
    return archive.pack({path: carried[path] for path in MODULES}, START, f"#!{python} -IS\n".encode())
