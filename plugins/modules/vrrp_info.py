#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: vrrp_info
short_description: Hear which VRRP routers are on the links of a host
version_added: 0.1.0
author:
  - The onprem.lb authors (@onprem)
description:
  - Listens for VRRP advertisements, versions 2 and 3, IPv4 and IPv6, and returns who sends which. This host's own are
    among them.
  - It changes nothing and sends nothing, so it hears only what the network brings. Advertisements sent to one other
    host (unicast) stay unheard, and switches with MLD snooping may keep the multicast ones of IPv6 back.
  - Only an Active router advertises. A Backup is never seen.
options:
  interface:
    description:
      - Where to listen. By default on every interface that is up.
      - What is tagged for a VLAN is heard on the VLAN's own interface.
    type: str
  seconds:
    description:
      - For how many seconds. Most routers advertise every second; one that does so more rarely takes longer to be
        heard.
    type: float
    default: 3.5
  with_auth_pass:
    description:
      - Also return the passwords, which every host on the link can read.
      - Use C(no_log) on the task then.
    type: bool
    default: false
extends_documentation_fragment:
  - onprem.lb.attributes.reads_only
seealso:
  - module: onprem.lb.vrid
"""

EXAMPLES = r"""
- name: Hear who uses which VRID
  onprem.lb.vrrp_info:
    interface: eth0
  register: segment

- name: Stop where two routers fight for an address
  ansible.builtin.assert:
    that: segment.conflicts | length == 0
    fail_msg: "{{ segment.conflicts }}"
"""

RETURN = r"""
routers:
  description:
    - Every router that advertised, sorted by interface, family, VRID and source. What may change with time is as the
      latest advertisement said.
  type: list
  elements: dict
  returned: success
  contains:
    interface: {description: Where it was heard., type: str}
    family: {description: 4 or 6., type: int}
    vrid: {description: The VRID., type: int}
    version: {description: The VRRP version., type: int}
    source: {description: The address it sends from., type: str}
    mac: {description: The hardware address it sends from., type: str}
    own: {description: Whether this host itself sends it., type: bool}
    destination: {description: Where it sends to., type: str}
    unicast: {description: Whether that is one host., type: bool}
    priority: {description: The priority. 0 says that it gives up., type: int}
    interval: {description: Seconds between two advertisements., type: float}
    addresses: {description: The VIPs., type: list, elements: str}
    auth_type: {description: C(none) or C(simple)., type: str}
    auth_pass: {description: The password; only with O(with_auth_pass=true)., type: str}
    checksum: {description: The RFC by which the checksum is right., type: str}
    seen: {description: The number of advertisements., type: int}
    first: {description: When the first was heard; seconds after the beginning., type: float}
    last: {description: When the latest was heard., type: float}
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
    - What was heard but is no valid advertisement, by the reason, such as C(carp) or C(checksum). For each, how many
      there were, and of the latest the detail, the source and the interface.
  type: dict
  returned: success
  sample: {"carp": {"count": 3, "detail": "a CARP advertisement of VHID 1", "source": "192.0.2.7", "interface": "eth0"}}
conflicts:
  description:
    - A sentence for each VRID that had two Actives at a time. A takeover, where one ends before the other begins, is
      none.
    - Two that do not believe each other, as with different passwords, may take turns. keepalived waits anew whenever
      it hears another, so with equal intervals only one of them speaks at a time. Listen for 10 seconds to see both.
  type: list
  elements: str
  returned: success
  sample: ["VRID 51 (IPv4) on eth0 has two Actives: 192.0.2.11 and 192.0.2.99."]
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.onprem.lb.plugins.module_utils._host.link import sniffer

ARGUMENTS = {
    "interface": {"type": "str"},
    "seconds": {"type": "float", "default": 3.5},
    "with_auth_pass": {"type": "bool", "default": False, "no_log": False},
}


def main():
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        segment = sniffer.collect(module.params["interface"], module.params["seconds"])
    except sniffer.CannotListen as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, **segment.result(module.params["with_auth_pass"]))


if __name__ == "__main__":
    main()
