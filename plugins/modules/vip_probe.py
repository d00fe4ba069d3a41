#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: vip_probe
short_description: Measure how a floating address serves while it fails over
version_added: 1.0.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Starts a new connection to the address every few milliseconds, at a fixed interval, and probes at the same times
    who holds the address (ARP, or neighbour solicitation for IPv6).
  - Run it on a host that is no member and is on the same link. Elsewhere, or without the right to open raw
    sockets, it still measures the connections, and RV(holders_known) is false.
  - Connections are closed with RST, so that neither this host nor the members run out of ports.
  - It changes nothing, on this host or any other.
options:
  address:
    description: The floating address, IPv4 or IPv6.
    type: str
    required: true
  port:
    description: The TCP port of the service behind the address.
    type: int
    required: true
  interface:
    description: The interface on which the holders are probed. By default the one of the kernel's route to the address.
    type: str
  interval_ms:
    description: Milliseconds between two connections, and between two probes of the link. It is the resolution of all
      results.
    type: float
    default: 5
  timeout_ms:
    description: An attempt without an answer after this time has failed. Below 1000 this includes every attempt that
      succeeds only because the kernel sent its SYN again.
    type: float
    default: 300
  late_ms:
    description: For how long after O(timeout_ms) an attempt may still be answered. It has failed, but counts as slow.
    type: float
    default: 1500
    version_added: 1.1.0
  duration:
    description: Seconds to probe; with O(until) at most.
    type: float
    default: 10
  send:
    description: Text to send when connected. An attempt then succeeds only if at least one byte comes back. That proves
      that the service answers, and not only that the kernel accepts connections for it.
    type: str
  tls:
    description: Whether to begin TLS when connected, with a ClientHello. An attempt then succeeds only if TLS comes
      back, which may be an alert. Not together with O(send).
    type: bool
    default: false
    version_added: 1.1.0
  server_name:
    description: The name of the server in the ClientHello of O(tls). None is sent by default.
    type: str
    version_added: 1.1.0
  gateway_errors_fail:
    description: Whether an attempt has failed that is answered with the status 502, 503 or 504 of HTTP, with which a
      balancer says that no server answers.
    type: bool
    default: false
    version_added: 1.1.0
  lasting:
    description: How many connections to open before, and to leave open and silent until the end. RV(lasting) says how
      many of them ended. A server that closes silent connections sooner ends them, too.
    type: int
    default: 0
  lasting_port:
    description: The port to which the connections of O(lasting) go. O(port) by default.
    type: int
    version_added: 1.1.0
  members:
    description: The possible holders, to call them by name. Any other holder is called by its MAC.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: The name of the member.
        type: str
        required: true
      macs:
        description: The MACs of the member's interfaces.
        type: list
        elements: str
        required: true
  settle:
    description: Wait before probing until exactly one member holds the address and it answers. Fails if that never is.
    type: dict
    suboptions:
      limit:
        description: Seconds to wait at most.
        type: float
        default: 30
      successes:
        description: How many connections in a row must succeed.
        type: int
        default: 20
      holder:
        description: The name of the member that must be the holder. Any one if left out.
        type: str
  until:
    description: End before O(duration) is over, once exactly one member holds the address and every attempt of the last
      O(until.quiet_ms) succeeded. Where holders are not known, only the attempts count.
    type: dict
    suboptions:
      minimum:
        description: Seconds to probe at least. Must reach beyond all that is to be measured.
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
        description: A file that must exist. It ends a task that runs in the background.
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
  description: How many connections failed. Slow ones are among them.
  returned: success
  type: int
slow:
  description: How many connections were answered after O(timeout_ms), as happens when a SYN was lost and sent again.
  returned: success
  type: int
failures:
  description: How many connections failed in which way (C(timeout), C(refused), C(reset), C(closed), C(unavailable),
    C(slow), or the name of the error).
  returned: success
  type: dict
outages:
  description:
    - Every run of failed attempts.
    - The length goes from the start of the first failed attempt to the start of the next good one. The real outage may
      be up to one interval longer.
  returned: success
  type: list
  elements: dict
  contains:
    start_ms: {description: When the first failed attempt started., type: float}
    length_ms: {description: How long after the first failed attempt the next good one started., type: float}
    failed: {description: How many attempts failed., type: int}
    ended: {description: Whether a good attempt followed; false if the outage lasted until the end., type: bool}
