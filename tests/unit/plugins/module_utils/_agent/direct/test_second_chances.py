# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the answers of a server say of its second chances. The test plays the server."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.proofs import FALL, TRAFFIC_CLASS
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.second_chances import INTERVAL, SecondChances, Way
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import segments
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.segments import ACK, RST, Ends
from support.agent.loops import Time

KEY, OTHER = ("192.0.2.100", 6443, "192.0.2.1"), ("192.0.2.100", 6443, "192.0.2.2")
ENDS, MAC = Ends("192.0.2.9", 40001, *KEY[:2]), "02:00:00:00:00:01"
OTHER_MAC = "02:00:00:00:00:02"


def hands_on(traffic_class):
    """Answer with the mark."""
    return traffic_class | TRAFFIC_CLASS


def has_lost_its_table(traffic_class):
    """Answer with what has arrived, as Linux does."""
    return traffic_class


def answers_without_a_class(_traffic_class):
    return 0


def drops(_traffic_class):
    """Answer nothing."""


class Case(Time):
    ports = [40000 + number for number in range(16)]

    def __init__(self):
        super().__init__()
        self.sent, self.answering = [], MAC  # the MAC from which an answer comes
        self.chances = SecondChances(self, self)
        self.chances.way = lambda _key, _source, port: Way(OTHER[2], "" if port == 40001 else MAC)

    def send(self, packet, mac):
        self.sent.append((segments.read(packet), mac))

    def round(self, does, key=KEY):
        """Ask once, and have the server answer; return what is known of it then."""
        self.advance(INTERVAL)
        del self.sent[:]
        self.chances.ask(key, ENDS, MAC)
        for asked, _mac in self.sent:
            traffic_class = does(asked.traffic_class)
            if traffic_class is not None:
                ends = Ends(ENDS.destination, ENDS.destination_port, ENDS.source, ENDS.source_port)
                self.chances.take(segments.Segment(ends, RST, 0, asked.acknowledged, traffic_class), self.answering)
        return self.chances.of(key).given

    def rounds(self, does, count=FALL + 1, key=KEY):
        return [self.round(does, key) for _each in range(count)]


@pytest.fixture
def case():
    return Case()


def test_two_segments_of_no_connection_are_sent_of_which_one_has_the_mark_of_one_that_is_returned(case):
    case.round(drops)
    (marked, _mac), (plain, mac) = case.sent
    assert (marked.flags, plain.flags, mac) == (ACK, ACK, MAC) and marked.acknowledged != plain.acknowledged
    assert (marked.traffic_class, plain.traffic_class) == (TRAFFIC_CLASS | 3, 0)


@pytest.mark.parametrize(
    "does, given",
    [(hands_on, True), (has_lost_its_table, False), (answers_without_a_class, None), (drops, None)],
)
def test_what_a_server_does_is_known_from_its_answers_or_not_at_all(case, does, given):
    assert case.rounds(does)[-1] is given


def test_one_lost_packet_is_no_lost_table(case):
    assert case.rounds(hands_on)[-1] is True
    assert case.round(has_lost_its_table) is True
    assert case.rounds(hands_on)[-1] is True


def test_a_table_that_is_back_is_known_at_the_next_question(case):
    assert case.rounds(has_lost_its_table)[-1] is False
    assert case.rounds(hands_on, 2) == [False, True]


def test_a_server_that_says_nothing_any_more_is_not_known(case):
    assert case.rounds(hands_on)[-1] is True
    assert case.rounds(drops, FALL + 2)[-1] is None


def test_nobody_is_asked_more_often_than_every_interval_and_a_change_is_said_once(case):
    assert [case.chances.ask(KEY, ENDS, MAC) for _each in range(3)] == [False] * 3 and len(case.sent) == 2
    case.round(hands_on)
    case.advance(INTERVAL)
    assert [case.chances.ask(KEY, ENDS, MAC) for _each in range(2)] == [True, False]


def test_an_answer_of_another_vip_or_a_late_one_or_no_reset_counts_for_nothing(case):
    case.advance(INTERVAL)
    case.chances.ask(KEY, ENDS, MAC)
    ends = Ends(ENDS.destination, ENDS.destination_port, ENDS.source, ENDS.source_port)
    for asked, _mac in list(case.sent):
        for wrong in (ends._replace(source="192.0.2.101"), ends):
            flags = RST if wrong != ends else RST | ACK
            case.chances.take(segments.Segment(wrong, flags, 0, asked.acknowledged, TRAFFIC_CLASS), MAC)
    assert case.rounds(drops)[-1] is None
    case.chances.keep([OTHER])
    case.chances.take(segments.Segment(ends, RST, 0, case.sent[-1][0].acknowledged, TRAFFIC_CLASS), MAC)
    assert case.chances.of(KEY).given is None


def asked_from(case):
    return case.sent[-1][0].ends.source_port


def test_each_question_is_of_another_bucket_whose_answering_server_is_known(case):
    ports = set()
    for _each in range(200):
        case.round(hands_on)
        ports.add(asked_from(case))
    assert len(ports) > 1 and not ports & {40000, 40001}


def test_a_server_that_hands_on_to_another_one_than_it_should_is_asked_the_same_until_it_does_not(case):
    assert [case.rounds(hands_on, key=key)[-1] for key in (OTHER, KEY)] == [True, True]
    case.answering, ports = OTHER_MAC, set()
    for expected in (True, True, False, False):  # the answers to a question are judged at the next one
        assert case.round(hands_on) is expected
        ports.add(asked_from(case))
    assert case.chances.of(KEY).by_other_list and len(ports) == 1
    case.answering = MAC
    assert case.rounds(hands_on, 2) == [False, True] and not case.chances.of(KEY).by_other_list


def test_where_the_one_that_returns_it_may_have_no_table_another_answer_says_nothing_of_lists(case):
    case.chances.way = lambda _key, _source, _port: Way("192.0.2.3", MAC)  # which may have no table
    case.answering = OTHER_MAC
    assert case.rounds(hands_on)[-1] is True
