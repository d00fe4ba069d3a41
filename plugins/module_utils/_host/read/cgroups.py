# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The systemd unit, container or pod that a process runs in, from /proc/PID/cgroup; see cgroups(7). Pure."""

from __future__ import annotations

import re
from typing import List, NamedTuple, Optional

UNIT, CONTAINER, POD, STATIC_POD = "unit", "container", "pod", "static pod"
OWN_POD = "static pod of this collection"
CONTAINERS = (CONTAINER, POD, STATIC_POD)

# Kubernetes writes a UID with dashes, the systemd driver with underscores. A static pod's is a checksum.
POD_UID = re.compile(r"(?:^|-)pod([0-9a-f]{32}|[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})(?:\.slice)?$")
CONTAINER_ID = re.compile(r"(?:([a-z-]+)-)?([0-9a-f]{64})(?:\.scope)?$")
LXC = re.compile(r"lxc\.payload\.(.+)")
UNIT_NAME = re.compile(r".+\.(?:service|scope)$")
ENGINES = {"docker": "docker", "libpod": "podman", "libpod-payload": "podman"}
SHOWN = 12  # characters of a container's ID, as docker and podman show it


class RunsIn(NamedTuple):
    """What a process runs in; '' where that is not known."""

    kind: str = ""
    name: str = ""
    engine: str = ""  # docker or podman, if a container's is known

    def __str__(self) -> str:
        if self.kind in (UNIT, OWN_POD):
            return self.name
        return " ".join(word for word in ("the", self.engine, self.kind, self.name) if word) if self.kind else ""


def runs_in(text: str, init: str = "") -> RunsIn:
    """Return what a process runs in.

    :param text: its /proc/PID/cgroup
    :param init: that of the first process, which on a host that is a container itself begins with the container
    """
    root = re.sub(r"/init\.scope$", "", _path(init)).rstrip("/")
    path = _path(text)
    parts = (path[len(root) :] if path.startswith(f"{root}/") else path).strip("/").split("/")
    unit = next((RunsIn(UNIT, part) for part in parts if UNIT_NAME.match(part)), RunsIn())
    return _container(parts) or unit


def _path(text: str) -> str:
    """Return the path in systemd's own hierarchy: of version 1 if that is mounted, else of version 2."""
    fields = (line.split(":", 2) for line in text.splitlines())
    paths = {words[1]: words[2] for words in fields if len(words) == 3}
    legacy = paths.get("name=systemd", "/")
    return legacy if legacy != "/" else paths.get("", "/")


def _container(parts: List[str]) -> Optional[RunsIn]:
    """Return the outermost container or its pod, whatever units it has inside."""
    pod = ""
    for part in parts:
        uid, container, lxc = POD_UID.search(part), CONTAINER_ID.match(part), LXC.match(part)
        pod = uid[1].replace("_", "-") if uid else pod
        if container and pod:
            return RunsIn(POD if "-" in pod else STATIC_POD, pod)
        if container:
            return RunsIn(CONTAINER, container[2][:SHOWN], ENGINES.get(container[1] or "", ""))
        if lxc:
            return RunsIn(CONTAINER, lxc[1], "LXC")
    return None
