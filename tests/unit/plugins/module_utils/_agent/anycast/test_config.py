# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration of the health gate: all of it, or none and every fault."""

from __future__ import annotations

import copy
import json
from types import SimpleNamespace

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.anycast import config, settings
from ansible_collections.onprem.lb.plugins.module_utils._agent.config import file
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import config as vrrp
from support.anycast.configs import GOOD

ADDRESS = "a VIP is required without a prefix length: one IPv4 or IPv6 address that a router has a route to."


def parsed(**changes):
    return config.parse(json.dumps({**GOOD, **changes}))


def with_vip(**changes):
    vips = copy.deepcopy(GOOD["vips"])
    vips[0].update(changes)
    return parsed(vips=vips)


def test_a_good_one_is_read_with_its_defaults():
    found, faults = parsed()
    assert faults == []
    assert found.vips == (
        settings.Vip("front", "192.0.2.10/32", ("haproxy_down", "answers")),
        settings.Vip("six", "2001:db8::10/128", ("haproxy_down",)),
    )
    assert [(check.name, check.interval, check.fall) for check in found.checks] == [
        ("haproxy_down", 2_000_000, 1),
        ("answers", 500_000, 3),
    ]
    assert found._replace(vips=(), checks=()) == settings.Settings(())


def test_its_checks_are_those_of_a_vrrp_router():
    router, faults = vrrp.parse(json.dumps({"instances": [], "checks": GOOD["checks"]}))
    assert faults == [] and parsed()[0].checks == router.checks


@pytest.mark.parametrize(
    "address", ["", "lo", "192.0.2.10/32", "192.0.2.0/24", "127.0.0.1", "::1", "224.0.0.1", "0.0.0.0", "fe80::1", 7]
)
def test_what_is_no_vip_is_refused(address):
    found, (fault,) = with_vip(address=address)
    assert found is None and fault == f"vips[0] (front).address is {address!r}: {ADDRESS}"


@pytest.mark.parametrize("given", ["fe80::1%eth0", "192.0.2.10%lo"])
def test_an_interface_is_no_part_of_a_vip(given):
    assert with_vip(address=given)[1]


@pytest.mark.parametrize(
    "changes, fault",
    [
        ({"track": []}, "vips[0] (front).track is []: a list of 1 or more is required."),
        ({"track": None}, "vips[0] (front) lacks 'track': add it."),
        (
            {"track": ["nobody"]},
            "vips[0] (front).track names 'nobody', which is not defined: known are haproxy_down, answers.",
        ),
        ({"name": "six"}, "vips has the name 'six' twice: give each its own."),
        ({"address": "2001:db8::0:10"}, "vips has the address 2001:db8::10 twice: leave one out."),
        ({"weight": 2}, "vips[0] (front) has the unknown key 'weight': known are name, address, track."),
    ],
)
def test_a_vip_that_would_stay_for_ever_or_twice_is_refused(changes, fault):
    assert with_vip(**changes) == (None, [fault])


@pytest.mark.parametrize(
    "changes, fault",
    [
        ({"vips": []}, "configuration.vips is []: a list of 1 or more is required."),
        ({"vips": {}}, "configuration.vips is a mapping: a list is required."),
        (
            {"interface": "lo/0"},
            "configuration.interface is 'lo/0': a name of letters, digits and . : _ - is required.",
        ),
        ({"held_back": ["here"]}, "configuration.held_back is ['here']: in it 'here' is wrong: an absolute path is "),
        ({"checks": [{"name": "x", "type": "ping"}]}, "checks[0] (x).type is 'ping': one of process, tcp, "),
    ],
)
def test_each_other_fault_is_a_sentence(changes, fault):
    found, faults = parsed(**changes)
    assert found is None and any(each.startswith(fault) for each in faults), faults


def test_programs_are_looked_for_on_the_host():
    asked = []
    host = SimpleNamespace(
        program=lambda path, user: asked.append((path, user)) or "it is gone.", configuration=lambda path: None
    )
    script = {"name": "s", "type": "script", "command": "/bin/no --secret"}
    text = json.dumps({**GOOD, "checks": [*GOOD["checks"], script], "script_user": "checker"})
    assert config.parse(text, "x.json", host)[1] == ["checks[2] (s).command is '/bin/no': it is gone."]
    assert asked == [("/bin/no", "checker")]


@pytest.mark.parametrize("keys", [[], ["checks"], ["interface", "script_user", "held_back"]])
def test_it_is_known_by_its_vips(keys):
    whole = {"vips": [], **dict.fromkeys(keys, [])}
    assert file.kind(whole, "x") == ("anycast", [])
    assert "several" in file.kind({**whole, "instances": []}, "x")[1][0]
    assert "several" in file.kind({**whole, "nft": ""}, "x")[1][0]
