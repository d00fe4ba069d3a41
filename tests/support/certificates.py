# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates that tests make, each with its key in its file, as haproxy takes them, and an authority of clients."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from pathlib import Path
from typing import Any, List


def certificate(folder: Path, name: str = "web", days: int = 90, subject: str = "") -> Path:
    """Make a certificate that expires in some days; return its path. One that has expired has less than none left."""
    path, key = folder / f"{name}.pem", folder / f".{name}.key"
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command = ["openssl", "req", "-x509", *kind, "-keyout", key, "-subj", f"/CN={subject or name}", "-out", path]
    subprocess.run([*command, "-days", str(days)], check=True, capture_output=True)
    path.write_text(path.read_text() + key.read_text())
    key.unlink()
    return path


@functools.lru_cache(maxsize=None)
def certificate_text(name: str = "web", days: int = 90) -> str:
    """Return the text of a certificate with its key, the same at each call."""
    with tempfile.TemporaryDirectory() as folder:
        return certificate(Path(folder), name, days).read_text()


class Authority:
    """It issues certificates to clients, and revokes them."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder / name
        self._folder.mkdir()
        (self._folder / "issued").touch()
        (self._folder / "openssl.cnf").write_text(
            f"[ca]\ndefault_ca=own\n[own]\ndatabase={self._folder}/issued\ndefault_md=sha256\n"
        )
        self.pem = certificate(self._folder, name)

    def issue(self, name: str) -> Path:
        """Return a client's certificate with its key."""
        made, asked, key = (self._folder / f"{name}.{kind}" for kind in ("pem", "csr", "key"))
        kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        self._openssl("req", "-new", *kind, "-keyout", key, "-subj", f"/CN={name}", "-out", asked)
        by = ["-CA", self.pem, "-CAkey", self.pem, "-CAcreateserial", "-days", "90"]
        self._openssl("x509", "-req", "-in", asked, *by, "-out", made)
        made.write_text(made.read_text() + key.read_text())
        return made

    def revoked(self, *certificates: Path, days: int = 30, has_expired: bool = False) -> Path:
        """Return the list of those revoked."""
        past = ["-crl_lastupdate", "20200101000000Z", "-crl_nextupdate", "20200102000000Z"]
        made = self._folder / "revoked.pem"
        for each in certificates:
            self._openssl(*self._signing(), "-revoke", each)
        self._openssl(*self._signing(), "-gencrl", *(past if has_expired else ["-crldays", str(days)]), "-out", made)
        return made

    def staple(self, certificate: Path) -> None:
        """Put what an OCSP responder says of a certificate, and its issuer, where haproxy reads them."""
        own = self.pem.read_text()
        Path(f"{certificate}.issuer").write_text(own[: own.index("-----BEGIN PRIVATE")])
        self._openssl(*self._signing(), "-valid", certificate)
        by = ["-index", self._folder / "issued", "-CA", self.pem, "-rsigner", self.pem, "-issuer", self.pem]
        self._openssl("ocsp", *by, "-cert", certificate, "-ndays", "7", "-respout", f"{certificate}.ocsp")

    def _signing(self) -> List[Any]:
        return ["ca", "-config", self._folder / "openssl.cnf", "-keyfile", self.pem, "-cert", self.pem]

    def _openssl(self, *arguments: Any) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)
