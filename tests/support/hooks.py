# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""keepalived's hook, as a run writes it on a host of this Python."""

from __future__ import annotations

import functools
import sys

from ansible_collections.onprem.lb.plugins.module_utils._host import interpreter
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy import archive, keepalived_hook

from support.paths import AGENT


@functools.lru_cache(maxsize=None)
def hook() -> bytes:
    return interpreter.run_by(sys.executable, keepalived_hook.build(archive.sources(str(AGENT))))
