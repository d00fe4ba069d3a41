# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first message of a TLS client (RFC 8446, section 4.1.2), which any server of TLS answers."""

from __future__ import annotations

import contextlib


def of(server_name: str) -> bytes:
    """Return the ClientHello that this host's OpenSSL would send.

    :param server_name: a name or an IP address; only a name is sent to the server (RFC 6066, section 3)
    """
    import ssl  # large, and seldom needed

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    outgoing = ssl.MemoryBIO()
    tls = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=server_name or None)
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()
