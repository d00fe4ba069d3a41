#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: component_info
short_description: Read what the roles direct_server, frr and resolver need to know about a host
version_added: 1.1.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Internal to the roles of this collection. It may change in any release.
  - Returns what one of the roles needs, in one call.
  - Changes nothing.
options:
  direct_server:
    description:
      - The variables of the role P(onprem.lb.direct_server#role), without their prefix.
      - Compares them with what the kernel has in force, and not with files.
    type: dict
  frr:
    description: What FRR is asked.
    type: dict
    suboptions:
      config_path:
        description: The path of FRR's configuration, for RV(unsaved).
        type: path
        default: /etc/frr/frr.conf
  resolver:
    description: What the resolver is asked; nothing where it is empty.
    type: dict
    suboptions:
      looks_up:
        description: Whether this host's programs look names up, for RV(resolved_before).
        type: bool
        default: false
      upstreams:
        description:
          - The name servers that O(resolver.server) asks for other names. If one of them answers, so must it.
        type: list
        elements: str
        default: []
      before:
        description: RV(resolved_before) of an earlier call. What this host's programs do not find any more is wrong.
        type: dict
        default: {}
      server:
        description: The address of a name server to ask.
        type: str
        default: ""
      answers:
        description: What it should answer, each with its C(name) and all of its C(addresses).
        type: list
        elements: dict
        default: []
        suboptions:
          name:
            description: A fully qualified name, without the final dot.
            type: str
            required: true
          addresses:
            description: The addresses to expect. For a family without one the answer is to be empty.
            type: list
            elements: str
            required: true
extends_documentation_fragment:
  - onprem.lb.attributes.reads_only
"""

EXAMPLES = r"""
- name: Read where the host has its names from
  onprem.lb.component_info:
    resolver: {}
  register: host

- name: Read the sessions of BGP
  onprem.lb.component_info:
    frr: {}
  register: host

- name: Read whether this host can be a server of direct return
  onprem.lb.component_info:
    direct_server:
      interface: eth0
      services:
        - {name: api, bind: 192.0.2.100, port: 6443, servers: [192.0.2.11, 192.0.2.12]}
  register: host
"""

RETURN = r"""
faults:
  description: What keeps the host from being a server of direct return, in sentences.
  type: list
  elements: str
  returned: with O(direct_server)
config:
  description: The text of the agent's configuration; empty if there are faults.
  type: str
  returned: with O(direct_server)
differences:
  description: A sentence for each part that is not in force.
  type: list
  elements: str
  returned: with O(direct_server)
  sample: ["192.0.2.100/32 is not on lo."]
sessions:
  description: The sessions of BGP, by family and peer.
  type: list
  elements: dict
  returned: with O(frr)
  sample:
    - peer: 192.0.2.1
      asn: 64601
      family: ipv4
      state: Established
      since: 1767225600.0
      sent: 1
      accepted: 0
      established: 1
      dropped: 0
      bfd: up
no_answer:
  description: Why FRR does not say its sessions; empty if it does.
  type: str
  returned: with O(frr)
unsaved:
  description: A sentence for each instance of a routing protocol that FRR runs and that no file of this collection has.
  type: list
  elements: str
  returned: with O(frr)
os_family:
  description: As RV(onprem.lb.host_info#module:os_family).
  type: str
  returned: with O(resolver)
addresses:
  description: The addresses at which others reach this host, IPv4 first.
  type: list
  elements: str
  returned: with O(resolver)
source:
  description: The address from which it sends to others; empty without a route.
  type: str
  returned: with O(resolver)
port_53:
  description: What listens on TCP port 53, as RV(onprem.lb.host_info#module:listeners).
  type: list
  elements: dict
  returned: with O(resolver)
resolved:
  description: Whether systemd-resolved runs.
  type: bool
  returned: with O(resolver)
resolved_config:
  description: The files of systemd-resolved's configuration, each below its path; empty without them.
  type: str
  returned: with O(resolver)
answering:
  description: What the resolver answers now, its C(config) and the hosts file C(names); both are empty without one.
  type: dict
  returned: with O(resolver)
networkmanager:
  description: Whether NetworkManager runs.
  type: bool
  returned: with O(resolver)
resolv_conf:
  description: What C(/etc/resolv.conf) has, and the one that this collection keeps from before.
  type: dict
  returned: with O(resolver)
upstreams:
  description: The texts in which systemd-resolved and NetworkManager keep the name servers that they were given.
  type: dict
  returned: with O(resolver)
resolved_before:
  description: >-
    The addresses that this host's programs find, by name: for the first two package sources, and for a name that nobody
    has.
  type: dict
  returned: with O(resolver)
wrong:
  description: >-
    A sentence for each of O(resolver.answers) that O(resolver.server), or with O(resolver.before) this host, does not
    give, and for what got worse.
  type: list
  elements: str
  returned: with O(resolver)
"""

from ansible_collections.onprem.lb.plugins.module_utils._host.direct import host, wanted
from ansible_collections.onprem.lb.plugins.module_utils._host.module import Module, ending_in_words
from ansible_collections.onprem.lb.plugins.module_utils._host.read import bgp, frr_text, resolver
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader

ANSWER = {
    "name": {"type": "str", "required": True, "no_log": False},
    "addresses": {"type": "list", "elements": "str", "required": True, "no_log": False},
}
QUESTIONS = {
    "server": {"type": "str", "default": "", "no_log": False},
    "looks_up": {"type": "bool", "default": False},
    "upstreams": {"type": "list", "elements": "str", "default": []},
    "before": {"type": "dict", "default": {}},
    "answers": {"type": "list", "elements": "dict", "default": [], "options": ANSWER},
}
FRR = {"config_path": {"type": "path", "default": "/etc/frr/frr.conf"}}
COMPONENTS = {
    "direct_server": {"type": "dict"},
    "frr": {"type": "dict", "options": FRR},
    "resolver": {"type": "dict", "options": QUESTIONS},
}


def of_direct_server(module, given):
    try:
        return wanted.of_server(given, host.read(Reader.of(module)))._asdict()
    except OSError as error:
        return module.fail_json(msg=f"The network of this host cannot be read: {error.strerror}. Use become.")


def of_frr(module, given):
    reader = Reader.of(module)
    try:
        sessions, running, no_answer = bgp.sessions(reader), bgp.running_config(reader), ""
    except bgp.NoAnswer as error:
        sessions, running, no_answer = [], "", str(error)
    unsaved = frr_text.of_others(running, reader.text(given["config_path"]), given["config_path"])
    return {"sessions": [each._asdict() for each in sessions], "no_answer": no_answer, "unsaved": unsaved}


def of_resolver(module, given):
    reader = Reader.of(module)
    if given["before"]:
        return {"wrong": resolver.worse(reader, given["before"], given["answers"][:1])}
    wrong = resolver.wrong_answers(given["server"], given["answers"]) if given["server"] else []
    wrong += resolver.not_forwarded(given["server"], given["upstreams"]) if given["server"] else []
    return {"wrong": wrong, **({} if given["server"] else resolver.read(reader, looks_up=given["looks_up"]))}


@ending_in_words
def main():
    one = list(COMPONENTS)
    module = Module(COMPONENTS, supports_check_mode=True, required_one_of=[one], mutually_exclusive=[one])
    read = {"direct_server": of_direct_server, "frr": of_frr, "resolver": of_resolver}
    name = next(name for name in one if module.params[name] is not None)
    module.exit_json(changed=False, **read[name](module, module.params[name]))


if __name__ == "__main__":
    main()
