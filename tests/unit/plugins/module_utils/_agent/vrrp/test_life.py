# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The daemon's life: start, signals, reloads and the end. The daemon is a stand-in here, the signals are real."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import time

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent import VERSION, status
from ansible_collections.onprem.lb.plugins.module_utils._agent.loop import MILLION
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import life, settings

from .fakes import FRONT, Log

INSTANCE = {"name": "front", "interface": "eth0", "vrid": 51, "peers": ["192.0.2.2"], "addresses": ["192.0.2.10"]}
LIMIT = 20 * MILLION


class Notifier:
    def __init__(self, journal):
        self.journal = journal
        self.watchdog = None

    def __getattr__(self, said):
        return lambda *what: self.journal.append(" ".join(map(str, (f"systemd: {said}", *what))))


class Daemon:
    def __init__(self, world):
        self.world, self.settings = world, settings.Settings(())

    def start(self, wanted, later=False):
        self.world.journal.append(f"daemon: start{' later' * later}")
        self.settings = wanted
        if self.world.start_fails:
            raise OSError(errno.EIO, "no kernel")

    def remember(self):
        return {"front": "Active"}

    def resume(self, known):
        self.world.journal.append(f"daemon: resume {known}")

    def apply(self, wanted):
        self.world.journal.append(f"daemon: apply {wanted.instances[0].priority}")
        self.settings = wanted

    def leave(self, gone):
        self.world.journal.append("daemon: leave")
        self.world.linger(gone)

    def stop(self):
        self.world.journal.append("daemon: stop")

    def report(self):
        return {"instances": [each.name for each in self.settings.instances]}


class Network:
    def __init__(self, journal):
        self.journal = journal

    def close(self):
        self.journal.append("network: close")


class Checks:
    def __init__(self, journal):
        self.journal = journal

    def start(self, _loop, _on_result, _on_message):
        self.journal.append("checks: start")
        return self

    def stop(self):
        self.journal.append("checks: stop")


class Successor:
    """Of a version that behaves as the test says."""

    pid = 4711

    def __init__(self, world, _loop, environ, left, on_ready, on_end):
        self.world, self.on_ready, self.on_end = world, on_ready, on_end
        self.environ, self.left, self.known, self.goes_on = environ, left, None, True
        if world.start_fails:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        world.successors.append(self)
        world.journal.append("successor: start")

    def take_over(self, known):
        self.known = known
        self.world.meanwhile()
        return self.goes_on

    def close(self):
        self.world.journal.append("successor: close")


class Predecessor:
    """One that has the same configuration in force, unless the test says something else."""

    def __init__(self, world, text=None):
        self.world = world
        self.text = world.path.read_text() if text is None else text
        self.door = str(world.folder / "vrrp.sock")
        self.door_socket = status.listen(self.door)
        self.gone = False

    def ask(self):
        self.world.journal.append("predecessor: ask")
        if self.gone:
            raise life.Gone("It does not wait.")
        return {"since": 5.5, "daemon": {"front": "Active"}}

    def dismiss(self):
        self.world.journal.append("predecessor: dismiss")


class World:
    """Lives one life after the other, and keeps a journal of it."""

    def __init__(self, folder, monkeypatch):
        self.journal = journal = []
        self.folder, self.path = folder, folder / "agent.json"
        self.log, self.notifier = Log(journal), Notifier(journal)
        self.limits = []
        self.start_fails = False
        self.linger = lambda gone: gone()
        self.predecessor, self.successors, self.meanwhile = None, [], lambda: None
        monkeypatch.setattr(life.daemon, "Daemon", lambda _around: Daemon(self))
        monkeypatch.setattr(life, "Network", lambda: Network(journal))
        monkeypatch.setattr(life, "Checks", Checks(journal))
        monkeypatch.setattr(life.realtime, "prepare", self.prepare)
        monkeypatch.setattr(life, "Successor", lambda *given: Successor(self, *given))

    def prepare(self):
        self.journal.append("real-time")
        return self.limits

    def write(self, socket_name="vrrp.sock", **changes):
        whole = {"instances": [{**INSTANCE, **changes}], "status_socket": str(self.folder / socket_name)}
        self.path.write_text(json.dumps(whole))
        return settings.Settings((FRONT,), status_socket=whole["status_socket"])

    def lives(self, *happens, end=signal.SIGTERM):
        """Live; each of these happens after the other, and then the end is asked for, if it is to be."""
        wanted = self.write()
        one = life.Life(str(self.path), self.log, self.notifier, {"HOME": "/"}, self.predecessor)
        self.life = one
        waiting = [*happens, *([lambda: os.kill(os.getpid(), end)] if end else [])]

        def go_on():
            if waiting:
                waiting.pop(0)()
                one.loop.after(20_000, go_on)

        one.loop.after(0, go_on)
        one.loop.after(LIMIT, one.loop.stop)
        try:
            one.run(wanted)
        finally:
            one._signals.close()
            one.loop.close()
        assert not waiting, "it ended too early"
        return one

    def term(self):
        os.kill(os.getpid(), signal.SIGTERM)

    def hup(self):
        os.kill(os.getpid(), signal.SIGHUP)

    def renew(self):
        os.kill(os.getpid(), signal.SIGUSR2)

    def first_is_ready(self):
        self.successors[0].on_ready()

    def second_is_ready(self):
        self.successors[1].on_ready()


