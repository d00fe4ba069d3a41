#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: config_files
short_description: Replace configuration files together, after their programs have checked them
version_added: 1.0.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Writes every new file beside its target and lets the program that will read it check it.
  - Only if all of them pass are they moved into place, each atomically. A bad file never reaches its path, and it keeps
    the others unchanged, too.
  - A file of which haproxy would ignore lines is refused as well. Other warnings of the programs are shown.
options:
  files:
    description: The files as they should be.
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
      keep:
        description:
          - Keep a file that this collection has not written beside the new one, as C(PATH.before-onprem-lb).
          - This collection recognizes its own files by the line C(Managed by Ansible, onprem.lb) at their beginning.
        type: bool
        default: false
      own_only:
        description: With O(files[].state=absent), leave a file that this collection has not written.
        type: bool
        default: false
      check:
        description:
          - The program that checks the file.
          - C(nft) asks the kernel as well, without changing anything, and so needs its privileges.
        type: str
        choices: [none, haproxy, keepalived, nft, dnsmasq]
        default: none
      unit:
        description:
          - The systemd unit that loads the file, or that the file is a part of.
          - A file that is up to date counts as changed if the running unit has not loaded it.
            An interrupted run may leave such a file.
        type: str
  set_aside:
    description: Files to rename to C(PATH.before-onprem-lb), together with what becomes of O(files).
    type: list
    elements: path
    default: []
  put_back:
    description:
      - Files that an earlier run has kept as C(PATH.before-onprem-lb), and that get their names back.
      - One whose place is taken meanwhile stays where it is.
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
    description: The checks run in check mode, too, if the program is installed.
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
  description: Why each file counts that is up to date, but not in force; a sentence for each.
  type: list
  elements: str
  returned: success
  sample: ["keepalived.service has not loaded /etc/keepalived/keepalived.conf since it changed."]
paths:
  description: The files that were changed.
  type: list
  elements: str
  returned: success
unchecked:
  description: Files that could not be checked because their program is not installed yet (check mode on a new host).
  type: list
  elements: str
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.onprem.lb.plugins.module_utils._host import files, in_force, masking
from ansible_collections.onprem.lb.plugins.module_utils._host.reader import Reader

FILE = {
    "path": {"type": "path", "required": True},
    "content": {"type": "str", "default": ""},
    "mode": {"type": "str", "default": "0644"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "keep": {"type": "bool", "default": False},
    "own_only": {"type": "bool", "default": False},
    "check": {"type": "str", "choices": ["none", "haproxy", "keepalived", "nft", "dnsmasq"], "default": "none"},
    "unit": {"type": "str"},
}


def main():
    module = AnsibleModule(
        argument_spec={
            "files": {"type": "list", "elements": "dict", "required": True, "options": FILE},
            "set_aside": {"type": "list", "elements": "path", "default": []},
            "put_back": {"type": "list", "elements": "path", "default": []},
            "secrets": {"type": "list", "elements": "str", "default": [], "no_log": True},
        },
        supports_check_mode=True,
    )
    wanted = module.params["files"]
    # Masked even if the caller did not list them in `secrets`, and also as they are written in the file.
    module.no_log_values.update(password for item in wanted for password in masking.passwords(item["content"]))
    reader = Reader.of(module)
    try:
        pending = [
            *files.set_aside(module.params["set_aside"]),
            *files.changes(wanted),
            *files.put_back(module.params["put_back"]),
        ]
        stale = in_force.stale(reader, [(item["unit"], item["path"]) for item in wanted if item["unit"]])
        checked = files.replace_all(pending, reader.find, reader.run, files.mover(module), dry=module.check_mode)
    except (files.Refused, OSError) as error:
        module.fail_json(msg=str(error))
    for warning in checked.warnings:
        module.warn(warning)
    module.exit_json(
        changed=bool(pending or stale),
        paths=[change.path for change in pending],
        unchecked=checked.unchecked,
        stale=stale,
        diff=[change.diff for change in pending] + [{"prepared": f"{sentence}\n"} for sentence in stale],
    )


if __name__ == "__main__":
    main()
