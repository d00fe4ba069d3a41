# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of databases, directories and mail servers: an answer in their own protocol is asked for."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.runner import probe_of
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.settings import PROTOCOLS, Check
from support.agent.loops import LIMIT, SECOND, Runs
from support.agent.servers import Server
from support.talks import TALKS, answering, failing, hanging, mysql

KINDS = pytest.mark.parametrize("kind", PROTOCOLS)


def ask(loop, behave, kind, timeout=LIMIT, **fields):
    with Server(behave) as server:
        fields = {"address": "127.0.0.1", "port": server.port, "user": TALKS[kind].user, **fields}
        check = Check("one", kind, timeout=timeout, **fields)
        outcome = Runs(loop, probe_of(loop, check, None, None)).one()
    return outcome, server.heard


def said(*parts):
    """Return the behaviour of a server that says this and closes."""

    def behave(connection, _heard):
        for part in parts:
            connection.sendall(part)

    return behave


@KINDS
def test_a_server_that_answers_is_up_and_has_been_asked_with_these_bytes(loop, no_leak, kind):
    outcome, heard = ask(loop, answering(TALKS[kind]), kind)
    assert outcome.success, outcome.detail
    assert heard == [question for question, _answer in TALKS[kind].turns]


@pytest.mark.parametrize(
    "kind, words",
    [
        ("redis", "answered '-LOADING Redis is loading the dataset in memory'"),
        ("smtp", "answered '421 mail.example is shutting down'"),
        ("ldap", "LDAP result 51"),
        ("mysql", "MySQL error 1040: Too many connections"),
        ("pgsql", "PostgreSQL error: the database system is starting up"),
    ],
)
def test_a_server_that_says_no_is_down_with_its_words(loop, no_leak, kind, words):
    outcome, _heard = ask(loop, failing(TALKS[kind]), kind)
    assert outcome[:2] == (False, words)


@KINDS
def test_a_server_that_hangs_is_down(loop, no_leak, kind):
    outcome, _heard = ask(loop, hanging, kind, timeout=SECOND // 10)
    assert outcome[:2] == (False, "no answer within 0.1 s")


@KINDS
def test_a_server_that_closes_is_down(loop, no_leak, kind):
    outcome, _heard = ask(loop, said(TALKS[kind].greeting[:2]), kind)
    assert not outcome.success


@KINDS
@pytest.mark.parametrize("other", [*PROTOCOLS, "noise"])
def test_what_speaks_another_protocol_is_down(loop, no_leak, kind, other):
    """Even if it speaks first, as only MySQL and mail servers do."""
    first = b"HTTP/1.0 200 OK\r\n\r\n" if other == "noise" else TALKS[other].greeting or TALKS[other].turns[0][1]
    if other != kind:
        assert not ask(loop, said(first), kind)[0].success


@pytest.mark.parametrize(
    "kind, answer",
    [
        ("mysql", mysql(0, b"")),
        ("mysql", b"\xff\xff\xff\0" + b"\x0a"),
        ("ldap", b"\x30\x84\xff\xff\xff\xff"),
        ("ldap", b"\x30\x80"),
        ("ldap", bytes.fromhex("300402010161")),
        ("ldap", bytes.fromhex("3005020101610a")),
        ("pgsql", b"R\xff\xff\xff\xff\0\0\0\0"),
        ("pgsql", b"R\0\0\0\x04"),
        ("pgsql", b"R\0\0\0\x08\0\0\0\x63"),
        ("redis", b"+PONGO\r\n"),
        ("redis", b"+" * 10000),
        ("smtp", b"2xx hello\r\n"),
        ("smtp", b"-" * 5000),
        ("smtp", b"\r\n"),
    ],
)
def test_lengths_and_ends_that_are_impossible_are_no_answer(loop, no_leak, kind, answer):
    assert not ask(loop, said(answer), kind)[0].success


def test_a_login_that_is_refused_is_down(loop):
    talk = TALKS["mysql"]
    refused = mysql(2, b"\xff\x15\x04#28000Access denied for user 'probe'")
    outcome, _heard = ask(loop, answering(talk._replace(turns=((talk.turns[0][0], refused),))), "mysql")
    assert outcome[:2] == (False, "MySQL error 1045: #28000Access denied for user 'probe'")


def test_a_mail_server_is_told_the_name(loop):
    hello = (b"EHLO lb.example\r\n", b"250 hello\r\n")
    talk = TALKS["smtp"]._replace(turns=(hello, TALKS["smtp"].turns[1]))
    assert ask(loop, answering(talk), "smtp", host="lb.example")[0].success
