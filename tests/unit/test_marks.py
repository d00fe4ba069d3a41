# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A scenario finds its marks wherever they are, and in whatever form: .config/molecule/files/marks.py."""

from __future__ import annotations

import base64
import grp
import json
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from support import waiting
from support.paths import ROOT

PROGRAM = ROOT / ".config" / "molecule" / "files" / "marks.py"
WORD = "Qz1a2b"
PASSWORD = f"a password: {WORD}Pw\n"


def search(folder, beside, watched=None):
    """Return what the program finds in a folder and in what was watched, and in no journal."""
    seen = beside / "watched.json"
    seen.write_text(json.dumps(watched or {}))
    command = [sys.executable, str(PROGRAM), "search", str(seen), WORD, "0", str(folder)]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=waiting.LIMIT_S, env={"PATH": "/nowhere"}
    )
    return json.loads(done.stdout)


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "searched"
    made.mkdir(mode=0o700)
    return made


@pytest.mark.parametrize("before", ["", "x", "xx"])
def test_a_mark_is_found_as_it_is_typed_and_in_base64_and_named_in_both(folder, tmp_path, before):
    """A saved state has its files in base64, and may be the only place of what a run has replaced."""
    text = f"{before}{WORD}Pw, {WORD}Key\nand so on".encode()
    (folder / "typed").write_bytes(text)
    (folder / "encoded").write_text(json.dumps({"content": base64.b64encode(text).decode()}))
    named = [f"{folder}/{name}: {WORD}{mark}" for name in ("encoded", "typed") for mark in ("Key", "Pw")]
    assert search(folder, tmp_path)["wrong"] == named


def test_a_word_in_base64_that_ends_behind_it_is_found_too(folder, tmp_path):
    (folder / "cut").write_bytes(base64.b64encode(WORD.encode()))
    (line,) = search(folder, tmp_path)["wrong"]
    assert line == f"{folder}/cut: {base64.b64encode(WORD.encode()).decode()}"


@pytest.mark.parametrize(
    "mode, of_folder, is_open", [(0o600, 0o755, False), (0o644, 0o700, False), (0o644, 0o755, True)]
)
def test_a_mark_that_is_where_it_must_be_is_kept_unless_others_may_read_it(tmp_path, mode, of_folder, is_open):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        backup = Path(name) / "backups" / "1.json"
        backup.parent.mkdir()
        backup.write_text(PASSWORD)
        for path, permissions in ((backup, mode), (backup.parent, 0o755), (Path(name), of_folder)):
            path.chmod(permissions)
        found = search(Path(name), tmp_path)
    assert found == {"kept": [f"{WORD}Pw"], "wrong": [f"{backup}: {WORD}Pw, which others may read"] if is_open else []}


@pytest.mark.parametrize(
    "name, gid, members, private",
    [
        ("root", 0, [], True),
        ("onprem-lb-vrrp", 996, [], True),
        ("onprem-lb-vrrp", 996, ["ops"], False),
        ("adm", 4, [], False),
        (None, 4711, [], False),
    ],
)
def test_a_group_is_private_if_no_user_is_in_it(monkeypatch, name, gid, members, private):
    judged = runpy.run_path(str(PROGRAM))["is_private"]
    groups = {gid: grp.struct_group((name, "x", gid, members))} if name else {}
    monkeypatch.setattr("grp.getgrgid", groups.__getitem__)
    assert judged(gid) == private


def test_what_was_watched_is_judged_as_well(folder, tmp_path):
    watched = {"arguments of /usr/bin/true": [f"{WORD}Script"], "environment of /usr/bin/python3": [f"{WORD}Script"]}
    assert search(folder, tmp_path, watched) == {
        "kept": [f"{WORD}Script"],
        "wrong": [f"environment of /usr/bin/python3: {WORD}Script"],
    }


def test_the_arguments_and_the_environment_of_a_process_are_seen_while_it_runs(tmp_path):
    seen = tmp_path / "watched.json"
    with subprocess.Popen([sys.executable, str(PROGRAM), "watch", str(seen), WORD]) as watching:
        waiting.until((tmp_path / "watched.json.begun").exists)
        given = [sys.executable, "-c", "input()", f"{WORD}Script"]
        with subprocess.Popen(given, stdin=subprocess.PIPE, env={"TOKEN": f"{WORD}Token"}) as process:
            (tmp_path / "watched.json.begun").unlink()
            watching.wait()
            process.stdin.write(b"\n")
    found = json.loads(seen.read_text())
    assert f"{WORD}Script" in found[f"arguments of {sys.executable}"]
    assert f"{WORD}Token" in found[f"environment of {sys.executable}"]


def test_a_temporary_file_that_others_may_read_is_found(tmp_path):
    seen = tmp_path / "watched.json"
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        with subprocess.Popen([sys.executable, str(PROGRAM), "watch", str(seen), WORD]) as watching:
            waiting.until((tmp_path / "watched.json.begun").exists)
            for place, of_folder in (("open/left.yml", 0o755), ("closed/left.yml", 0o700)):
                (Path(name) / place).parent.mkdir(mode=of_folder)
                (Path(name) / place).write_text(PASSWORD)
            (tmp_path / "watched.json.begun").unlink()
            watching.wait()
    assert [place for place in json.loads(seen.read_text()) if name in place] == [f"open file {name}/open/left.yml"]


@pytest.mark.root
def test_what_the_kernel_shows_in_a_temporary_folder_is_not_read(folder, tmp_path):
    """A read of /proc/kmsg waits for the kernel's next line, and one of /proc/kcore never ends."""
    (folder / "left").write_text(PASSWORD)
    (folder / "proc").mkdir()
    subprocess.run(["mount", "-t", "proc", "proc", folder / "proc"], check=True)
    try:
        assert search(folder, tmp_path)["wrong"] == [f"{folder}/left: {WORD}Pw"]
    finally:
        subprocess.run(["umount", folder / "proc"], check=True)


def test_the_marks_of_another_run_and_the_word_alone_are_none(folder, tmp_path):
    (folder / "left").write_text(f"the word {WORD}, and another run's mark Qz3c4dPw")
    assert search(folder, tmp_path) == {"kept": [], "wrong": []}
