#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: frr_config
short_description: Replace FRR's files once FRR accepts them, and have it run them without ending other sessions
version_added: 1.1.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Internal to the roles of this collection. It may change in any release.
  - Writes every new file beside its target and lets vtysh check the configuration. A bad file never reaches its path.
  - FRR is restarted only where one of its daemons does not run. Otherwise frr-reload changes what differs.
  - What FRR then runs is compared with the file. If it differs, FRR and the files return to what they were.
  - frr-reload alone would turn IP forwarding on where it is off. This module does not.
options:
  files:
    description: The files as they should be, as O(onprem.lb.config_files#module:files).
    type: list
    elements: dict
    required: true
    suboptions:
      path:
        description: The path of the file.
        type: path
        required: true
      content:
        description: The whole text.
        type: str
        required: true
      mode:
        description: The permissions, octal.
        type: str
        default: "0644"
      owner:
        description: The user to whom the file belongs.
        type: str
        default: root
      group:
        description: The group to which the file belongs.
        type: str
        default: root
      check:
        description: Whether this is the configuration, which vtysh checks and FRR is to run. Exactly one is.
        type: str
        choices: [none, vtysh]
        default: none
      keep:
        description: As O(onprem.lb.config_files#module:files[].keep).
        type: bool
        default: false
  set_aside:
    description: As O(onprem.lb.config_files#module:set_aside).
    type: list
    elements: path
    default: []
  secrets:
    description: Texts to mask in diffs and logs, beside the passwords that O(files) contain.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    description: vtysh checks the file in check mode, too, if it is installed.
  diff_mode:
    support: full
    description: Shows the difference of each file, with the secrets masked.
  platform:
    support: full
    platforms: posix
    description: Files are renamed within their folder.
"""

EXAMPLES = r"""
- name: Configure FRR
  onprem.lb.frr_config:
    files:
      - path: /etc/frr/frr.conf
        content: "{{ lookup('ansible.builtin.template', 'frr.conf.j2') }}"
        mode: "0640"
        owner: frr
        group: frr
        check: vtysh
  register: frr
"""

RETURN = r"""
paths:
  description: The files that were changed.
  type: list
  elements: str
  returned: success
steps:
  description: The commands that had FRR run them.
  type: list
  elements: str
  returned: success
  sample: ["frr-reload.py --reload"]
resets:
  description: The peers whose sessions ended, or would in check mode, because the change was theirs or of all.
  type: list
  elements: str
  returned: success
  sample: ["192.0.2.1"]
unchecked:
  description: Files that could not be checked because FRR is not installed yet (check mode on a new host).
  type: list
  elements: str
  returned: success
"""

from ansible_collections.onprem.lb.plugins.module_utils._host import candidates
from ansible_collections.onprem.lb.plugins.module_utils._host.module import Module, ending_in_words
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader
from ansible_collections.onprem.lb.plugins.module_utils._host.write import files, frr, units

FILE = {
    "path": {"type": "path", "required": True},
    "content": {"type": "str", "required": True},
    "mode": {"type": "str", "default": "0644", "no_log": False},
    "owner": {"type": "str", "default": "root", "no_log": False},
    "group": {"type": "str", "default": "root", "no_log": False},
    "check": {"type": "str", "choices": ["none", "vtysh"], "default": "none"},
    "keep": {"type": "bool", "default": False},
}


@ending_in_words
def main():
    module = Module(
        argument_spec={
            "files": {"type": "list", "elements": "dict", "required": True, "options": FILE},
            "set_aside": {"type": "list", "elements": "path", "default": []},
            "secrets": {"type": "list", "elements": "str", "default": [], "no_log": True},
        },
        supports_check_mode=True,
    )
    texts = [file["content"] for file in module.params["files"] if file["check"] == frr.VTYSH]
    if len(texts) != 1:
        module.fail_json(msg=f"files has {len(texts)} with check=vtysh: exactly one is required.")
    router, move = frr.Frr(Reader.of(module)), candidates.mover(module)
    try:
        planned = frr.plan(router, module.params["files"], module.params["set_aside"], texts[0])
        checked = frr.check(planned, router.reader, move) if module.check_mode else frr.carry_out(planned, router, move)
    except (files.Refused, units.Failed, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(
        changed=planned.changes,
        paths=planned.paths,
        steps=planned.steps,
        resets=planned.resets,
        unchecked=checked.unchecked,
        diff=planned.diff,
    )


if __name__ == "__main__":
    main()
