# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What OpenShift's installer must know of a cluster whose nodes carry its VIPs. Pure."""

from __future__ import annotations

from typing import List

from ..layouts.pasting import DNS, INSTALL_CONFIG, in_words, of_platform
from .cluster import Cluster
from .presets import current_name

BEFORE_THESE_KEYS = ("ocp45",)  # the presets of releases whose installer has none of them


def snippet(cluster: Cluster) -> List[str]:
    """Return the lines to paste into the installer's configuration, in YAML."""
    api, ingress = ([vip.address for vip in role.of_installer] for role in (cluster.api, cluster.ingress))
    if current_name(cluster.settings["preset"])[0] in BEFORE_THESE_KEYS or not api or not ingress:
        return []
    platform = of_platform(cluster.settings["platform"], api, ingress)
    return [INSTALL_CONFIG, *platform, DNS.format(vips=in_words(api))]
