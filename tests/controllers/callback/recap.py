# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the recap of a run to the file $RECAP, whatever prints the run, and whoever has called it."""

from __future__ import annotations

import json
import os
from pathlib import Path

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: recap
type: aggregate
short_description: Writes the recap of a run to a file
description: Ansible loads it for each run that finds it.
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "recap"

    def v2_playbook_on_stats(self, stats):
        Path(os.environ["RECAP"]).write_text(json.dumps({host: stats.summarize(host) for host in stats.processed}))
