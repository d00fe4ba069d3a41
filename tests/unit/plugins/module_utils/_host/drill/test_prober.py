# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The loop, with a world that has its own clock: no network, no waiting."""

from __future__ import annotations

import dataclasses
import errno
import heapq
import math

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.drill import prober

A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
NAMES = {A: "lb1", B: "lb2"}
VIP = "192.0.2.100"


class World:
    """Answers every connection as ``service(at_ms)`` says: (after so many ms, errno), or None for silence."""

    def __init__(self, service, holders=None, stalls=()):
        self.service, self.holders, self.stalls = service, holders or (lambda _at: []), dict(stalls)
        self.us, self.events, self.open, self.numbers, self.most = 0, [], {}, iter(range(10, 10**6)), 0
        self.heard = []

    # The clock and the poller of the loop.
    def clock(self):
        return self.us / 1e6

    def poll(self, wait):
        until = self.us + math.ceil(wait * 1e6)
        first = self.events[0][0] if self.events else until
        # A microsecond passes at least, as everywhere: rounding must not make time stand still.
        self.us = max(self.us + 1, min(until, first))
        for at in [at for at in self.stalls if self.us >= at * 1000]:
            self.us += self.stalls.pop(at) * 1000
        due = set()
        while self.events and self.events[0][0] <= self.us:
            due.add(heapq.heappop(self.events)[1])
        return [(number, 4) for number in sorted(due) if number == 3 or number in self.open]

    def register(self, number, _mask):
        pass

    modify = register

    def unregister(self, _number):
        pass

    # The sockets.
    def connect(self, _address, _port):
        answer = self.service(self.us / 1000)
        if isinstance(answer, int):
            return Socket(self, next(self.numbers), 0), answer
        sock = Socket(self, next(self.numbers), answer[1] if answer else 0)
        self.open[sock.number] = sock
        self.most = max(self.most, len(self.open))
        if answer:
            heapq.heappush(self.events, (self.us + round(answer[0] * 1000), sock.number))
        return sock, errno.EINPROGRESS

    # The neighbours, and the end of either.
    def fileno(self):
        return 3

    def probe(self, address):
        for mac in self.holders(self.us / 1000):
            self.heard.append((address, mac))
            heapq.heappush(self.events, (self.us + 200, 3))

    def replies(self):
        heard, self.heard = self.heard, []
        return heard

    def close(self):
        pass

    def run(self, settings, probing=False, goal=None):
        loop = prober.Prober(settings, self if probing else None, self.clock, self, self.connect)
        return loop.run(settings.duration_ms, goal)


class Socket:
    def __init__(self, world, number, error):
        self.world, self.number, self.error, self.sent, self.answer = world, number, error, b"", b"x"

    def fileno(self):
        return self.number

    def getsockopt(self, _level, _option):
        return self.error

    def send(self, data):
        self.sent += data
        reply = self.world.reply
        if reply is not None:
            self.answer = reply[1]
            heapq.heappush(self.world.events, (self.world.us + reply[0] * 1000, self.number))

    def recv(self, _size):
        return self.answer

    def close(self):
        self.world.open.pop(self.number, None)


def settings(**more):
    return prober.Settings(**{"address": VIP, "port": 80, "duration_ms": 1000.0, "names": NAMES, **more})


def outcomes(transcript):
    return [attempt.outcome for attempt in sorted(transcript.attempts)]


def good(_at):
    return (1, 0)


def test_attempts_start_on_a_fixed_grid_however_long_each_takes():
    seen = World(lambda _at: (37, 0)).run(settings())
    assert [a.start_ms for a in sorted(seen.attempts)] == pytest.approx([5.0 * n for n in range(200)], abs=0.01)
    assert set(outcomes(seen)) == {"ok"}
    assert all(a.end_ms - a.start_ms == pytest.approx(37, abs=0.01) for a in seen.attempts)
    assert (seen.skipped, seen.longest_stall_ms) == (0, pytest.approx(0, abs=0.01))


def test_silence_is_a_timeout_and_a_late_answer_is_slow():
    seen = World(lambda at: None if at < 100 else (1000, 0) if at < 200 else (1, 0)).run(settings(duration_ms=3000.0))
    assert outcomes(seen)[:20] == ["timeout"] * 20
    assert outcomes(seen)[20:40] == ["slow"] * 20
    assert set(outcomes(seen)[40:]) == {"ok"}


