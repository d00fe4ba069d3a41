# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The DNS records, their three forms, and what is refused. dnspython reads what was written."""

from __future__ import annotations

import collections
import ipaddress
import shutil
import subprocess

import dns.name
import dns.rdatatype
import dns.reversename
import dns.zone
import pytest
from ansible_collections.onprem.lb.plugins.filter.dns import dns_records
from ansible_collections.onprem.lb.plugins.module_utils._plan.dns import layouts as _dns
from hypothesis import given
from hypothesis import strategies as st
from support.plans.descriptions import CLUSTER, PAIR


def found(description):
    """The records as a user would say them, and that there is nothing to say against them."""
    answer = dns_records(description)
    assert answer["faults"] == []
    return [f"{one['name']} {one['type']} {one['value']}" for one in answer["records"]]


def test_a_cluster_has_api_and_api_int_with_ptrs_and_a_wildcard_without():
    assert found({key: CLUSTER[key] for key in ("layout", "name", "domain", "api_vips", "ingress_vips")}) == [
        "api.lab.example.com. A 192.0.2.10",
        "api-int.lab.example.com. A 192.0.2.10",
        "*.apps.lab.example.com. A 192.0.2.20",
        "*.apps.lab.example.com. A 192.0.2.21",
        "*.apps.lab.example.com. AAAA 2001:db8::20",
        "10.2.0.192.in-addr.arpa. PTR api.lab.example.com.",
        "10.2.0.192.in-addr.arpa. PTR api-int.lab.example.com.",
    ]


def test_a_node_may_be_called_by_its_whole_name():
    whole = {name if name == "master-0" else f"{name}.lab.example.com": at for name, at in CLUSTER["nodes"].items()}
    assert list(whole) == ["master-0", "worker-0.lab.example.com"]
    assert found({**CLUSTER, "nodes": whole}) == found(CLUSTER)


def test_nodes_and_bootstrap_have_their_names_in_the_cluster_with_ptrs():
    six = "0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa."
    more = set(found(CLUSTER)) - set(found({**CLUSTER, "nodes": {}, "bootstrap": ""}))
    assert sorted(more) == [
        f"1.3.0.0.{six} PTR master-0.lab.example.com.",
        "30.2.0.192.in-addr.arpa. PTR bootstrap.lab.example.com.",
        "31.2.0.192.in-addr.arpa. PTR master-0.lab.example.com.",
        "4.100.51.198.in-addr.arpa. PTR worker-0.lab.example.com.",
        "bootstrap.lab.example.com. A 192.0.2.30",
        "master-0.lab.example.com. A 192.0.2.31",
        "master-0.lab.example.com. AAAA 2001:db8::31",
        "worker-0.lab.example.com. A 198.51.100.4",
    ]


def test_a_pair_has_one_name_for_the_vips_one_for_each_member_in_order_and_a_wildcard():
    assert found(PAIR) == [
        "*.apps.example.com. A 192.0.2.10",
        "*.apps.example.com. AAAA 2001:db8::10",
        "haproxy.example.com. A 192.0.2.10",
        "haproxy.example.com. AAAA 2001:db8::10",
        "haproxy-0.example.com. A 192.0.2.12",
        "haproxy-1.example.com. A 192.0.2.11",
        "haproxy-1.example.com. AAAA 2001:db8::11",
    ]


@pytest.mark.parametrize(
    "members, expected",
    [
        (["haproxy-1", "haproxy-0"], [1, 0]),
        (["haproxy-1.example.com", "lb2", "Haproxy-0"], [1, 2, 0]),
        (["lb1", "haproxy-0"], [1, 0]),
        (["haproxy-7", "lb2"], [7, 0]),
        (["haproxy-0.here.example", "haproxy-0.there.example"], [0, 1]),  # neither name says which
        (["haproxy-x", "haproxy"], [0, 1]),
    ],
)
def test_a_member_that_is_called_haproxy_n_has_that_name_and_the_others_the_free_ones_in_order(members, expected):
    addresses = [f"192.0.2.{at}" for at in range(1, len(members) + 1)]
    records = found({**PAIR, "members": dict(zip(members, addresses))})
    assert {f"haproxy-{at}.example.com. A {ip}" for at, ip in zip(expected, addresses)} <= set(records)
    turned = dict(reversed([*zip(members, addresses)]))
    if "haproxy-1" in members:
        assert found({**PAIR, "members": turned}) == records  # another first member changes no name


