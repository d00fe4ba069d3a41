# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of web servers behind TLS, with certificates made here."""

from __future__ import annotations

import os
import shutil

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks import http, tls
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.network import NetworkProbe
from support.agent.certificates import Certificate
from support.agent.loops import LIMIT, SECOND, Runs
from support.agent.servers import Server, answering, secured, silent

OK = b"HTTP/1.1 200 OK\r\n\r\n"

pytestmark = pytest.mark.skipif(not shutil.which("openssl"), reason="openssl makes the certificates")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return Certificate(tmp_path_factory.mktemp("one"), "DNS:site.example,IP:127.0.0.1")


@pytest.fixture(scope="module")
def another(tmp_path_factory):
    return Certificate(tmp_path_factory.mktemp("another"), "DNS:site.example")


def ask(loop, server, name="site.example", verify=False, ca="", timeout=LIMIT):
    dialogue = tls.dialogue(name, verify, ca, http.dialogue("site.example", "/", ("200-399",)))
    return Runs(loop, NetworkProbe(loop, "127.0.0.1", server.port, timeout, dialogue)).one()


def test_any_certificate_will_do_where_none_is_asked_for(loop, certificate, no_leak):
    with Server(secured(certificate, answering(OK))) as server:
        assert ask(loop, server, "other.example")[:2] == (True, "status 200")
    assert server.heard[0].startswith(b"GET / HTTP/1.1\r\n")


def test_a_certificate_that_an_authority_vouches_for_is_good(loop, certificate):
    with Server(secured(certificate, answering(OK))) as server:
        assert ask(loop, server, verify=True, ca=certificate.file)[:2] == (True, "status 200")


def test_an_address_is_looked_for_in_the_certificate_too(loop, certificate, another):
    with Server(secured(certificate, answering(OK))) as server:
        assert ask(loop, server, "127.0.0.1", verify=True, ca=certificate.file).success
    with Server(secured(another, answering(OK))) as server:
        assert not ask(loop, server, "127.0.0.1", verify=True, ca=another.file).success


@pytest.mark.parametrize(
    "name, trusted, word",
    [
        ("site.example", "another", "certificate"),
        ("site.example", "", "certificate"),
        ("other.example", "one", "mismatch"),
    ],
)
def test_a_certificate_that_is_not_good_is_a_failure_that_says_why(
    loop, certificate, another, no_leak, name, trusted, word
):
    ca = {"another": another.file, "one": certificate.file, "": ""}[trusted]
    with Server(secured(certificate, answering(OK))) as server:
        outcome = ask(loop, server, name, verify=True, ca=ca)
    assert not outcome.success
    assert outcome.detail.startswith("TLS: ")
    assert word in outcome.detail


def test_the_server_is_told_a_name_and_never_an_address(loop, certificate):
    names = []
    with Server(secured(certificate, answering(OK), names)) as server:
        assert ask(loop, server, "site.example").success
        assert ask(loop, server, "127.0.0.1").success
        assert ask(loop, server, "2001:db8::1").success
    assert names == ["site.example", None, None]


def test_an_authority_that_is_missing_is_a_failure_until_it_is_there(loop, certificate, tmp_path):
    ca = tmp_path / "ca.pem"
    with Server(secured(certificate, answering(OK))) as server:
        outcome = ask(loop, server, verify=True, ca=str(ca))
        assert outcome[:2] == (False, f"cannot use the authorities in {ca}: no such file or directory")
        ca.write_text("nonsense", encoding="ascii")
        assert ask(loop, server, verify=True, ca=str(ca)).detail.startswith("cannot use the authorities in")
        shutil.copy(certificate.file, str(ca))
        assert ask(loop, server, verify=True, ca=str(ca)).success


@pytest.mark.parametrize("is_systems", [False, True])
def test_a_renewed_authority_counts_from_the_next_run(loop, certificate, another, tmp_path, monkeypatch, is_systems):
    ca = tmp_path / "ca.pem"
    monkeypatch.setenv("SSL_CERT_FILE", str(ca))
    named = "" if is_systems else str(ca)
    shutil.copy(another.file, str(ca))
    os.utime(ca, ns=(1, 1))
    with Server(secured(certificate, answering(OK))) as server:
        dialogue = tls.dialogue("site.example", True, named, http.dialogue("site.example", "/", ("200-399",)))
        runs = Runs(loop, NetworkProbe(loop, "127.0.0.1", server.port, 5 * SECOND, dialogue))
        assert not runs.one().success
        shutil.copy(certificate.file, str(ca))
        assert runs.one().success


def test_a_server_without_tls_is_a_failure_that_says_so(loop, no_leak):
    with Server(lambda connection, _heard: connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as server:
        outcome = ask(loop, server)
    assert not outcome.success
    assert outcome.detail in ("TLS: wrong version number", "TLS: record layer failure")


def test_a_server_that_never_shakes_hands_is_down(loop, no_leak):
    with Server(silent) as server:
        assert ask(loop, server, timeout=SECOND // 10)[:2] == (False, "no TLS handshake within 0.1 s")


def test_a_server_that_never_answers_inside_tls_is_down(loop, certificate, no_leak):
    with Server(secured(certificate, silent)) as server:
        assert ask(loop, server, timeout=SECOND)[:2] == (False, "no answer within 1 s")


def test_a_server_that_closes_in_the_middle_of_the_handshake_is_down(loop, no_leak):
    with Server(lambda connection, _heard: connection.recv(4096)) as server:
        outcome = ask(loop, server)
    assert not outcome.success
    assert outcome.detail.startswith("TLS: ")


@pytest.mark.parametrize("shut", [True, False], ids=["as TLS wants it", "just so"])
def test_a_server_that_closes_inside_tls_has_not_answered(loop, certificate, shut):
    with Server(secured(certificate, answering(), shut=shut)) as server:
        assert ask(loop, server)[:2] == (False, "closed without an answer")


def test_checks_of_the_same_authorities_share_what_was_read_of_them(certificate):
    stamp = (os.stat(certificate.file).st_mtime_ns,)
    assert tls._context(True, certificate.file, stamp) is tls._context(True, certificate.file, stamp)
    assert tls._context(False, "", ()) is not tls._context(True, certificate.file, stamp)
