# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a module's main() in this process, with Ansible's arguments, on a host with fake programs.

The fakes replace AnsibleModule's ``run_command`` and ``get_bin_path``, through which a module reaches the host.
"""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any, Dict, List, Mapping, Optional
from unittest import mock

import pytest
import yaml
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args

from support.programs import Programs

OF_ANSIBLE = {"changed", "diff", "invocation", "msg", "warnings"}


def run(
    module: Any, arguments: Mapping[str, Any], programs: Optional[Programs] = None, check: bool = False
) -> Dict[str, Any]:
    """Return the result that a module prints, with its ``invocation`` and its ``warnings``.

    :param arguments: the task's
    :param check: in check mode
    """
    programs = programs or Programs()
    printed = io.StringIO()
    warned: List[str] = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(patch_module_args({**arguments, "_ansible_check_mode": check, "_ansible_diff": True}))
        stack.enter_context(
            mock.patch.multiple(
                AnsibleModule,
                run_command=lambda _module, command, **_options: programs.run(command),
                get_bin_path=lambda _module, name, **_options: programs.find(name),
                # Ansible keeps warnings for the whole process, or prints them if it takes this for the controller.
                warn=lambda _module, sentence: warned.append(sentence),
            )
        )
        stack.enter_context(contextlib.redirect_stdout(printed))
        ended = stack.enter_context(pytest.raises(SystemExit))
        module.main()
    result = json.loads(printed.getvalue().strip().splitlines()[-1])
    assert ended.value.code == int(result.get("failed", False))
    if not result.get("failed"):
        assert result.keys() <= yaml.safe_load(module.RETURN).keys() | OF_ANSIBLE, (
            "it returns what it does not document"
        )
    return {**result, "warnings": warned}


def refusal(module: Any, arguments: Mapping[str, Any], **others: Any) -> str:
    """Return the message with which a module fails. It must fail, and must not change anything."""
    result = run(module, arguments, **others)
    assert result.get("failed") is True and not result.get("changed")
    return result["msg"]
