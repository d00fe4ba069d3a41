"""Searches this host for everything that the collection may leave there, and prints the result as JSON.

The arguments are the VIPs. The result maps a kind to its traces, and each trace to a list of what was found: empty if
there is none.
"""

import glob
import json
import shutil
import subprocess
import sys

UNITS = "/etc/systemd/system"
# By kind: patterns of paths.
FILES = {
    "haproxy": [
        "/usr/sbin/haproxy",
        "/etc/haproxy/haproxy.cfg",
        f"{UNITS}/haproxy.service.d/onprem-lb.conf",
        "/etc/sysctl.d/90-onprem-lb.conf",
        "/run/haproxy.loaded",
    ],
    "keepalived": [
        "/usr/sbin/keepalived",
        "/etc/keepalived/keepalived.conf",
        f"{UNITS}/keepalived.service.d/onprem-lb.conf",
        "/usr/local/lib/onprem-lb-keepalived",
        "/run/keepalived.loaded",
        "/run/onprem-lb-*.failing",
        f"{UNITS}/onprem-lb-answers.service",
        f"{UNITS}/*.wants/onprem-lb-answers.service",
        "/etc/onprem-lb-packages.json",
    ],
    "agent": [
        "/usr/local/lib/onprem-lb-[am]*",  # the agent, or its part for metrics
        "/etc/onprem-lb-agent",
        f"{UNITS}/onprem-lb-*.service",
        f"{UNITS}/*.wants/onprem-lb-*.service",
        "/run/onprem-lb-*",
    ],
    "any_host": ["/run/*.down"],  # written when a balancer starts; some have not started since the setup
    "direct": [
        "/etc/onprem-lb-direct",
        "/usr/local/lib/onprem-lb-direct",
        "/run/onprem-lb-direct",
        f"{UNITS}/onprem-lb-direct.service",
        f"{UNITS}/*.wants/onprem-lb-direct.service",
    ],
    "follow": [
        "/etc/onprem-lb-follow",
        "/usr/local/lib/onprem-lb-follow",
        "/var/lib/onprem-lb-follow",
        f"{UNITS}/onprem-lb-follow.service",
        f"{UNITS}/*.wants/onprem-lb-follow.service",
    ],
    "resolver": [
        "/etc/onprem-lb-resolver",
        "/etc/resolv.conf.before-onprem-lb",
        "/etc/systemd/resolved.conf.d/zz-onprem-lb.conf",
        "/etc/NetworkManager/conf.d/90-onprem-lb.conf",
        f"{UNITS}/onprem-lb-resolver*",
        f"{UNITS}/*.wants/onprem-lb-resolver*",
    ],
    "drill": ["/var/lib/onprem.lb"],
    "down_file": [
        "/etc/onprem-lb-*-members.json",
        f"{UNITS}/onprem-lb-down-file.*",
        f"{UNITS}/*.wants/onprem-lb-down-file.path",
    ],
    "redirect": [
        "/etc/onprem-lb/api-redirect.nft",
        "/etc/onprem-lb/machine-config.nft",
        f"{UNITS}/onprem-lb-machine-config.service",
        f"{UNITS}/*.wants/onprem-lb-machine-config.service",
        f"{UNITS}/nftables.service.d/onprem-lb-ipi.conf",
    ],
    "nftables": ["/etc/onprem-lb/open-firewall", f"{UNITS}/nftables.service.d/onprem-lb.conf"],
}
# By kind: prefixes of names. The kernel truncates the name of a process to 15 characters.
PROCESSES = {"haproxy": ["haproxy"], "keepalived": ["keepalived"], "agent": ["onprem-lb-vrrp", "onprem-lb-proxy"]}
# By kind: commands, and a text to search for in their output.
COMMANDS = {
    "haproxy": {"sysctl net.ipv4.ip_nonlocal_bind": "= 1"},
    "agent": {"getent passwd": "onprem-lb-", "getent group": "onprem-lb-"},
    "redirect": {"nft list tables": "onprem_lb_"},
    "nftables": {"nft list ruleset": 'comment "onprem.lb"'},
    "ufw": {"ufw status": "onprem.lb"},
    "firewalld": {"firewall-cmd --list-rich-rules": "rule", "firewall-cmd --permanent --list-rich-rules": "rule"},
}


def output_of(command):
    """Return a command's output, or '' if the host lacks it. A failure ends the search. nft warns on stderr."""
    program, *arguments = command.split()
    if not shutil.which(program) or (program == "firewall-cmd" and not running("firewalld")):
        return ""
    return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout


def lines(command, word):
    return [line.strip() for line in output_of(command).splitlines() if word in line]


def running(name):
    found = []
    for path in glob.glob("/proc/[0-9]*/comm"):
        try:
            with open(path) as file:
                if file.read().startswith(name):
                    found.append(path)
        except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            continue
    return found


def search(vips):
    traces = {kind: {} for kind in (*FILES, *PROCESSES, *COMMANDS)}
    for kind, patterns in FILES.items():
        traces[kind].update({pattern: glob.glob(pattern) for pattern in patterns})
    for kind, names in PROCESSES.items():
        traces[kind].update({f"process {name}": running(name) for name in names})
    for kind, commands in COMMANDS.items():
        traces[kind].update({f"{word} in {command}": lines(command, word) for command, word in commands.items()})
    traces["any_host"].update({vip: lines("ip -oneline address", f" {vip}/") for vip in vips})
    return traces


print(json.dumps(search(sys.argv[1:])))
