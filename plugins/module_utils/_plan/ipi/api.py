# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What OpenShift's installer must know of a cluster whose nodes carry its VIPs. Pure."""

from __future__ import annotations

from typing import List

from ..layouts.pasting import DNS, INSTALL_CONFIG, in_words, yaml_list
from .cluster import Cluster
from .presets import current_name

# With UserManaged, OpenShift runs neither its haproxy nor its keepalived on the nodes.
LINES = (
    INSTALL_CONFIG,
    "platform:",
    "  baremetal:",
    "    apiVIPs: {api}",
    "    ingressVIPs: {ingress}",
    "    loadBalancer: {{type: UserManaged}}",
    DNS,
)
BEFORE_THESE_KEYS = ("ocp45",)  # the presets of releases whose installer has none of them


def snippet(cluster: Cluster) -> List[str]:
    """Return the lines to paste into the installer's configuration, in YAML."""
    api, ingress = ([vip.address for vip in role.of_installer] for role in (cluster.api, cluster.ingress))
    if current_name(cluster.settings["preset"])[0] in BEFORE_THESE_KEYS or not api or not ingress:
        return []
    return [line.format(api=yaml_list(api), ingress=yaml_list(ingress), vips=in_words(api)) for line in LINES]
