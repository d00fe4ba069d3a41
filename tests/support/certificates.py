# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates that tests make, each with its key in its file, as haproxy takes them."""

from __future__ import annotations

import subprocess
from pathlib import Path


def certificate(folder: Path, name: str = "web", days: int = 90, subject: str = "") -> Path:
    """Make a certificate that expires in some days; return its path. One that has expired has less than none left."""
    path, key = folder / f"{name}.pem", folder / f".{name}.key"
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command = ["openssl", "req", "-x509", *kind, "-keyout", key, "-subj", f"/CN={subject or name}", "-out", path]
    subprocess.run([*command, "-days", str(days)], check=True, capture_output=True)
    path.write_text(path.read_text() + key.read_text())
    key.unlink()
    return path
