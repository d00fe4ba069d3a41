# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Lines to paste into a cluster's own configuration, in YAML. Pure."""

from __future__ import annotations

import json
from typing import List

INSTALL_CONFIG = "# In install-config.yaml:"
DNS = "# In DNS, api and api-int of the cluster's domain are {vips}, as onprem.lb.dns prints it."

# The platforms whose installer has balancers of its own, unless they are the user's (UserManaged).
PLATFORMS = ("baremetal", "nutanix", "openstack", "vsphere")


def of_platform(name: str, api: List[str], ingress: List[str]) -> List[str]:
    """Return the lines of install-config.yaml after which a cluster has neither haproxy nor keepalived of its own.

    :param api: the addresses of the API's names
    :param ingress: those of the routes
    """
    return [
        "platform:",
        f"  {name}:",
        f"    apiVIPs: {yaml_list(api)}",
        f"    ingressVIPs: {yaml_list(ingress)}",
        "    loadBalancer: {type: UserManaged}",
    ]


def yaml_list(names: List[str]) -> str:
    """Return a list in YAML. Without quotes, digits with colons between them may be a number."""
    return f"[{', '.join(json.dumps(name) if ':' in name else name for name in names)}]"


def in_words(addresses: List[str]) -> str:
    return " and ".join(addresses)
