#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: drill_event
short_description: Inject one failure on a host, and revert it later
version_added: 1.0.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Arms two transient systemd timers on the host, C(onprem-lb-drill-revert) first and C(onprem-lb-drill-inject)
    second, and returns at once. The host reverts the failure itself, even if the drill is interrupted or the host
    cannot be reached.
  - What an earlier, interrupted drill has left is reverted first.
  - The failure is real. Inject it where you can afford it.
options:
  event:
    description:
      - V(haproxy_killed) and V(keepalived_killed) kill every process of the service with SIGKILL. A service
        that restarts itself does so. Reverting starts the service if it is not running.
      - V(haproxy_stopped) and V(keepalived_stopped) stop the service. Reverting starts it.
      - V(direct_down) stops the direct plane. A member whose plane runs gets the VIPs. Reverting starts it.
      - V(haproxy_hung) suspends every process of HAProxy with SIGSTOP. It keeps its sockets and answers nobody.
        Reverting continues them with SIGCONT, and starts the service if a watchdog has ended it.
      - V(haproxy_reloaded) reloads HAProxy, and V(both_reloaded) HAProxy and keepalived. There is nothing to revert.
      - V(host_cut) drops every frame on O(interface), both ways, ARP too. Reverting removes the nftables table
        C(netdev onprem_lb_drill). Needs the package nftables and Linux 5.16 or later.
      - V(vrrp_lost) drops the VRRP Advertisements that leave O(interface), so that the other members take over while
        this one still holds its addresses. Reverted like V(host_cut), and needs the same.
      - V(path_withdrawn) stops the health gate of a host that announces its VIPs by BGP, which takes them off lo, while
        the balancer goes on. V(path_back) does the same, and what is measured is the return. Reverting starts the gate.
      - V(router_gone) makes this host and O(router) deaf to each other, and drops what that router sends to O(vip).
        Neither the router nor the other hosts are touched. Reverted like V(host_cut), and needs the same.
      - V(bgp_killed) kills FRR's bgpd with SIGKILL, which its watchdog starts again. Reverting restarts FRR if it has
        not.
      - V(bfd_lost) drops the packets of BFD, coming and going, so that routers take the path out of a host that serves.
        Reverted like V(slow_backend).
      - V(port_down) sets O(interface) down, as a switch does whose port goes down. Reverting sets it up, waits for its
        link, and puts back the routes over gateways. The IPv6 addresses are kept.
      - V(link_flapping) does the same every O(flap_seconds), and sets it up in between.
      - V(slow_backend) makes the servers slow for the balancer of this host. It drops the first SYN of each connection
        to them, which the kernel sends again a second later. Reverting removes the nftables table
        C(inet onprem_lb_drill). Refused where the balancer has no user of its own.
      - V(conntrack_full) drops the first packet of each new TCP connection, coming and going, as the kernel does while
        its table of connections is full. Open connections and VRRP go on. Reverted like V(slow_backend). Ansible and
        others cannot connect to the host meanwhile, unless they have a connection already.
      - V(disk_full) fills the file systems of O(folders), each with a file C(.onprem-lb-drill) that takes what is free.
        Reverting deletes the files. Refused where the file system is in memory, and most of that would be used up.
      - V(stranger_with_vip) is another host with O(vip) on the link of O(interface). It announces the address from a
        MAC that nobody has, and answers whoever asks for it. Clients that believe it reach nobody until the holder
        announces its address again. Reverting ends it.
      - V(server_cut) drops what the balancer of this host and O(server) send to each other, as when the server's host
        is cut off or powered off. V(server_ended) refuses connections to it, as when its process has ended. With
        V(server_hung) its kernel accepts connections, and no answer arrives. V(server_back) does the same as
        V(server_cut), and what is measured is the return. All of them concern the address and port of O(server) and
        this host alone. Reverted like V(slow_backend). Refused if no other server of its services is up.
      - V(host_rebooted) reboots the host with C(systemctl reboot). Nothing reverts it. A container ends, and starts
        again only if the program that runs it starts it. Refused unless the balancer and the router start at boot.
      - Any other needs O(command).
      - V(none) reverts now what is left of an earlier drill and removes its timers.
    type: str
    required: true
  after:
    description: Seconds from now until the failure.
    type: float
    default: 2
  revert_after:
    description: Seconds from the failure until it is reverted.
    type: float
    default: 10
  command:
    description: Shell commands of an event of your own, for a program that this collection does not know.
    type: dict
    suboptions:
      inject:
        description: The command that makes the failure happen.
        type: str
        required: true
      revert:
        description: The command that reverts the failure.
        type: str
        default: ''
  engine:
    description: What the host runs. With V(agent) its balancer and its router fail in place of HAProxy and keepalived.
    type: str
    choices: [native, agent]
    default: native
  interface:
    description:
      - The interface, for O(event=host_cut), O(event=vrrp_lost), O(event=port_down), O(event=link_flapping) and
        O(event=stranger_with_vip).
      - If Ansible reaches the host through it, Ansible cannot reach the host until the event is reverted.
    type: str
  vrrp_interface:
    description: The interface on which the members advertise, if it is another one than O(interface), which carries the
      VIPs. O(event=host_cut) cuts both, and O(event=vrrp_lost) happens there.
    type: str
    version_added: 1.1.0
  folders:
    description:
      - For O(event=disk_full), folders of the file systems that are full. What else writes there fails meanwhile.
    type: list
    elements: path
    default: [/run]
  vip:
    description: For O(event=stranger_with_vip), the address that the stranger has. For O(event=router_gone), the one
      that the router does not reach on this host.
    type: str
  router:
    description: For O(event=router_gone), the address of a router on a link of this host.
    type: str
    version_added: 1.1.0
  server:
    description: For O(event=server_cut), O(event=server_ended), O(event=server_hung) and O(event=server_back), the
      server that is lost.
    type: dict
    version_added: 1.1.0
    suboptions:
      address:
        description: The address of the server, as the balancer has it.
        type: str
        required: true
      port:
        description: The port of the server.
        type: int
        required: true
      services:
        description: The services of the balancer that have the server, each with the list of its names there.
        type: dict
        required: true
  flap_seconds:
    description: For O(event=link_flapping), how many seconds the link is down, and then up.
    type: float
    default: 1
