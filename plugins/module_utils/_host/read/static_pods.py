# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The kubelet's static pods: which manifest starts a program, and how that manifest is disabled.

A kubelet runs what is in its folder, whatever the file's ending is, and stops what leaves it. It ignores a file whose
name begins with a dot.
"""

from __future__ import annotations

import glob
import os
import re
import time
from typing import Any, Callable, Collection, List, Sequence

from ..._agent.net import netlink
from . import cgroups, ownership, processes

# Those of kubeadm and OpenShift, of RKE2 and of k3s.
FOLDERS = (
    "/etc/kubernetes/manifests",
    "/var/lib/rancher/rke2/agent/pod-manifests",
    "/var/lib/rancher/k3s/agent/pod-manifests",
)
PAUSE = 0.05  # seconds between two looks at the processes
Running = Callable[[Collection[str]], List[processes.Process]]  # `processes.named`
CONTAINER = r'^[\s{{-]*"?name"?\s*:\s*["\']?{program}["\']?\s*,?\s*$'


def manifest(program: str, folders: Sequence[str] = FOLDERS) -> str:
    """Return the path of the manifest with a container or a pod of this name; '' if there is none, or several."""
    named = re.compile(CONTAINER.format(program=re.escape(program)), re.MULTILINE)
    paths = [path for folder in folders for path in sorted(glob.glob(os.path.join(folder, "*")))]
    found = [path for path in paths if os.path.isfile(path) and named.search(_text(path))]
    return found[0] if len(found) == 1 else ""


def disabled(path: str) -> str:
    """Return where a manifest is kept that is disabled."""
    return os.path.join(os.path.dirname(path), f".{os.path.basename(ownership.kept(path))}")


def kept_twice(manifests: Sequence[str]) -> List[str]:
    """Return a sentence for each manifest that cannot be kept, because another one is."""
    return [
        f"{path} would be disabled, and another manifest is kept from before as {disabled(path)}: delete that one, or "
        "move it away."
        for path in dict.fromkeys(manifests)
        if os.path.lexists(disabled(path))
    ]


def runs(program: str, running: Running = processes.named) -> bool:
    """Return whether a static pod on this host's network runs a program."""
    return any(each.runs_in.kind == cgroups.STATIC_POD and each.on_this_network for each in running([program]))


def ends(program: str, wait: float) -> bool:
    """Return whether no static pod runs a program any more within a number of seconds."""
    deadline = time.monotonic() + wait
    while runs(program):
        if time.monotonic() > deadline:
            return False
        time.sleep(PAUSE)
    return True


def remove_left(addresses: Collection[str], kernel: Any = None) -> List[str]:
    """Remove those of some addresses that are on this host; return them with their prefix lengths.

    :param kernel: a `netlink.Netlink`, this host's by default
    """
    kernel = kernel or netlink.Netlink()
    left = [each for each in kernel.addresses() if each.address in addresses]
    for each in left:
        kernel.delete(each.index, f"{each.address}/{each.prefix}")
    return [f"{each.address}/{each.prefix}" for each in left]


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
