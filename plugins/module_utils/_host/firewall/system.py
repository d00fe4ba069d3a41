# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The real host, through an AnsibleModule."""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import Any, Optional, Sequence, Tuple


class SystemHost:
    def __init__(self, module: Any) -> None:
        self._module = module
        # What the managers print is read here, so it must not be translated.
        module.run_command_environ_update = {"LC_ALL": "C", "LANGUAGE": "C"}

    def run(self, args: Sequence[str], data: str = "") -> Tuple[int, str, str]:
        path = self._module.get_bin_path(args[0])
        if not path:
            return 127, "", f"{args[0]} is not installed"
        code, out, err = self._module.run_command([path, *args[1:]], data=data or None)
        return code, out, err

    def read(self, path: str) -> Optional[str]:
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, path: str, content: str, mode: int) -> None:
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=self._module.tmpdir)
        with open(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(content)
        os.chmod(draft, mode)
        # Keeps the owner, mode and SELinux context of a file that is there already.
        self._module.atomic_move(draft, path)

    def remove(self, path: str) -> None:
        os.unlink(path)
        with contextlib.suppress(OSError):  # others have files there too
            os.rmdir(os.path.dirname(path))
