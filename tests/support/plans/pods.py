# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pods of the members of a cluster, made as the filter `layout_pods` makes them."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import pod_options
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.kubeconfig import Credentials
from ansible_collections.onprem.lb.plugins.module_utils._plan.pods import files, manifests
from ansible_collections.onprem.lb.plugins.plugin_utils import templates

from support.plans.clusters import cluster

MASTERS = ("master-0", "master-2", "master-1")
PASSWORD = "0f3a9c1e"
CREDENTIALS = Credentials(
    "https://api.lab.example:6443", "api.lab.example", {"ca": "/etc/kubernetes/pki/ca.crt"}, {"token": "a-token"}
)
BGP = {
    "reach": "bgp",
    "bgp": {"asn": 64512, "peers": [{"address": "10.0.0.1", "asn": 64601}], "bfd": True, "password": "geheim49"},
    "api_vips": ["203.0.113.10"],
    "ingress_vips": ["203.0.113.11"],
}
FOLLOW = {"follow": True, "follow_kubeconfig": "/etc/kubernetes/lb.kubeconfig"}
OPTIONS = manifests.Options(
    haproxy_image="registry.example/haproxy:2.8",
    keepalived_image="registry.example/keepalived:2.3",
    agent_image="registry.example/python:3.12",
    follow_image="registry.example/follow:1",
    namespace="kube-system",
    pull_policy="IfNotPresent",
)
OF_ROLE = {key: value for key, value in OPTIONS._asdict().items() if key in pod_options.OPTIONS}
EVERY_OPTION = OPTIONS._replace(frr_image="registry.example/frr:10")  # the role has no pods of FRR


def made(name="master-0", nodes=(), **settings):
    """The files and the manifests of a member of a cluster, which by default has a worker."""
    plan = planner.draft(ipi.LAYOUT, cluster(*nodes, **settings))
    assert plan.faults == []
    found = files.of_member(name, plan.members[name], PASSWORD, EVERY_OPTION, templates.render, CREDENTIALS)
    assert found.faults == []
    return found


def pod(kind, name="master-0", **settings):
    """A manifest: that of the balancer or that of the router."""
    return made(name, **settings).manifests[f"/etc/kubernetes/manifests/onprem-lb-{kind}.yaml"]


def container(kind, container_name, name="master-0", **settings):
    """A container of a pod."""
    return next(each for each in pod(kind, name, **settings)["spec"]["containers"] if each["name"] == container_name)


def text(file, name="master-0", **settings):
    """The content of a file that a pod reads."""
    return next(each.content for each in made(name, **settings).configurations if each.path.endswith(f"/{file}"))
