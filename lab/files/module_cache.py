# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps what Ansible's modules compile to, a third of each call: Python compiles twice what it imports of an archive.

Each Python of a host executes this as it starts (host.sh). It concerns nothing but the archives of Ansible's modules.
"""

import contextlib
import os
import sys
import zipimport

FOLDER = "/var/cache/lab-modules"
ARCHIVE = "_payload.zip" + os.sep
compile_source = zipimport._compile_source  # type: ignore[attr-defined]


def compile_once(path, source):
    """Return the code of a module: what is kept of the same source, with the path of this call's archive."""
    if ARCHIVE not in path:
        return compile_source(path, source)
    import _imp
    import hashlib
    import marshal

    kept = f"{FOLDER}/{hashlib.sha256(source).hexdigest()}.{sys.implementation.cache_tag}"
    try:
        with open(kept, "rb") as file:
            code = marshal.load(file)
        _imp._fix_co_filename(code, path)  # type: ignore[attr-defined]
        return code
    except (OSError, EOFError, ValueError, TypeError):
        code = compile_source(path, source)
    partial = f"{kept}.{os.getpid()}"
    with contextlib.suppress(OSError):  # not root
        with open(partial, "wb") as file:
            marshal.dump(code, file)
        os.replace(partial, kept)
    return code


zipimport._compile_source = compile_once  # type: ignore[attr-defined]
