# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs `fallback` while a switchover holds this member back. A reboot ends both."""

from __future__ import annotations

import json
import os
import shlex
from typing import List, Mapping

from ..._shared.held_back import PATHS, SWITCHOVER
from ..._shared.paths import STATE
from .. import interpreter
from ..read.reader import Run, show

PROGRAM = f"{STATE}/fallback.pyz"
NAME = "onprem-lb-fallback.service"
DESCRIPTION = "Start the VRRP router that a switchover holds back, once nobody holds its VIPs"


def begin(run: Run, configs: Mapping[str, str]) -> List[str]:
    """Run the program, if a switchover holds this member back; return what failed.

    :param configs: as `snapshot.take` takes them
    """
    if not (os.path.exists(PATHS[SWITCHOVER]) and os.path.exists(PROGRAM)) or _runs(run):
        return []
    service = ["systemd-run", f"--unit={NAME}", f"--description={DESCRIPTION}", "--collect"]
    service += ["--property=Restart=on-failure", "--property=RestartSec=2s", interpreter.lasting(), "-I", PROGRAM]
    code, out, err = run([*service, json.dumps(dict(configs))])
    return [f"{shlex.join(service)} failed: {' '.join((err or out).split())}"] if code else []


def _runs(run: Run) -> bool:
    return show(run, [NAME], ["ActiveState"])[0].get("ActiveState") in ("active", "activating")
