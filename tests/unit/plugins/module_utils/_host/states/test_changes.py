# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which files change on the way back to a state, and which commands follow."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.states import changes
from ansible_collections.onprem.lb.plugins.module_utils._shared import resolver_records
from support.states import (
    CONFIGS,
    FRR_CONF,
    GATE_UNIT,
    KEEPALIVED_UNIT,
    MARK,
    RUNS,
    STOPPED,
    VIP,
    VIP6,
    announcing,
    file,
    frr,
    gate,
    native,
)

AGENT = {"onprem-lb-vrrp.service": RUNS, "onprem-lb-proxy.service": RUNS}


def way(now, then):
    """The commands on the way from one to the other, first those of the units, then those of the routers."""
    paths = changes.of_files(now, then).paths
    both = changes.of_units(now, then, paths), changes.of_routers(now, then, paths)
    return [[" ".join(command) for command in commands] for commands in both]


def test_a_member_that_is_as_it_was_is_left_alone():
    assert changes.of_files(native(), native()).paths == []
    assert way(native(), native()) == [[], []]


@pytest.mark.parametrize(
    "now, commands",
    [
        (native(served="two"), [["systemctl reload haproxy.service"], []]),
        (native(routed="two"), [[], ["systemctl reload keepalived.service"]]),
        (native(keepalived=STOPPED), [["systemctl enable keepalived.service"], ["systemctl start keepalived.service"]]),
        (
            native(haproxy=STOPPED),
            [["systemctl enable haproxy.service", "systemctl start haproxy.service"], []],
        ),
    ],
)
def test_what_has_changed_is_loaded_again_and_what_has_stopped_starts(now, commands):
    assert way(now, native()) == commands


def test_what_did_not_run_stops_the_router_last_of_all_commands():
    then = native(keepalived=STOPPED, haproxy=STOPPED)
    assert way(native(), then) == [
        ["systemctl disable haproxy.service", "systemctl disable keepalived.service", "systemctl stop haproxy.service"],
        ["systemctl stop keepalived.service"],
    ]


def test_a_changed_drop_in_is_read_before_its_program_loads_it():
    now = native()
    now = now._replace(files=[*now.files[:-1], file(KEEPALIVED_UNIT, f"{MARK}[Service]\n")])
    assert way(now, native()) == [["systemctl daemon-reload"], ["systemctl reload keepalived.service"]]


def test_a_file_that_was_not_there_goes_unless_another_hand_has_written_it():
    then = native()._replace(files=[])
    others = native()._replace(files=[file(CONFIGS["haproxy"], "global\n"), file(KEEPALIVED_UNIT)])
    assert changes.of_files(others, then).delete == [KEEPALIVED_UNIT]


def test_a_plane_stops_while_its_unit_says_how_and_before_the_server_beside_it():
    """Without KillMode=mixed systemd ends the transaction that removes the table."""
    plane, server, then = "onprem-lb-direct.service", "onprem-lb-direct-server.service", native()
    now = then._replace(units={**then.units, server: RUNS, plane: RUNS})
    assert changes.before_files(now, then) == [["systemctl", "stop", plane], ["systemctl", "stop", server]]
    assert way(now, then) == [[], []]


def test_a_server_of_direct_return_stops_while_its_program_is_there_and_only_reloads_otherwise():
    """Its stop is what takes the VIPs from the loopback interface."""
    name, path = "onprem-lb-direct-server.service", "/etc/onprem-lb-direct-server/direct.json"
    then = native()
    now = then._replace(files=[*then.files, file(path)], units={**then.units, name: RUNS})
    assert changes.before_files(now, then) == [["systemctl", "stop", name]]
    assert way(now, then) == [[], []]
    other = now._replace(files=[*then.files, file(path, f"{MARK}{{}}\n")])
    assert changes.before_files(other, now) == []
    assert way(other, now) == [[f"systemctl reload {name}"], []]


def named(address, apps="192.0.2.20", **routers):
    """A member whose resolver leads to an address; '' without one."""
    here = native(**routers)
    texts = {resolver_records.NAMES: f"{address} api-int", resolver_records.CONFIG: f"address=/apps/{apps}"}
    return here._replace(files=[*here.files, *(file(path, text) for path, text in texts.items() if address)])


RESOLVER = "systemctl --no-block {} onprem-lb-resolver.service"


