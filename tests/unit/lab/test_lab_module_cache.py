# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's hosts compile a module of Ansible once, and run what they would run without it."""

from __future__ import annotations

import subprocess
import sys
import zipfile

import pytest
from support.paths import ROOT

# What Python executes, as from lab.pth; then whether the source is compiled, what the module says, and its file's name.
PROGRAM = """
import sys, zipimport
exec(open({file!r}).read().replace("/var/cache/lab-modules", {folder!r}), {{}})
sys.path.insert(0, {archive!r})
compiled, known = [], zipimport._compile_source.__globals__
known["compile_source"] = lambda path, source, real=known["compile_source"]: compiled.append(1) or real(path, source)
import module
print(len(compiled), module.said(), module.said.__code__.co_filename)
"""


@pytest.fixture
def kept(tmp_path):
    folder = tmp_path / "kept"
    folder.mkdir()
    return folder


def called(folder, archive, says):
    """Return what a call prints: whether it compiled, what the module says, where the module says that it is."""
    archive.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("module.py", f"def said():\n    return {says!r}\n")
    file = ROOT / "lab" / "files" / "module_cache.py"
    program = PROGRAM.format(file=str(file), folder=str(folder), archive=str(archive))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return tuple(done.stdout.split())


def test_a_module_is_compiled_once_and_is_in_the_archive_of_its_call(tmp_path, kept):
    for call, compiled in (("first", "1"), ("second", "0")):
        archive = tmp_path / call / "ansible_x_payload.zip"
        assert called(kept, archive, "one") == (compiled, "one", f"{archive}/module.py")


def test_a_changed_module_is_compiled_anew(tmp_path, kept):
    archive = tmp_path / "x_payload.zip"
    assert [called(kept, archive, says)[:2] for says in ("one", "two")] == [("1", "one"), ("1", "two")]


@pytest.mark.parametrize("damage", [b"", b"x", b"\xe3\x00"])
def test_what_is_kept_and_damaged_is_compiled_anew(tmp_path, kept, damage):
    archive = tmp_path / "x_payload.zip"
    called(kept, archive, "one")
    (file,) = kept.iterdir()
    file.write_bytes(damage)
    assert called(kept, archive, "one")[:2] == ("1", "one")
    assert called(kept, archive, "one")[:2] == ("0", "one")


def test_other_archives_are_compiled_at_each_start(tmp_path, kept):
    for _start in range(2):
        assert called(kept, tmp_path / "agent.pyz", "one")[0] != "0"
    assert not [*kept.iterdir()]


def test_a_folder_that_cannot_be_written_is_no_fault(tmp_path):
    for _call in range(2):
        compiled, says, _file = called(tmp_path / "none", tmp_path / "x_payload.zip", "one")
        assert compiled != "0" and says == "one"
