# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent, run as a program, which takes no process of its own for hung: a busy machine may stop it for seconds.

``python -m support.proxy.patient`` in place of ``python -m _agent.cli``.
"""

from __future__ import annotations

import sys

from _agent.runtime import watchdog

from support.waiting import LIMIT_S

watchdog.MAX_SILENCE = LIMIT_S * watchdog.MILLION  # before anything else takes it from there

if __name__ == "__main__":
    from _agent import cli

    sys.exit(cli.main())
