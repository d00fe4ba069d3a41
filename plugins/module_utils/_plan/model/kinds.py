# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""By what each kind of cluster knows its masters, for a balancer that follows it. Pure."""

from __future__ import annotations

from typing import Mapping, NamedTuple

from ..._agent.follow.settings import FIRST, LAST, Nodes

CONTROL_PLANE = Nodes().label
MASTER = "node-role.kubernetes.io/master"


class Kind(NamedTuple):
    """A kind of cluster.

    :ivar label: of its masters
    :ivar of_several: which of several addresses of a node counts
    :ivar lacks: why its nodes have no such label, by label
    """

    label: str = CONTROL_PLANE
    of_several: str = FIRST
    lacks: Mapping[str, str] = {}


_UPGRADED = "OpenShift does not add it to the masters of a cluster that was upgraded"
_TOO_OLD = "the masters of so old an OpenShift do not have it"

KUBERNETES = Kind()
KUBEADM = Kind(lacks={MASTER: "kubeadm has not set it since Kubernetes 1.24"})
OPENSHIFT = Kind(MASTER, lacks={CONTROL_PLANE: _UPGRADED})
OPENSHIFT_3 = Kind(MASTER, lacks={CONTROL_PLANE: _TOO_OLD})
# With balancers of its own, which take the last address in a node's machine network.
OPENSHIFT_IPI = OPENSHIFT._replace(of_several=LAST)
OPENSHIFT_IPI_45 = OPENSHIFT_3._replace(of_several=LAST)
