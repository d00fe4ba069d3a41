# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each wrong input gets one sentence, which names what the user wrote: the value, the place and the mend."""

from __future__ import annotations

import pytest
import yaml
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import haproxy, instances
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair
from support.plans import clusters, pairs, refusals

NUMBER = "a number from 0.1 to 3600 seconds is required."
VRID = "a VRID from 1 to 255 is required."

NUMBERS = {
    "pair_vrid: '5_1'": (refusals.of_pair(vrid="5_1"), f"pair_vrid is '5_1': {VRID}"),
    "pair_vrid: Arabic digits": (refusals.of_pair(vrid="٥١"), f"pair_vrid is '٥١': {VRID}"),
    "pair_vrid: a boolean": (refusals.of_pair(vrid=True), f"pair_vrid is true: {VRID}"),
    "pair_vrid: a float": (refusals.of_pair(vrid=51.5), f"pair_vrid is 51.5: {VRID}"),
    "pair_vrid: 1e2": (refusals.of_pair(vrid="1e2"), f"pair_vrid is '1e2': {VRID}"),
    "pair_preempt_delay: 1_0": (
        refusals.of_pair(preempt_delay="1_0"),
        "pair_preempt_delay is '1_0': a number from 0 to 1000 seconds is required.",
    ),
    "pair_preempt_delay: 1e3": (
        refusals.of_pair(preempt_delay="1e3"),
        "pair_preempt_delay is '1e3': a number from 0 to 1000 seconds is required.",
    ),
    "advert_interval 0.015 v3 (no whole centisecond)": (
        refusals.of_pair(vrrp_version=3, advert_interval=0.015),
        "pair_advert_interval is 0.015: VRRP version 3 counts in steps of 0.01 seconds.",
    ),
    "ipi_advert_interval: interval .1 v2": (
        refusals.of_cluster(advert_interval=0.1),
        "ipi_advert_interval is 0.1: VRRP version 2 takes 1 to 255 whole seconds; version 3 takes fractions.",
    ),
    "netmask": (
        refusals.of_cluster(api_vips=["10.0.0.200/255.255.255.0"]),
        "ipi_api_vips[0] is '10.0.0.200/255.255.255.0': write the length of the prefix, as in 10.0.0.200/24.",
    ),
    "ipi_lb_port: lb_port 443 (the router's)": (
        refusals.of_cluster(lb_port=443),
        "ipi_lb_port is 443, which the ingress router has: choose another.",
    ),
    "ipi_lb_port: lb_port = machine config": (
        refusals.of_cluster(lb_port=22623),
        "ipi_lb_port is 22623, which the machine config server has: choose another.",
    ),
    "ipi_api_port: api_port = lb_port default": (
        refusals.of_cluster(api_port=9445),
        "ipi_api_port and ipi_lb_port are both 9445: change one of them.",
    ),
    "ipi_server_check: server_check interval text": (
        refusals.of_cluster(server_check={"interval": "fast"}),
        f"ipi_server_check.interval is 'fast': {NUMBER}",
    ),
    "ipi_server_check: server_check interval list": (
        refusals.of_cluster(server_check={"interval": [1]}),
        f"ipi_server_check.interval is [1]: {NUMBER}",
    ),
    "ipi_server_check: server_check interval -1": (
        refusals.of_cluster(server_check={"interval": -1}),
        f"ipi_server_check.interval is -1: {NUMBER}",
    ),
    "ipi_server_check: server_check typo": (
        refusals.of_cluster(server_check={"intervall": 1}),
        "ipi_server_check has the unknown key 'intervall': did you mean 'interval'?",
    ),
    "ipi_server_check: server_check path newline": (
        refusals.of_cluster(server_check={"path": "/a\nb"}),
        r"ipi_server_check.path is '/a\nb': a URL path is required: it begins with / and has neither spaces nor #.",
    ),
    "ipi_server_check: server_check none": (
        refusals.of_cluster(server_check={"type": "none"}),
        "ipi_server_check.type is 'none': a dead API server would still get requests, use https or tcp.",
    ),
    "ipi_bootstrap: bootstrap a name": (
        refusals.of_cluster(bootstrap="bootstrap.example.com"),
        "ipi_bootstrap is 'bootstrap.example.com': an IPv4 or IPv6 address is required. Or name a host of ipi_masters.",
    ),
}


@pytest.mark.parametrize("faults, sentence", NUMBERS.values(), ids=NUMBERS)
def test_a_number_or_a_time_that_is_none_is_refused(faults, sentence):
    assert faults == [sentence]


@pytest.mark.parametrize(
    "check",
    [{"interval": None}, {"fall": "2"}, {"fast_interval": "1"}, {"interval": "10"}],
    ids=[
        "ipi_server_check: server_check interval null",
        "ipi_server_check: server_check fall '2'",
        "ipi_server_check: server_check fast '1'",
        'INI: ipi_server_check={"interval": "10"}',
    ],
)
def test_what_an_ini_inventory_writes_means_the_number(check):
    assert refusals.of_cluster(server_check=check) == []


STATS = {"enabled": False}
TUNING = {
    "haproxy_timeout_client: time without unit (5 ms)": (
        {"timeout_client": "5"},
        "haproxy_timeout_client is '5': a time without a unit: write 5s, or 5ms.",
    ),
    "haproxy_timeout_client: time as number 300 (ms)": (
        {"timeout_client": 300},
        "haproxy_timeout_client is 300: a time without a unit: write 300s, or 300ms.",
    ),
    "haproxy_timeout_client: time with newline": (
        {"timeout_client": "5s\n"},
        r"haproxy_timeout_client is '5s\n': a time such as 500ms, 30s or 1h is required.",
    ),
    "haproxy_timeout_client: negative time": (
        {"timeout_client": "-5s"},
        "haproxy_timeout_client is '-5s': a time such as 500ms, 30s or 1h is required.",
    ),
    "haproxy_timeout_client: Arabic digits": (
        {"timeout_client": "٥s"},
        "haproxy_timeout_client is '٥s': a time such as 500ms, 30s or 1h is required.",
    ),
    "haproxy_log_targets: bad log facility": (
        {"log_targets": ["/dev/log local9"]},
        "haproxy_log_targets is ['/dev/log local9']: '/dev/log local9' has no facility: "
        "write an address and a facility, such as /dev/log local0.",
    ),
}


@pytest.mark.parametrize("tuning, sentence", TUNING.values(), ids=TUNING)
def test_a_setting_that_haproxy_would_misread_is_refused(tuning, sentence):
    assert haproxy.model({"services": [], "stats": STATS, "tuning": tuning}, [], "lb1")["faults"] == [sentence]


def test_a_time_that_is_null_is_the_usual_one():
    """The row `haproxy_hard_stop_after: hard_stop_after null`; haproxy.cfg has what the model says."""
    found = haproxy.model({"services": [], "stats": STATS, "tuning": {"hard_stop_after": None}}, [], "lb1")
    assert (found["faults"], found["tuning"]["hard_stop_after"]) == ([], "1h")


def of_statistics(**stats):
    return haproxy.model({"services": [], "stats": stats, "tuning": {}}, [], "lb1")["faults"]


MEANING = "pair_auth_pass has what keepalived.conf gives a meaning, also in quotes: use letters and digits."
LINE = "one line of text is required."
SECRET = "is a secret ({}): one line of text is required."
BARE = "is a secret ({}): one line of text is required: put it into quotes."
TEXTS = {
    "pair_auth_pass with an integer": (
        refusals.of_pair(auth_pass=40714071),
        [f"pair_auth_pass {BARE.format('a number')}"],
    ),
    "pair_auth_pass with newline at the end": (
        refusals.of_pair(auth_pass="Zq7\n"),
        [f"pair_auth_pass {SECRET.format('text')}"],
    ),
    "pair_auth_pass with a list": (refusals.of_pair(auth_pass=["Zq7"]), [f"pair_auth_pass {SECRET.format('a list')}"]),
    "ipi_auth_pass: auth_pass number": (
        refusals.of_cluster(auth_pass=40714071),
        [f"ipi_auth_pass {BARE.format('a number')}"],
    ),
    "haproxy_stats_password with newline": (
        of_statistics(user="ops", password="Zq7\nZq8"),
        [f"haproxy_stats_password {SECRET.format('text')}"],
    ),
    "haproxy_stats_user with newline/blank": (
        of_statistics(user="o\np", password="Zq7Zq8") + of_statistics(user="o p", password="Zq7Zq8"),
        [
            r"haproxy_stats_user is 'o\np': one line of text is required.",
            "haproxy_stats_user has a space or a control character: use letters, digits and signs.",
        ],
    ),
    "pair_auth_pass with $_PWD": (refusals.of_pair(auth_pass="$_PWD"), [MEANING]),
    "pair_auth_pass with a NUL": (
        refusals.of_pair(auth_pass="ab\0c"),
        [f"pair_auth_pass is a secret (text): {LINE}"],
    ),
    "pair_auth_pass with umlauts, 8 characters": (
        refusals.of_pair(auth_pass="äöüäöüäö"),
        ["pair_auth_pass has 16 bytes: VRRP compares the first 8 only, shorten it."],
    ),
    "pair_notify: notify relative": (
        refusals.of_pair(notify="notify.sh"),
        ["pair_notify is 'notify.sh': write the program's absolute path, in one line."],
    ),
    "pair_notify with a carriage return": (
        refusals.of_pair(notify="/bin/a\rb"),
        ["pair_notify is '/bin/a ...': write the program's absolute path, in one line."],
    ),
}