@pytest.mark.parametrize(
    "subdomain, routes",
    [(None, "apps.example.com"), ("cloud.Paas.", "cloud.paas.example.com"), ("", "example.com")],
)
def test_the_installers_variables_agree_with_the_records(subdomain, routes):
    answer = _dns.describe({**PAIR, "subdomain": subdomain})
    assert answer["variables"] == {
        "openshift_master_cluster_hostname": "haproxy.example.com",
        "openshift_master_cluster_public_hostname": "haproxy.example.com",
        "openshift_master_default_subdomain": routes,
        "osm_default_subdomain": routes,
    }
    assert {one["name"] for one in answer["records"] if "*" in one["name"]} == {f"*.{routes}."}
    assert _dns.describe(CLUSTER)["variables"] == {}


SHARD = {"address": "192.0.2.22/24", "name": "shard1", "members": ["w1", "w2"]}


@pytest.mark.parametrize(
    "changes, wildcard, zone",
    [
        ({}, "*.shard1.lab.example.com.", "lab.example.com."),
        ({"domain": "Internal.example.com"}, "*.internal.example.com.", "example.com."),
        ({"domain": "apps.example.org."}, "*.apps.example.org.", "apps.example.org."),
        ({"domain": "s.apps.lab.example.com"}, "*.s.apps.lab.example.com.", "lab.example.com."),
    ],
)
def test_a_router_shard_has_a_domain_of_its_own_and_never_joins_apps(changes, wildcard, zone):
    answer = dns_records({**CLUSTER, "ingress_vips": ["192.0.2.20", {**SHARD, **changes}]})
    found = {(one["name"], one["value"], one["zone"]) for one in answer["records"] if one["name"].startswith("*")}
    assert found == {("*.apps.lab.example.com.", "192.0.2.20", "lab.example.com."), (wildcard, "192.0.2.22", zone)}


MASTERS = ["192.0.2.31", "192.0.2.32", "192.0.2.33"]
ETCD = [
    "etcd-0.ZONE. A 192.0.2.31",
    "etcd-1.ZONE. A 192.0.2.32",
    "etcd-2.ZONE. A 192.0.2.33",
    "_etcd-server-ssl._tcp.ZONE. SRV 0 10 2380 etcd-0.ZONE.",
    "_etcd-server-ssl._tcp.ZONE. SRV 0 10 2380 etcd-1.ZONE.",
    "_etcd-server-ssl._tcp.ZONE. SRV 0 10 2380 etcd-2.ZONE.",
]


def test_etcd_has_names_and_a_service_record_beside_the_names_of_its_nodes():
    nodes = {f"master-{at}": address for at, address in enumerate(MASTERS)}
    more = set(found({**CLUSTER, "nodes": nodes, "etcd": MASTERS})) - set(found({**CLUSTER, "nodes": nodes}))
    assert more == {line.replace("ZONE", "lab.example.com") for line in ETCD}


def test_a_pair_in_front_of_a_clusters_api_has_the_names_that_its_installer_checks():
    behind = {"api": "true", "etcd": MASTERS, "nodes": {"bootstrap": "192.0.2.30", "master-0": "192.0.2.31"}}
    four = {**PAIR, "vips": ["192.0.2.10"], "domain": "lab.example.com"}
    answer = dns_records({**four, **behind})
    assert (answer["faults"], answer["variables"]) == ([], {})  # which are those of OpenShift 3
    assert set(found({**four, **behind})) - set(found(four)) == {
        "api.lab.example.com. A 192.0.2.10",
        "api-int.lab.example.com. A 192.0.2.10",
        "bootstrap.lab.example.com. A 192.0.2.30",
        "master-0.lab.example.com. A 192.0.2.31",
        "10.2.0.192.in-addr.arpa. PTR api.lab.example.com.",
        "10.2.0.192.in-addr.arpa. PTR api-int.lab.example.com.",
        "30.2.0.192.in-addr.arpa. PTR bootstrap.lab.example.com.",
        "31.2.0.192.in-addr.arpa. PTR master-0.lab.example.com.",
        *(line.replace("ZONE", "lab.example.com") for line in ETCD),
    }


def test_a_pair_that_does_not_serve_the_api_has_no_names_for_a_cluster():
    assert found({**PAIR, "api": False, "etcd": MASTERS, "nodes": {"master-0": "192.0.2.31"}}) == found(PAIR)


def test_case_and_a_final_dot_make_no_other_name():
    spelled = {**CLUSTER, "name": "Lab", "domain": "Example.COM.", "nodes": {"MASTER-0.lab.Example.com.": "192.0.2.31"}}
    assert found(spelled) == found({**CLUSTER, "nodes": {"master-0": "192.0.2.31"}})


