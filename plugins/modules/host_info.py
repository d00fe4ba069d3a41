#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_info
short_description: Read what the plan of a load balancer needs to know about a host
version_added: 1.0.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Returns the host's addresses, its listening sockets, the hosts that answer for the VIPs on its links, and more, in
    one call.
  - Changes nothing.
options:
  vips:
    description: Addresses to probe on the links, each with or without a prefix length, or a mapping with the key
      C(address).
    type: list
    elements: raw
    default: []
  packages:
    description: Packages to look for; the missing ones are returned.
    type: list
    elements: str
    default: []
  sets_booleans:
    description:
      - Whether Ansible will set booleans of SELinux here. Where SELinux is enabled, the package that it needs for that
        is looked for, too.
    type: bool
    default: false
  units:
    description:
      - Systemd units to look for; the active and the enabled ones are returned.
      - Likewise C(onprem-lb-balancer), C(onprem-lb-router) and C(onprem-lb-follow), the static pods of this collection.
    type: list
    elements: str
    default: []
  files:
    description:
      - Files that are to be written; those that cannot be are returned.
      - Each is tried, in check mode too, by a file without a name in its folder.
    type: list
    elements: path
    default: []
  configs:
    description:
      - The configuration files of C(haproxy), C(keepalived) and C(frr), by program, for what others have set up here.
      - With C(keepalived), other programs that move VIPs are looked for as well, and with C(frr) other speakers of BGP.
    type: dict
    default: {}
  named:
    description:
      - A role's variables that name programs, folders and certificates, without their prefix. Those that are not fit
        for use on this host are returned.
      - The keys are C(notify), the C(script_user) that runs it, C(down_file), C(services), and C(programs), which are
        mappings with C(key), C(command) and C(user).
    type: dict
    default: {}
  servers:
    description: Services and their servers, as a user writes them, whose DNS names are resolved.
    type: list
    elements: raw
    default: []
  loaded:
    description:
      - Units of haproxy, keepalived or the agent that must have loaded their configuration as it is on disk.
    type: list
    elements: str
    default: []
  with_auth_pass:
    description:
      - Return the passwords in the configurations, too.
      - Use C(no_log) on the task then.
    type: bool
    default: false
  listen:
    description:
      - How many seconds to listen for other VRRP routers on every link; 0 does not listen.
      - Everything else is read meanwhile. See M(onprem.lb.vrrp_info).
    type: float
    default: 0
  layout:
    description:
      - What a layout asks for besides, made by the internal filter C(layout_reads). It may change in any release.
    type: dict
    default: {}
extends_documentation_fragment:
  - onprem.lb.attributes.reads_only
"""

EXAMPLES = r"""
- name: Find the holder of the VIP and whether haproxy runs
  onprem.lb.host_info:
    vips: [192.0.2.10]
    units: [haproxy.service]
  register: host
"""

RETURN = r"""
os_family:
  description: C(Debian), C(RedHat), or the distribution's own name.
  type: str
  returned: success
on_loopback:
  description: The addresses of its loopback interface, from which it may announce VIPs by BGP.
  type: list
  elements: str
  returned: success
addresses:
  description: The host's addresses, without those of the loopback interface.
  type: list
  elements: dict
  returned: success
  sample: [{"interface": "eth0", "address": "192.0.2.11", "prefix": 24, "mac": "02:00:00:00:00:11"}]
listeners:
  description: The listening TCP sockets.
  type: list
  elements: dict
  returned: success
  sample: [{"address": "0.0.0.0", "port": 22, "program": "sshd", "pid": 321, "runs_in": "ssh.service"}]
answering:
  description: For each VIP, and each address of a member that a record or the router's configuration has, the hardware
    addresses of the other hosts that answer for it.
  type: dict
  returned: success
missing_packages:
  description: Those of O(packages), and those that O(sets_booleans) needs, that are not installed or configured.
  type: list
  elements: str
  returned: success
missing_programs:
  description: Those of the programs in O(layout) that are not installed.
  type: list
  elements: str
  returned: success
unfit:
  description: What is wrong with each variable of O(named) whose program, folder or certificates are unfit here.
  type: list
  elements: dict
  returned: success
  sample:
    - key: notify
      value: /usr/local/bin/tell
      wrong: "it cannot be run: No such file or directory."
      expired: ""
served_files:
  description: The checksums (SHA-256) of the files beside its configuration that haproxy has loaded, as certificates.
  type: list
  elements: str
  returned: success
  sample: [9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08]
unrestricted_tls:
  description: The frontends of haproxy's present configuration that end TLS and name neither versions nor ciphers.
  type: list
  elements: str
  returned: success
  sample: [www]
expiring:
  description:
    - A sentence for each certificate of O(named), and of haproxy's present configuration, that expires within 14 days.
    - One that has expired and that haproxy serves already is among them. Any other that has expired is in RV(unfit).
  type: list
  elements: str
  returned: success
  sample: ["/etc/haproxy/web.pem expires on 2026-02-10, in 9 days: put a renewed one there on every member."]
