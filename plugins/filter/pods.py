# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The pods of a cluster's members."""

from __future__ import annotations

import json
import posixpath

import yaml
from ansible_collections.onprem.lb.plugins.module_utils import _agent
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy import archive
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import follow, planner
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import plan as plans
from ansible_collections.onprem.lb.plugins.module_utils._plan.pods import (
    files,
    machine_config,
    manifests,
    paths,
    unread,
)
from ansible_collections.onprem.lb.plugins.module_utils._shared import pods
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import FOLLOW, POD
from ansible_collections.onprem.lb.plugins.plugin_utils import kubeconfigs, templates

ARCHIVE = f"{paths.PARTS[paths.AGENT].on_host}/{paths.ARCHIVE}"
CREDENTIALS = [f"{paths.PARTS[FOLLOW].on_host}/{posixpath.basename(path)}" for path in follow.CREDENTIALS]
READ_BY_PODS = tuple(f"{pods.RESOURCES}/{file}" for file in files.EVERY)
HEAD = "# Managed by Ansible, onprem.lb: changes made here are lost.\n"


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as such, and indents lists."""

    def increase_indent(self, flow=False, indentless=False):
        return super().increase_indent(flow, False)


def _text(dumper, text):
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def layout_pods(given, addresses, options, kubeconfig="", path="", pools=None):
    """Return ``{faults, lines, members, archive, secrets, machine_configs}`` of a cluster whose hosts were not read.

    ``members`` has each one's files as `config_files` takes them, in the order in which they have to be there.
    ``machine_configs`` are such files too, and ``members`` lacks what is in them.

    :param given: the members, as `layout_forecast` takes them
    :param addresses: each member's list of addresses, by name
    :param options: of all pods, as `manifests.Options` has them
    :param kubeconfig: the text of the nodes' kubeconfig, for members that follow their cluster
    :param path: where that is on the nodes
    :param pools: each member's MachineConfigPool, by name; none without MachineConfigs
    """
    # Without what Ansible adds to texts.
    addresses, options, pools = json.loads(json.dumps([addresses, options, pools or {}]))
    credentials, faults = kubeconfigs.read(kubeconfig, path) if kubeconfig else (None, [])
    if faults:
        return {"faults": faults, "lines": [], "members": {}, "archive": "", "secrets": [], "machine_configs": []}
    members = [{**each, "settings": json.loads(each["settings"])} for each in given]
    chosen = manifests.Options(**options)
    found = unread.draw(members, addresses, chosen, templates.render, planner.plan, credentials)
    shared = machine_config.pools(_of_nodes(found.members), pools) if pools else []
    common = {name: _common(shared, pools.get(name)) for name in found.members}
    written = {name: _without([*_files(made), *_unneeded(made)], common[name]) for name, made in found.members.items()}
    secrets = sorted({secret for made in found.members.values() for secret in made.secrets})
    return {
        "faults": found.faults,
        "lines": [*found.lines, *(pool.line for pool in shared)],
        "members": written,
        "archive": ARCHIVE,
        "secrets": secrets,
        "machine_configs": [_machine_config(pool) for pool in shared],
    }


def _of_nodes(members):
    """Return the files of each member, with its manifests as texts."""
    return {
        name: [*made.configurations, *(files.File(path, _text_of(it)) for path, it in made.manifests.items())]
        for name, made in members.items()
    }


def _common(shared, name):
    return {file.path for pool in shared if pool.name == name for file in pool.common}


def _without(given, paths):
    """Return files, of which those at some paths are not to be in the node's own folder."""
    return [{"path": file["path"], "state": "absent"} if file["path"] in paths else file for file in given]


def _machine_config(pool):
    text = HEAD + as_yaml(machine_config.manifest(pool, ARCHIVE, archive.build(posixpath.dirname(_agent.__file__))))
    return {"path": f"/{pool.file}", "content": text, "mode": "0644", "diff": False}


def _files(made):
    """Return the files as `config_files` takes them, the manifests last: the kubelet may see one at any time."""
    read = [_quiet(file._asdict()) for file in made.configurations]
    pods = [{"path": path, **_manifest(made.manifests.get(path))} for path in unread.EVERY_MANIFEST]
    return [*read, *pods]


def _manifest(manifest):
    if manifest is None:
        return {"state": "absent"}
    return {"content": _text_of(manifest), "mode": "0644"}


def _text_of(manifest):
    return HEAD + as_yaml(manifest)


def as_yaml(manifest):
    return yaml.dump(manifest, Dumper=_Dumper, sort_keys=False, width=120, explicit_start=True)


def pods_below(given, folder):
    """Return the files of a node in a folder that stands for its root."""
    return [{**file, "path": folder + file["path"]} for file in given]


def pod_files(plan, name, auth_pass, kubeconfig=""):
    """Return the pods of a member of a plan as data, and what they read."""
    member = plans.member_of(plan)
    # A kubeconfig that has a fault was refused before.
    credentials = kubeconfigs.read_slurped(kubeconfig, "")[0] if member.follow else None
    options = manifests.Options(**member.pods)
    made = files.of_member(name, member, auth_pass, options, templates.render, credentials, reloads=True)
    return {
        "faults": made.faults,
        "files": [
            *map(_with_pod, _files(made)),
            *map(_with_pod, _unneeded(made)),
            *({"path": pods.stopped(each), "state": "absent"} for each in pods.NAMES),
        ],
        "pods": [each["metadata"]["name"] for each in made.manifests.values()],
        "archive": ARCHIVE,
        "secrets": made.secrets,
    }


def _unneeded(made):
    """Return what other pods of a member would read, which has to go: a password is in it."""
    needed = {file.path for file in made.configurations}
    return [_quiet({"path": path, "state": "absent"}) for path in READ_BY_PODS if path not in needed]


def _quiet(file):
    """Return a file of which no difference is shown, if it is a credential."""
    return {**file, "diff": False} if file["path"] in CREDENTIALS else file


def _with_pod(file):
    """Return a file with the pod that loads it, as its ``unit``; one that is read in another way has none."""
    pod = pods.loads(file["path"])
    return {**file, "unit": pod} if pod else file


def pods_to_read(delivery):
    """Return what a run compares on a host: every file that a member's pods may have."""
    if delivery != POD:
        return []
    paths_there = (*READ_BY_PODS, *unread.EVERY_MANIFEST, *map(pods.stopped, pods.NAMES))
    return [*map(_with_pod, ({"path": path} for path in paths_there))]


class FilterModule:
    """The class that Ansible loads from this file."""

    def filters(self):
        return {
            "layout_pods": layout_pods,
            "pod_files": pod_files,
            "pods_below": pods_below,
        }
