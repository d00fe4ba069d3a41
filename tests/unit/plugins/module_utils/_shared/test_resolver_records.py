# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node's resolver answers while VIPs change: whoever holds one, a name leads to an address that is held."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._plan.dns import resolver
from ansible_collections.onprem.lb.plugins.module_utils._shared import resolver_records
from ansible_collections.onprem.lb.plugins.module_utils._shared.resolver_records import Answering
from hypothesis import given
from hypothesis import strategies as st

IPS = [*(f"192.0.2.{at}" for at in range(100, 105)), "2001:db8::100", "2001:db8::101"]
SETS = st.lists(st.sampled_from(IPS), min_size=1, max_size=3, unique=True)
SHARDS = st.dictionaries(st.sampled_from(["shard1", "shard2"]), st.sampled_from(IPS), max_size=2)
API, APPS = "api-int.lab.example.com", "*.apps.lab.example.com"


def config(api, apps, shards=None, listen=()):
    """What a run writes."""
    more = [{"address": vip, "name": name} for name, vip in (shards or {}).items() if vip not in apps]
    layout = {"layout": "cluster", "name": "lab", "domain": "example.com", "nodes": {}}
    names = resolver.names_of({**layout, "api_vips": api, "ingress_vips": [*apps, *more]}, 30, faults := [])
    config = resolver._config(names, {"listen": listen, "ttl": 30}, ["resolv-file=/x"])
    return None if faults else Answering(config, resolver_records.hosts_file("# mark", names.named))


@given(SETS, SETS, SHARDS, SETS, SETS, SHARDS)
def test_a_name_has_every_address_to_which_it_may_lead_and_all_else_is_as_now(api, apps, shards, other, others, more):
    now, then = config(api, apps, shards), config(other, others, more)
    if not (now and then):
        return
    before, after = resolver_records.addresses(now), resolver_records.addresses(then)
    found = resolver_records.on_the_way(now, then)
    way = resolver_records.addresses(Answering(found.config, found.names))
    assert [*way] == [*before]
    for name, ips in way.items():
        loses = name in after and not {*before[name]} <= {*after[name]}
        assert {*ips} == ({*before[name], *after[name]} if loses else {*before[name]}) and len(ips) == len({*ips})
    assert found.config.startswith(now.config) and found.names.startswith(now.names)
    losing = [name for name in way if name in after and not {*before[name]} <= {*after[name]}]
    assert [{*each["addresses"]} for each in found.answers] == [{*way[name]} for name in losing]
    # A run that goes on after an interrupted one.
    assert resolver_records.on_the_way(Answering(found.config, found.names), then) == found


def test_a_replaced_vip_is_answered_beside_the_old_one():
    found = resolver_records.on_the_way(config(["192.0.2.100"], IPS[2:3]), config(["192.0.2.101"], IPS[2:3]))
    way = resolver_records.addresses(Answering(found.config, found.names))
    assert way[API] == ["192.0.2.100", "192.0.2.101"] and way[APPS] == ["192.0.2.102"]
    assert found.server == "" and [each["name"] for each in found.answers] == [
        "api.lab.example.com",
        "api-int.lab.example.com",
    ]


def test_the_wildcard_of_a_replaced_vip_is_asked_for_by_a_name_below_it():
    listens = ("10.0.0.1", "10.0.0.2")
    found = resolver_records.on_the_way(config(IPS[:1], IPS[1:2], listen=listens), config(IPS[:1], IPS[2:3]))
    assert found.answers == [{"name": "any.apps.lab.example.com", "addresses": IPS[1:3]}]
    assert found.server == "10.0.0.1"


def test_a_resolver_that_was_not_there_has_nothing_on_the_way():
    assert resolver_records.on_the_way(Answering(), config(IPS[:1], IPS[1:2])) == ("", "", "", [])


@given(SETS, SETS, SETS)
def test_dnsmasq_starts_anew_for_no_name_but_a_wildcard(apis, others, apps):
    """A start, which alone reads its configuration, leaves the host without its names. All others are in a file."""
    now, then = config(apis, apps), config(others, apps)
    if now and then:
        assert now.config == then.config == resolver_records.on_the_way(now, then).config


WANTED = {API: ["192.0.2.100"], APPS: ["192.0.2.102"]}


def test_resolvers_that_lead_elsewhere_are_named_with_where():
    """As those of hosts outside --limit."""
    old, half = {**WANTED, API: ["192.0.2.101"]}, {APPS: ["192.0.2.102"]}
    answered = {"w1": old, "w2": dict(WANTED), "w3": {}, "w4": old, "w5": half}
    assert resolver_records.outdated(WANTED, answered) == [
        f"w1, w4: the resolver leads {API} to 192.0.2.101, and not to 192.0.2.100. Run onprem.lb.site without --limit.",
        f"w5: the resolver leads {API} nowhere, and not to 192.0.2.100. Run onprem.lb.site without --limit.",
    ]
    assert resolver_records.outdated({}, answered) == []  # nobody knows
