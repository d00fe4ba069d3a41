# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When which path is probed, and what an answer or silence leads to. The test plays the servers."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct import proofs
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.prober import INTERVAL, Prober
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.proofs import Path, Target
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import segments
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.netlink import Link
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.segments import ACK, RST, SYN
from support.agent.loops import Time

VIP, PORT, OWN_PORT = "192.0.2.100", 6443, 40001
A, B = (VIP, PORT, "192.0.2.1"), (VIP, PORT, "192.0.2.2")
MACS = {A: "02:00:00:00:00:01", B: "02:00:00:00:00:02"}
OTHER = "02:00:00:00:00:77"
LINK = Link(2, "eth0", True, bytes.fromhex("020000000099"))
TARGETS = {key: Target(mac, "192.0.2.9") for key, mac in MACS.items()}


class Case(Time):
    """A loop, and a wire whose servers answer as the test says: by their MACs, the flags of their answers."""

    ports = [OWN_PORT, OWN_PORT + 1]

    def __init__(self):
        super().__init__()
        self.answers, self.sent, self.ready, self.waiting, self.links = (
            dict.fromkeys(MACS.values(), SYN | ACK),
            [],
            None,
            [],
            [],
        )
        self.changes, self.closed, self.questions = 0, False, []
        self.prober = Prober(self, self, self.count)

    def count(self):
        self.changes += 1

    def watch(self, _descriptor, callback):
        self.ready = callback

    def forget(self, _descriptor):
        self.ready = None

    def descriptors(self):
        return [7]

    def mtu(self):
        return 1500

    def use(self, link):
        self.links.append(link)

    def close(self):
        self.closed = True

    def send(self, packet, mac):
        segment, sequence = segments.read(packet), int.from_bytes(packet[24:28], "big")
        if segment.flags == ACK:
            self.questions.append((segment.ends, mac, self.sent[-1][0]))
            return
        self.sent.append((segment.flags, sequence, mac))
        if segment.flags == SYN and self.answers.get(mac):
            self.waiting.append((self.answer(segment.ends, sequence, self.answers[mac]), mac))

    @staticmethod
    def answer(ends, sequence, flags):
        back = segments.Ends(ends.destination, ends.destination_port, ends.source, ends.source_port)
        return segments.Segment(back, flags, (sequence + 1) % (1 << 32))

    def receive(self):
        found, self.waiting = self.waiting, []
        return found

    def arrives(self):
        if self.waiting:
            self.ready(1)

    def rounds(self, number):
        """Let that many intervals pass, with answers to the probes of each."""
        for _each in range(number):
            self.advance(INTERVAL)
            self.arrives()

    def flags(self, mac):
        return [flags for flags, _sequence, to in self.sent if to == mac]

    def states(self):
        return {key: path.proven for key, path in self.prober.paths.items()}


@pytest.fixture
def case():
    return Case()


@pytest.fixture
def proven(case):
    case.prober.want(LINK, TARGETS)
    case.arrives()
    return case


def test_a_path_is_probed_at_once_and_each_probe_ends_with_a_reset(proven):
    assert proven.states() == {A: True, B: True}
    assert proven.changes == 1, "the answers of one moment are one piece of news"
    for mac in MACS.values():
        (syn, first, _to), (reset, second, _to) = [each for each in proven.sent if each[2] == mac]
        assert (syn, reset) == (SYN, RST) and second == (first + 1) % (1 << 32)


def test_the_proof_is_repeated_and_says_nothing_new(proven):
    proven.rounds(3)
    assert proven.flags(MACS[A]) == [SYN, RST] * 4
    assert proven.changes == 1


def test_no_server_is_silent_while_this_process_or_the_whole_machine_stands_still(proven):
    proven.advance(INTERVAL)
    for _each in range(proofs.FALL):
        proven.stand_still(2 * INTERVAL)
        proven.advance(0)
    proven.arrives()
    assert proven.states() == {A: True, B: True} and proven.changes == 1


def test_who_answers_is_asked_for_second_chances_once_its_connection_is_reset(proven):
    ends = segments.Ends("192.0.2.9", OWN_PORT + 1, VIP, PORT)
    assert proven.questions == [(ends, mac, RST) for mac in MACS.values() for _segment in range(2)]
    proven.answers.clear()
    proven.rounds(20)
    assert len(proven.questions) == 4


def test_silence_proves_nothing_and_leaves_no_half_of_a_connection(case):
    case.answers.clear()
    case.prober.want(LINK, TARGETS)
    case.advance(INTERVAL - 1)
    assert case.prober.paths == {A: Path(), B: Path()}
    case.advance(1)
    assert case.prober.paths[A] == Path(MACS[A], proofs.SILENT, 1)
    assert case.flags(MACS[A]) == [SYN, RST, SYN] and case.changes == 1


