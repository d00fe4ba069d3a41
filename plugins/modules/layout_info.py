#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: layout_info
short_description: Compare a pair or a cluster with its plan, as one member sees it
version_added: 1.0.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Checks that every VIP has exactly one holder on its link, that this member could take over, and that the services
    answer through the VIPs. Changes nothing.
  - Runs O(checks) once before that, also in check mode.
  - Repeats all but that until nothing is wrong or the limit is reached, and for as many seconds as the plan has in
    C(settle) and in C(judged).
options:
  plan:
    description:
      - What is expected of this member, its C(vips), C(services), C(targets), C(programs) and C(units).
    type: dict
    required: true
  checks:
    description: Checks to run once, as a router runs them.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: The name by which the result has it.
        type: str
        required: true
      command:
        description: A program and its arguments, in a shell's words. No shell runs it.
        type: str
        required: true
      timeout:
        description: For how many seconds it may run.
        type: float
        required: true
      user:
        description: The user that runs the program.
        type: str
        default: root
  limit:
    description: How many seconds to repeat the checks.
    type: float
    default: 15
  servers:
    description:
      - Whether to ask the balancer of this member for services of which no server is up, and whether its peers answer.
    type: bool
    default: false
extends_documentation_fragment:
  - onprem.lb.attributes.reads_only
"""

EXAMPLES = r"""
- name: Compare the pair with its plan
  onprem.lb.layout_info:
    plan: "{{ plan }}"
  register: pair
  failed_when: pair.faults | length > 0
"""

RETURN = r"""
unserved:
  description:
    - A sentence for each service of which no server is up, or known to be up after O(limit) seconds, with O(servers),
      for each peer of its haproxy that does not answer and all that is wrong with its direct plane, with O(servers) as
      well, and for each router to which there is no session of BGP although there is one to another router.
    - That is no fault of the layout.
  type: list
  elements: str
  returned: success
faults:
  description: A sentence for each thing that is not as planned.
  type: list
  elements: str
  returned: success
msg:
  description: All faults, as one text.
  type: str
  returned: success
holders:
  description: How many hosts hold each VIP.
  type: dict
  returned: success
reached:
  description: Those of the C(targets) of the plan that accept a connection, each as C(ADDRESS PORT).
  type: list
  elements: str
  returned: success
held:
  description: The VIPs that this member holds.
  type: list
  elements: str
  returned: success
checks:
  description:
    - For each of O(checks) its C(fault), why it fails, which is empty if it succeeds.
    - If it fails, also C(before), what the router says of the check of this name that it runs now, if that fails, too.
  type: dict
  returned: success
  sample: {"storage": {"fault": "fails with exit code 1", "before": ""}}
"""

import itertools
import time

from ansible_collections.onprem.lb.plugins.module_utils._host.module import Module, ending_in_words
from ansible_collections.onprem.lb.plugins.module_utils._host.read import (
    beside,
    bgp,
    check_runs,
    facts,
    in_force,
    member,
    verification,
)
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader

ANSWER_TIMEOUT = 0.2  # for answers on the link, in seconds; a neighbour answers within milliseconds
NEEDED = ("vips", "services", "targets")  # of a plan
PAUSE = 0.2  # between two checks; a check itself takes longer


def observe(plan, reader):
    """Return what `verification.faults` compares with the plan."""
    addresses = reader.addresses() or []
    vips = [vip["address"] for vip in plan["vips"]]
    daemons = {unit: in_force.read(reader, unit) for unit in verification.units(plan)}
    return {
        "addresses": addresses,
        "answering": reader.answering(vips, ANSWER_TIMEOUT, addresses),
        "active_units": [unit for unit, daemon in daemons.items() if daemon.active],
        "listeners": facts.listeners(),
        "reached": facts.reachable(plan["targets"], timeout=1.0),
        "stale": [sentence for sentence in itertools.starmap(in_force.unloaded, daemons.items()) if sentence],
        "in_fault": {name: why for daemon in daemons.values() for name, why in daemon.in_fault.items()},
        "down_file": reader.text(plan["down_file"]).strip() if plan.get("down_file") else "",
        **sessions(plan, reader),
        "on_loopback": reader.on_loopback() if plan.get("announced") else [],
    }


def sessions(plan, reader):
    """Return of each session of BGP its state, how many VIPs were sent, and how often its router accepts BFD packets.

    If FRR does not answer there are none.
    """
    try:
        found = bgp.sessions(reader) if plan.get("sessions") else []
    except bgp.NoAnswer:
        found = []
    return {
        "sessions": {each.peer: each.state for each in found},
        "sent": {each.peer: each.sent for each in found},
        "bfd_intervals": {each.peer: each.bfd_interval for each in found},
    }


CHECK = {
    "name": {"type": "str", "required": True, "no_log": False},
    "command": {"type": "str", "required": True, "no_log": True},
    "timeout": {"type": "float", "required": True},
    "user": {"type": "str", "default": "root", "no_log": False},
}


def run_checks(checks, plan, reader):
    """Return what becomes of the checks."""
    faults = {check["name"]: check_runs.fault(check) for check in checks}
    failing = {}
    for unit in verification.units(plan) if any(faults.values()) else []:
        failing.update(in_force.read(reader, unit).failing)
    return {name: {"fault": fault, "before": failing.get(name, "") if fault else ""} for name, fault in faults.items()}


@ending_in_words
def main():
    module = Module(
        argument_spec={
            "plan": {"type": "dict", "required": True},
            "checks": {"type": "list", "elements": "dict", "default": [], "options": CHECK},
            "limit": {"type": "float", "default": 15},
            "servers": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    plan = module.params["plan"]
    missing = [key for key in NEEDED if key not in plan]
    if missing:
        module.fail_json(
            msg=f"plan lacks {', '.join(missing)}: it is what a role of this collection plans for this host."
        )
    reader = Reader.of(module)
    checks = run_checks(module.params["checks"], plan, reader)
    settled = time.monotonic() + max(plan.get("settle", 0), plan.get("judged", 0))
    end = settled + module.params["limit"]
    while True:
        seen = observe(plan, reader)
        faults = verification.faults(plan, seen)
        if time.monotonic() > (end if faults else settled):
            break
        time.sleep(PAUSE)
    holders = {vip["address"]: verification.holders(vip["address"], seen) for vip in plan["vips"]}
    own = {*(info["address"] for info in seen["addresses"]), *seen["on_loopback"]}
    held = [vip["address"] for vip in plan["vips"] if vip["address"] in own]
    unserved = []
    if module.params["servers"]:
        unserved += member.unserved(reader, module.params["limit"])
        unserved += verification.without_peer(plan, facts.reachable(plan.get("peered", []), timeout=1.0))
        unserved += [f"direct return: {why}" for why in beside.direct_faults(reader)]
    unserved += verification.without_session(plan, seen) + verification.slow_to_notice(plan, seen)
    found = {"holders": holders, "held": held, "reached": seen["reached"], "checks": checks, "unserved": unserved}
    module.exit_json(faults=faults, msg="\n".join(faults), **found)


if __name__ == "__main__":
    main()
