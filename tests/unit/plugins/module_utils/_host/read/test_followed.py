# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The servers that `follow` has written, which a run keeps: those of its file, once there was a good list."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import followed
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader

READER = Reader(None, None)
NODES = [{"name": "node1", "address": "192.0.2.21"}, {"name": "node2", "address": "192.0.2.22"}]
HAPROXY = """
backend masters
    default-server check inter 1000ms
    server m1 192.0.2.21:6443 weight 1
    server node2 192.0.2.22:6443 weight 1

backend others
    server app 192.0.2.31:80
"""
FOLLOWED = {"masters": [{"name": "m1", "address": "192.0.2.21"}, NODES[1]]}
PROXY = {"services": [{"name": "masters", "servers": [{"name": "m1", "address": "192.0.2.21", "port": 1}, NODES[1]]}]}


class Host:
    """The files of a host that follows."""

    def __init__(self, folder, engine):
        self.config, self.state = folder / "follow.json", folder / "servers.json"
        self.balancer = folder / "balancer"
        target = {"haproxy": {"backends": [{"name": "masters"}]}, "proxy": {"services": [{"name": "masters"}]}}
        whole = {
            "api": {"servers": ["https://192.0.2.10:6443"]},
            engine: {**target[engine], "config": str(self.balancer)},
            "state_file": str(self.state),
        }
        self.config.write_text(json.dumps(whole))
        self.balancer.write_text(HAPROXY if engine == "haproxy" else json.dumps(PROXY))
        self.remember()

    def remember(self, **changes):
        known = {"label": "node-role.kubernetes.io/control-plane", "servers": NODES, "unready": [], **changes}
        self.state.write_text(json.dumps(known))

    def read(self):
        return followed.read(READER, str(self.config))


@pytest.fixture(params=["haproxy", "proxy"])
def host(tmp_path, request):
    return Host(tmp_path, request.param)


def test_the_servers_of_the_followed_service_are_those_of_the_file_with_their_names(host):
    assert host.read() == FOLLOWED


def test_before_an_api_server_has_answered_the_inventorys_servers_count(host):
    host.state.unlink()
    assert host.read() == {}
    host.remember(servers=[])
    assert host.read() == {}


def test_the_list_of_another_label_counts_until_there_is_one_of_this(host):
    host.remember(label="other")
    assert host.read() != {}


@pytest.mark.parametrize("file", ["config", "balancer"])
@pytest.mark.parametrize("text", ["", "{", "backend other\n", '{"services": 3}'])
def test_a_file_that_somebody_has_broken_stops_no_run(host, file, text):
    getattr(host, file).write_text(text)
    assert host.read() == {}


def test_the_servers_of_a_static_pod_are_those_of_its_file_on_the_host(host, monkeypatch):
    """The paths in its configuration are those of its container."""
    here = {"follow": str(host.config), "haproxy": str(host.balancer), "proxy": str(host.balancer)}
    host.config.write_text(host.config.read_text().replace(str(host.balancer), "/of/the/container"))
    assert host.read() == {}
    monkeypatch.setattr(followed, "config_of", here.__getitem__)
    assert followed.read(READER, "/of/no/unit") == FOLLOWED


def test_a_host_that_never_followed_says_nothing(tmp_path):
    assert followed.read(READER, str(tmp_path / "none")) == {}


def test_a_service_of_another_label_counts_once_there_was_a_list_for_that(tmp_path):
    host = Host(tmp_path, "haproxy")
    whole = json.loads(host.config.read_text())
    whole["haproxy"]["backends"].append({"name": "others", "label": "role=router"})
    host.config.write_text(json.dumps(whole))
    assert host.read() == FOLLOWED
    host.remember(others=[{"label": "role=router", "servers": NODES}])
    assert host.read() == {**FOLLOWED, "others": [{"name": "app", "address": "192.0.2.31"}]}
