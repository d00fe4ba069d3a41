#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: member_info
short_description: Read what a member of a pair or cluster holds, and whether it could take over
version_added: 1.0.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Reads the VIPs that this member holds, its engine, the states of its VRRP instances and of its servers, and each
    reason why it could not take over, in one call and without a plan.
  - Changes nothing, takes no lock, and needs root.
options:
  vips:
    description: VIPs to look for besides those of the configuration, each with or without a prefix length, or a mapping
      with the key C(address).
    type: list
    elements: raw
    default: []
  members_record:
    description: The file in which the last run has recorded the members.
    type: path
  asks_reboot:
    description: Whether to find out if this host needs a reboot, which takes longer where dnf is to say so.
    type: bool
    default: false
  asks_start:
    description: Whether its programs are asked if they would start again, which takes a moment.
    type: bool
    default: false
  asks_firewall:
    description: Whether to find out what the rules of nftables refuse here, which may be many thousands.
    type: bool
    default: false
    version_added: 1.1.0
  connections_wait:
    description: For how many seconds at most to wait, before anything is read, until no connection to a VIP that this
      host announces is left.
    type: float
    default: 0
    version_added: 1.1.0
extends_documentation_fragment:
  - onprem.lb.attributes.reads_only
seealso:
  - module: onprem.lb.layout_info
"""

EXAMPLES = r"""
- name: Read the member
  onprem.lb.member_info:
    vips: [192.0.2.10]
  register: member
"""

RETURN = r"""
booted:
  description: When systemd has started here; empty if that is not known.
  type: str
  returned: success
  sample: Sat 2026-01-31 12:00:00 UTC
engine:
  description: C(native), C(agent), or nothing where this collection has set up none.
  type: str
  returned: success
balancer:
  description: The unit of the balancer of this engine; empty on a node that has none, such as a cluster's worker.
  type: str
  returned: success
  sample: haproxy.service
router:
  description: The unit of the VRRP router of this engine.
  type: str
  returned: success
  sample: keepalived.service
versions:
  description: The versions of C(haproxy) and C(keepalived) that are installed, or of the C(agent) or C(frr) that runs.
  type: dict
  returned: success
  sample: {"haproxy": "2.6.12", "keepalived": "2.2.7"}
instances:
  description:
    - The configured VRRP instances. The state is Active, Backup, Fault, or empty if it is not known.
    - C(carriers) has the interface of each address that another one than the instance's carries.
  type: list
  elements: dict
  returned: success
  sample:
    - name: vip-192.0.2.10
      interface: eth0
      addresses: [192.0.2.10]
      priority: 254
      preempt: true
      source: 192.0.2.1
      peers: [192.0.2.2]
      state: Active
held:
  description: The VIPs that this member holds, with BGP on its loopback interface, and for how many seconds; null if
    that is not known.
  type: list
  elements: dict
  returned: success
  sample: [{"address": "192.0.2.10", "seconds": 3600}]
announcing:
  description:
    - What this member announces by BGP. Empty where VRRP moves its VIPs.
    - C(vips) are those of its configuration, each with the C(reason) of its health gate, which is C(serves), C(failed),
      C(not_known), C(held_back), or empty where the gate does not answer, with it in words (C(detail)), and the other
      interfaces that have it (C(elsewhere)).
    - C(sessions) has for each router and family the C(state), how many VIPs it was C(sent), what C(bfd) says, for how
      many C(seconds) that is so, and whether it C(announces), which is that it is established and has a VIP.
    - C(silent) says why FRR does not tell its sessions, and C(sessions_known) whether they are known all the same, as
      where bgpd does not run. C(drained) is whether FRR asks routers to prefer others. C(problems) are the gate's own.
    - C(asn) is the AS number of FRR, 0 where it does not tell it. C(connections) are the TCP connections to the VIPs
      that end here. C(direct) has each VIP and port at which direct return keeps connections that last.
  type: dict
  returned: success
  version_added: 1.1.0
answering:
  description: For each VIP, the hardware addresses of the other hosts that answer for it.
  type: dict
  returned: success
addresses:
  description: The addresses of this member, without those of the loopback interface.
  type: list
  elements: str
  returned: success
macs:
  description: The hardware addresses of this member.
  type: list
  elements: str
  returned: success
ports:
  description: The TCP ports at which the balancer answers through the VIPs.
  type: list
  elements: int
  returned: success
ports_of_vips:
  description: For each VIP those of RV(ports) at which the balancer listens there.
  type: dict
  returned: success
  sample: {"192.0.2.10": [80, 443]}