@pytest.mark.parametrize("written", ["051", "1:30", "12_34", "2001-01-01"])
def test_what_yaml_makes_of_an_unquoted_password_is_not_printed(written):
    """The rows `YAML: leading-zero vrid 051, sexagesimal` and `YAML: password 1e10, 0o17, 12_34, ~, 2001-01-01`."""
    kind = "a date" if written.count("-") == 2 else "a number"
    assert refusals.of_pair(auth_pass=yaml.safe_load(written)) == [f"pair_auth_pass {BARE.format(kind)}"]


@pytest.mark.parametrize("faults, sentences", TEXTS.values(), ids=TEXTS)
def test_a_text_that_a_file_cannot_have_is_refused(faults, sentences):
    assert faults == sentences


ZONES = ("::1%x]:80\nserver evil", "fe80::1%eth0")


@pytest.mark.parametrize("zone", ZONES, ids=["haproxy_stats_address: zone + newline + directive", "an ordinary zone"])
def test_an_address_of_the_components_has_no_zone(zone):
    found = haproxy.model({"services": [], "stats": {**STATS, "address": zone}, "tuning": {}}, [], "lb1")
    assert found["faults"] == [f"haproxy_stats_address is {zone!r}: leave out the % and what follows."]
    instance = {
        "name": "a",
        "interface": "eth0",
        "vrid": 1,
        "multicast": True,
        "addresses": [f"{zone}/64"],
        "version": 3,
    }
    (fault,) = instances.read_instances([instance], "keepalived_instances")[1]
    assert fault.endswith("an address, with or without a prefix length, is required.")


def of_copied_host():
    """The faults of a cluster in which the second node is the first one under another name."""
    first, second, *others = clusters.cluster()
    copy = {**second["host"], "addresses": first["host"]["addresses"]}
    return ipi.plan([first, {**second, "host": copy}, *others]).faults