@pytest.fixture
def world(tmp_path, monkeypatch):
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR2)
    before = [signal.getsignal(number) for number in numbers]
    yield World(tmp_path, monkeypatch)
    signal.set_wakeup_fd(-1)
    for number, handler in zip(numbers, before):
        signal.signal(number, handler)


def first_of(callbacks):
    """Return what calls the first one, which comes later."""

    def call():
        callbacks[0]()

    return call


BEGIN = ["checks: start", "real-time", "daemon: start", "systemd: ready"]
GOODBYE = "says The addresses are given up; goodbye."
END = ["systemd: stopping", "daemon: stop", "checks: stop", "network: close", GOODBYE]


def test_the_checks_have_their_process_before_this_one_is_real_time_and_systemd_is_told_last(world):
    world.lives()
    assert world.journal[: len(BEGIN)] == BEGIN


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_whoever_ends_it_gets_everything_in_good_order(world, number):
    began = time.monotonic()
    world.lives(end=number)
    assert world.journal == [*BEGIN, "daemon: leave", *END]
    assert time.monotonic() - began < LIMIT / MILLION


def test_who_leaves_serves_on_until_nobody_needs_it_and_takes_no_new_settings(world):
    served = []
    world.linger = served.append
    one = world.lives(world.term, world.hup, first_of(served), end=None)
    assert world.journal == [*BEGIN, "daemon: leave", *END]
    assert not one.loop.running


def test_who_is_told_twice_leaves_at_once(world):
    world.linger = lambda gone: None
    world.lives(world.term)
    assert world.journal == [*BEGIN, "daemon: leave", *END]


def test_what_cannot_be_had_is_said_and_reported(world):
    world.limits = ["real-time scheduling: Operation not permitted"]
    one = world.lives()
    assert "says real-time scheduling: Operation not permitted" in world.journal
    assert one.report()["limits"] == world.limits


def test_a_reload_goes_over_to_what_the_file_says_and_tells_systemd(world):
    world.lives(lambda: world.write(priority=7), world.hup)
    assert world.journal[len(BEGIN) : -len(END)] == [
        "systemd: reloading",
        "daemon: apply 7",
        f"says {world.path} is in force.",
        "systemd: ready",
        "daemon: leave",
    ]


def test_a_bad_file_changes_nothing_and_is_said_and_reported_until_there_is_a_good_one(world):
    faults = []

    def look():
        faults.append(one.report()["config_fault"])

    wanted = world.write()
    one = life.Life(str(world.path), world.log, world.notifier, {})
    one.run = lambda _wanted: None  # only its reload is of interest
    one.daemon.settings = wanted
    one.door = status.Server(one.loop, wanted.status_socket, one.report)
    look()
    for text in ('{"instances": [', json.dumps({"instances": [{**INSTANCE, "vrid": 300}]})):
        world.path.write_text(text)
        one.reload()
        look()
    world.write(priority=8)
    one.reload()
    look()
    one.door.close()
    assert faults[0] is None
    assert "is no JSON" in faults[1]
    assert "vrid is 300" in faults[2]
    assert faults[3] is None
    said = [line for line in world.journal if "refused" in line]
    assert [fault in line for fault, line in zip(faults[1:3], said)] == [True, True]
    assert [line for line in world.journal if line.startswith("daemon")] == ["daemon: apply 8"]


def test_systemd_is_told_that_a_refused_reload_is_over(world):
    """Otherwise `systemctl reload` would wait for it."""
    world.lives(lambda: world.path.write_text("{"), world.hup)
    told = [line for line in world.journal if line.startswith("systemd")]
    assert told == ["systemd: ready", "systemd: reloading", "systemd: ready", "systemd: stopping"]