def test_a_path_is_lost_after_two_silences_and_proven_by_one_answer(proven):
    proven.answers[MACS[A]] = 0
    proven.rounds(2)
    assert proven.states() == {A: True, B: True}
    proven.rounds(1)
    assert proven.states() == {A: False, B: True}
    proven.answers[MACS[A]] = SYN | ACK
    proven.rounds(1)
    assert proven.states() == {A: True, B: True}


def test_a_probe_waits_a_whole_interval_for_its_answer(proven):
    proven.advance(INTERVAL // 2)
    new = (VIP, PORT, "192.0.2.3")
    proven.prober.want(LINK, {**TARGETS, new: Target(OTHER, "192.0.2.9")})
    proven.rounds(1)
    assert not proven.prober.paths[new].judged
    proven.rounds(1)
    assert proven.prober.paths[new].outcome == proofs.SILENT


def test_refusal_and_another_host_are_what_they_are(case):
    case.answers[MACS[A]] = RST | ACK
    case.prober.want(LINK, TARGETS)
    case.waiting = [(segment, OTHER if mac == MACS[B] else mac) for segment, mac in case.waiting]
    case.arrives()
    assert [case.prober.paths[key].outcome for key in (A, B)] == [proofs.REFUSED, proofs.ELSEWHERE]
    assert case.flags(OTHER) == [RST], "the half of the connection is there"


def test_an_answer_for_another_vip_or_probe_counts_for_nothing(case):
    case.prober.want(LINK, TARGETS)
    (first, mac), (second, other) = case.waiting
    wrong = first._replace(ends=first.ends._replace(source="192.0.2.101"))
    case.waiting = [(wrong, mac), (second._replace(acknowledged=second.acknowledged ^ 1), other)]
    case.arrives()
    assert case.states() == {A: False, B: False} and case.changes == 0


def test_an_answer_that_is_too_late_is_reset_and_counts_for_nothing(proven):
    proven.advance(INTERVAL)
    (late, mac), _other = proven.waiting
    proven.arrives()
    proven.answers.clear()
    proven.prober.want(LINK, TARGETS)
    before = proven.prober.paths[A]
    proven.waiting = [(late._replace(flags=RST), mac)]
    proven.arrives()
    assert proven.prober.paths[A] == before and proven.sent[-1][0] == RST


def test_a_new_mac_is_probed_at_once_and_nothing_else_is_known_until_it_is_judged(proven):
    proven.answers[OTHER] = SYN | ACK
    proven.prober.want(LINK, {**TARGETS, A: Target(OTHER, "192.0.2.9")})
    assert proven.prober.paths[A] == Path(MACS[A], proofs.ANSWERED, 0, True)
    proven.arrives()
    assert proven.prober.paths[A] == Path(OTHER, proofs.ANSWERED, 0, True)


def test_a_dead_server_is_not_asked_and_must_prove_its_path_again(proven):
    proven.prober.want(LINK, {**TARGETS, A: TARGETS[A]._replace(alive=False)})
    asked = len(proven.flags(MACS[A]))
    proven.rounds(2)
    assert proven.prober.paths[A] == Path(MACS[A]) and len(proven.flags(MACS[A])) == asked
    proven.prober.want(LINK, TARGETS)
    proven.arrives()
    assert proven.states() == {A: True, B: True}


def test_without_an_own_address_nobody_can_be_asked(case):
    case.prober.want(LINK, {A: Target(MACS[A], "")})
    case.rounds(1)
    assert case.prober.paths[A].outcome == proofs.NO_SOURCE and case.sent == []


def test_what_was_proven_stays_while_the_link_is_away(proven):
    proven.prober.want(None, {})
    proven.rounds(5)
    assert proven.states() == {A: True, B: True} and proven.flags(MACS[A]) == [SYN, RST]
    proven.prober.want(LINK, TARGETS)
    assert proven.states() == {A: True, B: True} and proven.flags(MACS[A]) == [SYN, RST, SYN]


def test_what_is_no_target_any_more_is_forgotten(proven):
    proven.prober.want(LINK, {B: TARGETS[B]})
    assert set(proven.prober.paths) == {B}


def test_the_end_resets_what_is_under_way(case):
    case.prober.want(LINK, TARGETS)
    case.prober.close()
    assert case.flags(MACS[A]) == [SYN, RST] and case.closed and case.ready is None
    case.advance(5 * INTERVAL)
    assert case.flags(MACS[A]) == [SYN, RST]
