# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether HAProxy could show a certificate in PEM (RFC 7468, RFC 1421): the same of a file and of a text."""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import IO, Iterator, Optional

CERTIFICATE, PRIVATE_KEY, ENCRYPTED, REVOKED = "CERTIFICATE-----", "PRIVATE KEY-----", "ENCRYPTED", "X509 CRL-----"
BORDER = "-----"  # around what stands before and after the base64 of it
NO_CERTIFICATE, NO_KEY = "there is no certificate in it (PEM).", "there is no private key in it (PEM)."


def wrong(text: str) -> Optional[str]:
    """Return what is wrong with the text of a certificate, its chain and its private key, or None."""
    if CERTIFICATE not in text:
        return NO_CERTIFICATE
    return of_key(text) or _unreadable(text)


def of_key(text: str) -> Optional[str]:
    """Return what is wrong with the text of a private key, or None."""
    if PRIVATE_KEY not in text:
        return NO_KEY
    if ENCRYPTED in text:
        return "its private key is encrypted, and HAProxy starts without anybody to ask: store it without a password."
    return None


def mismatch(path: str, keys: str, named: str) -> Optional[str]:
    """Have OpenSSL read a certificate and its private key, as HAProxy does.

    :param named: where the key is, for the sentence
    """
    import ssl  # large, and rarely needed

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(path, keys, password="")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            return f"the private key in {named} belongs to another certificate."
        if not error.reason or error.reason == "PEM_LIB":
            return "OpenSSL cannot read it or its private key: keep each line of PEM as it was issued."
        return f"OpenSSL refuses it or its private key: {error.reason.lower().replace('_', ' ')}."
    return None


def _unreadable(text: str) -> Optional[str]:
    with _as_file() as file:
        file.write(text.encode("utf-8", "surrogateescape"))
        file.flush()
        path = f"/proc/self/fd/{file.fileno()}" if isinstance(file.name, int) else file.name
        return mismatch(path, path, "it")


@contextlib.contextmanager
def _as_file() -> Iterator[IO[bytes]]:
    """OpenSSL reads files alone: one in memory where the kernel has them, so that no key comes to a disk."""
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("certificate"), "wb") as file:
            yield file
    else:
        with tempfile.NamedTemporaryFile() as named:
            yield named