@pytest.mark.parametrize("ttl", [0, 60, "3600", 2**31 - 1])
def test_every_record_has_the_ttl_that_was_wished(ttl):
    assert {one["ttl"] for one in _dns.describe({**CLUSTER, "ttl": ttl})["records"]} == {int(ttl)}
    assert {one["ttl"] for one in _dns.describe({**CLUSTER, "ttl": None})["records"]} == {300}


# Descriptions of every shape. The last byte tells hosts apart, so that no address is there twice.
fours = st.integers(0x01000000, 0x7EFFFFFF).map(lambda number: str(ipaddress.IPv4Address(number & ~0xFF)))
sixes = st.integers(0x2000, 0x3FFF).map(lambda start: str(ipaddress.IPv6Address(start << 112 | 0xAB << 40)))
bases = st.fixed_dictionaries({"four": st.none() | fours, "six": st.none() | sixes}).filter(
    lambda base: any(base.values())
)
labels = st.text("aB0-", min_size=1, max_size=5).map(lambda text: f"x{text}9") | st.sampled_from("aB0")


def hosts(base, first, count):
    return [
        [str(ipaddress.ip_address(start) + at) for start in base.values() if start]
        for at in range(first, first + count)
    ]


@st.composite
def clusters(draw):
    base = draw(bases)
    api, ingress = hosts(base, 1, 1)[0], [one for many in hosts(base, 2, draw(st.integers(1, 3))) for one in many]
    names = draw(st.lists(labels, unique_by=str.lower, max_size=5))
    return {
        "layout": "cluster",
        "name": draw(labels),
        "domain": f"{draw(labels)}.example",
        "api_vips": api,
        "ingress_vips": draw(st.permutations(ingress)),
        "nodes": dict(zip(draw(st.permutations(names)), hosts(base, 10, len(names)))),
        "bootstrap": draw(st.sampled_from(["", *hosts(base, 30, 1)])),
        "etcd": hosts(base, 40, draw(st.integers(0, 3))),
    }


@st.composite
def pairs(draw):
    base = draw(bases)
    return {
        "layout": "pair",
        "domain": f"{draw(labels)}.test",
        "subdomain": draw(st.none() | st.just("") | labels),
        "vips": [one for many in hosts(base, 1, draw(st.integers(1, 2))) for one in many],
        "members": {f"lb{at}": own for at, own in enumerate(hosts(base, 10, draw(st.integers(0, 12))))},
    }


layouts = clusters() | pairs() | st.tuples(clusters(), pairs()).map(list)


def read(text, zone):
    """A zone's records as dnspython reads them from `text`, in which there may be other zones' too."""
    parsed = dns.zone.from_text(text, origin=zone, relativize=False, check_origin=False)
    return sorted(
        (str(name), ttl, dns.rdatatype.to_text(data.rdtype), str(data)) for name, ttl, data in parsed.iterate_rdatas()
    )


def meant(answer, zone):
    return sorted(
        (one["name"], one["ttl"], one["type"], one["value"]) for one in answer["records"] if one["zone"] == zone
    )


@given(layouts)
def test_another_reader_finds_the_same_records_in_the_zone_text(description):
    answer = _dns.describe(description)
    assert answer["faults"] == [] and len(answer["records"]) == answer["zone"].count(" IN ")
    assert answer["zone"] == "".join(answer["zones"].values())
    for zone, text in answer["zones"].items():
        assert read(text, zone) == meant(answer, zone) != []
        # With all names whole, another zone's lines do no harm, and neither does another $ORIGIN.
        assert set(read(answer["zone"], zone)) >= set(meant(answer, zone))
        assert read(f"$ORIGIN elsewhere.{zone}\n{text}", zone) == meant(answer, zone)


@given(layouts)
def test_every_ptr_leads_to_a_name_that_leads_back(description):
    records = [(one["name"], one["type"], one["value"]) for one in _dns.describe(description)["records"]]
    reverse = [(dns.name.from_text(name), target) for name, kind, target in records if kind == "PTR"]
    pointed = {(target, dns.reversename.to_address(name)) for name, target in reverse}
    forward = {(name, value) for name, kind, value in records if kind != "PTR"}
    without = ("*.", "etcd-", "_etcd-")
    named = {(name, value) for name, value in forward if not name.startswith(without) and not name.endswith(".test.")}
    assert pointed == named


