# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MachineConfigs: what they have of the nodes of a pool, and that Ignition and OpenShift take them."""

from __future__ import annotations

import base64
import gzip
import itertools

import jsonschema
import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.pods import machine_config
from ansible_collections.onprem.lb.plugins.module_utils._plan.pods.files import File
from support.plans import pods

RESOURCES = "/etc/kubernetes/static-pod-resources/onprem-lb"
ARCHIVE, PROGRAM = f"{RESOURCES}/agent/agent.pyz", b"the agent" * 1000
MASTERS, WORKERS = ("master-0", "master-1", "master-2"), ("worker-0",)


def strict(required, **properties):
    return {"type": "object", "required": required, "additionalProperties": False, "properties": properties}


TEXT = {"type": "string", "minLength": 1}
# The fields that are written here, as the documents of Ignition 3.2.0 and of OpenShift's API have them.
SCHEMA = strict(
    ["apiVersion", "kind", "metadata", "spec"],
    apiVersion={"const": "machineconfiguration.openshift.io/v1"},
    kind={"const": "MachineConfig"},
    metadata=strict(
        ["name", "labels"],
        name={"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"},
        labels=strict(["machineconfiguration.openshift.io/role"], **{"machineconfiguration.openshift.io/role": TEXT}),
    ),
    spec=strict(
        ["config"],
        config=strict(
            ["ignition", "storage"],
            ignition=strict(["version"], version={"const": "3.2.0"}),
            storage=strict(
                ["files"],
                files={
                    "type": "array",
                    "items": strict(
                        ["path", "mode", "overwrite", "contents"],
                        path={"type": "string", "pattern": "^/[^/].*[^/]$"},
                        mode={"type": "integer", "minimum": 0, "maximum": 0o7777},  # decimal in JSON
                        overwrite={"const": True},
                        contents=strict(
                            ["source"],
                            source={"type": "string", "pattern": "^data:;base64,[A-Za-z0-9+/]*={0,2}$"},
                            compression={"enum": ["gzip"]},
                        ),
                    ),
                },
            ),
        ),
    ),
)


def files_of(name, **settings):
    made = pods.made(name, **settings)
    manifests = [File(path, str(manifest)) for path, manifest in made.manifests.items()]
    return [*made.configurations, *manifests]


def pools(**settings):
    of_members = {**dict.fromkeys(MASTERS, "master"), **dict.fromkeys(WORKERS, "worker")}
    found = machine_config.pools({name: files_of(name, **settings) for name in of_members}, of_members)
    return {pool.name: pool for pool in found}


def content(file):
    found = base64.b64decode(file["contents"]["source"].partition(",")[2])
    return gzip.decompress(found) if "compression" in file["contents"] else found


EVERY = list(itertools.product(("native", "agent"), ("default", "ocp45"), ({}, pods.FOLLOW)))


@pytest.mark.parametrize("engine, preset, follow", EVERY)
def test_ignition_and_openshift_take_each(engine, preset, follow):
    for pool in pools(engine=engine, preset=preset, **follow).values():
        manifest = machine_config.manifest(pool, ARCHIVE, PROGRAM)
        jsonschema.validate(manifest, SCHEMA)
        files = manifest["spec"]["config"]["storage"]["files"]
        paths = [file["path"] for file in files]
        assert len(paths) == len(set(paths)), "Ignition refuses a path twice"
        assert content(files[0]) == PROGRAM


@pytest.mark.parametrize("engine, preset, follow", EVERY)
def test_each_file_of_a_node_is_in_its_pools_or_left_to_it(engine, preset, follow):
    settings = {"engine": engine, "preset": preset, **follow}
    for pool in pools(**settings).values():
        for name in MASTERS if pool.name == "master" else WORKERS:
            files = files_of(name, **settings)
            assert set(pool.common) <= set(files)
            assert {file.path for file in files} == {file.path for file in pool.common} | set(pool.left)


@pytest.mark.parametrize("engine, preset, follow", EVERY)
def test_no_secret_is_in_a_machine_config(engine, preset, follow):
    for pool in pools(engine=engine, preset=preset, **follow).values():
        manifest = machine_config.manifest(pool, ARCHIVE, PROGRAM)
        texts = b"".join(content(file) for file in manifest["spec"]["config"]["storage"]["files"][1:])
        assert pods.PASSWORD.encode() not in texts and b"a-token" not in texts


def test_what_is_each_nodes_own_is_said():
    found = pools()
    assert [path.rpartition("/")[2] for path in found["master"].left] == ["onprem-lb-router.yaml", "keepalived.conf"]
    assert found["master"].line == (
        "99-master-onprem-lb.yaml: 6 files for the MachineConfigPool master. Not in it, because each node has its own "
        "or because it is secret: onprem-lb-router.yaml, keepalived.conf."
    )


def test_a_pool_of_one_node_leaves_the_same_to_it():
    """Another node may come."""
    one = machine_config.pools({"master-0": files_of("master-0")}, {"master-0": "master"})[0]
    assert one.left == pools()["master"].left


def test_a_node_that_differs_keeps_what_differs():
    files = {name: files_of(name) for name in MASTERS}
    path = f"{RESOURCES}/haproxy/haproxy.cfg"
    files["master-1"] = [each._replace(content="other") if each.path == path else each for each in files["master-1"]]
    assert path in machine_config.pools(files, dict.fromkeys(MASTERS, "master"))[0].left
