# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the static pods of a member are called, and where they and what they read are on its host."""

from __future__ import annotations

MANIFESTS = "/etc/kubernetes/manifests"
RESOURCES = "/etc/kubernetes/static-pod-resources/onprem-lb"
BALANCER, ROUTER, FOLLOW = "onprem-lb-balancer", "onprem-lb-router", "onprem-lb-follow"
NAMES = (BALANCER, ROUTER, FOLLOW)

# The environment of their processes, and the first arguments of the first one of a container, before its FIFO.
POD, CONFIGURATION = "ONPREM_LB_POD", "ONPREM_LB_CONFIGURATION"
FIRST = ("/bin/sh", "-c")
HOLDER = "onprem-lb"
LOADED = ".loaded"  # what the name of a record ends with that begins as that of the FIFO does

# The annotation of a manifest whose change is one of the pod.
CHECKSUM = "onprem.lb/configuration"


# The files that the programs of the pods load, by the end of their paths.
LOADED_BY = {
    "/haproxy/haproxy.cfg": BALANCER,
    "/proxy/proxy.json": BALANCER,
    "/keepalived/keepalived.conf": ROUTER,
    "/vrrp/vrrp.json": ROUTER,
    "/follow/follow.json": FOLLOW,
}


def loads(path: str) -> str:
    """Return the pod that has to load a file anew when that changes, or of which the file is the manifest; or ''."""
    found = {f"{RESOURCES}{end}": pod for end, pod in LOADED_BY.items()}
    return {**found, **{manifest_of(name): name for name in NAMES}}.get(path, "")


def manifest_of(name: str) -> str:
    return f"{MANIFESTS}/{name}.yaml"


def stopped(name: str) -> str:
    """Return where the manifest of a pod is that is not to run: the kubelet ignores names that begin with a dot."""
    return f"{MANIFESTS}/.{name}.yaml"