resolved:
  description: The addresses of the names in O(servers); none of a name that cannot be resolved now.
  type: dict
  returned: success
  sample: {"app1.example.com": ["192.0.2.31"]}
uncovered:
  description: The names in O(layout) that the certificate of a server lacks; none of a server that does not answer.
  type: list
  elements: dict
  returned: success
  sample: [{"server": "192.0.2.21", "name": "192.0.2.10"}]
unobtainable:
  description: Why the missing packages cannot be fetched, for instance because no source can be reached; else empty.
  type: str
  returned: success
unremovable:
  description: For each of O(packages) that this collection has installed here and apt would refuse to remove, why.
  type: dict
  returned: success
  sample: {"haproxy": "haproxy is on hold, so that apt refuses to remove it: run `apt-mark unhold haproxy`."}
own_packages:
  description: Those of O(packages) that this collection has installed here, as it has recorded.
  type: list
  elements: str
  returned: success
recorded_packages:
  description: All packages that this collection has recorded as installed by it.
  type: list
  elements: str
  returned: success
takeover:
  description: For each program of O(configs), what there is that this collection has not set up.
  type: dict
  returned: success
  contains:
    refusals:
      description: A sentence for each thing that stops a run unless the user adopts it.
      type: list
      elements: str
    problems:
      description: A sentence for each thing that stops a run in any case.
      type: list
      elements: str
    unadoptable:
      description:
        - A sentence for each thing that stops a run if the program is to run here, whether the user adopts it or not.
        - They are what only keepalived evaluates in a C(keepalived.conf), such as files that it includes, another
          authentication than by password, and options in C(/etc/default) or C(/etc/sysconfig) that load another
          configuration.
      type: list
      elements: str
    keep:
      description: Files to keep when they are replaced.
      type: list
      elements: str
    set_aside:
      description: Units and drop-ins that must not stay in force.
      type: list
      elements: str
    stop:
      description: Whether the program must stop before they are set aside, because they change how it is started.
      type: bool
    restart:
      description: Whether keepalived was not started by this collection, so that it must be restarted and not reloaded.
      type: bool
    tables:
      description: The nftables tables of keepalived's strict mode.
      type: list
      elements: str
    lost:
      description: Each statement of that C(keepalived.conf) that the new one lacks, with the variable that replaces it.
      type: list
      elements: list
    put_back:
      description: Files that are kept, by the names to which a removal puts them back.
      type: list
      elements: str
static_pods:
  description: With such an O(layout), the static pods that are to be disabled.
  type: list
  elements: dict
  returned: success
  contains:
    program:
      description: What moves VIPs there.
      type: str
    manifest:
      description: The path of the pod's manifest.
      type: str
obstacles:
  description: A sentence for each of O(packages), O(units) and O(files) that is in the way of a deployment.
  type: dict
  returned: success
  sample: {"a.service": "a.service is masked, so that it cannot start: run `systemctl unmask a.service`."}
files:
  description: What there is of the files to compare, by their paths. A file that does not exist has no checksum.
  type: dict
  returned: success
  sample: {"/etc/haproxy/haproxy.cfg": {"checksum": "9f86d081...", "mode": "0640", "stale": []}}
firewall:
  description: Whether a firewall is active that may refuse something, or that has openings of this collection.
  type: bool
  returned: success
package_lists_fresh:
  description: Whether packages can be installed without fetching the package lists first.
  type: bool
  returned: success
existing_units:
  description: Those of O(units) that systemd finds, also if they are masked.
  type: list
  elements: str
  returned: success
enabled_units:
  description: Those of O(units) that start at boot.
  type: list
  elements: str
  returned: success
active_units:
  description: Those of O(units) that are active.
  type: list
  elements: str
  returned: success
restarting_units:
  description: Those of O(units) that start or stop, such as one that fails and that systemd starts again and again.
  type: list
  elements: str
  returned: success
own_units:
  description: Those of O(units) that this collection has set up here, whether they run or not.
  type: list
  elements: str
  returned: success
pods_engine:
  description: The engine of this collection's static pods that are here, whether they run or not; V('') without any.
  type: str
  choices: [native, agent, '']
  returned: success
stale:
  description: A sentence for each unit of O(loaded) that has not loaded its configuration.
  type: list
  elements: str
  returned: success
instances:
  description:
    - The VRRP instances in keepalived's configuration, and those in the agent's that keepalived has not.
    - A password is empty unless O(with_auth_pass=true).
  type: list
  elements: dict
  returned: success
  sample:
    - name: vip-192.0.2.10
      interface: eth0
      vrid: 240
      version: 2
      priority: 254
      preempt: true
      advert_interval: 1
      auth_pass: ""
      multicast: false
      source: 192.0.2.11
      addresses: [192.0.2.10/32]
      peers: [192.0.2.12]
checks:
  description: For each engine a digest of each check that its router runs, by the name of the check.
  type: dict
  returned: success
  sample: {"native": {"storage": "5b1f..."}, "agent": {}}
