# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is refused on its way into DNS: each fault one sentence with the value, its place and the mend."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.onprem.lb.plugins.filter.dns import dns_records
from ansible_collections.onprem.lb.plugins.module_utils._agent.config import schema
from ansible_collections.onprem.lb.plugins.module_utils._plan.dns import layouts as dns
from hypothesis import given
from hypothesis import strategies as st
from support.plans import refusals
from support.plans.descriptions import CLUSTER, PAIR


def faults(layout, **changes):
    answer = dns.describe({**layout, **changes})
    sentences = answer.pop("faults")
    assert not sentences or not any(answer.values())
    return sentences


NOT_BELOW = "which is not directly below lab.example.com: give the part before it alone."
LETTERS = "letters, digits and inner hyphens"
LABEL = f"has to be 1 to 63 {LETTERS}; correct it."
VIP = "an IPv4 or IPv6 address, with or without a prefix length, is required."  # as the layouts say it
SHARD = {"address": "192.0.2.21", "name": "shard1"}
JOINS = (
    "ipi_ingress_vips[1] would be among the addresses of *.apps.lab.example.com, and its routers do not have those "
    "routes: give it a domain of its own, or leave out its name and domain."
)
OF_A_CLUSTER = [
    ("name", "", "ipi_cluster_name is empty: give a name, for instance lab."),
    ("name", None, "ipi_cluster_name is empty: give a name, for instance lab."),
    ("name", 12, "ipi_cluster_name is 12, which is not text: put it in quotes."),
    ("name", "a.b", "ipi_cluster_name is 'a.b', with a dot: give the bare name, without its domain."),
    ("domain", "", "ipi_domain is empty: give a name, for instance example.com."),
    (
        "domain",
        "192.0.2.1",
        "ipi_domain is '192.0.2.1', which ends in a number as only an address does: give a domain's name.",
    ),
    ("api_vips", [], "ipi_api_vips is []: a list of at least one address is required."),
    ("api_vips", "192.0.2.1", f"ipi_api_vips is '192.0.2.1': {schema.no_addresses('192.0.2.1')}"),
    ("ingress_vips", [], "ipi_ingress_vips is []: a list of at least one address is required."),
    ("ingress_vips", ["192.0.2.1", "x"], f"ipi_ingress_vips[1] is 'x': {VIP}"),
    ("ingress_vips", ["2001:db8::1", "2001:DB8:0::1"], "ipi_ingress_vips[1] is 2001:db8::1 again: name each VIP once."),
    (
        "nodes",
        ["m"],
        "dns_nodes is ['m']: a mapping of names to addresses, or a list of hosts of the inventory, is required.",
    ),
    ("nodes", {"m": "x"}, "dns_nodes.m is 'x': an IPv4 or IPv6 address is required."),
    ("nodes", {"m": ["192.0.2.3", 5]}, "dns_nodes.m[1] is 5: an IPv4 or IPv6 address is required."),
    ("nodes", {"m": []}, "dns_nodes.m is []: an IPv4 or IPv6 address is required."),
    ("nodes", {"m.other": "192.0.2.3"}, f"dns_nodes has 'm.other', {NOT_BELOW}"),
    ("nodes", {"xlab.example.com": "192.0.2.3"}, f"dns_nodes has 'xlab.example.com', {NOT_BELOW}"),
    ("nodes", {"a.b.lab.example.com": "192.0.2.3"}, f"dns_nodes has 'a.b.lab.example.com', {NOT_BELOW}"),
    (
        "nodes",
        {"API": "192.0.2.3"},
        "dns_nodes has 'API', which means something else in a cluster: call the node otherwise.",
    ),
    (
        "nodes",
        {"m": "192.0.2.3", "M": "192.0.2.4"},
        "dns_nodes has 'M', and m already: give each node one name (case is all one).",
    ),
    ("nodes", {"m": "192.0.2.10"}, "m has 192.0.2.10, which api has too: give each its own address."),
    (
        "nodes",
        {"m": "192.0.2.21"},
        "m has 192.0.2.21, which *.apps.lab.example.com has too: give each its own address.",
    ),
    ("nodes", {"m": "192.0.2.3", "n": "192.0.2.3"}, "n has 192.0.2.3, which m has too: give each its own address."),
    (
        "nodes",
        {"_m": "192.0.2.3"},
        f"A name in dns_nodes is '_m': its part '_m' has to be 1 to 63 {LETTERS}; correct it.",
    ),
    ("etcd", "192.0.2.31", "dns_etcd is '192.0.2.31': a list of the masters' addresses is required."),
    ("etcd", ["192.0.2.31", "x"], "dns_etcd[1] is 'x': an IPv4 or IPv6 address is required."),
    ("etcd", ["192.0.2.10"], "etcd-0 has 192.0.2.10, which api has too: give each its own address."),
    (
        "ingress_vips",
        ["192.0.2.20", {**SHARD, "name": "a_b"}],
        f"ipi_ingress_vips[1].name is 'a_b': its part 'a_b' {LABEL}",
    ),
    (
        "ingress_vips",
        ["192.0.2.20", {**SHARD, "domain": "a_b"}],
        f"ipi_ingress_vips[1].domain is 'a_b': its part 'a_b' {LABEL}",
    ),
    ("ingress_vips", ["192.0.2.20", {**SHARD, "domain": "Apps.lab.example.com."}], JOINS),
    ("ingress_vips", ["192.0.2.20", {**SHARD, "name": "apps"}], JOINS),
    (
        "ingress_vips",
        [SHARD],
        "ipi_ingress_vips has router shards only: leave one VIP without a name, for *.apps.lab.example.com.",
    ),
    ("bootstrap", "x", "ipi_bootstrap is 'x': an IPv4 or IPv6 address is required. Or name a host of ipi_masters."),
    (
        "bootstrap",
        "192.0.2.31",
        "ipi_bootstrap is 192.0.2.31, master-0's own address: name the bootstrap machine's own address.",
    ),
    ("ttl", -1, "dns_ttl is -1: a number of seconds from 0 to 2147483647 is required."),
    ("ttl", 2**31, "dns_ttl is 2147483648: a number of seconds from 0 to 2147483647 is required."),
    ("ttl", "1h", "dns_ttl is '1h': a number of seconds from 0 to 2147483647 is required."),
    ("api_vip", "x", "The description of the cluster has the unknown key 'api_vip': did you mean 'api_vips'?"),
]


