# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes of clusters that exist: of two networks, upgraded, with the labels of each distribution."""

from __future__ import annotations

from support.follow.nodes import node

ROLE = "node-role.kubernetes.io/"
LABELS = {  # of a control-plane node, by how the cluster was made
    "kubeadm": (f"{ROLE}control-plane",),
    "kubeadm upgraded from 1.23": (f"{ROLE}control-plane", f"{ROLE}master"),
    "OpenShift": (f"{ROLE}control-plane", f"{ROLE}master"),
    "OpenShift upgraded from 4.11": (f"{ROLE}master",),  # nobody adds the new one
    "RKE2": (f"{ROLE}control-plane", f"{ROLE}etcd", f"{ROLE}master"),
}


def masters(count=3, of="kubeadm", networks=("10.0.0",)):
    """Return control-plane nodes, each with an address of each network."""
    return [node(f"m{at}", *(f"{network}.{at + 1}" for network in networks), labels=LABELS[of]) for at in range(count)]
