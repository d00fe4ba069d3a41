# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Manifests of static pods, in the words of Kubernetes' API.

All pods of a member are alike in what makes a pod part of its node: the network of the host, the highest priority, and
every taint tolerated. Each container gets the capabilities that its program needs, and no others.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Dict, NamedTuple, Sequence, Tuple

from ..._agent.runtime.sd_notify import ALIVE
from ..._shared.pods import CHECKSUM, CONFIGURATION, POD

Manifest = Dict[str, Any]

PRIORITY_CLASS, PRIORITY = "system-node-critical", 2000001000
DIRECTORY, CREATED = "Directory", "DirectoryOrCreate"  # types of a hostPath
SHOWN = 40  # characters of a checksum: podman allows an annotation 63
APP, PART_OF = "app.kubernetes.io/name", "app.kubernetes.io/part-of"


class Volume(NamedTuple):
    """A folder of a container.

    :ivar host: the folder of the host; '' for one that ends with the pod
    """

    name: str
    path: str
    host: str = ""
    kind: str = DIRECTORY
    read_only: bool = True


class Alive(NamedTuple):
    """How the kubelet learns whether a program is dead: see `probes`.

    :ivar probe: the liveness probe; none where something else ends a program that stands still
    :ivar file: that the program touches; '' for none
    """

    probe: Dict[str, Any] = {}
    file: str = ""


class Container(NamedTuple):
    """A container of a pod."""

    name: str
    image: str
    command: Sequence[str]
    volumes: Sequence[Volume]
    capabilities: Tuple[str, ...]
    alive: Alive
    cpu: str = "50m"
    memory: str = "50Mi"


class Options(NamedTuple):
    """What a user says of all pods."""

    haproxy_image: str
    keepalived_image: str
    agent_image: str
    follow_image: str
    namespace: str
    pull_policy: str
    frr_image: str = ""


def pod(name: str, containers: Sequence[Container], stop_within: int, checksum: str, options: Options) -> Manifest:
    """Return a pod.

    :param stop_within: seconds that its containers have after SIGTERM
    :param checksum: of what it reads once: the kubelet starts the pod anew when that changes
    """
    whole = _pod(name, containers, stop_within, options)
    text = f"{json.dumps(whole, sort_keys=True)}{checksum}"
    configuration = hashlib.sha256(text.encode()).hexdigest()[:SHOWN]
    whole["metadata"]["annotations"] = {CHECKSUM: configuration}
    for container, its in zip(whole["spec"]["containers"], containers):
        touched = [{"name": ALIVE, "value": its.alive.file}] if its.alive.file else []
        container["env"] = [{"name": POD, "value": name}, {"name": CONFIGURATION, "value": configuration}, *touched]
    return whole


def _pod(name: str, containers: Sequence[Container], stop_within: int, options: Options) -> Manifest:
    volumes = {volume.name: volume for container in containers for volume in container.volumes}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": options.namespace,
            "labels": {APP: name, PART_OF: "onprem-lb"},
        },
        "spec": {
            "hostNetwork": True,
            "dnsPolicy": "Default",
            "enableServiceLinks": False,
            "automountServiceAccountToken": False,
            "priorityClassName": PRIORITY_CLASS,
            "priority": PRIORITY,
            "tolerations": [{"operator": "Exists"}],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": stop_within,
            # spc_t may use the folders of the host; a host without SELinux ignores it.
            "securityContext": {
                "seccompProfile": {"type": "RuntimeDefault"},
                "seLinuxOptions": {"type": "spc_t"},
            },
            "containers": [_container(container, options) for container in containers],
            "volumes": [_volume(volume) for volume in volumes.values()],
        },
    }


def _container(container: Container, options: Options) -> Dict[str, Any]:
    return {
        "name": container.name,
        "image": container.image,
        "imagePullPolicy": options.pull_policy,
        "command": list(container.command),
        "securityContext": {
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {
                "drop": ["ALL"],
                **({"add": list(container.capabilities)} if container.capabilities else {}),
            },
        },
        "resources": {"requests": {"cpu": container.cpu, "memory": container.memory}},
        **({"livenessProbe": container.alive.probe} if container.alive.probe else {}),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [_mount(volume) for volume in container.volumes],
    }


def _mount(volume: Volume) -> Dict[str, Any]:
    return {"name": volume.name, "mountPath": volume.path, **({"readOnly": True} if volume.read_only else {})}


def _volume(volume: Volume) -> Dict[str, Any]:
    if not volume.host:
        return {"name": volume.name, "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}
    return {"name": volume.name, "hostPath": {"path": volume.host, "type": volume.kind}}