@pytest.mark.parametrize("key, value, sentence", OF_A_CLUSTER)
def test_what_is_wrong_with_a_cluster_is_one_sentence(key, value, sentence):
    assert faults(CLUSTER, **{key: value}) == [sentence]


@pytest.mark.parametrize(
    "key, value, sentence",
    [
        ("domain", None, "dns_domain is empty: give a name, for instance example.com."),
        ("subdomain", 5, "dns_subdomain is 5, which is not text: put it in quotes."),
        ("subdomain", False, "dns_subdomain is false, which is not text: put it in quotes."),
        ("vips", [], "pair_vips is []: a list of at least one address is required."),
        ("vips", [{"vrid": 5}], "pair_vips[0] lacks 'address': add it."),
        ("api", "vielleicht", "dns_api is 'vielleicht': true or false is required."),
        (
            "members",
            None,
            "pair_members is null: a mapping of names to addresses, or a list of hosts of the inventory, is required.",
        ),
        (
            "members",
            {"lb1": "lb1.example"},
            "The address of lb1 is 'lb1.example': an IPv4 or IPv6 address is required, as its dns_address.",
        ),
        ("members", {"a": "192.0.2.10"}, "haproxy-0 has 192.0.2.10, which haproxy has too: give each its own address."),
        (
            "members",
            {"a": "192.0.2.1", "b": "192.0.2.1"},
            "haproxy-1 has 192.0.2.1, which haproxy-0 has too: give each its own address.",
        ),
        (
            "name",
            "lab",
            "The description of the pair has the unknown key 'name': "
            "known are layout, domain, subdomain, vips, members, api, nodes, etcd, hosts, ttl.",
        ),
    ],
)
def test_what_is_wrong_with_a_pair_is_one_sentence(key, value, sentence):
    assert faults(PAIR, **{key: value}) == [sentence]


