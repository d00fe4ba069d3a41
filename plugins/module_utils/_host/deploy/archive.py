# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Builds the agent as one file that python3 runs (a zipapp). The same sources give the same bytes on every host.

It is not compressed: zlib's output differs between versions, and would have to be decompressed at each start.
"""

from __future__ import annotations

import io
import os
import sys
import zipfile
import zipimport
from types import ModuleType
from typing import Dict, cast

SHEBANG = b"#!/usr/bin/env python3\n"
ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time in a zip file
UNIX, MODE = 3, 0o100644
# The package keeps its name, so that its relative imports work.
START = b"""\
import mmap
import os
import sys

# The symbolic link that this was started by may soon point to another version, which must not be imported here.
sys.path[0] = os.path.realpath(sys.path[0])
# This mapping is never read. It shows in /proc/PID/maps, of every fork too, which version is still in use.
with open(sys.path[0], "rb") as archive:
    USED = mmap.mmap(archive.fileno(), 0, access=mmap.ACCESS_READ)

from _agent.cli import main

sys.exit(main())
"""


def build(folder: str) -> bytes:
    """Return the archive of the agent whose package is a folder."""
    return pack(sources(folder))


def carried(module: ModuleType, above: int = 0) -> Dict[str, bytes]:
    """Return the sources of a folder: as they are on the controller, or as an AnsiballZ payload carries them.

    :param module: one of the folder
    :param above: how many folders above the module's own the folder is
    """
    folder = os.path.dirname(os.path.abspath(module.__file__ or ""))
    for _each in range(above):
        folder = os.path.dirname(folder)
    if os.path.isdir(folder):  # a checkout, or a module that was unpacked for debugging
        return sources(folder)
    payload = cast(zipimport.zipimporter, module.__loader__).archive
    return packed_sources(payload, os.path.relpath(folder, payload))


def packed_sources(archive: str, folder: str) -> Dict[str, bytes]:
    """Return the same as `sources` from another archive."""
    with zipfile.ZipFile(archive) as source:
        inside = {name[len(folder) + 1 :]: name for name in source.namelist() if name.startswith(f"{folder}/")}
        return {path: source.read(name) for path, name in inside.items() if path.endswith(".py")}


def sources(folder: str) -> Dict[str, bytes]:
    """Return the text of each module of the package, by its path from the folder on."""
    found = {}
    for parent, _folders, names in os.walk(folder):
        for name in names:
            if name.endswith(".py"):
                path = os.path.join(parent, name)
                with open(path, "rb") as file:
                    found[os.path.relpath(path, folder).replace(os.sep, "/")] = file.read()
    return found


def pack(modules: Dict[str, bytes], start: bytes = START, shebang: bytes = SHEBANG, package: str = "_agent") -> bytes:
    """Return the archive of these modules, and of what starts them."""
    files = {"__main__.py": start, **{f"{package}/{path}": text for path, text in modules.items()}}
    archive = io.BytesIO()
    archive.write(shebang)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as target:
        for path in sorted(files):
            entry = zipfile.ZipInfo(path, ZIP_EPOCH)
            entry.create_system, entry.external_attr = UNIX, MODE << 16
            target.writestr(entry, files[path])
    return archive.getvalue()


def main(folder: str, path: str) -> None:
    """Write the archive of the agent whose package is a folder."""
    with open(path, "wb") as file:
        file.write(build(folder))
    os.chmod(path, 0o755)
    sys.stdout.write(f"{path}: {os.path.getsize(path)} bytes\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
