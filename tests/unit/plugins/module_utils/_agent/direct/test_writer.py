# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which transactions are made when, with an nft and a clock that the test moves."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct import handover, rulesets, writer
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.buckets import Server
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.nft import Ended
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.rulesets import Service
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.sockets import Connection
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.writer import Writer
from support.agent.loops import SECOND, Time

ADDRESSES = [f"192.0.2.{number}" for number in (1, 2, 3)]
MACS = {address: f"02:00:00:00:00:0{number}" for number, address in enumerate(ADDRESSES, 1)}
REFUSED = "nft refuses: so."


def table(*up, port=6443):
    servers = [Server(address, drains=address not in (up or ADDRESSES)) for address in ADDRESSES]
    return rulesets.of_balancer([Service("192.0.2.100", port, servers, 256)], "eth0", MACS, "02:00:00:00:00:99")


ALL, TWO, ONE = table(), table(*ADDRESSES[:2]), table(ADDRESSES[0])


OURS = {"family": "netdev", "name": "onprem_lb_direct"}


def listing(*tables):
    return Ended(json.dumps({"nftables": [{"metainfo": {}}, *({"table": {**each, "handle": 1}} for each in tables)]}))


class Case:
    """A writer, and what it has nft do."""

    def __init__(self):
        self.time, self.log, self.changes, self.texts, self.done = Time(), Counter(), 0, [], []
        self.tables, self.connections = [OURS], []  # those of the kernel at the start, and of this host's programs
        self.faults, self.read = [], lambda: self.connections
        self.writer = Writer(self.time, self, self, self.changed, self.connected, lambda: 1000.0)

    def connected(self, places):
        return [each for each in self.read() if (each.local, each.port) in places]

    def list(self, what, done):
        assert what == ["tables", "netdev"]
        done(self.tables if isinstance(self.tables, Ended) else listing(*self.tables))

    def changed(self):
        self.changes += 1

    def load(self, text, done):
        self.texts.append(text)
        self.done.append(done)

    def end(self, fault=""):
        """End the transaction under way."""
        self.done.pop(0)(Ended("", fault))

    def wrote(self):
        """Return what was written since the last call: whole tables, or changes of elements."""
        found, self.texts = ["whole" if text.startswith("add table") else "change" for text in self.texts], []
        return found

    def _note(self, *words):
        self.log[words[0]] += 1

    def fault(self, key, text):
        self.faults.append(text)
        self._note(key)

    info = warning = cured = _note


@pytest.fixture
def case():
    return Case()


@pytest.fixture
def written(case):
    """One that has written its first table."""
    case.writer.want(ALL)
    case.end()
    case.wrote()
    return case


def test_the_first_table_is_written_as_a_whole_and_a_change_as_a_change(case):
    case.writer.want(ALL)
    assert case.writer.in_force is None
    case.end()
    assert case.writer.in_force == ALL
    case.writer.want(TWO)
    assert case.wrote() == ["whole", "change"]
    case.end()
    assert (case.writer.in_force, case.writer.fault, case.changes) == (TWO, None, 3)


@pytest.mark.parametrize("tables, there", [([OURS], True), ([{**OURS, "family": "inet"}], False), ([], False)])
def test_a_table_of_an_earlier_run_counts_until_it_is_replaced(case, tables, there):
    case.tables = tables
    assert not case.writer.is_there
    case.writer.want(ALL)
    assert (case.writer.is_there, case.writer.in_force, case.changes) == (there, None, 1)


def test_the_same_table_is_not_written_again(written):
    written.writer.want(table())
    assert written.wrote() == []


def test_a_table_with_other_owners_and_the_same_elements_is_in_force_without_a_transaction(written):
    """As with two servers that have one MAC."""
    other = ALL._replace(owners={place: frozenset() for place in ALL.owners})
    written.writer.want(other)
    assert written.wrote() == [] and written.writer.in_force == other


