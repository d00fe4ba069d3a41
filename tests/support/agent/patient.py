# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent, run as a program, with patience: a busy machine may stop any of its processes for seconds.

It takes none of them for hung, kills none that ends late, and a direct plane waits for the first results of the
checks. See ``programs.PATIENT``.
"""

from __future__ import annotations

import sys

from _agent.runtime import watchdog

from support.waiting import LIMIT_S

watchdog.MAX_SILENCE = LIMIT_S * watchdog.MILLION  # before anything else takes it from there

if __name__ == "__main__":
    from _agent import cli

    if "proxy" in sys.argv:
        from _agent.proxy.master import workers

        workers.KILL_DELAY = LIMIT_S * watchdog.MILLION
    if "direct" in sys.argv:
        from _agent.direct import plane

        plane.JUDGEMENT = LIMIT_S * plane.MILLION
    sys.exit(cli.main())
