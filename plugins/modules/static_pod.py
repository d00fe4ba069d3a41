#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: static_pod
short_description: Disable a static pod that holds VIPs
version_added: 1.0.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Renames the manifest, so that the kubelet stops the pod, and waits until the pod's program has ended. The renamed
    file stays in the kubelet's folder. Its name begins with a dot, so the kubelet ignores it.
  - Removes the addresses that the program has left on this host.
  - If the program does not end in time, the manifest gets its name back.
  - To have the pod again, give the manifest its former name.
options:
  manifest:
    description: The manifest in the kubelet's folder.
    type: path
    required: true
  program:
    description: The program in the pod that must have ended.
    type: str
    required: true
  addresses:
    description: The VIPs that it may leave, without a prefix length.
    type: list
    elements: str
    default: []
  wait:
    description: How many seconds the kubelet has to end the program.
    type: float
    default: 60
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    description: Shows the name of the manifest.
    support: full
  platform:
    description: Static pods are of Linux.
    platforms: linux
    support: full
"""

EXAMPLES = r"""
- name: Disable the kube-vip that has held the VIP so far
  onprem.lb.static_pod:
    manifest: /etc/kubernetes/manifests/kube-vip.yaml
    program: kube-vip
    addresses: [192.0.2.10]
"""

RETURN = r"""
kept:
  description: Where the manifest is now.
  returned: success
  type: str
removed:
  description: The addresses that the program had left, with their prefix lengths.
  returned: success
  type: list
  elements: str
"""

import os

from ansible_collections.onprem.lb.plugins.module_utils._host.module import Module, ending_in_words
from ansible_collections.onprem.lb.plugins.module_utils._host.read import static_pods


def run_module(module):
    manifest, program = module.params["manifest"], module.params["program"]
    kept = static_pods.disabled(manifest)
    is_there = os.path.exists(manifest)
    result = {
        "changed": is_there,
        "kept": kept,
        "removed": [],
        "diff": {"before": f"{manifest}\n", "after": f"{kept}\n"},
    }
    if module.check_mode:
        return result
    if is_there:
        os.rename(manifest, kept)
    if not static_pods.ends(program, module.params["wait"]):
        if is_there:
            os.rename(kept, manifest)
        module.fail_json(
            msg=f"{program} has not ended within {module.params['wait']:g} s after {manifest} was disabled"
            f"{', so the manifest is back' if is_there else ''}: see whether the kubelet runs, and repeat the run."
        )
    return {**result, "removed": static_pods.remove_left(module.params["addresses"])}


@ending_in_words
def main():
    module = Module(
        argument_spec={
            "manifest": {"type": "path", "required": True},
            "program": {"type": "str", "required": True, "no_log": False},
            "addresses": {"type": "list", "elements": "str", "default": [], "no_log": False},
            "wait": {"type": "float", "default": 60.0},
        },
        supports_check_mode=True,
    )
    try:
        module.exit_json(**run_module(module))
    except OSError as error:
        module.fail_json(msg=f"{module.params['manifest']} was not disabled: {error}")


if __name__ == "__main__":
    main()
