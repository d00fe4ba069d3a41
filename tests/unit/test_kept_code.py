# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In the quick scope hosts keep what Python compiles of an archive: .config/molecule/files/kept_code.py."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile

import pytest
from support.paths import ROOT

FILES = ROOT / ".config" / "molecule" / "files"
# Imports `given` from an archive; prints what it returns, the file it says that it is of, and whether it was compiled.
PROGRAM = """
import sys, zipimport
compiled, compile_source = [], zipimport._compile_source
zipimport._compile_source = lambda path, source: compiled.append(path) or compile_source(path, source)
sys.path[:0] = [{files!r}, {archive!r}]
import kept_code
kept_code.FOLDER = {folder!r}
import given
print(given.value(), given.value.__code__.co_filename, bool(compiled))
"""


@pytest.fixture
def imported(tmp_path):
    def run(source, archive="given.zip", folder="kept"):
        path = tmp_path / archive
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("given.py", source)
        program = PROGRAM.format(files=str(FILES), archive=str(path), folder=str(tmp_path / folder))
        done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
        value, of, compiled = done.stdout.split()
        assert of == os.path.join(path, "given.py")
        return value, compiled == "True"

    return run


def test_the_same_source_is_compiled_once_whatever_its_archive_is_called(imported):
    assert imported("def value(): return 1") == ("1", True)
    assert imported("def value(): return 1") == ("1", False)
    assert imported("def value(): return 1", archive="another.zip") == ("1", False)


def test_another_source_is_compiled(imported):
    assert imported("def value(): return 1") == ("1", True)
    assert imported("def value(): return 2") == ("2", True)


def test_where_nothing_can_be_kept_it_is_compiled_each_time(imported, tmp_path):
    (tmp_path / "file").touch()
    for _again in range(2):
        assert imported("def value(): return 1", folder="file/kept") == ("1", True)