@pytest.mark.parametrize("apps, verb", [("192.0.2.20", "try-reload-or-restart"), ("192.0.2.21", "try-restart")])
def test_the_names_lead_to_the_vips_of_the_state_again(apps, verb):
    """Names are read again; a wildcard is configuration, which is read at a start."""
    now, then = named("192.0.2.110", apps=apps), named("192.0.2.100")
    assert {*changes.of_files(now, then).write} == {*then.files} - {*now.files}
    assert way(now, then) == [[], [RESOLVER.format(verb)]]


def test_the_names_change_after_the_router_that_takes_the_vips_back():
    assert way(named("192.0.2.110", routed="two"), named("192.0.2.100")) == [
        [],
        ["systemctl reload keepalived.service", RESOLVER.format("try-reload-or-restart")],
    ]


@pytest.mark.parametrize("now, then", [("", "192.0.2.100"), ("192.0.2.110", "")])
def test_a_resolver_that_has_come_or_gone_since_stays_so(now, then):
    """A host is left with names of its own, and does not ask a resolver that is not there."""
    assert changes.of_files(named(now), named(then)).paths == [] and changes.keeps_names(named(now), named(then))
    assert way(named(now), named(then)) == [[], []]


LIBRARY = "/usr/local/lib/onprem-lb-agent/agent.pyz"
LEAVES = "systemctl kill --kill-who=main --signal=USR1 onprem-lb-vrrp.service"
HANDS_OVER = "systemctl kill --kill-who=main --signal=USR2 onprem-lb-proxy.service"


@pytest.mark.parametrize(
    "path, name, commands",
    [
        ("/etc/onprem-lb-agent/vrrp.json", "onprem-lb-vrrp.service", ["systemctl reload onprem-lb-vrrp.service"]),
        (LIBRARY, "onprem-lb-vrrp.service", [LEAVES, "systemctl restart onprem-lb-vrrp.service"]),
        (LIBRARY, "onprem-lb-proxy.service", [HANDS_OVER]),
    ],
)
def test_the_agent_loads_its_file_or_goes_over_to_its_other_version(path, name, commands):
    held = file("/etc/onprem-lb-agent/vrrp.json", holding("192.0.2.100"))
    others = [] if path.endswith("vrrp.json") else [held]
    now = native()._replace(files=[*others, file(path, "new")], units={name: RUNS})
    assert sum(way(now, now._replace(files=[*others, file(path, "old")])), []) == commands


def routed(text, unit):
    """A member whose agent has this configuration, and a unit."""
    files = [file("/etc/onprem-lb-agent/vrrp.json", text), file("/etc/systemd/system/onprem-lb-vrrp.service", unit)]
    return native()._replace(files=files, units=AGENT)


def holding(*addresses, **more):
    return json.dumps({"instances": [{"interface": "eth0", "addresses": [*addresses], **more}]})


@pytest.mark.parametrize(
    "now, then, keeps",
    [
        (holding("192.0.2.100"), holding("192.0.2.100", version=3), True),
        (holding("192.0.2.100"), holding("192.0.2.101", "192.0.2.100/24"), True),
        (holding("192.0.2.100", "192.0.2.101"), holding("192.0.2.100"), False),
        (holding("192.0.2.100", excluded_addresses=["192.0.2.101"]), holding("192.0.2.100"), False),
        (holding("192.0.2.100"), holding("192.0.2.100", interface="eth1"), False),
        (holding("192.0.2.100", virtual_routes=["default via 192.0.2.1"]), holding("192.0.2.100"), False),
        ("{", holding("192.0.2.100"), False),
        (holding("192.0.2.100"), "{", False),
    ],
    ids=["version", "one more", "one less", "excluded", "interface", "route", "damaged now", "damaged then"],
)
def test_a_router_whose_unit_changes_keeps_its_addresses_on_the_way_back_unless_it_could_leave_one_behind(
    now, then, keeps
):
    _units, commands = way(routed(now, "new"), routed(then, "old"))
    assert commands == [*[LEAVES] * keeps, "systemctl restart onprem-lb-vrrp.service"]


