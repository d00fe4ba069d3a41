# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a server of direct return is to have, and what changes lead there."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct import config
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.server import setup
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.server.setup import NOTHING, Found, Record
from support.direct.configs import API6, with_service, written

OWN = ("192.0.2.1", "2001:db8::1")
CHANGED = "The table of second chances was changed or removed since it was loaded."
IGNORE, ANNOUNCE = "net/ipv4/conf/all/arp_ignore", "net/ipv4/conf/all/arp_announce"
PROBING = "net/ipv4/tcp_mtu_probing"
AT_FIRST = Found({"127.0.0.1/8"}, {IGNORE: "0", ANNOUNCE: "0", PROBING: "0"}, {})
TABLES = {"ip": "a", "ip6": "b"}


def settings(text):
    found, faults = config.parse(text)
    assert faults == []
    return found


def wanted(text="", own=OWN):
    return setup.setup(settings(text or written()), own)


def in_force(of, **others):
    """Return what the kernel has once a setup is in force, and the record of that, with some differences."""
    found = Found({"127.0.0.1/8", *of.addresses}, dict(of.kernel), TABLES)._replace(**others)
    return found, Record(of.addresses, dict.fromkeys(of.kernel, "0"), of.checksum, TABLES)


def test_it_has_its_vips_alone_in_their_networks_and_is_silent_about_them():
    found = wanted()
    assert found.addresses == ("192.0.2.100/32", "2001:db8::100/128")
    assert found.kernel["net/ipv4/conf/eth0/arp_ignore"] == found.kernel[IGNORE] == "1"
    assert found.kernel["net/ipv4/conf/eth0/arp_announce"] == found.kernel[ANNOUNCE] == "2"


def test_ipv6_alone_needs_no_setting_of_arp():
    assert wanted(written(services=[API6])).kernel == {PROBING: "1"}


def test_what_tcp_did_before_comes_back():
    found, record = in_force(wanted())
    assert found.kernel[PROBING] == "1"
    assert setup.changes(NOTHING, found, record).given_back[PROBING] == "0"
    others = {**found.kernel, PROBING: "2"}
    assert PROBING not in setup.changes(NOTHING, found._replace(kernel=others), record).given_back


def test_its_table_has_every_server_whatever_its_weight():
    drained = [{"address": "192.0.2.1"}, {"address": "192.0.2.2", "weight": 0}]
    ready = [{"address": "192.0.2.1"}, {"address": "192.0.2.2", "weight": 1}]
    assert wanted(with_service(servers=drained)) == wanted(with_service(servers=ready))


def test_its_own_part_is_the_one_of_its_address_in_each_family():
    assert wanted(own=["192.0.2.1"]) != wanted() != wanted(own=["2001:db8::1"])


def test_a_service_of_other_servers_is_refused():
    (sentence,) = setup.strangers(settings(written()), ["2001:db8::2", "192.0.2.9"])
    assert sentence.startswith("api has the servers 192.0.2.1, 192.0.2.2, 192.0.2.3, and this host has none")
    assert setup.strangers(settings(written()), OWN) == []


def test_what_is_in_force_differs_in_nothing():
    assert setup.differences(wanted(), *in_force(wanted())) == []


@pytest.mark.parametrize(
    "others, sentence",
    [
        ({"addresses": {"192.0.2.100/32"}}, "2001:db8::100/128 is not on lo."),
        ({"kernel": {**wanted().kernel, IGNORE: "0"}}, f"{IGNORE} is 0, and 1 is required."),
        ({"tables": {"ip": "a"}}, CHANGED),
        (
            {"tables": {"ip": "a", "ip6": "c"}},
            "The table of second chances was changed or removed since it was loaded.",
        ),
    ],
    ids=["address", "setting", "table gone", "table changed"],
)
def test_each_part_that_is_not_in_force_is_a_difference(others, sentence):
    assert setup.differences(wanted(), *in_force(wanted(), **others)) == [sentence]


def test_a_setting_that_the_kernel_lacks_is_a_difference():
    found, record = in_force(wanted())
    lacking = found._replace(kernel={name: value for name, value in found.kernel.items() if name != IGNORE})
    assert setup.differences(wanted(), lacking, record) == [f"{IGNORE} is not there, and 1 is required."]


def test_other_services_are_a_difference_although_the_table_is_as_it_was_loaded():
    with_less = wanted(with_service())
    found, record = in_force(wanted())
    assert setup.differences(with_less, found, record) == [
        "2001:db8::100/128 is still on lo.",
        "The table of second chances was not loaded from these services.",
    ]


def test_the_first_time_everything_is_made_and_what_was_before_is_recorded():
    todo = setup.changes(wanted(), AT_FIRST, Record())
    assert (todo.dropped, todo.added, todo.given_back) == ([], list(wanted().addresses), {})
    assert todo.kernel == wanted().kernel
    assert (todo.record.kernel[IGNORE], tuple(todo.record.addresses)) == ("0", wanted().addresses)


def test_what_was_before_stays_recorded_when_it_is_repeated():
    found, record = in_force(wanted())
    todo = setup.changes(wanted(), found, record)
    assert (todo.dropped, todo.kernel, todo.added, todo.given_back) == ([], {}, [], {})
    assert todo.record.kernel == record.kernel and tuple(todo.record.addresses) == record.addresses


def test_an_address_that_was_there_before_is_never_taken_away():
    before = AT_FIRST._replace(addresses={"192.0.2.100/32"})
    record = setup.changes(wanted(), before, Record()).record
    assert record.addresses == ["2001:db8::100/128"]
    assert setup.changes(NOTHING, in_force(wanted())[0], record).dropped == ["2001:db8::100/128"]


def test_a_removal_takes_everything_back():
    found, record = in_force(wanted())
    todo = setup.changes(NOTHING, found, record)
    assert (tuple(todo.dropped), todo.added, todo.kernel) == (wanted().addresses, [], {})
    assert todo.given_back == record.kernel


def test_a_setting_that_another_hand_has_changed_since_stays():
    found, record = in_force(wanted(), kernel={**wanted().kernel, IGNORE: "2"})
    assert set(setup.changes(NOTHING, found, record).given_back) == set(wanted().kernel) - {IGNORE}


def test_another_interface_gives_the_settings_of_the_first_one_back():
    found, record = in_force(wanted())
    todo = setup.changes(wanted(written(interface="eth1")), found, record)
    assert set(todo.given_back) == {"net/ipv4/conf/eth0/arp_ignore", "net/ipv4/conf/eth0/arp_announce"}
    assert "net/ipv4/conf/eth0/arp_ignore" not in todo.record.kernel


def test_an_interruption_leaves_a_record_of_both():
    found, record = in_force(wanted())
    after = setup.changes(wanted(with_service(bind="192.0.2.101")), found, record).record
    assert setup.both(record, after).addresses == ["192.0.2.100/32", "192.0.2.101/32", "2001:db8::100/128"]
    assert setup.both(record, after).kernel[IGNORE] == "0"


@pytest.mark.parametrize("data", [None, [], {}, {"addresses": []}, "record"])
def test_a_record_of_another_version_counts_as_none(data):
    assert setup.record_of(data) == Record()
