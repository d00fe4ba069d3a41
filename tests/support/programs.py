# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fake programs of a host. ``run`` and ``find`` replace AnsibleModule's ``run_command`` and ``get_bin_path``."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Callable, List, Mapping, Optional, Sequence, Tuple, Union

Result = Tuple[int, str, str]  # the exit code, the output and the errors
Answer = Union[str, Result, Callable[[List[str]], Result]]


class Programs:
    """The programs of a host, by name. Each has an output, a result, or a function that takes its command.

    ``ran`` has every command, in order.
    """

    def __init__(self, answers: Optional[Mapping[str, Answer]] = None) -> None:
        self.answers = dict(answers or {})
        self.ran: List[str] = []

    def find(self, name: str) -> Optional[str]:
        return f"/usr/sbin/{name}" if name in self.answers else None

    def run(self, command: Sequence[str]) -> Result:
        words = [os.path.basename(command[0]), *command[1:]]
        self.ran.append(" ".join(words))
        answer = self.answers[words[0]]
        if callable(answer):
            return answer(words)
        return (0, answer, "") if isinstance(answer, str) else answer


class Installed(Programs):
    """The programs of this machine, in place of fakes."""

    def find(self, name: str) -> Optional[str]:
        return shutil.which(name)

    def run(self, command: Sequence[str]) -> Result:
        self.ran.append(" ".join(command))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr
