#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: vip_probe
short_description: Measures how a floating address serves while it fails over
version_added: 0.1.0
author:
  - The onprem.lb authors (@onprem)
description:
  - Starts a new connection to the address every few milliseconds, on a fixed grid, and asks on the same
    grid who holds the address (ARP, or neighbour solicitation for IPv6).
  - Run it on a host that is no member and is on the same link. Elsewhere, or without the right to open raw
    sockets, it still measures the connections, and RV(holders_known) is false.
  - Connections are closed with RST, so that neither this host nor the members run out of ports.
  - It changes nothing, on this host or any other.
options:
  address:
    description:
      - The floating address, IPv4 or IPv6.
    type: str
    required: true
  port:
    description:
      - The TCP port of the service behind it.
    type: int
    required: true
  interface:
    description:
      - The interface to ask on who holds the address. By default the one the kernel would use for it.
    type: str
  interval_ms:
    description:
      - A connection is started, and the link asked, once in this many milliseconds. It is the resolution of
        all results.
    type: float
    default: 5
  timeout_ms:
    description:
      - An attempt without an answer after this time has failed. Below 1000 this includes every attempt that
        succeeds only because the kernel sent its SYN again.
    type: float
    default: 300
  duration:
    description:
      - Seconds to probe, or at most to probe with O(until).
    type: float
    default: 10
  send:
    description:
      - Text to send when connected. An attempt then succeeds only if at least one byte comes back, which
        proves that the service answers, and not only that the kernel accepts connections for it.
    type: str
  members:
    description:
      - The possible holders, to call them by name. A holder that is not among them is called by its MAC.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: What to call the member.
        type: str
        required: true
      macs:
        description: The MACs of its interfaces.
        type: list
        elements: str
        required: true
  settle:
    description:
      - Wait before probing until the address is in order, held by exactly one member and answering. Fails
        if it never is.
    type: dict
    suboptions:
      limit:
        description: Seconds to wait at most.
        type: float
        default: 30
      successes:
        description: The number of good connections in a row that it takes.
        type: int
        default: 20
      holder:
        description: The name of the member that must be the holder. Any one if left out.
        type: str
  until:
    description:
      - End before O(duration) is over, once the address is in order. That is when exactly one member holds
        it and every attempt of the last O(until.quiet_ms) succeeded. Where holders are not known, only the
        attempts count.
    type: dict
    suboptions:
      minimum:
        description: Seconds to probe at least. Must reach beyond the last thing that is to be measured.
        type: float
        default: 0
      quiet_ms:
        description: For how long every attempt must have succeeded.
        type: float
        default: 500
      holder:
        description: The name of the member that must be the holder. Any one if left out.
        type: str
      path:
        description:
          - A file that must be there. So a task that runs in the background learns that there is no more to be seen.
        type: path
extends_documentation_fragment:
  - onprem.lb.attributes.reads_only
"""

EXAMPLES = r"""
- name: Watch the address for half a minute, at most until the first member has it back
  onprem.lb.vip_probe:
    address: 192.0.2.100
    port: 8443
    duration: 30
    members:
      - name: lb1
        macs: ["52:54:00:00:00:01"]
      - name: lb2
        macs: ["52:54:00:00:00:02"]
    settle:
      holder: lb1
    until:
      holder: lb1
      minimum: 15
  register: seen

- name: Only an answer counts
  onprem.lb.vip_probe:
    address: 2001:db8::100
    port: 80
    duration: 5
    send: "GET / HTTP/1.0\r\n\r\n"
"""

RETURN = r"""
tried:
  description: The number of connections started.
  returned: success
  type: int
failed_attempts:
  description: How many of them failed. Slow ones are among them.
  returned: success
  type: int
slow:
  description: How many were answered after O(timeout_ms), as happens when a SYN was lost and sent again.
  returned: success
  type: int
failures:
  description: How many failed in which way (C(timeout), C(refused), C(reset), C(closed), C(slow), or the
    name of the error).
  returned: success
  type: dict
outages:
  description:
    - Every run of failed attempts, as RV(outages[].start_ms), RV(outages[].length_ms), RV(outages[].failed)
      and RV(outages[].ended) (false if it lasted until the end).
    - The length goes from the start of the first failed attempt to the start of the next good one. The
      truth may be up to one interval longer.
  returned: success
  type: list
  elements: dict
  contains:
    start_ms: {description: When the first failed attempt started., type: float}
    length_ms: {description: How long until a good one started., type: float}
    failed: {description: How many attempts failed., type: int}
    ended: {description: Whether a good attempt followed., type: bool}
takeover:
  description: What happened until a new member held the address alone and served. All there is, if the
    holder never changed.
  returned: success
  type: dict
  contains:
    outage_ms: {description: The longest outage; 0 if nothing failed., type: float}
    silence_ms:
      description:
        - The longest time without any answer; about O(interval_ms) if all is well.
        - It is longer than the outage where connections were not lost but had to wait, as at a former holder
          that forwards them once the new one has been found.
      type: float
    total_ms: {description: All outages together., type: float}
    failed: {description: How many attempts failed., type: int}
    tried: {description: How many were made., type: int}
