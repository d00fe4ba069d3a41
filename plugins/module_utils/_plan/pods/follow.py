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

from ..._agent.follow.settings import Settings
from ..._shared.engines import FOLLOW, HAPROXY, NATIVE, PROXY
from ..._shared.pods import FOLLOW as NAME
from ..layouts import follow
from ..model.kubeconfig import Credentials
from ..model.plan import MemberPlan
from . import paths
from .manifests import CREATED, Container, Manifest, Options, Volume, pod, runs
from .paths import AGENT, AGENT_COMMAND, PARTS, STATUS

STATE = posixpath.dirname(Settings._field_defaults["state_file"])
STOP_WITHIN = 10  # seconds


def files(plan: MemberPlan, credentials: Credentials) -> Dict[str, str]:
    """Return what the container reads, by the path there."""
    found = _files(plan, credentials)
    whole: Dict[str, Any] = json.loads(found.config["content"])
    if plan.engine == NATIVE:
        for key in ("reload", "loaded"):  # systemd's
            del whole[HAPROXY][key]
    else:
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
    part = PARTS[HAPROXY if plan.engine == NATIVE else PROXY]
    container = Container(
        name=FOLLOW,
        image=options.follow_image,
        command=[*AGENT_COMMAND, FOLLOW, "--config", follow.CONFIG],
        volumes=[
            PARTS[AGENT].volume(),
            PARTS[FOLLOW].volume(),
            part.volume(writable=True),
            paths.runtime(plan.engine, shared=True),
            paths.own_runtime(FOLLOW),
            Volume("state", STATE, STATE, CREATED, read_only=False),
            paths.TMP,
            *_named(credentials),
        ],
        capabilities=(),
        alive=runs([*AGENT_COMMAND, "status", "--socket", STATUS[FOLLOW]]),
    )
    return pod(NAME, [container], STOP_WITHIN, checksum, options)


def _named(credentials: Credentials) -> List[Volume]:
    """Return the folders of the files that the kubeconfig names: those are replaced when they expire."""
    folders = sorted({posixpath.dirname(path) for path in credentials.paths.values()})
    return [Volume(f"credentials-{at}", folder, folder) for at, folder in enumerate(folders)]
