# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ClientHello of the probe, read by a server that has no certificate: it answers with an alert."""

from __future__ import annotations

import ssl

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.drill import client_hello

HANDSHAKE, ALERT = 0x16, 0x15  # content types (RFC 8446, section 5.1)


def answered(hello):
    """Return what a server sends back, and the names that it was asked for."""
    names, incoming, outgoing = [], ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sni_callback = lambda _tls, name, _context: names.append(name)
    incoming.write(hello)
    with pytest.raises(ssl.SSLError):
        context.wrap_bio(incoming, outgoing, server_side=True).do_handshake()
    return outgoing.read(), names


@pytest.mark.parametrize("given, sent", [("", None), ("api.example", "api.example"), ("192.0.2.10", None)])
def test_a_server_of_tls_answers_and_learns_a_name_but_no_address(given, sent):
    hello = client_hello.of(given)
    answer, names = answered(hello)
    assert (hello[0], answer[0], names) == (HANDSHAKE, ALERT, [sent])