def test_a_file_that_is_gone_changes_nothing(world):
    world.lives(world.path.unlink, world.hup)
    assert not [line for line in world.journal if "apply" in line]
    assert [line for line in world.journal if "cannot be read: No such file or directory" in line]


def test_another_status_socket_takes_the_place_of_the_first(world):
    there = []

    def look():
        there.append(sorted(path.name for path in world.folder.glob("*.sock")))

    world.lives(look, lambda: world.write(socket_name="other.sock"), world.hup, look)
    assert there == [["vrrp.sock"], ["other.sock"]]
    assert not list(world.folder.glob("*.sock"))


def test_a_status_socket_that_cannot_be_had_refuses_the_reload_and_the_first_one_stays(world):
    (world.folder / "busy.sock").write_text("no socket")
    there = []
    one = world.lives(
        lambda: world.write(socket_name="busy.sock", priority=7),
        world.hup,
        lambda: there.append((world.folder / "vrrp.sock").is_socket()),
    )
    assert there == [True]
    assert "is no socket, but something else" in one.report()["config_fault"]
    assert not [line for line in world.journal if "apply" in line]


def test_two_reloads_at_once_are_one(world):
    world.lives(lambda: (world.hup(), world.hup()))
    assert world.journal.count("daemon: apply 100") == 1


def test_an_end_that_is_asked_for_together_with_a_reload_is_the_end(world):
    def both():
        for number in (signal.SIGHUP, signal.SIGTERM):
            os.kill(os.getpid(), number)

    world.lives(both, end=None)
    assert world.journal == [*BEGIN, "daemon: leave", *END]


def test_a_start_that_fails_leaves_nothing_behind(world):
    world.start_fails = True
    with pytest.raises(OSError, match="no kernel"):
        world.lives()
    assert world.journal[-len(END) :] == END
    assert not list(world.folder.glob("*.sock"))


def test_a_callback_that_fails_ends_it_in_good_order(world):
    def fail():
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        world.lives(fail)
    assert world.journal == [*BEGIN, *END]


def test_the_report_has_exactly_what_was_agreed(world):
    one = world.lives()
    report = one.report()
    assert report.pop("since") == one.since
    assert report == {
        "agent": "onprem.lb",
        "version": VERSION,
        "pid": os.getpid(),
        "config": str(world.path),
        "config_fault": None,
        "limits": [],
        "instances": ["front"],
    }


def test_systemds_watchdog_is_fed_by_the_loop_itself(world):
    world.notifier.watchdog = 10_000
    world.lives(*[lambda: None] * 5)
    assert world.journal.count("systemd: alive") >= 5


def test_without_a_watchdog_nobody_is_fed(world):
    world.lives()
    assert "systemd: alive" not in world.journal


# --- new versions -----------------------------------------------------------------------------------------------

ASKED = ["systemd: reloading", "successor: start"]
HANDED_OVER = ["checks: stop", "network: close", "says The addresses are handed over; goodbye."]


def test_a_new_version_gets_all_that_is_known_and_the_old_one_gives_nothing_up(world):
    one = world.lives(world.renew, world.first_is_ready, end=None)
    assert world.journal == [*BEGIN, *ASKED, "systemd: succeeded 4711", *HANDED_OVER]
    (new,) = world.successors
    assert new.environ == {"HOME": "/"} and new.known == {"since": one.since, "daemon": {"front": "Active"}}
    assert new.left["config"] == world.path.read_text() and new.left["door"][0] == str(world.folder / "vrrp.sock")
    assert (world.folder / "vrrp.sock").is_socket()


@pytest.mark.parametrize("goes_on", [True, False])
def test_who_is_told_to_end_in_the_very_moment_passes_it_on_to_who_goes_on(world, monkeypatch, goes_on):
    """systemd may not have heard yet who that is; and a router that nobody ends would be killed with its addresses."""
    other = subprocess.Popen(["sleep", "600"])
    monkeypatch.setattr(Successor, "pid", other.pid)
    try:
        world.meanwhile = world.term

        def ready():
            world.successors[0].goes_on = goes_on
            world.successors[0].on_ready()

        world.lives(world.renew, ready, end=None)
        assert other.poll() is None or goes_on
        assert not goes_on or other.wait(20) == -signal.SIGTERM
        assert ("daemon: leave" in world.journal) != goes_on
    finally:
        other.kill()
        other.wait()


