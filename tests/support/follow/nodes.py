# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes as an API server writes them in JSON."""

from __future__ import annotations

import json

LABEL = "node-role.kubernetes.io/control-plane"


def node(name, *addresses, ready=True, version="1", labels=(LABEL,), annotations=None):
    """Return a node with these InternalIPs."""
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "resourceVersion": version,
            "labels": dict.fromkeys(labels, ""),
            "annotations": {key: json.dumps(value) for key, value in (annotations or {}).items()},
        },
        "status": {
            "addresses": [
                {"type": "Hostname", "address": name},
                *({"type": "InternalIP", "address": address} for address in addresses),
            ],
            "conditions": [
                {"type": "MemoryPressure", "status": "False"},
                {"type": "Ready", "status": "True" if ready else "Unknown"},
            ],
        },
    }
