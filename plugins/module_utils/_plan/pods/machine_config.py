# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""MachineConfigs of OpenShift with what the nodes of a pool have in common. Pure.

A MachineConfig gives the same files to each node of its pool. Two kinds of files cannot be among them: those that name
a node or its addresses, such as keepalived.conf, and the manifest that has their checksum; and those that are secret,
because a MachineConfig can be read by everybody who may read the cluster's configuration.
"""

from __future__ import annotations

import base64
import gzip
import posixpath
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence

from ..._shared.pods import ROUTER, manifest_of
from .files import PRIVATE, File

API_VERSION, ROLE = "machineconfiguration.openshift.io/v1", "machineconfiguration.openshift.io/role"
IGNITION = "3.2.0"  # of OpenShift 4.7, and later ones read it; compressed files need 4.10
PROGRAM_MODE = 0o755


class Pool(NamedTuple):
    """What the nodes of a MachineConfigPool get.

    :ivar common: the files in the MachineConfig
    :ivar left: the paths of those that are not in it, and that some node of the pool has
    """

    name: str
    common: Sequence[File]
    left: Sequence[str]

    @property
    def file(self) -> str:
        return f"{self.resource}.yaml"

    @property
    def resource(self) -> str:
        return f"99-{self.name}-onprem-lb"

    @property
    def line(self) -> str:
        """Return what a user has to know."""
        names = ", ".join(map(posixpath.basename, self.left))
        left = f" Not in it, because each node has its own or because it is secret: {names}." if names else ""
        return f"{self.file}: {len(self.common) + 1} files for the MachineConfigPool {self.name}.{left}"


def pools(members: Mapping[str, Sequence[File]], of_members: Mapping[str, str]) -> List[Pool]:
    """Return the pools.

    :param members: the files of each member, its manifests as well
    :param of_members: the pool of each member
    """
    names = sorted({of_members[member] for member in members})
    return [_pool(name, [files for member, files in members.items() if of_members[member] == name]) for name in names]


def _pool(name: str, members: Sequence[Sequence[File]]) -> Pool:
    first, *others = members
    common = [file for file in first if _may_be_common(file) and all(file in files for files in others)]
    paths = {file.path for file in common}
    return Pool(name, common, sorted({file.path for files in members for file in files} - paths))


def _may_be_common(file: File) -> bool:
    """Whether a file is no node's own and no secret, even in a pool that has one node today."""
    return file.mode != PRIVATE and file.path != manifest_of(ROUTER)


def manifest(pool: Pool, archive: str, program: bytes) -> Dict[str, Any]:
    """Return the MachineConfig of a pool.

    :param archive: the path of the agent
    :param program: the agent
    """
    files = [_file(each.path, int(each.mode, 8), each.content.encode()) for each in pool.common]
    # The time in its header would make each run's another one.
    packed = _file(archive, PROGRAM_MODE, gzip.compress(program, mtime=0))
    packed["contents"]["compression"] = "gzip"
    return {
        "apiVersion": API_VERSION,
        "kind": "MachineConfig",
        "metadata": {"name": pool.resource, "labels": {ROLE: pool.name}},
        "spec": {"config": {"ignition": {"version": IGNITION}, "storage": {"files": [packed, *files]}}},
    }


def _file(path: str, mode: int, content: bytes) -> Dict[str, Any]:
    source = f"data:;base64,{base64.b64encode(content).decode()}"
    return {"path": path, "mode": mode, "overwrite": True, "contents": {"source": source}}
