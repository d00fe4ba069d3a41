# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of follow as text and as metrics."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._agent.follow import show
from support.follow.reports import REPORT


def test_the_table_has_all_that_an_operator_asks():
    assert show.table(REPORT, 1100.0).splitlines() == [
        "onprem.lb 1.0.0, process 7, up 1m 40s, /etc/follow.json",
        "",
        "3 nodes with master=, last change 10s ago; https://127.0.0.1:6443, heard 5s ago",
        "",
        "Nodes without an address of their own that can be a server's are not servers: c.",
        "",
        "SERVER  ADDRESS",
        "a       10.0.0.1",
        "b       fd00::2",
        "",
        "OUTPUT   STATE",
        "haproxy  follows",
        "proxy    it is away.",
    ]


def test_what_is_wrong_stands_in_the_table():
    api = {"server": None, "heard": None, "fault": "https://x: connection refused.", "errors": 1}
    kept = [{"name": "a", "address": "10.0.0.1", "why": "it is so"}]
    report = {**REPORT, "api": api, "problem": "No list.", "config_fault": "Bad.", "kept": kept}
    lines = show.table(report, 1100.0).splitlines()
    assert "a stays a server at 10.0.0.1: it is so." in lines
    assert "onprem_lb_follow_servers_kept 1" in show.prometheus(report).splitlines()
    assert "3 nodes with master=, last change 10s ago; no API server answers" in lines
    assert "The last change of the configuration was refused: Bad." in lines
    assert "No list." in lines and "https://x: connection refused." in lines


def test_the_metrics_have_the_same():
    lines = show.prometheus(REPORT).splitlines()
    assert [line for line in lines if line[0] != "#"] == [
        'onprem_lb_follow_agent_info{version="1.0.0"} 1',
        "onprem_lb_follow_start_time_seconds 1000",
        "onprem_lb_follow_config_refused 0",
        "onprem_lb_follow_limits 0",
        "onprem_lb_follow_nodes 3",
        "onprem_lb_follow_servers 2",
        "onprem_lb_follow_list_kept 0",
        "onprem_lb_follow_servers_kept 0",
        "onprem_lb_follow_nodes_left_out 1",
        "onprem_lb_follow_api_answers 1",
        "onprem_lb_follow_heard_seconds 1095",
        "onprem_lb_follow_changed_seconds 1090",
        "onprem_lb_follow_api_errors_total 2",
        "onprem_lb_follow_changes_total 4",
        'onprem_lb_follow_balancer_behind{balancer="haproxy"} 0',
        'onprem_lb_follow_balancer_behind{balancer="proxy"} 1',
    ]


def test_nothing_heard_yet_is_0():
    api = {"server": None, "heard": None, "fault": None, "errors": 0}
    lines = show.prometheus({**REPORT, "api": api, "last_change": None}).splitlines()
    assert {"onprem_lb_follow_heard_seconds 0", "onprem_lb_follow_changed_seconds 0"} <= set(lines)


def test_the_report_of_an_earlier_version_is_shown():
    old = {key: value for key, value in REPORT.items() if key != "kept"}
    assert show.table(old, 1100.0) == show.table(REPORT, 1100.0)
    assert show.prometheus(old) == show.prometheus(REPORT)