def test_what_is_wanted_meanwhile_is_written_next_and_what_was_wanted_in_between_is_not(written):
    for wanted in (TWO, ONE, TWO, ONE):
        written.writer.want(wanted)
    assert len(written.texts) == 1
    written.end()
    assert written.wrote()[1:] == ["change"]
    written.end()
    assert written.writer.in_force == ONE and written.done == []


def test_how_long_a_change_took_is_counted_from_when_it_was_wanted(written):
    written.writer.want(TWO)
    written.time.advance(30_000)
    written.writer.want(ONE)
    written.time.advance(20_000)
    written.end()
    assert written.writer.took == 50_000
    written.time.advance(10_000)
    written.end()
    assert written.writer.took == 30_000


def test_a_refused_change_is_made_by_the_whole_table_at_once(written):
    written.writer.want(TWO)
    written.end(REFUSED)
    assert (written.wrote(), written.writer.fault) == (["change", "whole"], None)
    written.end()
    assert written.writer.in_force == TWO


def test_a_refused_table_leaves_what_there_is_and_is_tried_again_after_longer_and_longer(written):
    written.writer.want(table(port=443))
    for wait in (1, 2, 4, 8, 16, 30, 30):
        written.end(REFUSED)
        assert (written.writer.in_force, written.writer.fault) == (ALL, REFUSED)
        written.time.advance(wait * SECOND - 1)
        assert written.done == []
        written.time.advance(1)
        assert len(written.done) == 1
    written.end()
    written.end()
    assert written.writer.fault is None and written.writer.in_force == table(port=443)


def test_another_table_than_the_refused_one_is_tried_at_once(written):
    written.writer.want(table(port=443))
    written.end(REFUSED)
    written.writer.want(TWO)
    assert written.wrote()[-1:] == ["change"]
    written.end()
    written.time.advance(60 * SECOND)
    assert written.writer.in_force == TWO and written.done == []


def test_a_lost_table_is_written_anew_at_once(written):
    written.writer.lost("gone")
    assert written.writer.in_force is None
    written.time.advance(0)
    assert written.wrote() == ["whole"]
    written.end()
    assert written.writer.in_force == ALL and written.writer.counts["restored"] == 1


def test_one_that_is_lost_again_within_a_second_is_written_at_once(written):
    for _again in range(writer.AT_ONCE):
        written.writer.lost("gone")
        written.time.advance(0)
        written.end()
        assert written.writer.in_force == ALL
    written.writer.lost("gone")
    written.time.advance(0)
    assert written.writer.in_force is None
    written.time.advance(writer.RESTORE_INTERVAL)
    written.end()
    assert written.writer.in_force == ALL


