#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: config_files
short_description: Replace configuration files together, each checked by its program first
version_added: 0.1.0
author:
  - The onprem.lb authors (@onprem)
description:
  - Writes every new file beside its place and shows it to the program that will read it.
  - Only when all of them pass are they moved into place, each atomically. A bad file never reaches its path,
    and one bad file keeps the others as they were too.
options:
  files:
    description: The files as they are to be.
    type: list
    elements: dict
    required: true
    suboptions:
      path:
        description: Where the file belongs.
        type: path
        required: true
      content:
        description: The whole text.
        type: str
        default: ""
      mode:
        description: The permissions, octal.
        type: str
        default: "0644"
      state:
        description: Whether the file is to exist.
        type: str
        choices: [present, absent]
        default: present
      check:
        description:
          - The program that is asked whether the file is good.
          - C(nft) asks the kernel as well, without changing anything, and so needs its privileges.
        type: str
        choices: [none, haproxy, keepalived, nft]
        default: none
      unit:
        description:
          - The systemd unit that loads the file, starting a process for it, as haproxy does.
          - A file that is as it should be and yet was never loaded, because an earlier run ended too soon,
            counts as changed.
        type: str
  secrets:
    description: Texts that must not be shown in a diff or a log.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    description: The checks run in check mode too, where the program is installed.
  diff_mode:
    support: full
    description: Shows the difference of each file, with the secrets masked.
  platform:
    support: full
    platforms: posix
    description: Files are renamed within their folder.
"""

EXAMPLES = r"""
- name: Configure haproxy
  onprem.lb.config_files:
    files:
      - path: /etc/haproxy/haproxy.cfg
        content: "{{ lookup('ansible.builtin.template', 'haproxy.cfg.j2') }}"
        mode: "0640"
        check: haproxy
  notify: Reload haproxy
"""

RETURN = r"""
stale:
  description: Files that their unit had not loaded yet when this module looked.
  type: list
  elements: str
  returned: success
paths:
  description: The files that were changed.
  type: list
  elements: str
  returned: success
unchecked:
  description: Files whose program is not installed yet, so that it could not be asked (check mode on a fresh host).
  type: list
  elements: str
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.onprem.lb.plugins.module_utils._host import files
from ansible_collections.onprem.lb.plugins.module_utils._host.files import mover
from ansible_collections.onprem.lb.plugins.module_utils._host.reader import Reader

FILE = {
    "path": {"type": "path", "required": True},
    "content": {"type": "str", "default": ""},
    "mode": {"type": "str", "default": "0644"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "check": {"type": "str", "choices": ["none", "haproxy", "keepalived", "nft"], "default": "none"},
    "unit": {"type": "str"},
}


def main():
    module = AnsibleModule(
        argument_spec={
            "files": {"type": "list", "elements": "dict", "required": True, "options": FILE},
            "secrets": {"type": "list", "elements": "str", "default": [], "no_log": True},
        },
        supports_check_mode=True,
    )
    wanted = module.params["files"]
    reader = Reader.of(module)
    stale = [item["path"] for item in wanted if item["unit"] and reader.is_stale(item["path"], item["unit"])]
    try:
        pending = files.changes(wanted)
        unchecked = files.replace_all(pending, reader.find, reader.run, mover(module), dry=module.check_mode)
    except (files.Refused, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(
        changed=bool(pending or stale),
        paths=[change.path for change in pending],
        unchecked=unchecked,
        stale=stale,
        diff=[change.diff for change in pending],
    )


if __name__ == "__main__":
    main()
