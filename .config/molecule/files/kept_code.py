# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps what Python compiles of a zip archive. In the quick scope every Python of a host imports this as it starts.

Ansible sends each module as an archive of sources, and to compile them takes a third of a module's processor time. The
code is kept by what the source is, so a changed one is compiled anew.
"""

import _imp
import marshal
import os
import sys
import zipimport

FOLDER = "/var/cache/kept-code"
compile_source = zipimport._compile_source


def kept(path, source):
    """Return the code of a source: read, or compiled and kept for the next process."""
    name = f"{FOLDER}/{sys.hexversion:x}-{_imp.source_hash(0, source).hex()}"
    try:
        with open(name, "rb") as file:
            code = marshal.load(file)
        _imp._fix_co_filename(code, path)  # the archive of each module has a name of its own
        return code
    except OSError:
        code = compile_source(path, source)
    try:
        os.makedirs(FOLDER, exist_ok=True)
        own = f"{name}.{os.getpid()}"
        with open(own, "wb") as file:
            marshal.dump(code, file)
        os.replace(own, name)
    except OSError:  # an ordinary user's process, or one whose file system is read-only
        pass
    return code


zipimport._compile_source = kept
