# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The files of a member's pods: what the pods read, and then the manifests. Pure, but for the templates it is given."""

from __future__ import annotations

import hashlib
import json
import posixpath
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from ..._agent import VERSION
from ..._agent.config.schema import Faults
from ..._shared.engines import ANYCAST, FOLLOW, FRR, HAPROXY, KEEPALIVED, NATIVE, PROXY, VRRP
from ..._shared.pods import manifest_of
from ..model.kubeconfig import Credentials
from ..model.plan import MemberPlan
from . import balancer, configurations, follow, paths, probes, router
from .manifests import Manifest, Options
from .paths import AGENT, PARTS, SIDECAR

# Below the folder of what the pods read, all that the role may have written there.
EVERY = (
    f"{AGENT}/{paths.ALIVE_SCRIPT}",
    f"{HAPROXY}/haproxy.cfg",
    f"{KEEPALIVED}/keepalived.conf",
    f"{PROXY}/{PROXY}.json",
    f"{VRRP}/{VRRP}.json",
    f"{ANYCAST}/{ANYCAST}.json",
    *(f"{FRR}/{name}" for name in ("frr.conf", "daemons", "vtysh.conf")),
    f"{SIDECAR}/{SIDECAR}.json",
    f"{SIDECAR}/{configurations.REDIRECT}",
    f"{SIDECAR}/{configurations.GUARD}",
    *(f"{FOLLOW}/{name}" for name in follow.EVERY),
)
PRIVATE, PUBLIC = "0600", "0644"
VTYSH = "! Managed by Ansible, onprem.lb. vtysh complains of a file that is not there.\n"
Render = Callable[..., str]  # a template of a role, as `plugin_utils.templates` does


class File(NamedTuple):
    """A file of a host."""

    path: str
    content: str
    mode: str = PUBLIC


class Made(NamedTuple):
    """The files of a member, in the order in which they have to be written, or why there are none."""

    faults: Faults
    configurations: List[File] = []
    manifests: Dict[str, Manifest] = {}  # by path
    secrets: List[str] = []  # what nobody may see of them


def of_member(
    name: str,
    plan: MemberPlan,
    auth_pass: str,
    options: Options,
    render: Render,
    credentials: Optional[Credentials] = None,
    reloads: bool = False,
) -> Made:
    """Return what a member's pods are, and what they read.

    :param auth_pass: the password of the instances that have none of their own
    :param credentials: of a member that follows its cluster
    :param reloads: whether somebody sends SIGHUP to a program whose file changes; else the kubelet starts its pod anew
    """
    made = (_native if plan.engine == NATIVE else _agent)(name, plan, auth_pass, render)
    faults, models, of_balancer, of_router = _announcing(plan, made, render) if plan.bgp else made
    if faults:
        return Made([f"{name}: {fault}" for fault in faults])
    has_router = configurations.has_router(plan)
    of_sidecar = _sidecar(plan) if has_router and configurations.has_sidecar(plan) else []
    of_router = [*of_router, *of_sidecar] if has_router else []
    has_balancer = configurations.has_balancer(plan)
    pods = [balancer.manifest(plan, models, _checksum([] if reloads else of_balancer), options)] if has_balancer else []
    if has_router:
        pods.append(router.manifest(plan, models, _checksum(of_sidecar if reloads else of_router), options))
    of_follow: List[File] = []
    secrets: List[str] = models["secrets"]
    if plan.follow and credentials:
        secrets = [*secrets, *follow.secrets(plan, credentials)]
        of_follow = [
            _file(FOLLOW, posixpath.basename(path), content, PRIVATE)
            for path, content in follow.files(plan, credentials).items()
        ]
        pods.append(follow.manifest(plan, credentials, _checksum([] if reloads else of_follow), options))
    manifests = {manifest_of(each["metadata"]["name"]): each for each in pods}
    of_all = [_file(AGENT, paths.ALIVE_SCRIPT, probes.SCRIPT)] if manifests else []
    return Made([], [*of_all, *(of_balancer if has_balancer else []), *of_router, *of_follow], manifests, secrets)


def _native(name: str, plan: MemberPlan, auth_pass: str, render: Render) -> Any:
    haproxy = configurations.haproxy_model(plan, name)
    keepalived = configurations.keepalived_model(plan, name, auth_pass)
    faults = haproxy["faults"] + keepalived["faults"]
    if faults:
        return faults, {}, [], []
    cfg = render("haproxy/haproxy.cfg.j2", {"model": haproxy, "family": configurations.FAMILY})
    conf = render("keepalived/keepalived.conf.j2", {"model": keepalived, "hook": ""})
    of_router = [_file(KEEPALIVED, "keepalived.conf", conf, PRIVATE)]
    return [], {"secrets": haproxy["secrets"] + keepalived["secrets"]}, [_file(HAPROXY, "haproxy.cfg", cfg)], of_router


def _agent(name: str, plan: MemberPlan, auth_pass: str, _render: Render) -> Any:
    found = configurations.agent_model(plan, name, auth_pass)
    if found["faults"]:
        return found["faults"], {}, [], []
    of_balancer = [_file(PROXY, f"{PROXY}.json", _json(found[PROXY]))]
    of_router = [_file(VRRP, f"{VRRP}.json", _json(found[VRRP]), PRIVATE)]
    return [], {**(found[PROXY] or {}), **(found[VRRP] or {}), "secrets": found["secrets"]}, of_balancer, of_router


def _announcing(plan: MemberPlan, made: Any, render: Render) -> Any:
    """Return what was made of a member with the gate and FRR for its router, whose files are those of the role."""
    faults, models, of_balancer, _of_vrrp = made
    model = configurations.frr_model(plan)
    if faults or model["faults"]:
        return [*faults, *model["faults"]], {}, [], []
    of_router = [
        _file(ANYCAST, f"{ANYCAST}.json", _json(configurations.gate(plan)), PRIVATE),
        _file(FRR, "frr.conf", render("frr/frr.conf.j2", {"model": model}), PRIVATE),
        _file(FRR, "daemons", render("frr/daemons.j2", {})),
        _file(FRR, "vtysh.conf", VTYSH),
    ]
    return [], {**models, "secrets": [*models["secrets"], *model["secrets"]]}, of_balancer, of_router


def _sidecar(plan: MemberPlan) -> List[File]:
    texts = {
        f"{SIDECAR}.json": _json(configurations.sidecar(plan)),
        configurations.REDIRECT: configurations.redirect(plan),
        configurations.GUARD: configurations.guard(plan),
    }
    return [_file(SIDECAR, name, text) for name, text in texts.items() if text]


def _file(part: str, name: str, content: str, mode: str = PUBLIC) -> File:
    return File(f"{PARTS[part].on_host}/{name}", content, mode)


def _json(value: Any) -> str:
    return json.dumps(value, indent=2) + "\n"


def _checksum(files: List[File]) -> str:
    """Return what differs when a file or the agent does."""
    text = "".join(f"{file.path}\0{file.content}\0" for file in files)
    return hashlib.sha256(f"{text}{VERSION}".encode()).hexdigest()
