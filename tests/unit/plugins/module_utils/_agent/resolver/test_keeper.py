# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The keeper: whoever writes /etc/resolv.conf, the host asks its resolver, and others while that does not answer."""

from __future__ import annotations

import itertools
import os
import random

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.name_server import Answer
from ansible_collections.onprem.lb.plugins.module_utils._agent.resolver import keeper, resolv_conf

OWN, FIRST, SECOND = "192.0.2.11", "192.0.2.1", "192.0.2.2"
GIVEN = keeper.Settings(keeper.FILE, OWN, "", [OWN, "127.0.0.1", "::1", "127.0.0.53"], [])
THEIRS = f"nameserver {FIRST}\nnameserver {SECOND}\n"


class Names:
    """Who answers, and what."""

    def __init__(self):
        self.runs, self.rcodes = True, {OWN: 3, FIRST: 3}

    def ask(self, server, name, _kind):
        if server == OWN and not self.runs:
            return Answer(None, [])
        return Answer(3 if name == "localhost" else self.rcodes.get(server), [])


@pytest.fixture
def names():
    return Names()


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "resolv.conf"
    found.write_text(resolv_conf.render(THEIRS, OWN, [FIRST, SECOND]))
    kept(found).write_text(THEIRS)
    return found


def kept(path):
    return path.parent / "resolv.conf.before-onprem-lb"


def asked(path):
    return path.parent / "upstreams"


def keeping(path, names, **given):
    said = []
    places = {"source": str(kept(path)), "upstreams": str(asked(path))}
    one = keeper.Keeper(GIVEN._replace(**{**places, **given}), said.append, names.ask, str(path))
    one.said = said
    return one


def servers(path):
    return resolv_conf.nameservers(path.read_text())


def in_place(path, text):
    path.write_text(text)


def renamed(path, text):
    new = path.parent / "resolv.conf.dhclient-new"
    new.write_text(text)
    new.rename(path)


@pytest.mark.parametrize("write", [in_place, renamed])
def test_whoever_writes_it_has_his_servers_asked_by_the_resolver(path, names, write):
    one = keeping(path, names)
    write(path, "search lease.example\nnameserver 192.0.2.7\n")
    inode = kept(path).stat().st_ino
    one.look()
    assert servers(path) == [OWN, "192.0.2.7"] and "search lease.example" in path.read_text()
    assert kept(path).read_text() == "search lease.example\nnameserver 192.0.2.7\n"
    assert kept(path).stat().st_ino != inode  # dnsmasq notices a rename
    assert len(one.said) == 1
    one.look()
    assert len(one.said) == 1 and sorted(os.listdir(path.parent)) == [path.name, kept(path).name, "upstreams"]


def test_the_resolver_asks_whom_the_host_asked_and_last_what_says_that_all_have_failed(path, names):
    one = keeping(path, names)
    for text, servers_asked in [(THEIRS, [FIRST, SECOND]), ("nameserver 192.0.2.7\n", ["192.0.2.7"])]:
        renamed(path, text)
        one.look()
        assert servers(asked(path)) == [*servers_asked, resolv_conf.RELAY] and one.last == servers_asked[-1]
    written = asked(path).stat().st_ino
    one.look()
    assert asked(path).stat().st_ino == written


@pytest.mark.parametrize("text", [None, "", f"nameserver {OWN}\n"])
def test_a_list_that_names_nobody_takes_no_server_from_the_resolver(path, names, text):
    """As NetworkManager's is for a moment at a boot."""
    one = keeping(path, names)
    one.look()
    if text is None:
        kept(path).unlink()
    else:
        kept(path).write_text(text)
    one.look()
    assert servers(asked(path)) == [FIRST, SECOND, resolv_conf.RELAY] and one.last == SECOND


def test_what_the_configuration_of_systemd_resolved_names_is_the_last_one_where_it_is_alone(path, names):
    """It names them itself until it has read what it is told: they are in dnsmasq's configuration at any time."""
    path.write_text("nameserver 127.0.0.53\n")
    for text in ("", f"nameserver {FIRST}\n"):
        kept(path).write_text(text)
        one = keeping(path, names, told=keeper.RESOLVED, named=["192.0.2.7#54", FIRST])
        one._tell()
        assert one.last == FIRST and not asked(path).exists()


