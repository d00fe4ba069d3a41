# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signs the collection's archive as `ansible-galaxy` verifies it: its manifest, which has the checksums of all files.

    SIGNING_KEY=$(gpg --armor --export-secret-keys KEY) make sign

The signature is beside the archive, with .asc in place of .tar.gz. The key is nowhere else than in a folder of the run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

VARIABLE = "SIGNING_KEY"
ENDING = ".tar.gz"


def sign(archive: Path, key: str) -> Path:
    """Return the file with the signature that a secret key gives to an archive."""
    signature = archive.with_name(archive.name.removesuffix(ENDING) + ".asc")
    with tempfile.TemporaryDirectory() as home:
        try:
            _gpg(home, "--import", given=key.encode())
            signature.write_bytes(_gpg(home, "--armor", "--detach-sign", given=manifest(archive)))
        finally:
            subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False)
    return signature


def manifest(archive: Path) -> bytes:
    """Return what is signed."""
    with tarfile.open(archive) as opened:
        file = opened.extractfile("MANIFEST.json")
        assert file is not None
        return file.read()


def _gpg(home: str, *words: str, given: bytes) -> bytes:
    command = ["gpg", "--homedir", home, "--batch", "--quiet", *words]
    return subprocess.run(command, input=given, stdout=subprocess.PIPE, check=True).stdout


def main(path: str) -> None:
    key = os.environ.get(VARIABLE, "")
    if not key:
        sys.exit(f"sign: {VARIABLE} is empty: give it the secret key, as gpg --armor --export-secret-keys prints it.")
    print(sign(Path(path), key))


if __name__ == "__main__":
    main(sys.argv[1])