attributes:
  check_mode:
    description: Says what it would arm. Changes nothing.
    support: full
  diff_mode:
    description: There is nothing to show.
    support: none
  platform:
    description: Hosts that run systemd.
    platforms: linux
    support: full
requirements:
  - systemd
  - nftables for each event that drops packets
"""

EXAMPLES = r"""
- name: Kill HAProxy in two seconds, and start it ten seconds later
  onprem.lb.drill_event:
    event: haproxy_killed
    after: 2
    revert_after: 10

- name: Cut the host off for five seconds
  onprem.lb.drill_event:
    event: host_cut
    interface: eth0
    revert_after: 5

- name: Revert everything now
  onprem.lb.drill_event:
    event: none
"""

RETURN = r"""
units:
  description: The armed timers, in the order in which they were armed.
  returned: always
  type: list
  elements: str
  sample: [onprem-lb-drill-revert.timer, onprem-lb-drill-inject.timer]
injected_at:
  description: When the failure happens, by the host's own clock. Null if none does.
  returned: always
  type: str
  sample: "2026-01-31T12:00:02.000+00:00"
reverted_at:
  description: When the failure is reverted, by the host's own clock. Null if there is nothing to revert.
  returned: always
  type: str
  sample: "2026-01-31T12:00:12.000+00:00"
cleared:
  description: What an earlier drill had left, reverted before anything else.
  returned: always
  type: list
  elements: str
  sample: []
commands:
  description:
    - The commands that inject and revert the failure.
    - Those of an event of your own are left out, because they may contain secrets.
  returned: always
  type: dict
  sample:
    inject: systemctl stop haproxy.service
    revert: systemctl reset-failed haproxy.service; systemctl start haproxy.service
