# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs of a host, faked where they are run: ``run`` and ``find`` stand for AnsibleModule's."""

from __future__ import annotations

import os
from typing import Callable, List, Mapping, Optional, Sequence, Tuple, Union

Said = Tuple[int, str, str]
Answer = Union[str, Said, Callable[[List[str]], Said]]


class Programs:
    """The programs of a host, by name: each prints a text, ends as told, or answers its command; none other is there.

    ``ran`` has every command that was run, in its order.
    """

    def __init__(self, answers: Optional[Mapping[str, Answer]] = None) -> None:
        self.answers = dict(answers or {})
        self.ran: List[str] = []

    def find(self, name: str) -> Optional[str]:
        return f"/usr/sbin/{name}" if name in self.answers else None

    def run(self, command: Sequence[str]) -> Said:
        words = [os.path.basename(command[0]), *command[1:]]
        self.ran.append(" ".join(words))
        answer = self.answers[words[0]]
        if callable(answer):
            return answer(words)
        return (0, answer, "") if isinstance(answer, str) else answer
