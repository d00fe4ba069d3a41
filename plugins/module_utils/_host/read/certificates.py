# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether HAProxy could start with the certificate that a service names, and nobody but root could change it."""

from __future__ import annotations

import errno
import os
import stat
from typing import Optional

from ..._agent.config import host

ROOT = "root"
# In PEM, RFC 7468 and 1421.
CERTIFICATE, PRIVATE_KEY, ENCRYPTED, REVOKED = "CERTIFICATE-----", "PRIVATE KEY-----", "ENCRYPTED", "X509 CRL-----"
ENOUGH = 1024 * 1024  # bytes, more than a certificate with its chain has


def authorities(path: str) -> Optional[str]:
    """Return what is wrong with a file of the authorities that clients' certificates need, or None."""
    return host.authorities(path) or host.exposed(path, ROOT)


def revoked(path: str) -> Optional[str]:
    """Return what is wrong with a file of the lists of revoked certificates, or None."""
    import ssl  # large, and rarely needed

    try:
        if REVOKED not in _read(path):
            return "there is no list of revoked certificates in it (PEM, X509 CRL)."
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except ssl.SSLError:
        return "OpenSSL cannot read the list of revoked certificates in it."
    except OSError as error:
        return f"it cannot be read: {error.strerror}."
    return host.exposed(path, ROOT)


def certificate(path: str) -> Optional[str]:
    """Return what is wrong with a certificate or its private key, which is in its file or beside it, or None."""
    if os.path.isdir(path):
        return "there is no certificate in this folder: put them there, each with its private key."
    try:
        return _pair(path)
    except OSError as error:
        return f"it cannot be read: {error.strerror}."


def key(path: str) -> Optional[str]:
    """Return what is wrong with the file of a private key alone, or None."""
    try:
        return _key(_read(path)) or host.exposed(path, ROOT)
    except OSError as error:
        return f"it cannot be read: {error.strerror}."


def _pair(path: str) -> Optional[str]:
    text, keys = _read(path), path
    if CERTIFICATE not in text:
        return "there is no certificate in it (PEM)."
    if PRIVATE_KEY not in text:
        keys = f"{path}.key"  # where HAProxy looks for it, too
        if not os.path.exists(keys):
            return f"there is no private key in it, and no {keys}: add the key to it, or create that file."
        text = _read(keys)
    return _key(text) or _mismatch(path, keys) or host.exposed(path, ROOT) or host.exposed(keys, ROOT)


def _key(text: str) -> Optional[str]:
    if PRIVATE_KEY not in text:
        return "there is no private key in it (PEM)."
    if ENCRYPTED in text:
        return "its private key is encrypted, and HAProxy starts without anybody to ask: store it without a password."
    return None


def _mismatch(path: str, keys: str) -> Optional[str]:
    """Have OpenSSL read both, as HAProxy does."""
    import ssl  # large, and rarely needed

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(path, keys, password="")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            return f"the private key in {keys} belongs to another certificate."
        return f"OpenSSL refuses it or its private key: {str(error.reason or error).lower().replace('_', ' ')}."
    return None


def _read(path: str) -> str:
    if not stat.S_ISREG(os.stat(path).st_mode):  # a FIFO would have no end
        raise OSError(errno.EINVAL, "it is not a regular file")
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(ENOUGH)