"""

import os
import time

from ansible_collections.onprem.lb.plugins.module_utils._host.drill import announced, backend, disk, faults, ports
from ansible_collections.onprem.lb.plugins.module_utils._host.module import Module, ending_in_words
from ansible_collections.onprem.lb.plugins.module_utils._host.read import announcing, facts, member
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import UNITS
from ansible_collections.onprem.lb.plugins.module_utils._shared.events import (
    BGP_KILLED,
    DISK_FULL,
    HOST_REBOOTED,
    ON_SERVER,
    ROUTER_GONE,
    SLOW_BACKEND,
    STRANGER_WITH_VIP,
)


def target_of(module):
    """Return where the event happens."""
    params, run = module.params, module.run_command
    target = faults.Target(
        params["interface"] or "",
        params["engine"],
        None,
        params["flap_seconds"],
        vip=params["vip"] or "",
        vrrp_interface=params["vrrp_interface"] or "",
    )
    if params["event"] in faults.LINKS:
        faults.refuse_name(params["event"], target.interface)
        target = target._replace(port=ports.read(target.interface, run))
    if params["event"] == SLOW_BACKEND:
        target = target._replace(uids=backend.users(UNITS[target.engine].balancer))
    if params["event"] in ON_SERVER:
        target = target._replace(server=params["server"], known=member.servers(Reader.of(module)))
    if params["event"] == ROUTER_GONE:
        address = faults.checked_address(ROUTER_GONE, params["router"], "router")
        target = target._replace(router=announced.neighbour(address, run))
    if params["event"] == BGP_KILLED:
        announced.refuse_without_bgpd()
    if params["event"] == HOST_REBOOTED:
        target = target._replace(announces=announcing.is_here())
    if params["event"] == DISK_FULL:
        target = target._replace(disks=disk.read(params["folders"], run, disk.available_memory))
    return target


def run_event(module):
    params = module.params
    event, run = params["event"], module.run_command
    have_nft = bool(module.get_bin_path("nft"))
    if not facts.has_systemd():
        raise faults.Refused("A drill needs systemd on the host, and this host does not run it.")
    if min(params["after"], params["revert_after"]) < 0:
        raise faults.Refused("after and revert_after cannot be negative.")
    if params["flap_seconds"] < faults.SHORTEST_FLAP:
        raise faults.Refused(
            f"flap_seconds is {params['flap_seconds']:g}: it must be at least {faults.SHORTEST_FLAP:g}."
        )
    script = None
    if event != "none":
        script = faults.script_for(event, target_of(module), params["command"])
    cleared = faults.left_over(run) if module.check_mode else faults.clear(run, have_nft, params["folders"])
    armed = []
    if script is not None:
        named = [params[key] for key in ("interface", "vrrp_interface") if params[key]]
        faults.check(script, named, os.listdir("/sys/class/net"), run, have_nft)
        armed = faults.timers(event, script, params["after"], params["revert_after"])
    now = time.time()
    if not module.check_mode:
        faults.arm(armed, run)
    commands = {"inject": script.inject, "revert": script.revert} if script and not params["command"] else {}
    return dict(faults.schedule(armed, now), changed=bool(armed or cleared), cleared=cleared, commands=commands)


@ending_in_words
def main():
    module = Module(
        argument_spec={
            "event": {"type": "str", "required": True, "no_log": False},
            "after": {"type": "float", "default": 2},
            "revert_after": {"type": "float", "default": 10},
            "command": {
                "type": "dict",
                "options": {"inject": {"type": "str", "required": True}, "revert": {"type": "str", "default": ""}},
            },
            "engine": {"type": "str", "choices": ["native", "agent"], "default": "native"},
            "interface": {"type": "str", "no_log": False},
            "vrrp_interface": {"type": "str", "no_log": False},
            "flap_seconds": {"type": "float", "default": 1},
            "vip": {"type": "str", "no_log": False},
            "router": {"type": "str", "no_log": False},
            "folders": {"type": "list", "elements": "path", "default": ["/run"]},
            "server": {
                "type": "dict",
                "options": {
                    "address": {"type": "str", "required": True},
                    "port": {"type": "int", "required": True},
                    "services": {"type": "dict", "required": True},
                },
            },
        },
        required_if=[
            *(("event", event, ["interface"]) for event in faults.ON_INTERFACE),
            ("event", STRANGER_WITH_VIP, ["vip"]),
            ("event", ROUTER_GONE, ["vip", "router"]),
            *(("event", event, ["server"]) for event in ON_SERVER),
        ],
        supports_check_mode=True,
    )
    try:
        module.exit_json(**run_event(module))
    except faults.Refused as refused:
        module.fail_json(msg=str(refused))


if __name__ == "__main__":
    main()