@pytest.mark.parametrize("bad", ["a..b", ".b", "-a", "a-", "a_b", "a b", "a\n", "é", "\u212a", "a" * 64, ".", "b.."])
def test_what_is_no_hosts_name_is_refused_with_the_part_that_is_wrong(bad):
    (sentence,) = faults(CLUSTER, domain=bad)
    assert sentence.startswith(f"ipi_domain is {bad!r}: its part ")
    assert faults(PAIR, subdomain=bad) == [sentence.replace("ipi_domain", "dns_subdomain")]


@pytest.mark.parametrize("good", ["a", "3com.example", "a" * 63, "xn--9ca.example", "A-B.c", "example."])
def test_what_is_a_hosts_name_is_taken(good):
    assert faults(CLUSTER, domain=good) == []
    assert faults(PAIR, subdomain=good) == []


@pytest.mark.parametrize("bad", ["*", "*.apps", "a*", "apps.*", "*."])
def test_a_wildcard_is_only_where_it_is_put(bad):
    sentence = f"is {bad!r}: a * may only be a record's first part, and is put there without being asked; leave it out."
    assert faults(PAIR, subdomain=bad) == [f"dns_subdomain {sentence}"]
    assert faults(CLUSTER, domain=bad) == [f"ipi_domain {sentence}"]
    assert faults(CLUSTER, nodes={bad: "192.0.2.3"}) == [f"A name in dns_nodes {sentence}"]


@pytest.mark.parametrize(
    "layout, place, prefix",
    [(CLUSTER, "ipi_domain", "bootstrap.lab."), (PAIR, "dns_domain", "haproxy-0.")],
)
def test_a_name_may_have_253_characters_and_not_one_more(layout, place, prefix):
    layout = {**layout, "nodes": {}} if layout is CLUSTER else layout
    fits = ("a" * 50 + ".") * 4 + "b" * (253 - len(prefix) - 4 * 51)
    assert faults(layout, domain=fits) == []
    assert max(len(one["name"]) for one in dns.describe({**layout, "domain": fits})["records"]) == 254
    assert faults(layout, domain=fits + "b") == [
        f"{prefix}{fits}b has 254 characters, and DNS takes 253: shorten {place}."
    ]


OF_NO_HOST = ["127.0.0.1", "::1", "0.0.0.0", "::", "224.0.0.18", "ff02::12", "::ffff:192.0.2.1", "255.255.255.255"]
OF_ONE_LINK = ["169.254.1.1", "fe80::1"]
EDGES = ["192.0.2.0/24", "192.0.2.255/24"]
ZONES = ["fe80::1%eth0", "2001:db8::1%eth0"]
ELSEWHERE = "others cannot reach a host at that address, give one which they can."


@pytest.mark.parametrize("bad", [*OF_NO_HOST, *OF_ONE_LINK, *EDGES, *ZONES])
def test_an_address_that_others_cannot_reach_is_refused(bad):
    assert faults(PAIR, members={"lb1": bad}) == [f"The address of lb1 is {bad!r}: {ELSEWHERE}"]


@pytest.mark.parametrize("bad", OF_ONE_LINK)
def test_a_vip_that_a_record_cannot_name_is_refused(bad):
    assert faults(CLUSTER, api_vips=[bad]) == [f"ipi_api_vips[0] is {bad!r}: {ELSEWHERE}"]


VIPS = [
    *([bad] for bad in (*OF_NO_HOST, *EDGES, *ZONES, "x", "192.0.2.10/33", "192.0.2.10/255.255.255.0", 5, True, None)),
    *([{"address": bad}] for bad in ("x", 5, None, ["192.0.2.10"])),
    *([], {}, "192.0.2.10"),
]


@pytest.mark.parametrize("bad", VIPS, ids=repr)
def test_a_wrong_vip_is_refused_in_the_words_of_the_layouts(bad):
    found = faults(PAIR, vips=bad)
    assert found == refusals.of_pair(vips=bad) and found != []
    found = faults(CLUSTER, ingress_vips=bad)
    assert found == refusals.of_cluster(ingress_vips=bad) and found != []