takeover:
  description: What happened until a new member held the address alone and served. If the holder never changed this is
    the whole measurement.
  returned: success
  type: dict
  contains:
    outage_ms: {description: The longest outage; 0 if nothing failed., type: float}
    response_gap_ms:
      description:
        - The longest time without any answer; about O(interval_ms) if all is well.
        - It is longer than the outage where connections were not lost but had to wait, as at a former holder
          that forwards them once the new one has been found.
      type: float
    total_ms: {description: All outages together., type: float}
    failed: {description: How many attempts failed., type: int}
    tried: {description: How many attempts were made., type: int}
failback:
  description: What happened afterwards, as when the first member takes the address back. Has the keys of
    RV(takeover).
  returned: success
  type: dict
impaired:
  description: What clients saw of a failure that others did not see meanwhile, as of one server of several.
  returned: success
  type: dict
  contains:
    late: {description: How many attempts were answered after O(timeout_ms)., type: int}
    failed: {description: How many attempts were not answered., type: int}
    open: {description: How many more connections failed that may have been open when it happened., type: int}
    window_ms: {description: How long after the first late or failed attempt the last one started., type: float}
    attempts: {description: How many attempts started meanwhile., type: int}
    worst_ms: {description: The longest time until an answer., type: float}
    usual_ms: {description: The median time until an answer that came in time., type: float}
lasting:
  description: The connections of O(lasting).
  returned: success
  type: dict
  contains:
    held: {description: How many connections could be opened., type: int}
    lost: {description: How many open connections ended before the end., type: int}
    closed:
      description: How many connections the other side has closed in order, as a server does that waits no longer. A
        host that has never heard of a connection resets it.
      type: int
timeline:
  description:
    - Who held the address, from RV(timeline[].at_ms) on, starting at 0.
    - A holder is gone when it misses 4 probes in a row while another host answers, or 10 when none does.
  returned: success
  type: list
  elements: dict
  contains:
    at_ms: {description: "When the holders became these, in milliseconds from the start.", type: float}
    holders: {description: The names of the holders; none or several are possible., type: list, elements: str}
holder_before:
  description: Who held the address at first. Null if there was no holder, or more than one.
  returned: success
  type: str
holder_after:
  description: Who held the address at last. Null if there was no holder, or more than one.
  returned: success
  type: str
most_holders:
  description: The greatest number of holders at one time. More than 1 is a fault of the pair.
  returned: success
  type: int
two_holders_ms:
  description: For how long more than one member held the address, as far as their answers prove it.
  returned: success
  type: float
no_holder_ms:
  description: For how long no member held the address.
  returned: success
  type: float
holders_known:
  description: Whether this host could find out who holds the address. If not, there is no RV(timeline).
  returned: success
  type: bool
reason:
  description: Why this host could not find out who holds the address. Empty if it could.
  returned: success
  type: str
router:
  description: The router through which this host sends to the address. Empty where it is on a link of this host, or
    where that is not known.
  returned: success
  type: str
  version_added: 1.1.0
settled:
  description: Whether the condition of O(until) held at the end. False without O(until).
  returned: success
  type: bool
series:
  description:
    - What became of each connection, one word for each interval of O(interval_ms).
    - A number is the latency of an answer, in tenths of a millisecond.
    - C(-) is a sample that was skipped, C(t) a timeout, C(r) a connection that was refused, C(x) one that was reset,
      C(c) closed, C(u) unavailable, C(s) slow, C(e) another error.
  returned: success
  type: str
  sample: 7 6 7 - t t r 12 7
started_at:
  description: When the probe started, in seconds since 1970, by this host's own clock.
  returned: success
  type: float
probed_ms:
  description: How long the probe ran.
  returned: success
  type: float
skipped_samples:
  description: How many samples this host was too busy for.
  returned: success
  type: int
longest_stall_ms:
  description: The longest delay of the probe itself on this host. Results are no finer than this.
  returned: success
  type: float
