# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the static pods of a member are called, and where they and what they read are on its host."""

from __future__ import annotations

MANIFESTS = "/etc/kubernetes/manifests"
RESOURCES = "/etc/kubernetes/static-pod-resources/onprem-lb"
BALANCER, ROUTER, FOLLOW = "onprem-lb-balancer", "onprem-lb-router", "onprem-lb-follow"

# The environment of their processes, and the first arguments of the first one of a container, before its FIFO.
POD, CONFIGURATION = "ONPREM_LB_POD", "ONPREM_LB_CONFIGURATION"
FIRST = ("/bin/sh", "-c")
HOLDER = "onprem-lb"
LOADED = ".loaded"  # what the name of a record ends with that begins as that of the FIFO does

# The annotation of a manifest whose change is one of the pod.
CHECKSUM = "onprem.lb/configuration"


def manifest_of(name: str) -> str:
    return f"{MANIFESTS}/{name}.yaml"


def stopped(name: str) -> str:
    """Return where the manifest of a pod is that is not to run: the kubelet ignores names that begin with a dot."""
    return f"{MANIFESTS}/.{name}.yaml"
