# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which certificates that this collection has written no configuration names any more.

One is known by its name, which has the checksum of its text. What else is in the folder, or was changed, stays. So does
everything while a file there cannot be read. A saved state has the texts itself.
"""

from __future__ import annotations

import hashlib
import os
import re
from typing import Any, Iterable, List, Mapping

from ..._shared import paths
from . import files

OWN = re.compile(r".+-(?P<checksum>[0-9a-f]{16})\.pem")
MODE = 0o600


def changes(wanted: Iterable[Mapping[str, Any]]) -> List[files.Change]:
    """Return the changes that delete them.

    :param wanted: the files of a run, as `config_files` takes them
    """
    texts = [text for item in wanted if item["state"] == "present" for text in (item["path"], item["content"])]
    return [
        files.Change(path, files.on_disk(path)[0], None, MODE, "none", shown=False)
        for path in _own(paths.CERTIFICATES)
        if not any(path in text for text in texts)
    ]


def _own(folder: str) -> List[str]:
    try:
        named = {os.path.join(folder, name): OWN.fullmatch(name) for name in sorted(os.listdir(folder))}
        return [path for path, found in named.items() if found and _checksum(path).startswith(found["checksum"])]
    except OSError:
        return []


def _checksum(path: str) -> str:
    if os.path.islink(path) or not os.path.isfile(path):
        return ""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()
