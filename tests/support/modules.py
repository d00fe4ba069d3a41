# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a module's main() in this process, with arguments as Ansible hands them over, on a host of fake programs.

The fakes stand where a module reaches for the host: AnsibleModule's ``run_command`` and ``get_bin_path``.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union
from unittest import mock

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args

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


def run(
    module: Any, given: Mapping[str, Any], programs: Optional[Programs] = None, check: bool = False
) -> Dict[str, Any]:
    """Return what a module returns, its ``invocation`` included, as it stands in what it prints, and its ``warnings``.

    :param given: the task's arguments
    :param check: in check mode
    """
    programs = programs or Programs()
    printed, warned = io.StringIO(), []
    with contextlib.ExitStack() as stack:
        stack.enter_context(patch_module_args({**given, "_ansible_check_mode": check, "_ansible_diff": True}))
        stack.enter_context(
            mock.patch.multiple(
                AnsibleModule,
                run_command=lambda _module, command, **_options: programs.run(command),
                get_bin_path=lambda _module, name, **_options: programs.find(name),
                # Ansible keeps warnings for the whole process, or shows them where it takes this for the controller.
                warn=lambda _module, sentence: warned.append(sentence),
            )
        )
        stack.enter_context(contextlib.redirect_stdout(printed))
        ended = stack.enter_context(pytest.raises(SystemExit))
        module.main()
    result = json.loads(printed.getvalue().strip().splitlines()[-1])
    assert ended.value.code == int(result.get("failed", False))
    return {**result, "warnings": warned}


def refusal(module: Any, given: Mapping[str, Any], **others: Any) -> str:
    """Return the sentence with which a module fails; it must fail, and change nothing by that."""
    result = run(module, given, **others)
    assert result.get("failed") is True and not result.get("changed")
    return result["msg"]