def test_whoever_waits_for_longer_sees_a_later_answer():
    def seen(late_ms):
        patient = settings(duration_ms=7000.0, late_ms=late_ms, interval_ms=20.0)
        return set(outcomes(World(lambda at: (5000, 0) if at < 100 else (1, 0)).run(patient)))

    assert (seen(1500.0), seen(5000.0)) == ({"timeout", "ok"}, {"slow", "ok"})


def test_a_refused_connection_is_a_failure_whether_at_once_or_later():
    seen = World(lambda at: errno.ENETUNREACH if at < 500 else (1, errno.ECONNREFUSED)).run(settings())
    assert outcomes(seen) == ["ENETUNREACH"] * 100 + ["refused"] * 100


def test_with_something_to_send_only_an_answer_is_a_success():
    for reply, outcome in (((1, b"x"), "ok"), ((1, b""), "closed"), (None, "timeout")):
        world = World(good)
        world.reply = reply
        assert set(outcomes(world.run(settings(send=b"GET /")))) == {outcome}


@pytest.mark.parametrize("status", ["200 OK", "404 Not Found", "500 Internal Server Error", "503 Service Unavailable"])
@pytest.mark.parametrize("fail", [False, True])
def test_a_balancer_that_says_that_no_server_answers_fails_where_that_is_wanted(status, fail):
    world = World(good)
    world.reply = (1, f"HTTP/1.1 {status}"[:16].encode())
    seen = world.run(settings(send=b"GET /", gateway_errors_fail=fail))
    assert set(outcomes(seen)) == {"unavailable" if fail and status.startswith("503") else "ok"}


@pytest.mark.parametrize(
    "answer, outcome", [(b"\x16\x03\x03", "ok"), (b"\x15\x03\x01", "ok"), (b"HTTP/1.0 400", "not TLS"), (b"", "closed")]
)
def test_where_tls_begins_only_tls_is_an_answer(answer, outcome):
    """A server of HTTP may take the bytes of a ClientHello for a bad request, or wait for the end of their line."""
    world = World(good)
    world.reply = (1, answer)
    assert set(outcomes(world.run(settings(send=b"hello", tls=True)))) == {outcome}


def test_no_more_than_a_bounded_number_of_attempts_is_open():
    world = World(lambda _at: None)
    seen = world.run(settings(interval_ms=1.0, timeout_ms=500.0, duration_ms=5000.0))
    assert world.most <= prober.MAX_OPEN
    assert outcomes(seen) == ["timeout"] * 5000
    assert not world.open


def test_a_pause_of_this_machine_is_not_an_outage_of_the_service():
    seen = World(good, stalls=[(501, 400)]).run(settings())
    assert set(outcomes(seen)) == {"ok"}
    assert seen.longest_stall_ms == pytest.approx(400, abs=5)
    # And it is not made up for in a burst.
    assert seen.skipped == pytest.approx(80, abs=1)
    assert len(seen.attempts) + seen.skipped == 200


class Stalling(World):
    """Stalls for 200 ms in the first call of a method that begins at 300 ms or later."""

    def __init__(self, method):
        super().__init__(lambda at: None if 400 <= at < 500 else good(at), lambda at: [] if 400 <= at < 500 else [A])
        wrapped = getattr(self, method)

        def stalling(*arguments):
            if 300_000 <= self.us < 400_000:
                self.us += 200_000
            return wrapped(*arguments)

        setattr(self, method, stalling)


@pytest.mark.parametrize("method", ["replies", "probe", "connect"])
def test_a_pause_is_reported_and_dates_no_attempt_wrongly_wherever_it_falls(method):
    world = Stalling(method)
    seen = world.run(settings(), probing=True)
    assert seen.longest_stall_ms == pytest.approx(200, abs=6)
    assert set(outcomes(seen)) == {"ok"}
    assert len(seen.attempts) + seen.skipped == 200 and seen.skipped == pytest.approx(40, abs=2)
    assert not [at for at in [*seen.probes, *(attempt.start_ms for attempt in seen.attempts)] if 310 < at < 500]


def test_a_failure_right_after_a_pause_does_not_count_from_before_it():
    """The service failed while this host stood still, between the clock and the connection."""
    world = Stalling("connect")
    world.service = lambda at: None if 400 <= at < 600 else good(at)
    seen = world.run(settings())
    assert min(attempt.start_ms for attempt in seen.attempts if attempt.outcome == "timeout") >= 500


def test_what_a_pause_at_the_end_leaves_out_is_counted_too():
    seen = World(good, stalls=[(901, 400)]).run(settings())
    assert (len(seen.attempts), seen.skipped) == (181, 19)


