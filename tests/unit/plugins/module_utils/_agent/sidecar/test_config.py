# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How the sidecar's configuration is read."""

from __future__ import annotations

import json

from ansible_collections.onprem.lb.plugins.module_utils._agent.sidecar import config

WHOLE = {
    "first": [["nft", "--file", "/etc/guard.nft"]],
    "balancer": {
        "fifo": "/run/balancer",
        "ready_port": 9444,
        "ready_path": "/ready",
        "down_file": "/run/down",
        "start_commands": [["nft", "--file", "/etc/redirect.nft"]],
        "stop_commands": [["nft", "delete"]],
    },
    "router": {"fifo": "/run/router", "keepalived": "/etc/keepalived.conf", "notify_fifo": "/run/changes"},
}


def test_everything_is_read():
    settings, faults = config.parse(json.dumps(WHOLE))
    assert faults == []
    assert settings.first == (("nft", "--file", "/etc/guard.nft"),)
    assert settings.balancer == config.Balancer(
        "/run/balancer",
        9444,
        "/ready",
        "/run/down",
        (("nft", "--file", "/etc/redirect.nft"),),
        (("nft", "delete"),),
    )
    assert settings.router == config.Router("/run/router", "/etc/keepalived.conf", notify_fifo="/run/changes")


def test_a_node_without_a_balancer_has_none():
    settings, _faults = config.parse(json.dumps({"router": {"fifo": "/run/router"}}))
    assert settings.balancer is None and settings.router == config.Router("/run/router")


def test_each_fault_is_a_sentence():
    wrong = {"balancer": {"fifo": "run", "ready_port": 0}, "router": {}, "another": 1}
    settings, faults = config.parse(json.dumps(wrong))
    assert settings is None
    text = " ".join(faults)
    for part in ("balancer.fifo", "balancer.ready_port", "lacks 'ready_path'", "router lacks 'fifo'", "'another'"):
        assert part in text
