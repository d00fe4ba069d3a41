# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the agent is given to follow a cluster: see follow_files.yml beside this file."""

from __future__ import annotations

import base64
import binascii

import yaml
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import follow
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import kubeconfig


def follow_files(content, plan, haproxy):
    path = plan["kubeconfig"]
    data, fault = _parse(content)
    credentials, faults = (None, [f"{path}: {fault}"]) if fault else kubeconfig.read(data, path)
    if credentials is None:
        return _refused(faults)
    files = follow.files(plan, credentials, haproxy)
    faults = follow.refused_by_the_agent(files)
    return _refused([f"{path}: {fault}" for fault in faults]) if faults else {**files._asdict(), "faults": []}


def _refused(faults):
    return {"faults": faults, "credentials": [], "config": {}, "secrets": []}


def _parse(content):
    """Return what a slurped file has, or what is wrong with it. What YAML says of it may quote a secret."""
    if not content:
        return None, "it cannot be read on this member, or is empty: name a kubeconfig that every member has."
    try:
        return yaml.safe_load(base64.b64decode(content)), ""
    except (yaml.YAMLError, ValueError, binascii.Error):
        return None, "it is no YAML: write it anew, for instance with `kubectl config view --raw --minify --flatten`."


class FilterModule:
    """The class that Ansible loads from this file."""

    def filters(self):
        return {"follow_files": follow_files}