NODE = "name a second node, which can take the VIP over."
LABEL = "has to be 1 to 63 letters, digits and inner hyphens; correct it."
NAMES = {
    "ipi_cluster_name 64 letters": (
        refusals.of_cluster(cluster_name="a" * 64),
        [f"ipi_cluster_name is '{'a' * 64}': its part '{'a' * 64}' {LABEL}"],
    ),
    "ipi_cluster_name 300 letters": (
        refusals.of_cluster(cluster_name="a" * 300),
        [f"ipi_cluster_name is '{'a' * 199}...: its part '{'a' * 199}... {LABEL}"],
    ),
    "ipi_cluster_name Jinja": (
        refusals.of_cluster(cluster_name="{{ x }}"),
        [f"ipi_cluster_name is '{{{{ x }}}}': its part '{{{{ x }}}}' {LABEL}"],
    ),
    "two masters with one address": (
        of_copied_host(),
        [
            "master-0 and master-2 both have the address 10.0.0.34: give each a host of its own (ansible_host).",
            "master-0 and master-2 both have the hardware address 02:00:00:00:00:22: give each a host of its own "
            "(ansible_host).",
        ],
    ),
    "pair_vips next to bind VIP of another": (
        refusals.of_service(bind=["192.0.2.99"]),
        [
            "pair_services[0] (web).bind has 192.0.2.99, which is no VIP here and no member's address: name a VIP, or "
            "'*'."
        ],
    ),
    "server fe80::1": (
        refusals.of_service(servers=["fe80::1"]),
        ["pair_services[0] (web).servers[0].address is 'fe80::1': no host can be reached at that address."],
    ),
    "ipi_cluster_name with a newline": (
        refusals.of_cluster(cluster_name="a\nb"),
        [rf"ipi_cluster_name is 'a\nb': its part 'a\nb' {LABEL}"],
    ),
    "ipi_cluster_name umlaut": (
        refusals.of_cluster(cluster_name="ü"),
        [f"ipi_cluster_name is 'ü': its part 'ü' {LABEL}"],
    ),
    "ipi_cluster_name underscore": (
        refusals.of_cluster(cluster_name="lab_1"),
        [f"ipi_cluster_name is 'lab_1': its part 'lab_1' {LABEL}"],
    ),
    "ipi_cluster_name quote": (
        refusals.of_cluster(cluster_name="l'b"),
        [f"""ipi_cluster_name is "l'b": its part "l'b" {LABEL}"""],
    ),
    "ipi_ingress_members: ingress_members twice": (
        refusals.of_cluster(ingress_members=["worker-0", "master-0", "worker-0"]),
        ["ipi_ingress_members names worker-0 twice: name each node once."],
    ),
    "ipi_ingress_members: ingress_members only one": (
        refusals.of_cluster(ingress_members=["worker-0"]),
        [f"ipi_ingress_members has worker-0 alone: {NODE}"],
    ),
    "ipi_ingress_vips: shard with one member": (
        refusals.of_cluster(
            ingress_vips=["10.0.0.201", {"address": "10.0.0.202", "name": "s", "members": ["worker-0"]}]
        ),
        [f"ipi_ingress_vips[1].members has worker-0 alone: {NODE}"],
    ),
    "ipi_ingress_vips: 50 ingress VIPs": (
        refusals.of_cluster(ingress_vips=[f"10.0.0.{101 + at}" for at in range(50)]),
        ["All 30 VRIDs of the pool are taken, and the pair 10.0.0.132 needs one: give it a VRID."],
    ),
    "ipi_machine_networks: machine_networks 0/0": (
        refusals.of_cluster(machine_networks=["0.0.0.0/0"]),
        ["ipi_machine_networks[0] is 0.0.0.0/0, which is everybody: name the networks of the machines."],
    ),
    "ipi_machine_networks: machine_networks without the machines' own": (
        refusals.of_cluster(machine_networks=["198.51.100.0/24"]),
        [
            "ipi_machine_networks does not have 10.0.0.34 of master-0, so that no machine there could join: "
            "add its network."
        ],
    ),
    "pair_masters: one string": (
        refusals.of_pair(masters="192.0.2.21"),
        ['pair_masters is \'192.0.2.21\': a list is required, such as ["a", "b"].'],
    ),
    "pair_masters with a duplicate": (
        refusals.of_pair(masters=["192.0.2.21", "192.0.2.21"]),
        ["pair_masters has '192.0.2.21' twice: name each server once."],
    ),
    "server twice": (
        refusals.of_service(servers=["192.0.2.21", "192.0.2.21"]),
        ["pair_services[0] (web).servers has '192.0.2.21' twice: name each server once."],
    ),
    "pair_vips: [null]": (refusals.of_pair(vips=[None]), ["pair_vips[0] lacks 'address': add it."]),
    "pair_members []": (refusals.of([]), ["The pair has 0 member (): two or more are needed."]),
    "master name with blank": (
        refusals.of([{**pairs.member(1), "name": "lb 1"}, pairs.member(2)]),
        [
            "'lb 1' is not a valid name for a member: a name of letters, digits and . : _ - is required. "
            "Rename the host in the inventory."
        ],
    ),
}


@pytest.mark.parametrize("faults, sentences", NAMES.values(), ids=NAMES)
def test_a_sentence_names_what_the_user_wrote(faults, sentences):
    assert faults == sentences


def test_pair_masters_beside_pair_services_is_a_warning():
    """The row `pair_services and pair_masters both set`."""
    service = {"name": "web", "port": 443, "servers": ["192.0.2.21"]}
    assert pair.plan(pairs.pair(services=[service])).warnings == [
        "pair_masters has no effect, because pair_services is set: leave one of them out.",
        "pair_infra_nodes has no effect, because pair_services is set: leave one of them out.",
    ]


def test_networks_are_not_held_against_addresses_that_a_forecast_makes_up():
    nodes = [
        {**node, "host": None, "address": node["name"]} for node in clusters.cluster(machine_networks=["10.1.0.0/24"])
    ]
    assert ipi.plan(nodes).faults == []


def test_a_pair_without_a_down_file_is_forecast_without_it():
    """The row `pair_down_file: down_file empty`; the router sees the end of haproxy by its process alone."""
    slow, fast = (pair.plan(pairs.pair(down_file=file)) for file in ("", "/run/haproxy.down"))
    assert (slow.faults, [file["name"] for file in slow.members["lb1"].router.track_files]) == ([], ["haproxy_answers"])
    took = [{line["event"]: line["outage_ms"] for line in plan.outages} for plan in (slow, fast)]
    assert took[0]["haproxy_killed"] > 2000 > 100 > took[1]["haproxy_killed"]


@pytest.mark.parametrize("engine", ["native", "agent"])
def test_a_members_own_address_is_no_vip_with_either_engine(engine):
    """The row `agent engine: VIP is lb1's own address /24 with a second one`."""
    members = pairs.pair(vips=["192.0.2.1/24"], engine=engine)
    addresses = members[0]["host"]["addresses"]
    addresses.append({**addresses[0], "address": "192.0.2.77"})
    assert "lb1: VIP 192.0.2.1 is this host's own address on eth0: choose one that nobody has." in refusals.of(members)