def test_one_that_is_lost_again_and_again_is_written_once_a_second(written):
    for _again in range(200):
        written.writer.lost("gone")
        written.time.advance(SECOND // 20)
        if written.done:
            written.end()
    assert len(written.wrote()) == written.log["gone"] == writer.AT_ONCE + 10  # in 10 seconds
    assert written.writer.in_force == ALL


def test_a_change_of_another_program_during_a_transaction_is_not_overlooked(written):
    written.writer.want(TWO)
    written.writer.lost("gone")
    written.end()
    assert written.writer.in_force is None
    written.time.advance(0)
    assert written.wrote() == ["change", "whole"]
    written.end()
    assert written.writer.in_force == TWO


def test_who_waits_hears_when_it_is_written_or_why_not(written):
    heard = []
    written.writer.when_written(heard.append)
    assert heard == [None]
    written.writer.want(TWO)
    written.writer.when_written(heard.append)
    assert len(heard) == 1
    written.end()
    assert heard == [None, None]
    written.writer.want(table(port=443))
    written.writer.when_written(heard.append)
    written.end(REFUSED)
    assert heard[2:] == [REFUSED]


def test_after_its_removal_no_table_is_written(written):
    ended = []
    written.writer.want(TWO)
    written.writer.remove(ended.append)
    written.end()
    written.writer.lost("gone")
    written.end()
    written.time.advance(60 * SECOND)
    assert ended == [Ended("")] and written.done == []
    assert written.texts[-1] == "add table netdev onprem_lb_direct\ndelete table netdev onprem_lb_direct\n"


WEB = ("192.0.2.100", 443)
CONNECTION = Connection("192.0.2.100", 6443, "192.0.2.7", 40000)
NOTED = "add element netdev onprem_lb_direct servers_0_own { 192.0.2.100 . 6443 . 192.0.2.7 . 40000 }\n"


@pytest.fixture
def first(case):
    """One whose kernel has no table at the start, and whose host has a connection."""
    case.tables, case.connections = [{"family": "ip", "name": "onprem_lb_direct"}], [CONNECTION]
    return case


def leaving(*up, port=6443):
    servers = [Server(address, drains=address not in (up or ADDRESSES)) for address in ADDRESSES]
    return rulesets.of_balancer(
        [Service("192.0.2.100", port, servers, 256, left=True)], "eth0", MACS, "02:00:00:00:00:99"
    )


def test_the_first_table_leaves_everything_to_the_host_and_the_next_notes_what_it_has(first):
    first.writer.want(ALL)
    assert first.texts[0].startswith(rulesets.whole(handover.settling(ALL, ALL.places)))
    first.end()
    assert first.writer.in_force is None and first.writer.took is None
    assert first.texts[1] == rulesets.change(handover.settling(ALL, ALL.places), ALL) + NOTED
    first.time.advance(SECOND)
    first.end()
    assert first.writer.in_force == ALL and first.writer.took == SECOND
    assert first.done == [] and first.writer.counts == {"transactions": 2, "whole": 1, "refused": 0, "restored": 0}


def test_connections_that_begin_before_the_second_table_are_in_it(first):
    first.connections = []
    first.writer.want(ALL)
    first.connections = [CONNECTION]
    first.end()
    assert first.texts[1].endswith(NOTED)


def unread():
    raise FileNotFoundError(2, "No such file or directory", "/proc/self/net/tcp")


def test_while_the_connections_of_the_host_cannot_be_read_everything_is_left_to_it(first):
    first.read = unread
    first.writer.want(ALL)
    first.end()
    assert first.texts == [rulesets.whole(handover.settling(ALL, ALL.places))] and not first.done
    assert first.writer.in_force is None and first.writer.fault == writer.UNREAD
    assert first.faults and all("'/proc/self/net/tcp'" in text for text in first.faults)
    first.read = lambda: [CONNECTION]
    first.time.advance(SECOND)
    assert first.texts[1].endswith(NOTED)
    first.end()
    assert (first.writer.in_force, first.writer.fault) == (ALL, None)


def test_it_is_asked_for_again_while_they_cannot_be_read_and_nothing_is_written(first):
    first.read = unread
    first.writer.want(ALL)
    first.end()
    first.time.advance(100 * SECOND)
    first.writer.want(ALL)
    assert len(first.texts) == 1 and first.writer.fault == writer.UNREAD


def test_meanwhile_servers_leave_the_services_that_are_in_use(written):
    """Only what would come into use waits: a server that does not answer must not stay for that."""
    written.read = unread
    written.writer.want(both(*ADDRESSES))
    written.end()
    written.writer.want(both(ADDRESSES[0]))
    settling = [handover.settling(both(*up), [WEB]) for up in (ADDRESSES, ADDRESSES[:1])]
    assert written.texts == [rulesets.whole(settling[0]), rulesets.change(*settling)]
    written.end()
    written.read = lambda: [CONNECTION]
    written.time.advance(2 * SECOND)
    written.end()
    assert written.writer.in_force == both(ADDRESSES[0])


def test_a_table_that_is_lost_is_restored_although_they_cannot_be_read(written):
    written.read = unread
    written.writer.lost("gone")
    written.time.advance(0)
    assert written.texts == [rulesets.whole(ALL)] and len(written.faults) == 1


def test_new_connections_may_stay_with_the_host(first):
    first.writer.want(leaving())
    first.end()
    assert "servers_0_settling" in first.texts[1] and "servers_0_left" not in first.texts[1]
    first.end()
    assert first.writer.in_force == leaving()


def test_where_the_kernel_has_a_table_nothing_is_left_to_the_host(case):
    case.connections = [CONNECTION]
    case.writer.want(ALL)
    assert case.texts == [rulesets.whole(ALL, keep=True) + NOTED]
    case.end()
    assert case.writer.in_force == ALL and case.done == []


def test_a_table_of_an_earlier_run_that_cannot_be_kept_is_replaced_at_once(case):
    case.writer.want(ALL)
    case.end(REFUSED)
    assert case.texts[1] == rulesets.whole(ALL) and case.writer.fault is None
    case.end()
    case.writer.want(table(port=443))
    case.end()
    case.end()
    assert case.writer.in_force == table(port=443)


def test_each_whole_table_notes_what_the_host_has_and_a_change_does_not(written):
    written.connections = [CONNECTION]
    written.writer.want(TWO)
    written.end()
    assert NOTED not in written.texts[-1]
    written.writer.lost("gone")
    written.time.advance(0)
    assert written.texts[-1] == rulesets.whole(TWO) + NOTED


def both(*up):
    servers = [Server(address, drains=address not in up) for address in ADDRESSES]
    services = [Service("192.0.2.100", port, servers, 256) for port in (6443, 443)]
    return rulesets.of_balancer(services, "eth0", MACS, "02:00:00:00:00:99")


def test_a_service_that_comes_into_the_table_settles_and_no_other_one(written):
    wanted = both(*ADDRESSES)
    written.writer.want(wanted)
    assert written.texts == [rulesets.whole(handover.settling(wanted, [WEB]))]
    written.end()
    assert written.texts[1:] == [rulesets.change(handover.settling(wanted, [WEB]), wanted)]
    written.end()
    assert written.writer.in_force == wanted


def test_a_table_that_is_lost_while_it_settles_begins_again(first):
    first.writer.want(ALL)
    first.writer.lost("gone")
    first.end()
    first.time.advance(0)
    assert first.wrote() == ["whole", "whole"] and first.writer.in_force is None
    first.end()
    first.end()
    assert first.writer.in_force == ALL


def test_what_is_refused_while_it_settles_is_tried_again_after_longer_and_longer(first):
    """Such as more connections than a set takes."""
    first.writer.want(ALL)
    for wait in (1, 2, 4, 8, 16, 30, 30):
        first.end()
        first.end(REFUSED)
        assert (first.writer.in_force, first.writer.fault, first.done) == (None, REFUSED, [])
        first.time.advance(wait * SECOND - 1)
        assert first.done == []
        first.time.advance(1)
        assert first.wrote()[-1:] == ["whole"]
    first.end()
    first.end()
    assert (first.writer.in_force, first.writer.fault) == (ALL, None)


def test_what_is_wanted_while_it_settles_is_next(first):
    first.writer.want(ALL)
    first.writer.want(TWO)
    first.end()
    first.end()
    assert first.wrote() == ["whole", "change"] and first.writer.in_force == TWO


def test_who_waits_while_it_settles_hears_when_it_has(first):
    heard = []
    first.writer.want(ALL)
    first.writer.when_written(heard.append)
    first.end()
    assert heard == []
    first.end()
    assert heard == [None]


def test_while_new_connections_are_left_to_the_host_a_whole_table_keeps_what_is_noted(written):
    written.writer.want(leaving())
    written.end()
    assert written.wrote() == ["change"]
    written.writer.lost("gone")
    written.time.advance(0)
    assert written.texts == [rulesets.whole(leaving(), keep=True)]


def test_without_a_word_of_the_kernel_nothing_is_written(case):
    case.tables = Ended("", REFUSED)
    case.writer.want(ALL)
    assert (case.texts, case.writer.fault, case.changes) == ([], REFUSED, 1)
    case.tables = [OURS]
    case.time.advance(SECOND)
    case.end()
    assert (case.writer.in_force, case.writer.fault) == (ALL, None)
