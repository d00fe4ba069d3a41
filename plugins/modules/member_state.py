#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: member_state
short_description: Save the state of a member, return to one, and let the member do that by itself unless a run confirms
version_added: 1.1.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - A state is every file that this collection writes on a member, which of its units run and start at boot, and its
    openings in the firewall. The last five states of runs are kept in C(/var/lib/onprem.lb/states), which
    only root may read, and the last five that rollbacks and restores have left.
  - A run saves the state before its first change, and arms a timer of the host itself. Unless the run postpones or
    confirms it, the member returns to that state, whether the controller can reach it or not.
  - The record of installed packages is no part of a state, and neither are the packages.
options:
  state:
    description:
      - V(armed) saves the state and arms the return to it.
      - V(announced) says to a member with O(role=other) that V(postponed) or V(taken_over) follows, once the member
        that returns first has had it. One that follows too late is not accepted, and wants another announcement.
      - V(postponed) lets the timer begin anew. It fails if the return has begun.
      - V(confirmed) disarms it because the change is proved. It fails if the return has begun.
      - V(abandoned) is for a run that has failed. A member that has returned already does so again.
      - V(taken_over) postpones what an interrupted run has armed. If the return has begun, it ends it after its step.
      - V(listed) compares the saved states with the present one.
      - V(named) has the resolver answer the addresses of the state O(id), too, where a name has another one now. It
        comes before the first V(restored), because the VIPs of both may be held until the last one.
      - V(renamed) has the resolver answer those of the state O(id) alone, once all members have returned to it.
      - V(restored) returns to the state O(id) at once, but for what the resolver answers.
      - V(held_back) lets a member whose router a switchover stops start it by itself once nobody holds its VIPs.
      - V(exported) returns the present state as data for a backup. They have passwords.
      - V(imported) saves the state O(saved) of a backup as the state O(id), and changes nothing else.
    type: str
    choices:
      - armed
      - announced
      - postponed
      - confirmed
      - abandoned
      - taken_over
      - listed
      - named
      - renamed
      - restored
      - held_back
      - exported
      - imported
    required: true
  run:
    description: The ID of the run, the same on all members, such as V(20260131T120000Z). Its state gets this ID.
    type: str
    default: ""
  id:
    description: >-
      The state to return to, for V(named), V(renamed) and V(restored); to save, for V(imported); that stays although it
      is the oldest, for V(armed).
    type: str
    default: ""
  saved:
    description: What V(exported) returned on this member, for V(imported).
    type: dict
    default: {}
  backup:
    description: The ID of the backup, for V(imported).
    type: str
    default: ""
  purpose:
    description: What the run does, for a list of the states.
    type: str
    default: a run
  role:
    description:
      - V(alone) where nothing changes on the link.
      - Else V(other), whose router stops until the link shows that it may start, or V(first), which returns once
        those have stopped. No router stops that might be the last one.
      - Where VIPs are announced by BGP, V(other) is the role of all but the one that returns after them. None of them
        gives up what it serves.
    type: str
    choices: [alone, first, other]
    default: alone
  after:
    description: After how many seconds without a heartbeat of the controller the member returns.
    type: float
    default: 40
  setting:
    description: The variable that sets O(after), for the sentence about a heartbeat that came too late.
    type: str
    default: pair_undo_after
  settle:
    description: How many seconds a router waits at most before it takes VIPs that nobody holds.
    type: float
    default: 5
  first:
    description:
      - The addresses of the member with O(role=first), for V(armed). The routers of the others stop only if that one
        is heard.
      - Without them they stop only if every VIP is advertised by another member.
    type: list
    elements: str
    default: []
  configs:
    description: The configuration files of C(haproxy) and C(keepalived), by program.
    type: dict
    default: {}
  interfaces:
    description: The interfaces whose zones are opened in the firewall.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    description: >-
      V(restored) and V(imported) say what would change. V(listed) and V(exported) only read. All others do nothing.
  diff_mode:
    support: none
    description: There is nothing to show.
  platform:
    support: full
    platforms: linux
    description: Hosts that run systemd.
"""

EXAMPLES = r"""
- name: Save the state, and return to it unless this is confirmed
  onprem.lb.member_state:
    state: armed
    run: 20260131T120000Z
    configs: {haproxy: /etc/haproxy/haproxy.cfg, keepalived: /etc/keepalived/keepalived.conf}

- name: Confirm the change
  onprem.lb.member_state:
    state: confirmed
    run: 20260131T120000Z
"""

RETURN = r"""
states:
  description:
    - The saved states, oldest first. C(is_present) is true where the state is the present one, and C(changes_link)
      where a return would change what routers share on their link besides C(unicast), which has the source and the
      peers of each Virtual Router, C(keeps_names) where the resolver was added or
      removed since, so that its names stay, C(could_serve) where a router ran that could hold VIPs. C(backup) is the
      ID of the backup it came from.
    - C(reach) is C(bgp), C(vrrp) or empty. C(announced) has the VIPs that are served by BGP C(now), and the C(vips),
      the routers (C(sessions)) and the C(units) with which the state did so.
    - With V(imported) only the one of the backup.
  type: list
  elements: dict
  returned: with O(state=listed) and O(state=imported)
  sample:
    - id: 20260131T120000Z
      purpose: setting the pair up
      backup: ""
      engine: native
      is_present: false
      files: [/etc/haproxy/haproxy.cfg]
      changes_link: false
      unicast:
        now: {"51 IPv4": {"source": 192.0.2.11, "peers": [192.0.2.12]}}
        then: {"51 IPv4": {"source": 192.0.2.11, "peers": [192.0.2.12, 192.0.2.13]}}
      keeps_names: false
      could_serve: true
      reach: {now: vrrp, then: vrrp}
      announced: {now: [], vips: [], sessions: [], units: [haproxy.service]}
      settle: 5
