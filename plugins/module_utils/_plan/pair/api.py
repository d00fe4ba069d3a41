# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a cluster must know of the pair before it: the VIPs and names of its API, in its own configuration. Pure."""

from __future__ import annotations

import ipaddress
import json
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from ..layouts.pasting import DNS, INSTALL_CONFIG, in_words, of_platform, yaml_list
from ..members.hosts import Member
from ..model.plan import Vip


class Names(NamedTuple):
    """By what a cluster calls its API servers."""

    lines: Sequence[str]  # to paste, with the endpoint's host and port and all names in their places
    mend: str = ""  # for a certificate that lacks one of them
    by_address: bool = True  # whether clients use the VIPs, too


def rancher(name: str, join_port: int, renewal: str) -> Names:
    config = f"/etc/rancher/{name}/config.yaml"
    return Names(
        (
            f"# In {config} of every server:",
            "tls-san: {names}",
            "# There on every node but the first server, too:",
            f"server: https://{{host}}:{join_port}",
        ),
        f"add it to tls-san in {config}, and {renewal}.",
    )


KUBEADM = Names(
    (
        "# In kubeadm's ClusterConfiguration:",
        "controlPlaneEndpoint: '{host}:6443'",
        "apiServer: {{certSANs: {names}}}",
    ),
    "add it to apiServer.certSANs of the ClusterConfiguration, remove apiserver.crt and apiserver.key in "
    "/etc/kubernetes/pki, and run `kubeadm init phase certs apiserver --config FILE`.",
)
K0S = Names(
    (
        "# In k0s.yaml of every controller:",
        "spec: {{api: {{externalAddress: '{name}', sans: {names}}}}}",
    ),
    "add it to spec.api.sans in k0s.yaml of every controller, and restart one controller after another.",
)
TALOS = Names(
    (
        "# In the machine configuration of every node, as `talosctl gen config` writes it:",
        "cluster: {{controlPlane: {{endpoint: 'https://{host}:6443'}}, apiServer: {{certSANs: {names}}}}}",
    ),
    "add it to cluster.apiServer.certSANs in the machine configuration of the control plane, and apply it.",
)
# Its installer puts api and api-int of the cluster's domain into the certificates, and no address.
OPENSHIFT = Names(
    (INSTALL_CONFIG, "{platform}", DNS),
    "name the cluster and its domain in install-config.yaml so that it is api or api-int of them.",
    by_address=False,
)


DAY_TWO = (
    "# On day two the type, and the cluster's own VIPs and keepalived, stay as they are. Then the order is:",
    "# 1. this pair, with VIPs that the cluster does not have, 2. `curl -k --resolve` through each of them,",
    "# 3. api and *.apps in DNS, but not api-int.",
)


def _platform(settings: Dict[str, Any], vips: List[Vip]) -> List[str]:
    """Return the lines of install-config.yaml for the platform: the installer takes one VIP of each family."""
    name = settings["platform"]
    if not name:
        return ["platform: {none: {}}"]
    first = [vip for vip in vips if vip == next(each for each in vips if each.version == vip.version)]
    addresses, networks = [vip.address for vip in first], settings["machine_networks"]
    listed = ", ".join(f"{{cidr: {json.dumps(each)}}}" for each in networks)
    outside = [vip.address for vip in first if networks and not _is_in(vip.address, networks)]
    return [
        *([f"networking: {{machineNetwork: [{listed}]}}"] if networks else []),
        *([f"# machineNetwork needs the subnet of {in_words(outside)} as well."] if outside else []),
        *of_platform(name, addresses, addresses),
    ]


def _is_in(address: str, networks: List[str]) -> bool:
    return any(ipaddress.ip_address(address) in ipaddress.ip_network(each, strict=False) for each in networks)


def snippet(known: Optional[Names], settings: Dict[str, Any], vips: List[Vip]) -> List[str]:
    """Return the lines to paste into the configuration of the preset's cluster, in YAML; none where none is known."""
    addresses = [vip.address for vip in vips]
    if not known or not addresses:
        return []
    names = [*settings["api_names"], *addresses]
    host = f"[{names[0]}]" if ":" in names[0] else names[0]
    words = {"host": host, "name": names[0], "names": yaml_list(names), "vips": in_words(addresses)}
    platform = "\n".join(_platform(settings, vips))
    lines = [each for line in known.lines for each in line.format(platform=platform, **words).split("\n")]
    return [*lines, *(DAY_TWO if known is OPENSHIFT and settings["platform"] else ())]


def certificate_warnings(known: Optional[Names], members: List[Member]) -> List[str]:
    """Return a sentence for each name that the certificates of API servers lack, as the members have read them."""
    lacking: Dict[str, List[str]] = {}
    for member in members if known else []:
        for each in member["host"].get("uncovered", []):
            servers = lacking.setdefault(each["name"], [])
            servers += [] if each["server"] in servers else [each["server"]]
    return [
        f"{name} is not in the certificate of the API on {', '.join(servers)}, so clients reject it: {known.mend}"
        for name, servers in lacking.items()
        if known and (known.by_address or not _is_address(name))
    ]


def _is_address(name: str) -> bool:
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return False
