# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the agent is given to follow a cluster."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import follow
from ansible_collections.onprem.lb.plugins.plugin_utils import kubeconfigs

CLOSED = (
    "which root cannot read as its owner, by its group or as everybody: follow has no other right, so make it root's."
)
NOT_THERE = "is not on this member: put it there, or name another kubeconfig."


def follow_files(content, plan, haproxy, there=None):
    """Return ``{faults, named, credentials, config, secrets}``, the files as `config_files` takes them.

    :param content: the kubeconfig as `slurp` returns it, empty where it could not be read
    :param plan: what the member is to follow, of its plan
    :param haproxy: where its HAProxy has its ``config`` and its ``socket``
    :param there: those files that the kubeconfig names which are on the member, as `stat` prints mode, user, group and
        path of each; None says nothing of them
    """
    path = plan["kubeconfig"]
    credentials, faults = kubeconfigs.read_slurped(content, path)
    if credentials is None:
        return _refused(faults)
    files = follow.files(plan, credentials, haproxy)
    faults = follow.refused_by_the_agent(files)
    named = sorted({*credentials.paths.values()})
    if there is not None:
        modes = {path: _is_open(*rights) for *rights, path in (line.split(" ", 3) for line in there)}
        faults += [f"it names {file}, which {NOT_THERE}" for file in named if file not in modes]
        faults += [f"it names {file}, {CLOSED}" for file in named if not modes.get(file, True)]
    if faults:
        return _refused([f"{path}: {fault}" for fault in faults], named)
    return {**files._asdict(), "faults": [], "named": named}


def _is_open(mode, user, group):
    """Whether root may read a file without a capability, by the class of rights that counts for it."""
    shift = 6 if user == "0" else 3 if group == "0" else 0
    return bool(int(mode, 8) >> shift & 4)


def _refused(faults, named=()):
    return {"faults": faults, "credentials": [], "config": {}, "secrets": [], "named": [*named]}


class FilterModule:
    """The class that Ansible loads from this file."""

    def filters(self):
        return {"follow_files": follow_files}