@pytest.mark.parametrize("fails", ["to start", "before it is ready", "when it is told"])
def test_a_new_version_that_fails_costs_a_line_and_is_reported(world, fails):
    faults = []

    def fail():
        if fails == "before it is ready":
            world.successors[0].on_end("it has ended")
        elif fails == "when it is told":
            world.successors[0].goes_on = False
            world.successors[0].on_ready()

    def ask():
        world.start_fails = fails == "to start"
        world.renew()

    one = world.lives(ask, fail, lambda: faults.append(world.life.report()["config_fault"]))
    assert [line for line in world.journal if "The new version does not take over: it " in line]
    assert faults[0].startswith("The new version does not take over: it ") and not one.succeeded
    assert world.journal[-len(END) - 1 :] == ["daemon: leave", *END]
    assert [line for line in world.journal if line.startswith("systemd")][1:3] == [
        "systemd: reloading",
        "systemd: ready",
    ]


def test_a_second_try_may_succeed(world):
    world.lives(
        world.renew,
        world.renew,  # while the first one is under way it is the same
        lambda: world.successors[0].on_end("it has ended"),
        world.renew,
        world.second_is_ready,
        end=None,
    )
    assert world.journal[-4:] == ["systemd: succeeded 4711", *HANDED_OVER]
    assert len(world.successors) == 2 and world.life.refused is None


def test_a_reload_meanwhile_begins_anew_with_what_is_in_force_then(world):
    world.lives(world.renew, lambda: world.write(priority=7), world.hup, world.second_is_ready, end=None)
    reload = [
        "successor: close",
        "systemd: reloading",
        "daemon: apply 7",
        f"says {world.path} is in force.",
        "systemd: ready",
    ]
    assert world.journal == [*BEGIN, *ASKED, *reload, *ASKED, "systemd: succeeded 4711", *HANDED_OVER]
    assert '"priority": 7' in world.successors[1].left["config"]


def test_who_leaves_needs_no_successor(world):
    served = []
    world.linger = served.append
    world.lives(world.renew, world.term, world.renew, first_of(served), end=None)
    assert world.journal == [*BEGIN, *ASKED, "successor: close", "daemon: leave", *END]


def inherits(world, **predecessors):
    world.write()
    world.predecessor = Predecessor(world, **predecessors)
    return world


GOES_ON = [
    "checks: start",
    "real-time",
    "daemon: start later",
    "predecessor: ask",
    "daemon: resume {'front': 'Active'}",
    "predecessor: dismiss",
    f"says onprem.lb {VERSION} goes on from here.",
]


def test_the_new_version_has_all_ready_before_it_asks_and_answers_where_the_old_one_did(world):
    one = inherits(world).lives()
    assert world.journal == [*GOES_ON, "daemon: leave", *END]
    assert one.since == 5.5
    assert not list(world.folder.glob("*.sock"))


def test_the_new_version_goes_over_to_a_file_that_is_another_one_by_now(world):
    before = json.dumps({"instances": [{**INSTANCE, "priority": 9}], "status_socket": str(world.folder / "vrrp.sock")})
    inherits(world, text=before).lives()
    assert world.journal[len(GOES_ON) :][:2] == ["daemon: apply 100", f"says {world.path} is in force."]


def test_the_new_version_is_silent_towards_systemd_until_that_listens_to_it(world):
    world.notifier.watchdog = 30_000
    inherits(world).lives(*[lambda: None] * 5)
    told = [line for line in world.journal if line.startswith("systemd")]
    assert told[0] == "systemd: alive" and told[-1] == "systemd: stopping"


@pytest.mark.parametrize("why", ["gone", "another language"])
def test_who_cannot_go_on_from_there_touches_nothing(world, why):
    inherits(world, text="{" if why == "another language" else None).predecessor.gone = True
    with pytest.raises((life.Gone, status.Refused)):
        world.lives()
    assert not [line for line in world.journal if "stop" in line or "close" in line or "systemd" in line]
    assert (world.folder / "vrrp.sock").is_socket()


# --- main -------------------------------------------------------------------------------------------------------


def runs(world):
    return life.main(str(world.path), world.write(), world.log, world.notifier, {})


def test_two_agents_at_one_socket_are_one_too_many(world):
    wanted = world.write()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(wanted.status_socket)
        other.listen(1)
        assert runs(world) == 1
    assert [line for line in world.journal if "another agent answers" in line]
    assert "daemon: start" not in world.journal


def test_without_a_network_there_is_one_sentence(world, monkeypatch):
    def refuse():
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(life, "Network", refuse)
    assert runs(world) == 1
    assert world.journal == ["says The network cannot be had: Operation not permitted."]


def test_who_was_asked_to_end_has_done_well(world, monkeypatch):
    monkeypatch.setattr(life.Life, "run", lambda self, wanted: self.loop.close())
    assert runs(world) == 0