servers:
  description: How many servers the balancer has in C(total), how many are C(up) or late, and the C(others), which are
    not up. A late one gets connections while no server is up.
  type: dict
  returned: success
  sample: {"total": 4, "up": 3, "others": [{"service": "web", "name": "app1", "state": "down"}]}
firewall:
  description:
    - What the rules of nftables refuse for certain here. Of the VIPs and ports at which the balancer listens those that
      are C(closed), and the others, which are C(open); the peers whose C(vrrp) is refused, with an empty one for all of
      them by multicast; and the first C(chain) that refuses.
    - Why that is C(unknown), or not the whole of it. Empty without O(asks_firewall).
  type: dict
  returned: success
  sample: {"closed": [["192.0.2.10", 443]], "open": [], "vrrp": [], "chain": "inet filter input", "unknown": ""}
full:
  description: A sentence for each file system that has no room for what the daemons and the next run write.
  type: list
  elements: str
  returned: success
resigns_when_killed:
  description: Whether keepalived has the hook by which its host resigns for it when it is killed. An older version of
    this collection has not written it. True with the agent and with static pods.
  type: bool
  returned: success
held_back:
  description: The member C(to) which the VIPs were handed over, since when and by whom, while a switchover or a
    maintenance (C(during)) keeps the router stopped here; else empty.
  type: dict
  returned: success
unable:
  description: A sentence for each reason why this member could not take over, besides RV(held_back).
  type: list
  elements: str
  returned: success
would_not_start:
  description:
    - With O(asks_start) a sentence for each program that would refuse its configuration if it were started now, as with
      a certificate that has been replaced and has another key.
  type: list
  elements: str
  returned: success
names:
  description: A sentence for each reason why this host may not resolve the names of its layout or of others, where it
    has a resolver.
  type: list
  elements: str
  returned: success
direct:
  description: A sentence for each reason why clients of direct return may get no answer, or fewer servers than there
    are, where this host has a direct plane.
  type: list
  elements: str
  returned: success
not_following:
  description: A sentence for each reason why the balancer may have other servers than its cluster has nodes, where it
    is to follow one.
  type: list
  elements: str
  returned: success
named:
  description: The addresses to which this host's own resolver leads names, but those of nodes; empty without one.
  type: dict
  returned: success
  sample: {"api.lab.example.com": ["192.0.2.10"], "*.apps.lab.example.com": ["192.0.2.20"]}
stale:
  description: A sentence for each program that has not loaded its configuration since it changed.
  type: list
  elements: str
  returned: success
replaced:
  description: A sentence for each program of whose configuration files that it names, such as certificates, were
    replaced since it has loaded them.
  type: list
  elements: str
  returned: success
undo:
  description: What becomes, or became, of a change that no run has confirmed; empty where there is none.
  type: str
  returned: success
  sample: is about to return to what it ran before 20260131T120000Z, unless a run of onprem.lb.site confirms the change.
members:
  description: The members that O(members_record) has, and the addresses of each.
  type: dict
  returned: success
written_by:
  description: The version of this collection that has set this member up, by O(members_record); empty without one.
  type: str
  returned: success
  sample: 1.1.0
reboot:
  description: Why this host needs a reboot, empty if nothing says so.
  type: str
  returned: with O(asks_reboot)
  sample: /run/reboot-required is there
"""

from ansible_collections.onprem.lb.plugins.module_utils._host.module import Module, ending_in_words
from ansible_collections.onprem.lb.plugins.module_utils._host.read import announcing, member, reboot
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader


@ending_in_words
def main():
    module = Module(
        argument_spec={
            "vips": {"type": "list", "elements": "raw", "default": [], "no_log": False},
            "members_record": {"type": "path"},
            "asks_reboot": {"type": "bool", "default": False},
            "asks_start": {"type": "bool", "default": False},
            "asks_firewall": {"type": "bool", "default": False},
            "connections_wait": {"type": "float", "default": 0},
        },
        supports_check_mode=True,
    )
    reader = Reader.of(module)
    given = module.params
    announcing.wait_for_connections(reader, given["connections_wait"])
    try:
        asks = [given["asks_start"], given["asks_firewall"]]
        found = member.read(reader, given["vips"], given["members_record"] or "", *asks)
    except PermissionError:
        module.fail_json(msg="There is no permission to open raw sockets: use become, or give the container NET_RAW.")
    if given["asks_reboot"]:
        found["reboot"] = reboot.reason(reader)
    module.exit_json(**found)


if __name__ == "__main__":
    main()
