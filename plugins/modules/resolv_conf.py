#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: resolv_conf
short_description: Replace /etc/resolv.conf, and bring the one of before back
version_added: 1.1.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Internal to the roles of this collection. It may change in any release.
  - Keeps the file, or the symbolic link, as C(/etc/resolv.conf.before-onprem-lb).
  - There is a whole file at each moment. It is renamed into place, or, where it is a mount point as in a container,
    written in place.
options:
  path:
    description: The path of the file.
    type: path
    default: /etc/resolv.conf
  content:
    description: The whole text. Its first line has to be this collection's mark.
    type: str
    default: ""
  state:
    description:
      - Whether the file is this collection's, or the one of before.
      - With V(kept) it stays, and is kept for the resolver to read.
    type: str
    choices: [present, kept, absent]
    default: present
  supersede:
    description:
      - Keep the file that is there even if another one is kept, which is lost then.
      - With O(state=absent) the file that is there stays.
    type: bool
    default: false
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    description: Says whether the file differs.
  diff_mode:
    support: full
    description: Shows the difference.
  platform:
    support: full
    platforms: posix
    description: It is the file of resolv.conf(5).
"""

EXAMPLES = r"""
- name: Bring the file of before back
  onprem.lb.resolv_conf:
    state: absent
"""

RETURN = r"""
kept:
  description: Where the file of before is kept; empty where none is.
  type: str
  returned: success
  sample: /etc/resolv.conf.before-onprem-lb
steps:
  description: What was done, or would be; empty where nothing changes.
  type: list
  elements: str
  returned: success
  sample: ["write /etc/resolv.conf"]
"""

from ansible_collections.onprem.lb.plugins.module_utils._agent.resolver import files as resolv_conf
from ansible_collections.onprem.lb.plugins.module_utils._host import candidates
from ansible_collections.onprem.lb.plugins.module_utils._host.module import Module, ending_in_words

# What a change means, for the end of a run.
STEPS = {
    "present": "write /etc/resolv.conf",
    "kept": "keep a copy of /etc/resolv.conf",
    "absent": "put /etc/resolv.conf back",
}


def change(module):
    """Make the change, and return the texts before and after it."""
    params = module.params
    path, before = params["path"], resolv_conf.text(params["path"])
    if params["state"] == "kept":
        kept = resolv_conf.text(resolv_conf.kept_path(path))
        if not module.check_mode:
            resolv_conf.keep(path, params["supersede"])
        return kept, before if not resolv_conf.is_ours(path) and (kept is None or params["supersede"]) else kept
    if params["state"] == "present":
        if before != params["content"] and not module.check_mode:
            resolv_conf.replace(path, params["content"], params["supersede"], candidates.mover(module))
        return before, params["content"]
    if not resolv_conf.has_kept(path) and not resolv_conf.is_ours(path):
        return before, before
    after = resolv_conf.text(resolv_conf.kept_path(path)) if resolv_conf.is_ours(path) else before
    if not module.check_mode and not resolv_conf.restore(path, params["supersede"]):
        module.warn(f"{path} was not written by this collection, so {resolv_conf.kept_path(path)} stays where it is.")
    return before, after


@ending_in_words
def main():
    module = Module(
        argument_spec={
            "path": {"type": "path", "default": "/etc/resolv.conf"},
            "content": {"type": "str", "default": ""},
            "state": {"type": "str", "choices": ["present", "kept", "absent"], "default": "present"},
            "supersede": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    try:
        before, after = change(module)
    except OSError as error:
        module.fail_json(msg=f"{module.params['path']} cannot be replaced: {error.strerror}.")
    kept = resolv_conf.kept_path(module.params["path"]) if resolv_conf.has_kept(module.params["path"]) else ""
    changed = before != after
    steps = [STEPS[module.params["state"]]] if changed else []
    module.exit_json(changed=changed, kept=kept, steps=steps, diff={"before": before or "", "after": after or ""})


if __name__ == "__main__":
    main()