def test_an_older_run_has_named_no_list_of_the_resolver_s(path, names):
    assert keeping(path, names, upstreams="").look()["problem"] == "" and not asked(path).exists()


@pytest.mark.parametrize("text", ["", "search lease.example\n", f"nameserver {OWN}\n", "nameserver dns.example\n"])
def test_one_who_names_nobody_takes_no_server_away(path, names, text):
    path.write_text(text)
    keeping(path, names).look()
    assert servers(path) == [OWN, SECOND] and kept(path).read_text() == THEIRS


@pytest.mark.parametrize("text", [None, "", "search lease.example\n"])
@pytest.mark.parametrize("looked_before", [True, False])
@pytest.mark.parametrize("runs", [True, False])
def test_a_copy_that_is_gone_or_names_nobody_takes_no_server_away(path, names, text, looked_before, runs):
    one = keeping(path, names)
    if looked_before:
        one.look()
    kept(path).unlink() if text is None else kept(path).write_text(text)
    names.runs = runs
    for _look in range(keeper.PATIENCE + 1):
        one.look()
        assert SECOND in servers(path)


def test_one_that_is_gone_is_written_again(path, names):
    path.unlink()
    keeping(path, names).look()
    assert servers(path) == [OWN, SECOND]


def test_one_that_network_manager_writes_although_it_was_told_not_to_is_written_again(path, names):
    kept(path).write_text("nameserver 192.0.2.1\n")
    path.write_text("# Generated by NetworkManager\nnameserver 192.0.2.9\n")
    keeping(path, names, told=keeper.NETWORK_MANAGER).look()
    assert servers(path) == [OWN, FIRST] and kept(path).read_text() == "nameserver 192.0.2.1\n"


@pytest.mark.parametrize(
    "text, manager",
    [
        ("# Generated by NetworkManager\nnameserver 192.0.2.9\n", "NetworkManager"),
        ("nameserver 127.0.0.53\n", "systemd-resolved"),
    ],
)
def test_a_manager_that_has_come_is_left_alone_and_named(path, names, text, manager):
    path.write_text(text)
    one = keeping(path, names)
    state = one.look()
    assert path.read_text() == text and state["asked"] is False
    assert state["problem"] == (
        f"/etc/resolv.conf is managed by {manager} since the last run: run onprem.lb.site, which tells it."
    )
    one.look()
    assert one.said == [state["problem"]]


