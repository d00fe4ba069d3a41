#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: member_pods
short_description: Wait for the static pods of a member, reload them, or stop them
version_added: 1.1.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - The kubelet starts and ends a static pod as its manifest comes and goes. This module waits until it has done so.
  - It knows the pods of this collection. M(onprem.lb.static_pod) disables one of others.
  - A program that runs, and has not loaded its file since that changed, gets SIGHUP, by which no connection is refused
    and no VIP moves.
options:
  pods:
    description: The names of the pods.
    type: list
    elements: str
    choices: [onprem-lb-balancer, onprem-lb-router, onprem-lb-follow]
    required: true
  state:
    description:
      - V(started) waits until each pod runs by its manifest, and reloads what has not loaded its file.
      - V(stopped) gives the manifests names that the kubelet ignores, and waits until the pods have ended.
      - V(absent) deletes the manifests, and waits until the pods have ended.
    type: str
    choices: [started, stopped, absent]
    required: true
  wait:
    description:
      - How many seconds the kubelet has.
      - The kubelet looks at its manifests every 20 s unless it is configured otherwise, and may have to pull an image.
    type: float
    default: 300
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    description: Says whether pods would be started, reloaded or stopped.
  diff_mode:
    support: full
    description: Says what is not so yet of each pod. The manifests are files of M(onprem.lb.config_files).
  platform:
    support: full
    platforms: linux
    description: Nodes whose kubelet reads static pods from C(/etc/kubernetes/manifests).
"""

EXAMPLES = r"""
- name: Stop the router of a node
  onprem.lb.member_pods:
    pods: [onprem-lb-router]
    state: stopped
"""

RETURN = r"""
pods:
  description: The pods that were started, reloaded or stopped, or would be.
  type: list
  elements: str
  returned: success
"""

import time

from ansible_collections.onprem.lb.plugins.module_utils._host.module import Module, ending_in_words
from ansible_collections.onprem.lb.plugins.module_utils._host.read import in_force, pods
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader
from ansible_collections.onprem.lb.plugins.module_utils._shared.pods import NAMES

PAUSE = 0.5  # seconds between two looks
RELOADED_WITHIN = 5.0  # seconds, in which a program gets no second SIGHUP


def not_in_force(reader, names):
    """Return a sentence for each pod that does not run by its manifest, or has not loaded its file."""
    return {name: why for name in names for why in [_why(name, in_force.read(reader, name))] if why}


def _why(name, found):
    if not found.active:
        return f"{name} does not run."
    if found.unit_outdated:
        return f"{name} runs by another manifest."
    return in_force.unloaded(name, found)


def start(reader, names, wait):
    """Return the sentences about pods that are not in force when the time is over."""
    end, reloaded = time.monotonic() + wait, {}
    while True:
        left = not_in_force(reader, names)
        now = time.monotonic()
        if not left or now > end:
            return left
        for name in left:
            found = in_force.read(reader, name)
            can_load = (found.checksum or found.refused) and in_force.unloaded(name, found)
            if can_load and now > reloaded.get(name, 0) + RELOADED_WITHIN:
                reloaded[name] = now
                pods.reload(name)
        time.sleep(PAUSE)


def end(params, dry):
    """Stop or remove pods; return which, and those that still run."""
    names = params["pods"]
    there = [name for name in names if name in pods.running() or _is_to_end(name, params["state"])]
    if dry:
        return there, []
    (pods.stop if params["state"] == "stopped" else pods.remove)(names)
    return there, pods.still_running(names, params["wait"])


def _is_to_end(name, state):
    return bool(pods.enabled([name]) if state == "stopped" else pods.own([name]))


def lines(sentences):
    return "".join(f"{sentence}\n" for sentence in sentences)


@ending_in_words
def main():
    module = Module(
        argument_spec={
            "pods": {"type": "list", "elements": "str", "required": True, "choices": [*NAMES]},
            "state": {"type": "str", "choices": ["started", "stopped", "absent"], "required": True},
            "wait": {"type": "float", "default": 300},
        },
        supports_check_mode=True,
    )
    params, reader = module.params, Reader.of(module)
    mend = f"after {params['wait']:g} s: look at the kubelet's log, and at that of the pod's containers."
    if params["state"] == "started":
        before = not_in_force(reader, params["pods"])
        left = [] if module.check_mode or not before else [*start(reader, params["pods"], params["wait"]).values()]
        if left:
            module.fail_json(msg=f"{' '.join(left)} It is so {mend}")
    else:
        there, left = end(params, module.check_mode)
        before = {name: f"{name} is there." for name in there}
        if left:
            module.fail_json(msg=f"{', '.join(left)} still runs {mend}")
    after = [f"{name} is {params['state']}." for name in before]
    diff = {"before": lines(before.values()), "after": lines(after)}
    module.exit_json(changed=bool(before), pods=list(before), diff=diff)


if __name__ == "__main__":
    main()
