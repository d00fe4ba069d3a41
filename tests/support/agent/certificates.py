# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates that openssl makes."""

from __future__ import annotations

import subprocess


class Certificate:
    """A certificate that signs itself, and its key."""

    def __init__(self, folder, names, subject="site.example") -> None:
        self.file, self.key = str(folder / "certificate.pem"), str(folder / "key.pem")
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", self.key)
        about = ("-subj", f"/CN={subject}", "-addext", f"subjectAltName={names}", "-days", "2")
        subprocess.run(["openssl", "req", "-x509", *key, *about, "-out", self.file], check=True, capture_output=True)
