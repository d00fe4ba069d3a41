# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes wrong with an API server is said in one sentence, with the mend."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow import words
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.settings import Api
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.watching import Ended, Failed, Refused, Trouble

URL = "https://10.0.0.1:6443"
API = Api(("https://127.0.0.1:6443", URL))


def said(outcome, expired=False, **api):
    sentence = words.sentence(Trouble(1, outcome), API._replace(**api), expired)
    beginning, kept = sentence[: len(URL)], sentence[-len(words.KEPT) :]
    assert (beginning, kept) == (URL, words.KEPT)
    return sentence[len(URL) : -len(words.KEPT)].strip()


@pytest.mark.parametrize(
    "outcome, sentence",
    [
        (Failed("connection refused"), ": connection refused."),
        (Failed("IP address mismatch, it is not valid for 'a'."), ": IP address mismatch, it is not valid for 'a'."),
        (Ended(2.4), "has ended the watch after 2 s."),
        (Refused(404), "knows no nodes (404): is it the API server of a cluster? Correct api.servers."),
        (Refused(500, "etcd is away."), "refuses (500: etcd is away)."),
        (Refused(429), "refuses (429)."),
        (
            Refused(403, "nodes is forbidden"),
            "does not allow reading the nodes (403: nodes is forbidden): "
            "allow this user to list and watch nodes, with a ClusterRole.",
        ),
    ],
)
def test_each_outcome_is_a_sentence(outcome, sentence):
    assert said(outcome) == sentence


@pytest.mark.parametrize(
    "api, expired, mend",
    [
        ({}, False, "set api.certificate or api.token."),
        ({"token": "/t"}, False, "renew the token in /t; it is read again for each request."),
        ({"certificate": "/c"}, False, "renew the certificate in /c; it is read again for each request."),
        (
            {"certificate": "/c"},
            True,
            "renew the certificate in /c, which has expired; it is read again for each request.",
        ),
    ],
)
def test_credentials_that_are_not_accepted_name_their_file(api, expired, mend):
    assert said(Refused(401), expired, **api) == f"does not accept the credentials (401): {mend}"


@pytest.mark.parametrize(
    "why",
    [
        words.without_label("l"),
        *(
            words.not_at_its_address(["10.0.0.1"], fit, answers)
            for fit in ([], ["10.0.0.1"])
            for answers in (True, False)
        ),
        words.not_at_its_address([], [], False),
    ],
)
def test_why_a_server_is_kept_ends_with_one_full_stop(why):
    said = words.kept({"name": "a", "address": "10.0.0.9", "why": why})
    assert said.endswith(".") and said[-2].isalnum() or said.endswith("`.")
