# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a cluster must know of the pair before it: the VIPs and names of its API, in its own configuration. Pure."""

from __future__ import annotations

import ipaddress
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from ..layouts.pasting import DNS, INSTALL_CONFIG, in_words, yaml_list
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
# Its installer puts api and api-int of the cluster's domain into the certificates, and no address.
OPENSHIFT = Names(
    (INSTALL_CONFIG, "platform: {{none: {{}}}}", DNS),
    "name the cluster and its domain in install-config.yaml so that it is api or api-int of them.",
    by_address=False,
)


def snippet(known: Optional[Names], settings: Dict[str, Any], vips: List[Vip]) -> List[str]:
    """Return the lines to paste into the configuration of the preset's cluster, in YAML; none where none is known."""
    addresses = [vip.address for vip in vips]
    if not known or not addresses:
        return []
    names = [*settings["api_names"], *addresses]
    host = f"[{names[0]}]" if ":" in names[0] else names[0]
    return [line.format(host=host, names=yaml_list(names), vips=in_words(addresses)) for line in known.lines]


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