@given(layouts)
def test_the_order_is_dns_own_and_forward_zones_come_first(description):
    answer = _dns.describe(description)
    zones = list(answer["zones"])
    assert zones == sorted(zones, key=lambda zone: (zone.endswith(".arpa."), dns.name.from_text(zone)))
    for zone in zones:
        names = [dns.name.from_text(one["name"]) for one in answer["records"] if one["zone"] == zone]
        assert names == sorted(names)


@given(clusters(), st.randoms())
def test_the_order_in_which_it_was_written_down_changes_nothing(description, random):
    shuffled = {key: list(value) if isinstance(value, list) else value for key, value in description.items()}
    random.shuffle(shuffled["ingress_vips"])
    nodes = list(shuffled["nodes"].items())
    random.shuffle(nodes)
    assert _dns.describe({**shuffled, "nodes": dict(nodes)}) == _dns.describe(description)


def test_addresses_are_in_the_order_of_their_numbers():
    vips = ["192.0.2.100", "192.0.2.20", "192.0.2.9"]
    values = [line.split()[2] for line in found({**CLUSTER, "ingress_vips": vips}) if line.startswith("*")]
    assert values == vips[::-1]


@pytest.mark.parametrize(
    "vip, zone",
    [
        ("192.0.2.10", "2.0.192.in-addr.arpa."),
        ("2001:db8:1:2::10", "2.0.0.0.1.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa."),
    ],
)
def test_reverse_zones_are_those_of_a_24_and_a_64(vip, zone):
    only = {**CLUSTER, "api_vips": [vip], "nodes": {}, "bootstrap": None}
    assert list(_dns.describe(only)["zones"]) == ["lab.example.com.", zone]


def test_the_dnsmasq_configuration():
    assert _dns.describe({**CLUSTER, "nodes": {}, "bootstrap": "", "ttl": 60})["dnsmasq"].splitlines() == [
        "# lab.example.com",
        "local=/api.lab.example.com/",
        "host-record=api.lab.example.com,192.0.2.10,60",
        "local=/api-int.lab.example.com/",
        "host-record=api-int.lab.example.com,192.0.2.10,60",
        "local=/apps.lab.example.com/",
        "address=/apps.lab.example.com/192.0.2.20",
        "address=/apps.lab.example.com/192.0.2.21",
        "address=/apps.lab.example.com/2001:db8::20",
        "# 2.0.192.in-addr.arpa",
        "ptr-record=10.2.0.192.in-addr.arpa,api.lab.example.com",
        "ptr-record=10.2.0.192.in-addr.arpa,api-int.lab.example.com",
    ]


def dnsmasq_answers(text):
    """What dnsmasq's manual says that these lines mean."""
    answers, local = set(), set()
    for line in text.splitlines():
        option, _is, rest = line.partition("=")
        if option == "host-record":
            name, address, ttl = rest.split(",")
            answers.add((f"{name}.", address))
            assert int(ttl) == 300
        elif option == "address":
            _empty, name, address = rest.split("/")
            answers.add((f"*.{name}.", address))
        elif option == "srv-host":
            name, target, port, priority, weight = rest.split(",")
            answers.add((f"{name}.", f"{priority} {weight} {port} {target}."))
        elif option == "ptr-record":
            name, target = rest.split(",")
            answers.add((f"{name}.", f"{target}."))
        elif option == "local":
            local.add(rest.strip("/"))
        else:
            assert line.startswith("# ")
    return answers, local


@given(layouts)
def test_dnsmasq_is_told_the_same_and_forwards_none_of_it(description):
    answer = _dns.describe(description)
    answers, local = dnsmasq_answers(answer["dnsmasq"])
    assert answers == {(one["name"], one["value"]) for one in answer["records"]}
    assert local == {one["name"].removeprefix("*.")[:-1] for one in answer["records"] if one["type"] != "PTR"}


def served(script, state):
    """Play a script for nsupdate against `state`: (name, type) -> values. Each update has one parent."""
    zones, update = [], []
    for line in script.splitlines():
        assert line, "an empty line sends what there is"
        if line.startswith("; "):
            zones.append(dns.name.from_text(line[2:]))
        elif line == "send":
            assert update and not any(state[name, "CNAME"] for name in update)
            assert len({name.partition(".")[2] for name in update}) == 1
            update = []
        elif line == "answer":
            assert not update
        else:
            _update, verb, name, *rest = line.split()
            assert dns.name.from_text(name).is_subdomain(zones[-1])
            update.append(name)
            if verb == "delete":
                state[name, rest[0]].clear()
            else:
                assert verb == "add"
                state[name, rest[1]].add((" ".join(rest[2:]), int(rest[0])))
    assert not update, "the last update was not sent"
    return {key: values for key, values in state.items() if values}


