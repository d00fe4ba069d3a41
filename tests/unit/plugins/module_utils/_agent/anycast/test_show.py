# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of the health gate for people and for Prometheus, and what docs/anycast.md says of it."""

from __future__ import annotations

import re

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.anycast import config, settings, show
from support.anycast.configs import NOW, REPORT
from support.anycast.hosts import Host
from support.paths import DOCS

TEXT = (DOCS / "anycast.md").read_text()
TABLE = """\
onprem.lb 1.0.0, process 4711, up 1h 1m, /etc/onprem-lb-agent/anycast.json

VIP    STATE  SINCE  ADDRESS           TRACKS                WHY
front  on lo  1m 0s  192.0.2.10/32     haproxy_down answers  all checks succeed; also on eth0
six    on lo  5s     2001:db8::10/128  haproxy_down          haproxy_down: 1; the kernel refuses it

CHECK         TYPE  RESULT  SINCE  DETAIL
haproxy_down  file  down    5s
"""


def test_the_table_says_what_is_here_and_why():
    assert show.table(REPORT, NOW) == TABLE


def test_an_interface_that_is_down_is_said():
    down = show.table({**REPORT, "interface_up": False}, NOW)
    assert "\n\nInterface lo is down or not there.\n\n" in down


def test_the_metrics_are_of_each_vip():
    lines = show.prometheus(REPORT).splitlines()
    labels = 'vip="front",address="192.0.2.10/32"'
    assert f"onprem_lb_anycast_held{{{labels}}} 1" in lines
    assert f'onprem_lb_anycast_reason{{{labels},reason="serves"}} 1' in lines
    assert f'onprem_lb_anycast_reason{{{labels},reason="failed"}} 0' in lines
    assert f"onprem_lb_anycast_elsewhere{{{labels}}} 1" in lines
    assert "onprem_lb_anycast_restored_total 2" in lines and "onprem_lb_anycast_held_back 0" in lines
    assert 'onprem_lb_anycast_check_up{check="haproxy_down",type="file"} 0' in lines


def test_a_report_has_the_fields_of_the_example(tmp_path):
    host = Host(tmp_path)
    report = host.serving().keeper.report()
    host.keeper.held_back.use(())
    assert {*report} <= {*REPORT} and {*report["vips"][0]} == {*REPORT["vips"][0]}
    assert {*report["checks"][0]} == {*REPORT["checks"][0]}
    assert show.table({**REPORT, **report}, NOW) and show.prometheus({**REPORT, **report})


@pytest.mark.parametrize("key", [*config.CONFIGURATION, *config.VIP, *REPORT["vips"][0], "interface_up", "restored"])
def test_the_page_names_each_key_and_field(key):
    assert f"`{key}`" in TEXT


@pytest.mark.parametrize("metric", [each.name for each in show.METRICS])
def test_the_page_names_each_metric(metric):
    assert f"`{show.PREFIX}_{metric}`" in TEXT or f"`_{metric}`" in TEXT


def test_the_example_of_the_page_is_good():
    (example,) = re.findall(r"```json\n(.+?)```", TEXT, re.DOTALL)
    assert config.parse(example)[1] == []


def test_the_page_says_what_is_so_by_default():
    rows = dict(re.findall(r"^\| `(\w+)` \| (`[^|]+`) \|", TEXT, re.MULTILINE))
    defaults = settings.Settings._field_defaults
    assert rows["interface"] == f"`{defaults['interface']}`" and rows["script_user"] == f"`{defaults['script_user']}`"
    assert rows["held_back"] == ", ".join(f"`{path}`" for path in defaults["held_back"])
    assert rows["status_socket"] == f"`{defaults['status_socket']}`"
