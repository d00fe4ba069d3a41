# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which of the URLs that a router's checks ask on their own host are answered now: each is asked once, as they do.

One whose answer is late counts as answered: then a run takes nothing away that it may be answered by.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
from typing import Collection, NamedTuple, Set

from . import in_time

TIMEOUT = 1.0  # seconds, for all of them
BAD = 400  # and above: a status that is no success


class Question(NamedTuple):
    """A URL of this host."""

    tls: bool
    address: str
    port: int
    path: str


def of(questions: Collection[Question]) -> Set[Question]:
    """Return those that are answered, or may be."""
    known = in_time.answers(_is_answered, questions, TIMEOUT)
    return {question for question in questions if known.get(question, True)}


def _is_answered(question: Question) -> bool:
    with contextlib.closing(_connection(question)) as connection:
        try:
            connection.request("GET", question.path)
            return connection.getresponse().status < BAD
        except socket.timeout:
            return True
        except (OSError, ValueError, http.client.HTTPException):
            return False


def _connection(question: Question) -> http.client.HTTPConnection:
    """No check of a router verifies a certificate."""
    if not question.tls:
        return http.client.HTTPConnection(question.address, question.port, timeout=TIMEOUT)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return http.client.HTTPSConnection(question.address, question.port, timeout=TIMEOUT, context=context)