@given(layouts)
def test_nsupdate_leaves_what_is_wanted_whatever_the_names_had_before(description):
    answer = _dns.describe(description)
    state = collections.defaultdict(set)
    for one in answer["records"]:
        old = {"PTR": ("PTR",), "SRV": ("SRV", "CNAME")}.get(one["type"], ("A", "AAAA", "CNAME"))
        state.update({(one["name"], kind): {("stale", 1)} for kind in old})
        state[one["name"], "TXT"] = {("kept", 1)}
    wanted = collections.defaultdict(set)
    for one in answer["records"]:
        wanted[one["name"], one["type"]].add((one["value"], one["ttl"]))
        wanted[one["name"], "TXT"] = {("kept", 1)}
    assert served(answer["nsupdate"], state) == wanted
    parents = {one["name"].partition(".")[2] for one in answer["records"]}
    lines = answer["nsupdate"].splitlines()
    assert lines.count("send") == lines.count("answer") == len(parents)


ONLY_VIPS = {**CLUSTER, "ingress_vips": ["192.0.2.20"], "nodes": {}, "bootstrap": ""}


def test_the_zone_text():
    assert (
        _dns.describe(ONLY_VIPS)["zone"]
        == """\
; lab.example.com.
api.lab.example.com.     300 IN A    192.0.2.10
api-int.lab.example.com. 300 IN A    192.0.2.10
*.apps.lab.example.com.  300 IN A    192.0.2.20
; 2.0.192.in-addr.arpa.
10.2.0.192.in-addr.arpa. 300 IN PTR  api.lab.example.com.
10.2.0.192.in-addr.arpa. 300 IN PTR  api-int.lab.example.com.
"""
    )


def test_the_nsupdate_script():
    kinds, wildcard = ("A", "AAAA", "CNAME"), "*.apps.lab.example.com."
    assert _dns.describe(ONLY_VIPS)["nsupdate"].splitlines() == [
        "; lab.example.com.",
        *(f"update delete {name}.lab.example.com. {kind}" for name in ("api", "api-int") for kind in kinds),
        "update add api.lab.example.com. 300 A 192.0.2.10",
        "update add api-int.lab.example.com. 300 A 192.0.2.10",
        *("send", "answer"),
        *(f"update delete {wildcard} {kind}" for kind in kinds),
        f"update add {wildcard} 300 A 192.0.2.20",
        *("send", "answer"),
        "; 2.0.192.in-addr.arpa.",
        "update delete 10.2.0.192.in-addr.arpa. PTR",
        "update add 10.2.0.192.in-addr.arpa. 300 PTR api.lab.example.com.",
        "update add 10.2.0.192.in-addr.arpa. 300 PTR api-int.lab.example.com.",
        *("send", "answer"),
    ]


def test_an_address_that_a_host_has_twice_is_one_record():
    twice = {**CLUSTER, "nodes": {"m": ["2001:db8::5", "2001:DB8::5"]}}
    assert found(twice) == found({**CLUSTER, "nodes": {"m": "2001:db8::5"}})


@pytest.mark.parametrize("place", ["first", "last"])
def test_a_reverse_zone_of_two_layouts_is_updated_once(place):
    other = {
        **CLUSTER,
        "name": "dr",
        "api_vips": ["192.0.2.110"],
        "nodes": {},
        "bootstrap": "",
        "ingress_vips": ["192.0.2.120"],
    }
    both = [CLUSTER, other] if place == "first" else [other, CLUSTER]
    assert found(both) == found(both[::-1])
    assert _dns.describe(both)["nsupdate"].count("; 2.0.192.in-addr.arpa.") == 1


def program(name):
    where = shutil.which(name, path="/usr/bin:/usr/sbin:/usr/local/bin:/usr/local/sbin")
    return where or pytest.skip(f"{name} is not on this machine")


def test_dnsmasq_takes_the_configuration(tmp_path):
    configuration = tmp_path / "dns.conf"
    configuration.write_text(_dns.describe([CLUSTER, PAIR])["dnsmasq"])
    command = [program("dnsmasq"), "--test", f"--conf-file={configuration}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_nsupdate_takes_the_script():
    """With `show` in place of `send` it reads everything and queries no server."""
    script = _dns.describe([CLUSTER, PAIR])["nsupdate"].replace("\nsend\n", "\nshow\n")
    done = subprocess.run([program("nsupdate")], input=script, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "bootstrap.lab.example.com." in done.stdout, done.stderr
