#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: vrid
short_description: Choose the VRIDs of a cluster or a pair, so that no other router on the link has them
version_added: 1.0.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Computes VRIDs from a name, in the same way on every host, and compares them with those of others, in the inventory
    or on the link.
  - It changes nothing and sends nothing.
options:
  name:
    description: The name of the cluster (bare, without its domain) or of the pair.
    type: str
    required: true
  strategy:
    description:
      - V(openshift) gives the two VRIDs that OpenShift's installer computes from a cluster's name.
      - V(pool) gives one of the 30 that it computes from no name. They are the multiples of 16 below 240, and 240
        to 255.
    type: str
    choices: [openshift, pool]
    default: openshift
  clusters:
    description:
      - The names of other clusters on the same link. The VRIDs that OpenShift computes for them count as taken.
      - A cluster with other VRIDs belongs into O(taken).
    type: list
    elements: str
    default: []
  taken:
    description: VRIDs that others have. Each is a number, or a mapping with the keys C(vrid) and C(by), a text that
      names the owner.
    type: list
    elements: raw
    default: []
  current:
    description:
      - What this cluster or pair has already, as a mapping with the keys C(api) and C(ingress), or C(pair). A pair's
        may be just a number.
      - It is kept while no other has it.
    type: raw
  on_conflict:
    description:
      - Whether to fail when another router has the VRID that is computed or in use, or to take the next free one.
      - Where two of the clusters clash, V(next) moves the one whose name comes later in the alphabet, unless it is
        the one with O(current).
      - OpenShift's own VIPs cannot take the next one, their VRIDs follow from the name alone.
    type: str
    choices: [fail, next]
    default: fail
  seconds:
    description:
      - How many seconds to listen on the link for others; 0 does not listen.
      - Most routers advertise every second.
    type: float
    default: 0
  interface:
    description: The interface to listen on. By default on every interface that is up.
    type: str
  members:
    description: The addresses of the cluster's or pair's own members, the link-local ones too. Their advertisements do
      not count.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - onprem.lb.attributes.reads_only
seealso:
  - module: onprem.lb.vrrp_info
  - plugin: onprem.lb.openshift_vrids
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Check that the new cluster clashes with no existing one
  onprem.lb.vrid:
    name: cnf11
    clusters: [cnf12, vmware]
    interface: eth0
    seconds: 3.5
  register: cluster

- name: Choose a VRID for a pair, and keep it on later runs
  onprem.lb.vrid:
    name: balancers
    strategy: pool
    current: 240
    taken:
      - 16
      - {vrid: 32, by: the office's router}
  register: pair
"""

RETURN = r"""
vrids:
  description: The VRIDs, with the keys C(api) and C(ingress), or C(pair).
  type: dict
  returned: success
  sample: {"api": 109, "ingress": 124}
vrid:
  description: The VRID, where RV(vrids) has only one.
  type: int
  returned: success and O(strategy=pool)
conflicts:
  description: A sentence for each other owner of a wanted VRID, present or future.
  type: list
  elements: str
  returned: always
heard:
  description: The routers on the link that are no members, as M(onprem.lb.vrrp_info) returns them.
  type: list
  elements: dict
  returned: always
"""

from ansible_collections.onprem.lb.plugins.module_utils._host.link import sniffer
from ansible_collections.onprem.lb.plugins.module_utils._host.module import Module, ending_in_words
from ansible_collections.onprem.lb.plugins.module_utils._shared import vrid, vrrp_routers

ARGUMENTS = {
    "name": {"type": "str", "required": True, "no_log": False},
    "strategy": {"type": "str", "choices": ["openshift", "pool"], "default": "openshift"},
    "clusters": {"type": "list", "elements": "str", "default": [], "no_log": False},
    "taken": {"type": "list", "elements": "raw", "default": []},
    "current": {"type": "raw"},
    "on_conflict": {"type": "str", "choices": ["fail", "next"], "default": "fail"},
    "seconds": {"type": "float", "default": 0},
    "interface": {"type": "str", "no_log": False},
    "members": {"type": "list", "elements": "str", "default": [], "no_log": False},
}


def foreign_routers(params):
    """Return the routers on the link that are no members."""
    if params["seconds"] == 0:
        return []
    captured = sniffer.collect(params["interface"], params["seconds"]).result()
    return vrrp_routers.foreign_routers(captured["routers"], params["members"])


@ending_in_words
def main():
    module = Module(argument_spec=ARGUMENTS, supports_check_mode=True)
    params = module.params
    try:
        heard = foreign_routers(params)
    except sniffer.CannotListen as error:
        module.fail_json(msg=str(error), conflicts=[], heard=[])
    choice = vrid.choose(
        params["name"],
        params["strategy"],
        [*params["taken"], *vrrp_routers.taken(heard)],
        params["current"],
        params["on_conflict"],
        params["clusters"],
    )
    if choice.faults:
        module.fail_json(msg="\n".join(choice.faults), conflicts=choice.conflicts, heard=heard)
    single = {"vrid": choice.vrids["pair"]} if params["strategy"] == "pool" else {}
    module.exit_json(changed=False, vrids=choice.vrids, conflicts=choice.conflicts, heard=heard, **single)


if __name__ == "__main__":
    main()