damaged:
  description: By its ID, what is wrong with each saved state that cannot be read.
  type: dict
  returned: with O(state=listed)
  sample: {}
engine:
  description: The engine that is set up here, or nothing.
  type: str
  returned: with O(state=listed), O(state=exported) and O(state=imported)
saved:
  description: The present state as data.
  type: dict
  returned: with O(state=exported)
paths:
  description: The files that were restored, or would be.
  type: list
  elements: str
  returned: with O(state=named), O(state=renamed) and O(state=restored)
commands:
  description: The commands that were run once the files were there, or would be.
  type: list
  elements: str
  returned: with O(state=named), O(state=renamed) and O(state=restored)
returned_within:
  description: Within how many seconds of the last heartbeat of the controller all members have returned.
  type: int
  returned: with O(state=armed) and O(state=abandoned)
  sample: 55
postponed:
  description: Whether the timer begins anew. If not, it came too late after V(announced), and the timer runs on.
  type: bool
  returned: with O(state=postponed)
"""

from ansible_collections.onprem.lb.plugins.module_utils._host.firewall.system import Host
from ansible_collections.onprem.lb.plugins.module_utils._host.module import Module, ending_in_words
from ansible_collections.onprem.lb.plugins.module_utils._host.states import (
    arming,
    manager,
    program,
    restoring,
    store,
    undoing,
)

ARGUMENTS = {
    "state": {
        "type": "str",
        "choices": [
            "armed",
            "announced",
            "postponed",
            "confirmed",
            "abandoned",
            "taken_over",
            "listed",
            "named",
            "renamed",
            "restored",
            "held_back",
            "exported",
            "imported",
        ],
        "required": True,
    },
    "run": {"type": "str", "default": "", "no_log": False},
    "id": {"type": "str", "default": "", "no_log": False},
    "saved": {"type": "dict", "default": {}},
    "backup": {"type": "str", "default": ""},
    "purpose": {"type": "str", "default": "a run", "no_log": False},
    "role": {"type": "str", "choices": list(undoing.ROLES), "default": undoing.ALONE},
    "after": {"type": "float", "default": 40.0},
    "settle": {"type": "float", "default": 5.0},
    "setting": {"type": "str", "default": "pair_undo_after", "no_log": False},
    "first": {"type": "list", "elements": "str", "default": [], "no_log": False},
    "configs": {"type": "dict", "default": {}},
    "interfaces": {"type": "list", "elements": "str", "default": [], "no_log": False},
}


def do(params, member, dry):
    """Do what is asked for; return the result."""
    state = params["state"]
    if state == "listed":
        return {**manager.listed(member), "engine": member.now().engine}
    if state == "exported":
        return {"saved": manager.exported(member), "engine": member.now().engine}
    if state == "imported":
        found = manager.imported(member, params["saved"], params["id"], params["backup"], dry)
        return {"changed": True, "states": [found], "engine": member.now().engine}
    if state == "restored":
        done = manager.restore(member, params["id"], dry)
        return {"changed": bool(done["paths"] or done["commands"]), **done}
    how = {key: params[key] for key in ("role", "after", "settle")}
    due = arming.Due(params["run"], params["run"], **how, first=tuple(params["first"]))
    returns = state in ("armed", "abandoned")
    result = {"returned_within": undoing.returned_within(due.role, due.after, due.settle)} if returns else {}
    if dry:
        return {**result, "postponed": True} if state == "postponed" else result
    if state in ("named", "renamed"):
        done = manager.name(member, params["id"], alone=state == "renamed")
        return {"changed": bool(done["paths"]), **done}
    if state == "armed":
        manager.arm(member, due, params["purpose"], params["id"])
    elif state == "held_back":
        manager.hold_back(member)
    elif state == "announced":
        arming.announce()
    elif state == "postponed":
        result["postponed"] = arming.postpone(member.run, due, program.build())
    elif state == "confirmed":
        arming.confirm(member.run, due if params["run"] else None, program.build())
    elif state == "abandoned":
        arming.abandon(member.run, due, program.build())
    else:
        arming.take_over(member.run)
    return result


@ending_in_words
def main():
    module = Module(argument_spec=ARGUMENTS, supports_check_mode=True)
    member = manager.Member(module.run_command, Host(module), module.params["configs"], module.params["interfaces"])
    try:
        result = do(module.params, member, module.check_mode)
    except arming.Late as error:
        module.fail_json(msg=f"{error} Repeat the run; where hosts are slow, with a larger {module.params['setting']}.")
    except (arming.Refused, restoring.Failed, store.Refused, OSError) as error:
        module.fail_json(msg=str(error))
    if result.get("failed"):
        module.fail_json(msg=" ".join(result["failed"]), **{key: result[key] for key in ("paths", "commands")})
    result.pop("failed", None)
    module.exit_json(**{"changed": False, **result})


if __name__ == "__main__":
    main()