"""

import ipaddress

from ansible_collections.onprem.lb.plugins.module_utils._host.drill import client_hello, prober
from ansible_collections.onprem.lb.plugins.module_utils._host.link import neighbours
from ansible_collections.onprem.lb.plugins.module_utils._host.module import Module, ending_in_words

MEMBER = {
    "name": {"type": "str", "required": True, "no_log": False},
    "macs": {"type": "list", "elements": "str", "required": True, "no_log": False},
}
SETTLE = {
    "limit": {"type": "float", "default": 30},
    "successes": {"type": "int", "default": 20},
    "holder": {"type": "str", "no_log": False},
}
UNTIL = {
    "minimum": {"type": "float", "default": 0},
    "quiet_ms": {"type": "float", "default": 500},
    "holder": {"type": "str", "no_log": False},
    "path": {"type": "path"},
}
ARGUMENTS = {
    "address": {"type": "str", "required": True, "no_log": False},
    "port": {"type": "int", "required": True},
    "interface": {"type": "str", "no_log": False},
    "interval_ms": {"type": "float", "default": 5},
    "timeout_ms": {"type": "float", "default": 300},
    "late_ms": {"type": "float", "default": prober.LATE_ANSWER_MS},
    "duration": {"type": "float", "default": 10},
    "send": {"type": "str"},
    "tls": {"type": "bool", "default": False},
    "server_name": {"type": "str"},
    "gateway_errors_fail": {"type": "bool", "default": False},
    "lasting": {"type": "int", "default": 0},
    "lasting_port": {"type": "int"},
    "members": {"type": "list", "elements": "dict", "default": [], "options": MEMBER},
    "settle": {"type": "dict", "options": SETTLE},
    "until": {"type": "dict", "options": UNTIL},
}


def settings_of(params):
    settle, until = params["settle"], params["until"]
    return prober.Settings(
        address=params["address"],
        port=params["port"],
        interval_ms=params["interval_ms"],
        timeout_ms=params["timeout_ms"],
        late_ms=params["late_ms"],
        duration_ms=params["duration"] * 1000.0,
        send=client_hello.of(params["server_name"] or "") if params["tls"] else (params["send"] or "").encode(),
        tls=params["tls"],
        gateway_errors_fail=params["gateway_errors_fail"],
        lasting=params["lasting"],
        lasting_port=params["lasting_port"] or 0,
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


def neighbour_prober(module):
    """Return the prober that finds the holders, '', and no router; or None, why there is none, and the router."""
    address, interface = module.params["address"], module.params["interface"]
    version = ipaddress.ip_address(address).version
    if not interface:
        command = module.get_bin_path("ip", opt_dirs=["/usr/sbin", "/sbin"])
        if not command:
            return (
                None,
                f"Nobody can be asked who holds {address}: the command ip is missing (package iproute2).",
                "",
            )
        _rc, out, _err = module.run_command([command, "-json", "route", "get", address])
        interface, reason, router = neighbours.link_to(out)
        if reason:
            return None, f"Nobody can be asked who holds {address}: {reason}.", router
    try:
        return neighbours.NeighbourProber(interface, version), "", ""
    except PermissionError:
        return None, f"To ask who holds {address} takes root, or CAP_NET_RAW.", ""
    except (OSError, ValueError) as error:
        return None, f"Nobody can be asked on {interface} who holds {address}: {error}.", ""


@ending_in_words
def main():
    module = Module(argument_spec=ARGUMENTS, mutually_exclusive=[("send", "tls")], supports_check_mode=True)
    settings = settings_of(module.params)
    refusal = prober.refusal(settings)
    if refusal:
        module.fail_json(msg=refusal)
    holders, reason, router = neighbour_prober(module)
    if settings.settle and settings.settle.holder and holders is None:
        module.fail_json(msg=f"{reason} So it cannot be waited for that {settings.settle.holder} does.")
    try:
        seen = prober.probe(settings, holders)
    except prober.NotSettled as not_settled:
        module.fail_json(msg=str(not_settled))
    finally:
        if holders is not None:
            holders.close()
    module.exit_json(changed=False, reason=reason, router=router, **seen)


if __name__ == "__main__":
    main()