@pytest.mark.parametrize(
    "path, command",
    [
        ("/etc/onprem-lb-follow/follow.json", "systemctl restart --no-block onprem-lb-follow.service"),
        ("/usr/local/lib/onprem-lb-follow/agent.pyz", "systemctl restart --no-block onprem-lb-follow.service"),
        ("/usr/local/lib/onprem-lb-metrics/agent.pyz", "systemctl restart onprem-lb-metrics.service"),
        ("/usr/local/lib/onprem-lb-certificates/agent.pyz", "systemctl restart onprem-lb-certificates.service"),
        ("/usr/local/lib/onprem-lb-keepalived/hook", "systemctl restart onprem-lb-answers.service"),
    ],
)
def test_what_has_a_program_of_its_own_starts_anew_and_no_router_waits_for_what_follows_a_cluster(path, command):
    units = {**native().units, command.split()[-1]: RUNS}
    now, then = (native()._replace(files=[file(path, text)], units=units) for text in ("one", "two"))
    assert way(now, then) == [[command], []]
    stopped = now._replace(units={**units, command.split()[-1]: STOPPED})
    assert way(stopped, then)[0][-1] == command.replace("restart", "start")


@pytest.mark.parametrize(
    "before, after, command",
    [
        (["old"], ["new"], "nft --file /etc/onprem-lb/api-redirect.nft"),
        ([], ["new"], "nft add table inet onprem_lb_api; delete table inet onprem_lb_api"),
    ],
)
def test_the_redirect_is_in_force_as_it_was(before, after, command):
    path = "/etc/onprem-lb/api-redirect.nft"
    then, now = (native()._replace(files=[file(path, text) for text in texts]) for texts in (before, after))
    assert way(now, then)[0] == [command]


def test_the_kernel_gets_its_settings_before_haproxy_loads_its_file():
    path = "/etc/sysctl.d/90-onprem-lb.conf"
    then = native()
    then = then._replace(files=[*then.files, file(path)])
    assert way(native(served="two"), then)[0] == [
        f"sysctl --ignore --load {path}",
        "systemctl reload haproxy.service",
    ]


# -- members that announce their VIPs by BGP

FRR_LOADED = "frr-reload.py --reload /etc/frr/frr.conf"


@pytest.mark.parametrize(
    "now, commands",
    [
        (announcing(), []),
        (announcing(conf=frr(password="two")), [FRR_LOADED]),
        (announcing(config=gate([VIP, VIP6])), ["systemctl reload onprem-lb-anycast.service"]),
        (
            announcing(conf=frr(vips=[VIP6]), config=gate([VIP6])),
            [FRR_LOADED, "systemctl reload onprem-lb-anycast.service"],
        ),
        (announcing(gate=STOPPED), ["systemctl start onprem-lb-anycast.service"]),
        (
            announcing(frr=STOPPED, gate=STOPPED),
            ["systemctl start frr.service", "systemctl start onprem-lb-anycast.service"],
        ),
    ],
)
def test_frr_and_the_health_gate_run_their_files_of_before_and_frr_never_starts_anew_for_that(now, commands):
    assert [command for command in way(now, announcing())[1] if "able" not in command] == commands


def test_the_balancer_returns_before_what_leads_clients_to_it():
    now = announcing(served="two", conf=frr(password="two"), config=gate([VIP6]))
    first, last = way(now, announcing())
    assert first == ["systemctl reload haproxy.service"]
    assert last == [FRR_LOADED, "systemctl reload onprem-lb-anycast.service"]


@pytest.mark.parametrize("path", [GATE_UNIT, "/usr/local/lib/onprem-lb-anycast/agent.pyz"])
def test_a_gate_of_before_starts_anew_which_leaves_its_vips(path):
    now = announcing()
    now = now._replace(files=[each if each.path != path else file(path, "other") for each in now.files])
    assert way(now, announcing())[1] == ["systemctl restart onprem-lb-anycast.service"]


def test_a_member_that_announced_nothing_gives_its_vips_up_before_its_sessions():
    then = announcing()._replace(files=[], units={"haproxy.service": RUNS})
    assert way(announcing(), then)[1] == ["systemctl stop onprem-lb-anycast.service", "systemctl stop frr.service"]
    assert "systemctl disable frr.service" in way(announcing(), then)[0]


def test_an_frr_of_others_is_neither_started_stopped_nor_rewritten():
    """Where the drop-in is not this collection's, neither are the files: `snapshot.take` leaves them out."""
    theirs = native()
    assert way(theirs, theirs) == [[], []] and not any("frr" in path for path in changes.of_files(theirs, theirs).paths)
    changed = announcing()
    changed = changed._replace(
        files=[each._replace(content=b"theirs") if each.path == FRR_CONF else each for each in changed.files]
    )
    assert FRR_CONF not in changes.of_files(changed, native()).paths
