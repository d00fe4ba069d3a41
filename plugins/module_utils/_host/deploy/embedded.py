# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The agent's sources as shipped in the AnsiballZ payload: Ansible packs what a module imports, directly or not.

The agent's command line imports all of the agent, in functions too, but for what it has in tables by name, and for what
keepalived's hook runs, which is a program of its own.
"""

from __future__ import annotations

from ..._agent import cli
from ..._agent.anycast import config as _anycast_config  # noqa: F401  # so that Ansible packs it
from ..._agent.anycast import lifecycle as _anycast  # noqa: F401  # likewise
from ..._agent.anycast import show as _anycast_show  # noqa: F401  # likewise
from ..._agent.direct import lifecycle as _direct  # noqa: F401  # likewise
from ..._agent.direct import show as _direct_show  # noqa: F401  # likewise
from ..._agent.follow import config as _follow_config  # noqa: F401  # likewise
from ..._agent.follow import lifecycle as _follow  # noqa: F401  # likewise
from ..._agent.follow import show as _follow_show  # noqa: F401  # likewise
from ..._agent.keepalived import answers as _answers  # noqa: F401  # likewise
from ..._agent.keepalived import peers as _peers  # noqa: F401  # likewise
from ..._agent.keepalived import predecessor as _predecessor  # noqa: F401  # likewise
from ..._agent.keepalived import resignation as _resignation  # noqa: F401  # likewise
from ..._agent.proxy.master import lifecycle as _proxy  # noqa: F401  # likewise
from ..._agent.proxy.views import metrics as _proxy_metrics  # noqa: F401  # likewise
from ..._agent.proxy.views import text as _proxy_text  # noqa: F401  # likewise
from ..._agent.vrrp import show as _vrrp_show  # noqa: F401  # likewise
from . import archive


def build() -> bytes:
    """Return the agent as one file, byte for byte as the controller would build it."""
    return archive.pack(archive.carried(cli))
