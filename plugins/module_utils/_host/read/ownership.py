# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Who has written a file: this collection, a package, or another hand. Pure.

This collection marks its files. A package's file is known by the digest that dpkg or rpm has of it.
"""

from __future__ import annotations

import hashlib
import re
from typing import Dict

KEPT = ".before-onprem-lb"  # what the name of a file ends with that was kept

# Each prints "FILE DIGEST" for the files of a package, those of configuration included.
DPKG_CONFFILES = ["--show", "--showformat", "${Conffiles}\\n"]
RPM_FILES = ["--query", "--queryformat", "[%{FILENAMES} %{FILEDIGESTS}\\n]", "--file"]
# By the length of a digest: rpm names its algorithm by a number that is another in each version of OpenPGP.
ALGORITHMS = {32: "md5", 40: "sha1", 64: "sha256", 96: "sha384", 128: "sha512"}


def digests(output: str) -> Dict[str, str]:
    """Read what DPKG_CONFFILES or RPM_FILES prints: the digest of each file. dpkg marks some files as obsolete."""
    return dict(re.findall(r"^ ?(/\S+) ([0-9a-f]{32,128})(?: obsolete)?$", output, re.M))


def is_as_shipped(content: bytes, digest: str) -> bool:
    """Whether a file has the digest of the package's. A host in FIPS mode has no MD5: then it cannot be told."""
    try:
        return bool(digest) and hashlib.new(ALGORITHMS[len(digest)], content).hexdigest() == digest
    except (KeyError, ValueError):
        return False


def kept(path: str) -> str:
    """Return where a file is kept that this collection replaces or sets aside."""
    return path + KEPT
