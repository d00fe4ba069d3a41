# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The pod of `follow`, which keeps a balancer's servers at the nodes of its cluster. Pure.

It writes the balancer's configuration as the unit does, and tells the balancer by its socket. HAProxy tests its file
there too, so that with the native engine the image has both.
"""

from __future__ import annotations

import json
import posixpath
from typing import Any, Dict, List

from ..._agent.follow.settings import Hosts, Settings
from ..._shared.engines import FOLLOW, HAPROXY, NATIVE, PROXY
from ..._shared.pods import FOLLOW as NAME
from ..._shared.pods import LOADED
from ..layouts import follow
from ..model.kubeconfig import Credentials
from ..model.plan import MemberPlan
from . import held, paths, probes
from .manifests import CREATED, Container, Manifest, Options, Volume, pod
from .paths import AGENT, AGENT_COMMAND, PARTS

STATE_FOLDER = posixpath.dirname(Settings._field_defaults["state_file"])
NAMES_FOLDER = posixpath.dirname(Hosts._field_defaults["file"])
STOP_WITHIN = 10  # seconds
EVERY = [posixpath.basename(path) for path in follow.EVERY]
RUNTIME = paths.own_runtime(FOLLOW)
FIFO = f"{RUNTIME.path}/held"  # by which a run of the role knows the container, and what it has loaded


def files(plan: MemberPlan, credentials: Credentials) -> Dict[str, str]:
    """Return what the container reads, by the path there."""
    found = _files(plan, credentials)
    whole: Dict[str, Any] = json.loads(found.config["content"])
    if HAPROXY in whole:
        del whole[HAPROXY]["reload"]  # systemd's
        whole[HAPROXY]["loaded"] = f"{paths.BALANCER_FIFO}{LOADED}"
    if PROXY in whole:
        whole[PROXY]["config"] = paths.PROXY_CONFIG
    secret = {each["path"]: each["content"] for each in found.credentials if each["state"] == "present"}
    return {**secret, follow.CONFIG: json.dumps(whole, indent=2) + "\n"}


def secrets(plan: MemberPlan, credentials: Credentials) -> List[str]:
    """Return what nobody may see of the files."""
    return _files(plan, credentials).secrets


def _files(plan: MemberPlan, credentials: Credentials) -> follow.Files:
    haproxy = {"config": paths.HAPROXY_CONFIG, "socket": paths.HAPROXY_SOCKET}
    return follow.files(plan.follow, credentials, haproxy)


def manifest(plan: MemberPlan, credentials: Credentials, checksum: str, options: Options) -> Manifest:
    container = Container(
        name=FOLLOW,
        image=options.follow_image,
        command=held.command([*AGENT_COMMAND, FOLLOW, "--config", follow.CONFIG], FIFO, follow.CONFIG),
        volumes=[
            PARTS[AGENT].volume(),
            PARTS[FOLLOW].volume(),
            RUNTIME,
            Volume("state", STATE_FOLDER, STATE_FOLDER, CREATED, read_only=False),
            paths.TMP,
            *(_of_balancer(plan.engine) if plan.follow["services"] else []),
            *([Volume("names", NAMES_FOLDER, NAMES_FOLDER, CREATED, read_only=False)] if plan.follow["hosts"] else []),
            *_named(credentials),
        ],
        capabilities=(),
        alive=probes.touches(f"{RUNTIME.path}/{FOLLOW}"),
    )
    return pod(NAME, [container], STOP_WITHIN, checksum, options)


def _of_balancer(engine: str) -> List[Volume]:
    """Return the folders of the balancer's file, of its socket, and of the record of what it has loaded."""
    part = PARTS[HAPROXY if engine == NATIVE else PROXY]
    return [part.volume(writable=True), paths.runtime(engine, shared=True), paths.SHARED]


def _named(credentials: Credentials) -> List[Volume]:
    """Return the folders of the files that the kubeconfig names: those are replaced when they expire."""
    folders = sorted({posixpath.dirname(path) for path in credentials.paths.values()})
    return [Volume(f"credentials-{at}", folder, folder) for at, folder in enumerate(folders)]
