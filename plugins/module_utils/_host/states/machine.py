# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The host of a program that no Ansible runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from typing import List, Optional, Tuple

from . import restoring

COMMAND_S = 120


class Machine:
    """What `firewall.system` needs of an AnsibleModule."""

    def __init__(self) -> None:
        self.run_command_environ_update = {"LC_ALL": "C"}
        self.tmpdir = tempfile.gettempdir()

    def run_command(self, arguments: List[str], data: Optional[str] = None) -> Tuple[int, str, str]:
        environment = {**os.environ, "PATH": restoring.PATH, **self.run_command_environ_update}
        try:
            done = subprocess.run(
                arguments,
                input=data or "",
                capture_output=True,
                text=True,
                env=environment,
                timeout=COMMAND_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return 127, "", str(error)
        return done.returncode, done.stdout, done.stderr

    def get_bin_path(self, name: str) -> Optional[str]:
        return shutil.which(name, path=restoring.PATH)

    def atomic_move(self, source: str, destination: str) -> None:
        shutil.copymode(destination if os.path.exists(destination) else source, source)
        shutil.copyfile(source, f"{destination}.new")
        shutil.copymode(source, f"{destination}.new")
        os.rename(f"{destination}.new", destination)
        os.unlink(source)