def test_the_holder_is_asked_on_the_same_grid():
    seen = World(good, holders=lambda _at: [A, B]).run(settings(), probing=True)
    assert len(seen.probes) == 200
    assert seen.sightings[:2] == [(pytest.approx(0.2, abs=0.01), A), (pytest.approx(0.2, abs=0.01), B)]


def test_an_answer_for_another_address_is_no_sighting():
    world = World(good)
    world.probe = lambda _address: (
        world.heard.append(("192.0.2.9", A)),
        heapq.heappush(world.events, (world.us, 3)),
    )
    assert world.run(settings(), probing=True).sightings == []


GOAL = prober.Goal(holder="lb1", quiet_ms=500.0, minimum_ms=1000.0)


def back_at(at_ms):
    return lambda at: [B] if at < at_ms else [A]


def test_it_ends_early_when_the_wanted_holder_has_been_alone_and_quiet_for_long_enough():
    seen = World(good, holders=back_at(2000)).run(settings(duration_ms=9000.0), True, GOAL)
    assert seen.settled
    assert seen.length_ms == pytest.approx(2500, abs=10)


def test_it_does_not_end_before_the_minimum():
    seen = World(good, holders=back_at(0)).run(settings(duration_ms=9000.0), True, GOAL)
    assert seen.length_ms == pytest.approx(1000, abs=10)


def test_the_probe_continues_until_the_file_exists(tmp_path):
    def service(at):
        if at >= 2000:
            (tmp_path / "enough").touch()
        return good(at)

    goal = dataclasses.replace(GOAL, path=str(tmp_path / "enough"))
    seen = World(service, holders=back_at(0)).run(settings(duration_ms=9000.0), True, goal)
    assert seen.settled
    assert seen.length_ms == pytest.approx(2000, abs=10)


def test_a_failure_starts_the_quiet_time_anew():
    def service(at):
        return None if 1000 <= at < 1200 else (1, 0)

    seen = World(service, holders=back_at(0)).run(settings(duration_ms=9000.0), True, GOAL)
    # Ended at the minimum, it would have missed that the first silent attempt was one.
    world = World(service, holders=back_at(0))
    later = world.run(settings(duration_ms=9000.0), True, prober.Goal("lb1", 500.0, 1, 1300.0))
    assert seen.length_ms == pytest.approx(1000, abs=10)
    assert later.length_ms == pytest.approx(1700, abs=10)


@pytest.mark.parametrize("holders", [lambda _at: [A, B], lambda _at: [B], lambda _at: []])
def test_it_goes_on_to_the_end_while_the_wanted_holder_is_not_alone(holders):
    seen = World(good, holders=holders).run(settings(duration_ms=2000.0), True, GOAL)
    assert not seen.settled
    assert seen.length_ms == pytest.approx(2000, abs=10)


def test_probing_begins_when_the_address_has_settled(monkeypatch):
    world = World(lambda at: None if at < 3000 else (1, 0), holders=lambda _at: [A])

    def make(wanted, neighbours):
        return prober.Prober(wanted, neighbours, world.clock, world, world.connect)

    monkeypatch.setattr(prober.time, "time", lambda: 1_790_000_000.0)
    seen = prober.probe(settings(settle=prober.Goal(holder="lb1", successes=20)), world, make)
    assert (seen["failed_attempts"], seen["holder_before"], seen["tried"]) == (0, "lb1", 200)
    assert seen["series"].split() == ["10"] * 200 and seen["started_at"] == 1_790_000_000.0


def test_what_does_not_settle_is_told_in_one_sentence():
    world = World(lambda _at: None, holders=lambda _at: [A, B])

    def make(wanted, neighbours):
        return prober.Prober(wanted, neighbours, world.clock, world, world.connect)

    wanted = settings(settle=prober.Goal(holder="lb1", successes=20), settle_limit_ms=2000.0)
    with pytest.raises(prober.NotSettled) as failed:
        prober.probe(wanted, world, make)
    assert str(failed.value) == (
        "192.0.2.100 port 80 did not settle within 2 s: 0 of 400 connections were answered; "
        "at the end it was held by lb1, lb2, and it should have been lb1."
    )


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"interval_ms": 0.5}, "at least 1"),
        ({"interval_ms": 1.0, "timeout_ms": 1000.0}, "more than 512"),
        ({"address": "vip.example"}, "not an IP address"),
        ({"until": prober.Goal(holder="lb9")}, "lb9 is to hold"),
        ({"settle": prober.Goal(holder="lb9")}, "lb9 is to hold"),
    ],
)
def test_what_cannot_be_probed_is_refused(more, why):
    assert why in prober.refusal(settings(**more))
    assert prober.refusal(settings()) == ""
