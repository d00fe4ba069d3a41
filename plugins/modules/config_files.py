#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: config_files
short_description: Replace configuration files together, once their programs accept them, and have units run with them
version_added: 1.0.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Writes every new file beside its target and lets the program that will read it check it.
  - Only if all of them pass are they moved into place, each atomically. A bad file never reaches its path, and it keeps
    the others unchanged, too.
  - A file of which haproxy would ignore lines is refused as well. Other warnings of the programs are shown.
  - Then systemd reads its units anew, where a file of one is gone or O(units) have changed ones, and the O(units) run
    with the new files.
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
          - A file that is up to date counts as changed if the running unit has not loaded it, or a file that it names.
            An interrupted run may leave the former, and whoever renews a certificate the latter.
          - Its program checks such a file, too, before the unit is to load it.
        type: str
      served_elsewhere:
        description:
          - With O(files[].check=haproxy), the checksums of files that other hosts serve already.
          - A certificate among them that has expired is not refused.
        type: list
        elements: str
        default: []
      diff:
        description:
          - Whether the difference of the file is shown.
          - That of a secret would show the former one as well, which O(secrets) does not have.
        type: bool
        default: true
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
  unnamed_certificates:
    description:
      - Whether the certificates that this collection has written, and that none of O(files) is or names, are deleted.
      - They are known by their names, which have the checksums of their texts.
    type: bool
    default: false
  folders:
    description: Folders to delete with all that they contain, after O(files).
    type: list
    elements: path
    default: []
  units:
    description:
      - Systemd units that are to run with O(files), or not at all.
      - Those that are not to run stop before a file changes. The others start after that, in this order.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: The name of the unit.
        type: str
        required: true
      state:
        description: Whether it is to run, also after a reboot.
        type: str
        choices: [started, stopped]
        default: started
      on_change:
        description:
          - What becomes of it where it runs and one of O(files) that names it has changed.
          - With V(reloaded), a change of the unit itself restarts it.
        type: str
        choices: [restarted, reloaded, unchanged]
        default: restarted
      wait:
        description: Whether to wait until it has started.
        type: bool
        default: true
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
    description: Shows the difference of each file, with the secrets masked, unless O(files[].diff) is false.
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

- name: Have a unit run as its file says
  onprem.lb.config_files:
    files:
      - path: /etc/systemd/system/watch.path
        content: "{{ lookup('ansible.builtin.template', 'watch.path.j2') }}"
        unit: watch.path
    units:
      - name: watch.path
"""

RETURN = r"""
stale:
  description: Why each file counts that is up to date, but not in force; a sentence for each.
  type: list
  elements: str
  returned: success
  sample: ["keepalived.service has not loaded /etc/keepalived/keepalived.conf since it changed."]
paths:
  description: The files and folders that were changed.
  type: list
  elements: str
  returned: success
deleted:
  description: The files and folders that were deleted.
  type: list
  elements: str
  returned: success
commands:
  description: The commands that had the units run so.
  type: list
  elements: str
  returned: success
  sample: ["systemctl daemon-reload", "systemctl enable watch.path", "systemctl restart watch.path"]
unchecked:
  description: Files that could not be checked because their program is not installed yet (check mode on a new host).
  type: list
  elements: str
  returned: success
"""

from ansible_collections.onprem.lb.plugins.module_utils._host import candidates
from ansible_collections.onprem.lb.plugins.module_utils._host.module import Module, ending_in_words
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader
from ansible_collections.onprem.lb.plugins.module_utils._host.write import config_files, files, units

FILE = {
    "path": {"type": "path", "required": True},
    "content": {"type": "str", "default": ""},
    "mode": {"type": "str", "default": "0644", "no_log": False},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "keep": {"type": "bool", "default": False},
    "own_only": {"type": "bool", "default": False},
    "check": {"type": "str", "choices": ["none", "haproxy", "keepalived", "nft", "dnsmasq"], "default": "none"},
    "unit": {"type": "str", "no_log": False},
    "served_elsewhere": {"type": "list", "elements": "str", "default": []},
    "diff": {"type": "bool", "default": True},
}

UNIT = {
    "name": {"type": "str", "required": True, "no_log": False},
    "state": {"type": "str", "choices": ["started", "stopped"], "default": "started"},
    "on_change": {"type": "str", "choices": ["restarted", "reloaded", "unchanged"], "default": "restarted"},
    "wait": {"type": "bool", "default": True},
}


@ending_in_words
def main():
    module = Module(
        argument_spec={
            "files": {"type": "list", "elements": "dict", "required": True, "options": FILE},
            "set_aside": {"type": "list", "elements": "path", "default": []},
            "put_back": {"type": "list", "elements": "path", "default": []},
            "unnamed_certificates": {"type": "bool", "default": False},
            "folders": {"type": "list", "elements": "path", "default": []},
            "units": {"type": "list", "elements": "dict", "default": [], "options": UNIT},
            "secrets": {"type": "list", "elements": "str", "default": [], "no_log": True},
        },
        supports_check_mode=True,
    )
    reader, move = Reader.of(module), candidates.mover(module)
    try:
        planned = config_files.plan(reader, module.params)
        checked = (config_files.check if module.check_mode else config_files.carry_out)(planned, reader, move)
    except (files.Refused, units.Failed, OSError) as error:
        module.fail_json(msg=str(error))
    for warning in checked.warnings:
        module.warn(warning)
    module.exit_json(
        changed=planned.changes,
        paths=planned.paths,
        deleted=planned.deleted,
        commands=planned.commands,
        unchecked=checked.unchecked,
        stale=planned.stale,
        diff=planned.diff,
    )


if __name__ == "__main__":
    main()
