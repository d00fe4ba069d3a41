# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The files of a member as the playbook writes them."""

from __future__ import annotations

import json

import yaml
from ansible_collections.onprem.lb.plugins.filter import pods as _filter
from support.plans import clusters, pods

OPTIONS = pods.OPTIONS._asdict()


def found():
    settings = {"interface": "ens192", "auth_pass": pods.PASSWORD}
    names = [*clusters.ADDRESSES]
    given = [
        {**each, "settings": json.dumps(each["settings"]), "host": None, "address": each["name"], "members": names}
        for each in clusters.cluster(**settings)
    ]
    addresses = {name: [f"10.0.0.{number}"] for name, number in clusters.ADDRESSES.items()}
    return _filter.layout_pods(given, addresses, OPTIONS)


def test_the_manifests_come_last_and_are_those_of_the_plan():
    files = found()["members"]["master-0"]
    paths = [file["path"] for file in files]
    assert [path.startswith("/etc/kubernetes/manifests/") for path in paths] == [False] * (len(paths) - 3) + [True] * 3
    manifests = pods.made("master-0", auth_pass=pods.PASSWORD).manifests
    assert {file["path"]: yaml.safe_load(file["content"]) for file in files[-3:-1]} == manifests
    assert files[-1] == {"path": "/etc/kubernetes/manifests/onprem-lb-follow.yaml", "state": "absent"}


def test_a_pod_that_a_node_does_not_have_is_absent():
    files = {file["path"]: file for file in found()["members"]["worker-0"]}
    assert files["/etc/kubernetes/manifests/onprem-lb-balancer.yaml"]["state"] == "absent"


def test_a_program_of_several_lines_is_readable():
    text = found()["members"]["master-0"][-2]["content"]
    assert "        - |\n          fifo=$1" in text and "\\n" not in text


def test_the_files_can_be_put_below_a_folder():
    assert _filter.pods_below([{"path": "/etc/a", "mode": "0600"}], "/out") == [{"path": "/out/etc/a", "mode": "0600"}]
