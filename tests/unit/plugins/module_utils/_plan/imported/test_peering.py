# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Peers that are no more than the services' own become variables; others stay as they stand, with their tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.imported import haproxy

PEERS = (Path(__file__).parent / "configurations" / "peers-of-tables.cfg").read_text()
MATES = "    peer lb1 192.0.2.11:10001\n    peer lb2 192.0.2.12:10001\n"


def test_the_peers_of_the_services_tables_are_variables_and_the_section_is_named():
    found = haproxy.convert(PEERS)
    members = [{"name": "lb1", "address": "192.0.2.11"}, {"name": "lb2", "address": "192.0.2.12"}]
    assert (found.variables["haproxy_peers"], found.variables["haproxy_peers_port"]) == (members, 10001)
    assert [each["name"] for each in found.services if {"sticky", "rate_limit"} & {*each}] == [
        "guarded_servers",
        "shop_servers",
    ]
    assert [line.split(" is left")[0] for line in found.lost] == ["peers mates, line 3,", "line 2 (localpeer)"]
    assert found.raw == [] and not any(note.startswith("A run refuses this") for note in found.notes)


@pytest.mark.parametrize(
    "old, new",
    [
        (MATES, MATES.replace("10001", "10002", 1)),
        (MATES, MATES.replace("192.0.2.12", "lb2.example.com")),
        (MATES, MATES.replace("peer lb2", "server lb2 ssl verify none\n    peer lb2")),
        (MATES, f"{MATES}    table shared type ip size 1m\n"),
        (MATES, ""),
        (MATES, f"{MATES}peers others\n    peer lb1 192.0.2.11:10003\n"),
        (" store http_req_rate(10s)", " store http_req_rate(10s),conn_cur"),
        (
            "    default_backend shop_servers",
            "    stick-table type ip size 1 peers mates\n    default_backend shop_servers",
        ),
    ],
)
def test_other_peers_stay_raw_lines_with_the_tables_that_name_them(old, new):
    assert old in PEERS
    found = haproxy.convert(PEERS.replace(old, new))
    assert "haproxy_peers" not in found.variables
    assert "peers mates" in found.variables["haproxy_extra_lines"]
    assert "localpeer lb1" in found.variables["haproxy_global_lines"]
