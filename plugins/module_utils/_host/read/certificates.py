# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether HAProxy could start with the certificate that a service names, and nobody but root could change it."""

from __future__ import annotations

import errno
import os
import stat
from typing import Optional

from ..._agent.config import host
from ..._shared import pem

ROOT = "root"
ENOUGH = 1024 * 1024  # bytes, more than a certificate with its chain has


def authorities(path: str) -> Optional[str]:
    """Return what is wrong with a file of the authorities that clients' certificates need, or None."""
    return host.authorities(path) or host.exposed(path, ROOT)


def revoked(path: str) -> Optional[str]:
    """Return what is wrong with a file of the lists of revoked certificates, or None."""
    import ssl  # large, and rarely needed

    try:
        if pem.REVOKED not in _read(path):
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
        return pem.of_key(_read(path)) or host.exposed(path, ROOT)
    except OSError as error:
        return f"it cannot be read: {error.strerror}."


def _pair(path: str) -> Optional[str]:
    text, keys = _read(path), path
    if pem.CERTIFICATE not in text:
        return pem.NO_CERTIFICATE
    if pem.PRIVATE_KEY not in text:
        keys = f"{path}.key"  # where HAProxy looks for it, too
        if not os.path.exists(keys):
            return f"there is no private key in it, and no {keys}: add the key to it, or create that file."
        text = _read(keys)
    wrong = pem.of_key(text) or pem.mismatch(path, keys, keys)
    return wrong or host.exposed(path, ROOT) or host.exposed(keys, ROOT)


def _read(path: str) -> str:
    if not stat.S_ISREG(os.stat(path).st_mode):  # a FIFO would have no end
        raise OSError(errno.EINVAL, "it is not a regular file")
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(ENOUGH)