@pytest.mark.parametrize("bad", [*OF_NO_HOST, *OF_ONE_LINK, "x", "10.0.0.200/24", "10.0.0.200", 5])
def test_a_wrong_bootstrap_machine_is_refused_in_the_words_of_the_layout(bad):
    found = faults(CLUSTER, api_vips=["10.0.0.200"], ingress_vips=["10.0.0.201"], bootstrap=bad)
    assert found == refusals.of_cluster(bootstrap=bad) and found != []


@pytest.mark.parametrize(
    "good", ["192.0.2.0/31", "192.0.2.1/24", "10.0.0.1", "fd00::1", "2001:db8::/64", "192.0.2.255"]
)
def test_any_other_address_is_taken(good):
    assert faults(CLUSTER, api_vips=[good]) == []


def test_all_faults_come_at_once_and_none_of_another_ones_making():
    wrong = {**CLUSTER, "name": "a.b", "domain": "", "api_vips": [], "nodes": {"m.a.b.example.com": "x"}, "ttl": "x"}
    assert [sentence.split()[0] for sentence in faults(wrong)] == [
        "dns_ttl",
        "ipi_cluster_name",
        "ipi_domain",
        "ipi_api_vips",
        "dns_nodes.m.a.b.example.com",
    ]
    assert dns.describe([wrong, {**PAIR, "vips": []}])["faults"][5:] == [
        "pair_vips is []: a list of at least one address is required."
    ]
    assert len(faults(CLUSTER, nodes={"_m": "192.0.2.3", "_n": "192.0.2.3"})) == 2


def test_with_a_fault_of_one_layout_there_is_nothing_of_the_others():
    answer = dns.describe([CLUSTER, PAIR, {**PAIR, "vips": []}])
    assert [key for key, value in answer.items() if value] == ["faults"]


@pytest.mark.parametrize("name", ["api", "haproxy", "haproxy-0", "etcd-0"])
def test_a_node_behind_a_pair_has_none_of_the_names_that_the_pair_gives(name):
    behind = {"api": True, "etcd": ["192.0.2.31"], "nodes": {name: "192.0.2.31"}}
    assert faults(PAIR, **behind) == [
        f"dns_nodes has '{name}', which means something else in a cluster: call the node otherwise."
    ]


def test_one_vip_may_serve_the_api_and_the_ingress():
    assert faults(CLUSTER, ingress_vips=CLUSTER["api_vips"]) == []


def test_a_pair_in_front_of_a_cluster_is_fine_but_no_name_is_given_twice():
    """Nor is it a fault when two clusters are behind the same balancers."""
    both = dns.describe([CLUSTER, PAIR, {**CLUSTER, "name": "dr", "nodes": {}}])
    named = {one["name"] for one in both["records"] if one["value"] == "192.0.2.10"}
    assert named >= {"haproxy.example.com.", "api.lab.example.com.", "api.dr.example.com."} and both["faults"] == []
    assert dns.describe([CLUSTER, {**PAIR, "domain": "lab.example.com"}])["faults"] == [
        "*.apps.lab.example.com. would belong to the cluster lab and to the pair: give one of them another domain."
    ]
    assert dns.describe([CLUSTER, CLUSTER])["faults"] == [
        "*.apps.lab.example.com. would belong to the cluster lab and to the cluster lab: "
        "give one of them another domain."
    ]


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=9)
    | st.sampled_from(["192.0.2.1", "a.b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from([CLUSTER, PAIR]), st.data())
def test_nothing_that_a_user_writes_raises(layout, data):
    changed = {key: data.draw(anything) for key in data.draw(st.sets(st.sampled_from(sorted(layout))))}
    answer = dns.describe({**layout, **changed})
    assert answer["records"] or answer["faults"]
    assert all(sentence.endswith((".", "?")) and "\n" not in sentence for sentence in answer["faults"])
    dns.describe(data.draw(anything))


@pytest.mark.parametrize("misuse", ["lab", None, 5, [CLUSTER, "lab"]])
def test_what_is_no_mapping_is_a_mistake_of_the_playbook(misuse):
    with pytest.raises(AnsibleFilterError, match="takes a mapping, or a list of them"):
        dns_records(misuse)


def test_an_unknown_layout_is_said():
    assert dns_records({"layout": "upi"})["faults"] == ["layout is 'upi': one of cluster, pair is required."]
    assert dns_records([]) == {**dns.describe([]), "faults": [], "records": []}