comeback:
  description: What happened afterwards, as when the first member takes the address back. Has the keys of
    RV(takeover).
  returned: success
  type: dict
timeline:
  description:
    - Who held the address, from RV(timeline[].at_ms) on, starting at 0.
    - A holder is gone when it misses 4 questions in a row while somebody else answers, or 10 when nobody
      does.
  returned: success
  type: list
  elements: dict
  contains:
    at_ms: {description: Since when., type: float}
    holders: {description: The names; none or several are possible., type: list, elements: str}
holder_before:
  description: Who held the address at first. Null if nobody did, or more than one.
  returned: success
  type: str
holder_after:
  description: Who held the address at last. Null if nobody did, or more than one.
  returned: success
  type: str
most_holders:
  description: The greatest number of holders at one time. More than 1 is a fault of the pair.
  returned: success
  type: int
two_holders_ms:
  description: For how long there was more than one holder, as far as their answers prove it.
  returned: success
  type: float
no_holder_ms:
  description: For how long there was none.
  returned: success
  type: float
holders_known:
  description: Whether this host could ask who holds the address. If not, there is no RV(timeline).
  returned: success
  type: bool
reason:
  description: Why it could not. Empty if it could.
  returned: success
  type: str
settled:
  description: Whether the address was in order at the end, as O(until) asks. False without O(until).
  returned: success
  type: bool
probed_ms:
  description: For how long was probed.
  returned: success
  type: float
left_out:
  description: How many grid points this host was too busy for.
  returned: success
  type: int
longest_stall_ms:
  description: The longest time this host was late to look. Results are no finer than this.
  returned: success
  type: float
"""

import ipaddress

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.onprem.lb.plugins.module_utils._host.drill import prober
from ansible_collections.onprem.lb.plugins.module_utils._host.link import neighbours

MEMBER = {
    "name": {"type": "str", "required": True},
    "macs": {"type": "list", "elements": "str", "required": True},
}
SETTLE = {
    "limit": {"type": "float", "default": 30},
    "successes": {"type": "int", "default": 20},
    "holder": {"type": "str"},
}
UNTIL = {
    "minimum": {"type": "float", "default": 0},
    "quiet_ms": {"type": "float", "default": 500},
    "holder": {"type": "str"},
    "path": {"type": "path"},
}
ARGUMENTS = {
    "address": {"type": "str", "required": True},
    "port": {"type": "int", "required": True},
    "interface": {"type": "str"},
    "interval_ms": {"type": "float", "default": 5},
    "timeout_ms": {"type": "float", "default": 300},
    "duration": {"type": "float", "default": 10},
    "send": {"type": "str"},
    "members": {"type": "list", "elements": "dict", "default": [], "options": MEMBER},
    "settle": {"type": "dict", "options": SETTLE},
    "until": {"type": "dict", "options": UNTIL},
}


def plan_of(params):
    settle, until = params["settle"], params["until"]
    return prober.Plan(
        address=params["address"],
        port=params["port"],
        interval_ms=params["interval_ms"],
        timeout_ms=params["timeout_ms"],
        duration_ms=params["duration"] * 1000.0,
        send=(params["send"] or "").encode(),
        names={mac.lower(): member["name"] for member in params["members"] for mac in member["macs"]},
        settle=settle and prober.Goal(holder=settle["holder"] or "", successes=settle["successes"]),
        settle_limit_ms=settle["limit"] * 1000.0 if settle else 0.0,
        until=until
        and prober.Goal(
            holder=until["holder"] or "",
            quiet_ms=until["quiet_ms"],
            minimum_ms=until["minimum"] * 1000.0,
            path=until["path"] or "",
        ),
    )


def asker_for(module):
    """The one to ask with, or why there is none."""
    address, interface = module.params["address"], module.params["interface"]
    version = ipaddress.ip_address(address).version
    if not interface:
        command = module.get_bin_path("ip", opt_dirs=["/usr/sbin", "/sbin"])
        if not command:
            return (
                None,
                f"Nobody can be asked who holds {address}: the command ip is missing (package iproute2).",
            )
        _rc, out, _err = module.run_command([command, "-json", "route", "get", address])
        interface, reason = neighbours.link_to(out)
        if reason:
            return None, f"Nobody can be asked who holds {address}: {reason}."
    try:
        return neighbours.NeighbourProber(interface, version), ""
    except PermissionError:
        return None, f"To ask who holds {address} takes root, or CAP_NET_RAW."
    except (OSError, ValueError) as error:
        return None, f"Nobody can be asked on {interface} who holds {address}: {error}."


def main():
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    plan = plan_of(module.params)
    refusal = prober.refusal(plan)
    if refusal:
        module.fail_json(msg=refusal)
    asker, reason = asker_for(module)
    if plan.settle and plan.settle.holder and asker is None:
        module.fail_json(msg=f"{reason} So it cannot be waited for that {plan.settle.holder} does.")
    try:
        seen = prober.probe(plan, asker)
    except prober.NotSettled as not_settled:
        module.fail_json(msg=str(not_settled))
    finally:
        if asker is not None:
            asker.close()
    module.exit_json(changed=False, reason=reason, **seen)


if __name__ == "__main__":
    main()
