# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The host whose firewall is changed, through an AnsibleModule."""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import Any, Optional, Sequence, Tuple

from .. import records


class Host:
    """Runs commands, and reads and changes files."""

    def __init__(self, module: Any) -> None:
        self._module = module
        # The output of the managers is parsed, so it must not be translated.
        module.run_command_environ_update = {"LC_ALL": "C", "LANGUAGE": "C"}

    def run(self, args: Sequence[str], data: str = "") -> Tuple[int, str, str]:
        """Return the exit code and the output; 127 if there is no such command."""
        path = self._module.get_bin_path(args[0])
        if not path:
            return 127, "", f"{args[0]} is not installed"
        code, out, err = self._module.run_command([path, *args[1:]], data=data or None)
        return code, out, err

    def read(self, path: str) -> Optional[str]:
        """Return a file's text, or None if there is no such file."""
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
        records.note_written({path: content.encode(errors="surrogateescape")})
        # This keeps the owner, mode and SELinux context of an existing file.
        self._module.atomic_move(draft, path)

    def remove(self, path: str) -> None:
        os.unlink(path)
        with contextlib.suppress(OSError):  # the folder may contain other files
            os.rmdir(os.path.dirname(path))
