#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: vrrp_info
short_description: Listen for the VRRP routers on the links of a host
version_added: 1.0.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Listens for VRRP advertisements, versions 2 and 3, IPv4 and IPv6, and returns the routers that send them, this
    host's own included.
  - It changes nothing and sends nothing, so it sees only what the network forwards to it. It does not see unicast
    advertisements between other hosts, and switches with MLD snooping may hold back the multicast ones of IPv6.
  - Only an Active router advertises. A Backup is never seen.
options:
  interface:
    description:
      - Where to listen. By default on every interface that is up.
      - Frames that are tagged for a VLAN belong to the VLAN's own interface.
    type: str
  seconds:
    description: How many seconds to listen. Most routers advertise every second; a slower one takes longer to be seen.
    type: float
    default: 3.5
  with_auth_pass:
    description:
      - Return the passwords, too, which every host on the link can read.
      - Use C(no_log) on the task then.
    type: bool
    default: false
extends_documentation_fragment:
  - onprem.lb.attributes.reads_only
seealso:
  - module: onprem.lb.vrid
"""

EXAMPLES = r"""
- name: List the VRIDs on the link
  onprem.lb.vrrp_info:
    interface: eth0
  register: link

- name: Stop where two routers fight for an address
  ansible.builtin.assert:
    that: link.conflicts | length == 0
    fail_msg: "{{ link.conflicts }}"
"""

RETURN = r"""
routers:
  description:
    - Every router that advertised, sorted by interface, family, VRID and source. What may change is as in its latest
      advertisement.
  type: list
  elements: dict
  returned: success
  contains:
    interface: {description: The interface on which the router was heard., type: str}
    family: {description: "The family of the addresses, 4 or 6.", type: int}
    vrid: {description: The VRID., type: int}
    version: {description: The VRRP version., type: int}
    source: {description: The address from which the router sends., type: str}
    mac: {description: The hardware address from which the router sends., type: str}
    own: {description: Whether the router runs on this host., type: bool}
    destination: {description: The address to which the router sends., type: str}
    unicast: {description: "Whether the router sends to one host, and not to the multicast group.", type: bool}
    priority: {description: The router's priority; 0 means that it resigns., type: int}
    interval: {description: Seconds between two advertisements., type: float}
    addresses: {description: The VIPs., type: list, elements: str}
    auth_type: {description: "C(none), C(simple), or the number of another type.", type: str}
    auth_pass: {description: The password; only with O(with_auth_pass=true)., type: str}
    checksum: {description: The RFC by which the checksum is correct., type: str}
    seen: {description: The number of advertisements that were received., type: int}
    first: {description: "When the first advertisement was received, in seconds from the start.", type: float}
    last: {description: "When the latest advertisement was received, in seconds from the start.", type: float}
  sample:
    - interface: eth0
      family: 4
      vrid: 51
      version: 2
      source: 192.0.2.11
      mac: "02:00:00:00:00:11"
      own: false
      destination: 224.0.0.18
      unicast: false
      priority: 254
      interval: 1.0
      addresses: [192.0.2.10]
      auth_type: simple
      checksum: rfc3768
      seen: 4
      first: 0.3
      last: 3.3
discarded:
  description:
    - Messages that are no valid advertisement, by the reason, such as C(carp) or C(checksum). For each, how many there
      were, and of the latest the detail, the source and the interface.
  type: dict
  returned: success
  sample: {"carp": {"count": 3, "detail": "a CARP advertisement of VHID 1", "source": "192.0.2.7", "interface": "eth0"}}
conflicts:
  description:
    - A sentence for each VRID that had two Actives at a time. A takeover, where one ends before the other begins, is
      none.
    - Two that reject each other's messages, for instance because of different passwords, may alternate. keepalived
      restarts its timer whenever it receives any advertisement, so with equal intervals only one of them advertises at
      a time. Listen for 10 seconds to see both.
  type: list
  elements: str
  returned: success
  sample: ["VRID 51 (IPv4) on eth0 has two Actives: 192.0.2.11 and 192.0.2.99."]
"""

from ansible_collections.onprem.lb.plugins.module_utils._host.link import sniffer
from ansible_collections.onprem.lb.plugins.module_utils._host.module import Module, ending_in_words

ARGUMENTS = {
    "interface": {"type": "str", "no_log": False},
    "seconds": {"type": "float", "default": 3.5},
    "with_auth_pass": {"type": "bool", "default": False, "no_log": False},
}


@ending_in_words
def main():
    module = Module(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        view = sniffer.collect(module.params["interface"], module.params["seconds"])
    except sniffer.CannotListen as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, **view.result(module.params["with_auth_pass"]))


if __name__ == "__main__":
    main()
