"""The lab as an Ansible inventory.

Pure: hosts and network in, text out. JSON is YAML, so it needs no library and Ansible reads it as is.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, Mapping

from .layout import Lab
from .network import VIP, VIP2, Network

USER = "ops"


def ssh_options(sockets: Path) -> List[str]:
    """Return ssh's options for a lab host: known_hosts stays unchanged, and a dead host is detected within 15 s.

    The path of the sockets is short, because a Unix socket's has at most 107 bytes.
    """
    options = {
        "UserKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "no",
        "LogLevel": "ERROR",
        "IdentitiesOnly": "yes",
        "ControlPath": f"{sockets}/%h-%r",
        "ServerAliveInterval": "5",
    }
    return [f"-o{name}={value}" for name, value in options.items()]


def describe(lab: Lab, networks: Mapping[str, Network], key: Path, sockets: Path, image: str) -> Dict[str, Any]:
    """Return the lab as an Ansible inventory."""
    groups: Dict[str, Any] = {}
    for host in lab.hosts:
        members = groups.setdefault(host.group, {"hosts": {}})["hosts"]
        addresses = {name: networks[name].address(host.number) for name in host.networks}
        addresses6 = {name: networks[name].address6(host.number) for name in host.networks}
        members[host.name] = {
            "ansible_host": addresses[host.networks[0]],
            "lab_address": addresses[host.networks[0]],
            "lab_address6": addresses6[host.networks[0]],
            "lab_addresses": addresses,
            "lab_addresses6": addresses6,
        }
    net = networks[lab.vips]
    variables = {
        "ansible_user": USER,
        "ansible_ssh_private_key_file": str(key),
        "ansible_ssh_common_args": " ".join(ssh_options(sockets)),
        "ansible_python_interpreter": "/usr/bin/python3",
        "lab_image": image,
        "lab_network": str(net.subnet),
        "lab_network6": str(net.subnet6) if net.subnet6 else None,
        "lab_networks": {name: str(each.subnet) for name, each in networks.items()},
        "lab_networks6": {name: str(each.subnet6) if each.subnet6 else None for name, each in networks.items()},
        "lab_vip": net.address(VIP),
        "lab_vip2": net.address(VIP2),
        "lab_vip6": net.address6(VIP),
    }
    return {"all": {"vars": variables, "children": groups}}


def write(path: Path, content: Dict[str, Any]) -> None:
    """Write the inventory atomically."""
    partial = path.with_suffix(".partial")
    text = json.dumps(content, indent=2)
    partial.write_text(f"# Written by `python3 lab up`; JSON is YAML.\n{text}\n")
    partial.rename(path)


def read(path: Path) -> Dict[str, Any]:
    """Return what `write` has written."""
    content: Dict[str, Any] = json.loads(path.read_text().split("\n", 1)[1])
    return content