def test_a_symbolic_link_that_has_come_is_left_alone(path, names, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text(THEIRS)
    path.unlink()
    path.symlink_to(elsewhere)
    assert str(elsewhere) in keeping(path, names).look()["problem"] and path.is_symlink()


def test_under_systemd_resolved_the_file_is_not_ours_to_write(path, names):
    path.write_text("nameserver 127.0.0.53\n")
    one = keeping(path, names, told=keeper.RESOLVED)
    assert one.look()["problem"] == "" and servers(path) == ["127.0.0.53"]
    path.write_text(THEIRS)
    assert "another program" in one.look()["problem"] and path.read_text() == THEIRS


def test_while_the_resolver_does_not_answer_the_host_has_all_of_its_servers(path, names):
    one, names.runs = keeping(path, names), False
    states = [(one.look()["answers"], servers(path)) for _look in range(keeper.PATIENCE)]
    assert states == [(True, [OWN, SECOND])] * (keeper.PATIENCE - 1) + [(False, [FIRST, SECOND])]
    names.runs = True
    assert one.look()["answers"] is True and servers(path) == [OWN, SECOND]


@pytest.mark.parametrize("rcode", [0, 2, 3, 5])
def test_it_is_asked_for_a_name_that_it_never_forwards_and_may_say_anything(path, rcode):
    """A rollback gives it other addresses, and even other names, and tells the keeper nothing."""
    questions = []

    def ask(server, name, _kind):
        questions.append((server, name))
        return Answer(rcode, [])

    one = keeper.Keeper(GIVEN._replace(source=str(kept(path))), print, ask, str(path))
    for _look in range(keeper.PATIENCE + 1):
        assert one.look()["answers"] is True
    assert questions[0] == (OWN, "localhost") and "." not in questions[0][1]


def test_a_host_without_other_servers_keeps_its_own(path, names):
    kept(path).write_text(f"nameserver {OWN}\n")
    one, names.runs = keeping(path, names), False
    for _look in range(keeper.PATIENCE + 1):
        one.look()
    assert servers(path) == [OWN]


@pytest.mark.parametrize(
    "own, upstream, forwards",
    [(3, 3, True), (0, 3, True), (5, 3, False), (None, 0, False), (5, 2, None), (5, None, None)],
)
def test_it_forwards_if_it_answers_where_its_servers_do(own, upstream, forwards):
    codes = {OWN: own, FIRST: upstream}
    assert (
        keeper.forwards(OWN, [FIRST, "192.0.2.3#5353"], lambda server, *_asked: Answer(codes[server], [])) is forwards
    )


@pytest.mark.parametrize(
    "named, line",
    [("192.0.2.7", "192.0.2.7"), ("192.0.2.7#54", "192.0.2.7:54"), ("2001:db8::7#54", "[2001:db8::7]:54")],
)
def test_systemd_resolved_asks_what_its_configuration_names_while_the_resolver_does_not_answer(tmp_path, named, line):
    drop_in, restarts = tmp_path / "conf.d" / "stopped.conf", []
    for answers in (True, False, False, True, True):
        keeper.tell_resolved([named], answers, str(drop_in), lambda: restarts.append(1))
        assert drop_in.exists() is not answers
        assert answers or drop_in.read_text().splitlines()[1:] == ["[Resolve]", "DNS=", f"DNS={line}"]
    assert len(restarts) == 2


@pytest.mark.parametrize("seed", range(20))
def test_after_any_writers_and_any_failures_the_host_asks_somebody_who_answers(path, names, seed):
    """And its own resolver, whenever that has answered, once nobody writes any more."""
    chance, one = random.Random(seed), keeping(path, names)
    texts = ["", THEIRS, "nameserver 192.0.2.7\n", f"nameserver {OWN}\n", "options rotate\nnameserver 192.0.2.8\n"]
    for _step in range(40):
        names.runs = chance.random() < 0.6
        if chance.random() < 0.4:
            chance.choice([in_place, renamed])(path, chance.choice(texts))
        if chance.random() < 0.1:
            kept(path).unlink(missing_ok=True)
        one.look()
        assert [each for each in servers(path) if each != OWN]
    names.runs = True
    renamed(path, THEIRS)
    one.look()
    assert servers(path) == [OWN, SECOND] and kept(path).read_text() == THEIRS


def test_a_file_that_cannot_be_written_is_a_problem_and_not_the_end(path, names, monkeypatch):
    def full(*_arguments, **_keywords):
        raise OSError(28, "No space left on device")

    path.write_text("nameserver 192.0.2.7\n")
    one = keeping(path, names)
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", full)
        patch.setattr(os, "link", full)
        for _look in range(3):
            assert one.look()["problem"].endswith("cannot be written: No space left on device.")
    assert len(one.said) == 1  # and not one each second
    assert one.look()["problem"] == "" and servers(path) == [OWN, "192.0.2.7"]


def test_what_a_run_writes_is_what_it_reads(tmp_path):
    config = tmp_path / "keeper.json"
    config.write_text('{"told":"resolv.conf","own":"a","source":"b","mine":[],"named":[]}')
    assert keeper.read(str(config)).told == keeper.FILE


def test_it_looks_again_and_again_and_writes_its_state_when_that_changes(tmp_path, monkeypatch):
    written, states = [], itertools.chain([{"a": 1}, {"a": 1}, {"a": 2}])
    monkeypatch.setattr(keeper, "read", lambda _path: GIVEN)
    monkeypatch.setattr(keeper.Keeper, "look", lambda _self: next(states))
    monkeypatch.setattr(keeper.files, "write", lambda path, text: written.append((path, text)))
    monkeypatch.setattr(keeper.time, "sleep", lambda _seconds: None)
    with pytest.raises(StopIteration):
        keeper.main("", print, "state", 0)
    assert written == [("state", '{"a": 1}'), ("state", '{"a": 2}')]
