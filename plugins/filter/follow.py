# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the agent is given to follow a cluster: see follow_files.yml beside this file."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import follow
from ansible_collections.onprem.lb.plugins.plugin_utils import kubeconfigs


def follow_files(content, plan, haproxy):
    path = plan["kubeconfig"]
    credentials, faults = kubeconfigs.read_slurped(content, path)
    if credentials is None:
        return _refused(faults)
    files = follow.files(plan, credentials, haproxy)
    faults = follow.refused_by_the_agent(files)
    return _refused([f"{path}: {fault}" for fault in faults]) if faults else {**files._asdict(), "faults": []}


def _refused(faults):
    return {"faults": faults, "credentials": [], "config": {}, "secrets": []}


class FilterModule:
    """The class that Ansible loads from this file."""

    def filters(self):
        return {"follow_files": follow_files}
