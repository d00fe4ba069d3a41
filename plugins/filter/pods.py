# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The pods of a cluster's members: see layout_pods.yml beside this file."""

from __future__ import annotations

import json

import yaml
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import kubeconfig as kubeconfig_model
from ansible_collections.onprem.lb.plugins.module_utils._plan.pods import manifests, paths, unread
from ansible_collections.onprem.lb.plugins.plugin_utils import templates

HEAD = "# Managed by Ansible, onprem.lb: changes made here are lost.\n"


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as such, and indents lists."""

    def increase_indent(self, flow=False, indentless=False):
        return super().increase_indent(flow, False)


def _text(dumper, text):
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def layout_pods(given, addresses, options, kubeconfig="", path=""):
    addresses, options = json.loads(json.dumps([addresses, options]))  # without what Ansible adds to texts
    credentials, faults = _credentials(kubeconfig, path)
    if faults:
        return {"faults": faults, "lines": [], "members": {}, "archive": "", "secrets": []}
    members = [{**each, "settings": json.loads(each["settings"])} for each in given]
    chosen = manifests.Options(**options)
    found = unread.draw(members, addresses, chosen, templates.render, planner.plan, credentials)
    files = {name: _files(made) for name, made in found.members.items()}
    archive = f"{paths.PARTS[paths.AGENT].on_host}/{paths.ARCHIVE}"
    secrets = sorted({secret for made in found.members.values() for secret in made.secrets})
    return {
        "faults": found.faults,
        "lines": found.lines,
        "members": files,
        "archive": archive,
        "secrets": secrets,
    }


def _credentials(text, path):
    """Return what a kubeconfig says, or what is wrong with it. What YAML says of it may quote a secret."""
    if not text:
        return None, []
    try:
        return kubeconfig_model.read(yaml.safe_load(text), path)
    except yaml.YAMLError:
        return None, [f"{path} is no YAML: write it anew, for instance with `kubectl config view --raw --minify`."]


def _files(made):
    """Return the files as `config_files` takes them, the manifests last: the kubelet may see one at any time."""
    read = [file._asdict() for file in made.configurations]
    pods = [{"path": path, **_manifest(made.manifests.get(path))} for path in unread.EVERY_MANIFEST]
    return [*read, *pods]


def _manifest(manifest):
    if manifest is None:
        return {"state": "absent"}
    return {"content": HEAD + as_yaml(manifest), "mode": "0644"}


def as_yaml(manifest):
    return yaml.dump(manifest, Dumper=_Dumper, sort_keys=False, width=120, explicit_start=True)


def pods_below(files, folder):
    return [{**file, "path": folder + file["path"]} for file in files]


class FilterModule:
    """The class that Ansible loads from this file."""

    def filters(self):
        return {"layout_pods": layout_pods, "pods_below": pods_below}
