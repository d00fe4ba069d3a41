"""Prints, as JSON, which of the things that the collection may leave on this host are there now.

The arguments are the VIPs. The output is by kind, then by thing; the list of a thing that is not there is empty.
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
        "/run/keepalived.loaded",
    ],
    "agent": [
        "/usr/local/lib/onprem*",
        "/etc/onprem-lb-agent",
        f"{UNITS}/onprem-lb-*.service",
        f"{UNITS}/*.wants/onprem-lb-*.service",
        "/run/onprem-lb-*",
    ],
    "anywhere": ["/run/*.down"],  # written when a balancer starts, which some have not done since the setup
    "down_file": [f"{UNITS}/onprem-lb-down-file.*", f"{UNITS}/*.wants/onprem-lb-down-file.path"],
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
# By kind: commands, and a text in the lines that count.
WORDS = {
    "haproxy": {"sysctl net.ipv4.ip_nonlocal_bind": "= 1"},
    "agent": {"getent passwd": "onprem-lb-", "getent group": "onprem-lb-"},
    "redirect": {"nft list tables": "onprem_lb_"},
    "nftables": {"nft list ruleset": 'comment "onprem.lb"'},
    "ufw": {"ufw status": "onprem.lb"},
    "firewalld": {"firewall-cmd --list-rich-rules": "rule", "firewall-cmd --permanent --list-rich-rules": "rule"},
}


def said(command):
    """Return a command's output, or '' if the host lacks it. Any failure ends the search. nft warns on stderr."""
    program, *arguments = command.split()
    if not shutil.which(program) or (program == "firewall-cmd" and not running("firewalld")):
        return ""
    return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout


def lines(command, word):
    return [line.strip() for line in said(command).splitlines() if word in line]


def running(name):
    found = []
    for path in glob.glob("/proc/[0-9]*/comm"):
        try:
            with open(path) as file:
                if file.read().startswith(name):
                    found.append(path)
        except (FileNotFoundError, ProcessLookupError):  # gone since the folder was read
            continue
    return found


def look(vips):
    found = {kind: {} for kind in (*FILES, *PROCESSES, *WORDS)}
    for kind, patterns in FILES.items():
        found[kind].update({pattern: glob.glob(pattern) for pattern in patterns})
    for kind, names in PROCESSES.items():
        found[kind].update({f"process {name}": running(name) for name in names})
    for kind, commands in WORDS.items():
        found[kind].update({f"{word} in {command}": lines(command, word) for command, word in commands.items()})
    found["anywhere"].update({vip: lines("ip -oneline address", f" {vip}/") for vip in vips})
    return found


print(json.dumps(look(sys.argv[1:])))
