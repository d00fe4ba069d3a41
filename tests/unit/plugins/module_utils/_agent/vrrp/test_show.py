# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report, as people and as Prometheus read it."""

from __future__ import annotations

import re

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import show
from support.vrrp.reports import FRONT, NEW, NOW, QUIET, REPORT

TABLE = """\
onprem.lb 1.0.0, process 4711, up 3d 4h, /etc/onprem-lb-agent/vrrp.json

The last change of the configuration was refused: instances[0] (front).vrid is 300: a VRID from 1 to 255 is required.

Not available: real-time scheduling: Operation not permitted (it needs CAP_SYS_NICE).

INSTANCE  STATE       SINCE   PRIORITY    INTERFACE  VRID   ADDRESSES                              WHY
front     Active      3d 4h   244 of 254  eth0       51 v2  192.0.2.10/32 192.0.2.11/32 (missing)  no Advertisement was heard; load -10; 192.0.2.3 is Active as well, priority 50; another host has 192.0.2.10 as well (02:00:00:00:00:09)
six       Fault       1m 10s  254         eth0       51 v3  2001:db8::10/128 (left over)           haproxy failed; haproxy FAULT
new       Initialize  0s      100         eth0       51 v3  2001:db8::10/128                       waits for api, haproxy

SYNC GROUP  STATE  INSTANCES
both        Fault  six new

CHECK    TYPE     RESULT         SINCE   DETAIL
haproxy  process  down           1m 10s  no process
load     file     up             5s
api      https    not known yet  -
"""  # noqa: E501


def test_a_person_sees_all_that_matters():
    assert show.table(REPORT, NOW) == TABLE


@pytest.mark.parametrize("state, own", [("Active", "192.0.2.10/32 (missing)"), ("Backup", "192.0.2.10/32")])
def test_an_address_with_another_prefix_length_is_one_that_was_left(state, own):
    front = {**FRONT, "state": state, "addresses": ["192.0.2.10/32"], "held": ["192.0.2.10/24"]}
    assert f"  {own} 192.0.2.10/24 (left over)  " in show.table({**QUIET, "instances": [front]}, NOW)


def test_what_is_not_there_takes_no_place():
    assert show.table(QUIET, NOW).split("\n\n")[1:] == [
        "INSTANCE  STATE  SINCE  PRIORITY  INTERFACE  VRID  ADDRESSES  WHY\n"
    ]


@pytest.mark.parametrize(
    "seconds, text", [(0.9, "0s"), (59, "59s"), (60, "1m 0s"), (3661, "1h 1m"), (90000, "1d 1h"), (-5, "0s")]
)
def test_times_are_shown_in_their_largest_units(seconds, text):
    quiet = {**QUIET, "instances": [{**NEW, "since": NOW - seconds}]}
    assert f"  {text}  " in show.table(quiet, NOW)


def lines(report=None):
    return show.prometheus(report or REPORT).splitlines()


@pytest.mark.parametrize(
    "line",
    [
        'onprem_lb_vrrp_agent_info{version="1.0.0"} 1',
        "onprem_lb_vrrp_config_refused 1",
        "onprem_lb_vrrp_limits 1",
        'onprem_lb_vrrp_state{instance_name="front",interface="eth0",vrid="51",state="Active"} 1',
        'onprem_lb_vrrp_state{instance_name="front",interface="eth0",vrid="51",state="Backup"} 0',
        'onprem_lb_vrrp_priority{instance_name="front",interface="eth0",vrid="51"} 244',
        'onprem_lb_vrrp_priority_configured{instance_name="front",interface="eth0",vrid="51"} 254',
        'onprem_lb_vrrp_addresses{instance_name="front",interface="eth0",vrid="51"} 2',
        'onprem_lb_vrrp_addresses_held{instance_name="front",interface="eth0",vrid="51"} 1',
        'onprem_lb_vrrp_transitions_total{instance_name="front",interface="eth0",vrid="51"} 2',
        'onprem_lb_vrrp_takeovers_total{instance_name="front",interface="eth0",vrid="51"} 1',
        'onprem_lb_vrrp_advertisements_sent_total{instance_name="front",interface="eth0",vrid="51"} 12',
        'onprem_lb_vrrp_advertisements_received_total{instance_name="front",interface="eth0",vrid="51"} 3',
        'onprem_lb_vrrp_advertisements_lower_total{instance_name="front",interface="eth0",vrid="51"} 4',
        'onprem_lb_vrrp_rivals{instance_name="front",interface="eth0",vrid="51"} 1',
        'onprem_lb_vrrp_other_holders{instance_name="front",interface="eth0",vrid="51"} 1',
        'onprem_lb_vrrp_last_advertisement_seconds{instance_name="front",interface="eth0",vrid="51"} 1799999999.5',
        'onprem_lb_vrrp_discarded_total{instance_name="front",interface="eth0",vrid="51",reason="checksum"} 1',
        'onprem_lb_vrrp_check_up{check="haproxy",type="process"} 0',
        'onprem_lb_vrrp_check_up{check="load",type="file"} 1',
    ],
)
def test_prometheus_sees_every_figure(line):
    assert line in lines()


def test_what_is_not_known_is_absent_rather_than_wrong():
    text = show.prometheus(REPORT)
    assert 'check="api"' not in text
    assert text.count("last_advertisement_seconds{") == 1


def test_labels_are_escaped():
    strange = {**FRONT, "name": 'a"b\\c\nd'}
    wanted = 'onprem_lb_vrrp_transitions_total{instance_name="a\\"b\\\\c\\nd",interface="eth0",vrid="51"} 2'
    assert wanted in lines({**QUIET, "instances": [strange]})


def test_the_text_has_prometheuss_grammar():
    """Each name has one HELP, one TYPE and then its samples, of which no two are the same."""
    name = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
    label = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
    sample = re.compile(rf"({name})(\{{{label}(?:,{label})*\}})? (-?[0-9.]+(?:e[+-][0-9]+)?)$")
    text = show.prometheus(REPORT)
    assert text.endswith("\n") and "\n\n" not in text
    current, names, samples = "", [], []
    for line in text.splitlines():
        if line.startswith("# HELP "):
            current = line.split()[2]
            names.append(current)
        elif line.startswith("# TYPE "):
            assert line == f"# TYPE {current} {'counter' if current.endswith('_total') else 'gauge'}"
        else:
            found = sample.match(line)
            assert found and found.group(1) == current, line
            samples.append((found.group(1), found.group(2)))
    assert len(names) == len(set(names)) == len(show.METRICS) and len(samples) == len(set(samples))


def test_an_instance_is_in_exactly_one_state():
    for instance in ("front", "six", "new"):
        values = [line[-1] for line in lines() if line.startswith(f'onprem_lb_vrrp_state{{instance_name="{instance}"')]
        assert sorted(values) == ["0", "0", "0", "0", "1"]