asking:
  description:
    - What uses the balancer's ports on this host, as C(checks) and C(redirects).
    - A check has the C(address), C(port) and C(path) that it asks for, whether over C(tls), and whether that is
      C(answered) now. Its path is empty where no web server is asked.
  type: dict
  returned: success
  sample:
    checks:
      - name: chk_haproxy
        address: localhost
        port: 9444
        path: /haproxy_ready
        tls: false
        answered: true
    redirects: [{"port": 6443, "to": 9445}]
script_user:
  description: The C(script_user) of O(named), or root.
  type: str
  returned: success
keepalived_version:
  description: The version of keepalived that is installed; empty where none is, or where O(configs) does not
    name it.
  type: str
  returned: success
  sample: 2.2.7
members:
  description: The members that the last run has recorded, and the addresses of each; empty without such a file.
  type: dict
  returned: success
  sample: {"lb1": ["192.0.2.11"], "lb2": ["192.0.2.12"]}
followed:
  description: The servers that the agent's C(follow) has written into the balancer here, by service; empty until an
    API server has answered it.
  type: dict
  returned: success
  sample: {"masters": [{"name": "node1", "address": "192.0.2.21"}]}
not_following:
  description: As RV(onprem.lb.member_info#module:not_following).
  type: list
  elements: str
  returned: success
plane:
  description: >-
    The services of the direct plane that runs here. The servers are C({name, address, serves}): whether one gets new
    connections.
  type: list
  elements: dict
  returned: success
  sample: [{"name": "api", "bind": ["192.0.2.10"], "port": 6443, "new_connections": "servers", "servers": []}]
named:
  description: As RV(onprem.lb.member_info#module:named).
  type: dict
  returned: success
heard:
  description: The VRRP routers on the links, as RV(onprem.lb.vrrp_info#module:routers).
  type: list
  elements: dict
  returned: success
held_back:
  description: As RV(onprem.lb.member_info#module:held_back).
  type: dict
  returned: success
selinux:
  description: Whether SELinux is enabled.
  type: bool
  returned: success
problems:
  description: What keeps this host from being a balancer, in sentences.
  type: list
  elements: str
  returned: success
"""

import concurrent.futures

from ansible_collections.onprem.lb.plugins.module_utils._host.firewall import core as firewall
from ansible_collections.onprem.lb.plugins.module_utils._host.firewall.system import Host
from ansible_collections.onprem.lb.plugins.module_utils._host.link import sniffer
from ansible_collections.onprem.lb.plugins.module_utils._host.module import Module, ending_in_words
from ansible_collections.onprem.lb.plugins.module_utils._host.read import host
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import AGENT, CONFIGS, NATIVE, UNITS

ARGUMENTS = {
    "vips": {"type": "list", "elements": "raw", "default": [], "no_log": False},
    **{
        name: {"type": "list", "elements": "str", "default": [], "no_log": False}
        for name in ("packages", "units", "loaded")
    },
    "sets_booleans": {"type": "bool", "default": False},
    "files": {"type": "list", "elements": "path", "default": []},
    "configs": {"type": "dict", "default": {}},
    "named": {"type": "dict", "default": {}},
    "servers": {"type": "list", "elements": "raw", "default": []},
    "with_auth_pass": {"type": "bool", "default": False, "no_log": False},
    "listen": {"type": "float", "default": 0.0},
    "layout": {"type": "dict", "default": {}},
}
# What a layout may ask for besides: packages that it may remove, programs and a ping that it needs, what it runs as
# units, files to compare, certificates of API servers, and whether it takes VIPs over from static pods.
OF_LAYOUT = {
    **{name: [] for name in ("removes", "programs", "read_files")},
    "wait": 0.2,
    "pings": False,
    "runs_units": [],
    "api": {},
    "takes_over": False,
    "take_over_variable": "",
    "packages_record": "/etc/onprem-lb-packages.json",
    "members_record": None,
    "keepalived_config": CONFIGS[UNITS[NATIVE].router],
    "agent_config": CONFIGS[UNITS[AGENT].router],
}


def capture(params):
    """Return the routers on the links, and the problems that kept it from listening."""
    if not params["listen"]:
        return [], []
    try:
        return sniffer.collect(None, params["listen"]).result(params["with_auth_pass"])["routers"], []
    except sniffer.CannotListen as error:
        return [], [str(error)]


@ending_in_words
def main():
    module = Module(argument_spec=ARGUMENTS, supports_check_mode=True)
    reader = Reader.of(module)
    unknown = sorted(set(module.params["layout"]) - set(OF_LAYOUT))
    if unknown:
        module.fail_json(msg=f"layout has {', '.join(unknown)}: there are {', '.join(OF_LAYOUT)}.")
    params = {**OF_LAYOUT, **module.params, **module.params["layout"]}
    with concurrent.futures.ThreadPoolExecutor(max_workers=1) as background:
        heard = background.submit(capture, params)
        result = {**host.read(params, reader), "firewall": firewall.may_refuse(Host(module))}
        routers, problems = heard.result()
    result.update(heard=routers, problems=result["problems"] + problems)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
