# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent as one file: always the same one, and it runs."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

from ansible_collections.onprem.lb.plugins.module_utils._agent import VERSION
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy import archive
from support.paths import AGENT


def test_the_same_sources_give_the_same_bytes_whenever_and_in_whatever_order(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    for folder, names in ((here, ("a.py", "b.py")), (there, ("b.py", "a.py"))):
        (folder / "sub").mkdir(parents=True)
        for name in names:
            (folder / name).write_text(name)
            (folder / "sub" / name).write_text(name)
    os.utime(there / "a.py", (1, 1))
    (there / "a.py").chmod(0o600)
    assert archive.build(str(here)) == archive.build(str(there))
    assert archive.pack({"a.py": b"", "b.py": b""}) == archive.pack({"b.py": b"", "a.py": b""})
    packed = zipfile.ZipFile(io.BytesIO(archive.build(str(here))))
    assert {entry.date_time for entry in packed.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_only_sources_are_packed(tmp_path):
    (tmp_path / "__pycache__").mkdir()
    for name in ("a.py", "a.pyc", "__pycache__/a.cpython-311.pyc", "notes.txt"):
        (tmp_path / name).write_text("")
    packed = zipfile.ZipFile(io.BytesIO(archive.build(str(tmp_path))))
    assert packed.namelist() == ["__main__.py", "_agent/a.py"]


def test_every_module_of_the_agent_is_in_it():
    packed = zipfile.ZipFile(io.BytesIO(archive.build(str(AGENT))))
    assert packed.testzip() is None
    wanted = {f"_agent/{path.relative_to(AGENT)}" for path in AGENT.rglob("*.py")}
    assert set(packed.namelist()) == wanted | {"__main__.py"}


def test_the_file_runs_by_itself(tmp_path):
    path = tmp_path / "agent.pyz"
    archive.main(str(AGENT), str(path))
    command = [str(path)] if os.access(path, os.X_OK) else []
    environ = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ran = subprocess.run(
        [*command, "--version"], capture_output=True, text=True, cwd=tmp_path, env=environ, timeout=60, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, f"onprem.lb agent {VERSION}\n"), ran.stderr
    ran = subprocess.run(
        [sys.executable, str(path), "check-config", "--config", "none"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (1, "none cannot be read: No such file or directory.\n")


def test_the_agents_sources_in_an_ansiballz_payload_give_the_same_archive(tmp_path):
    payload = tmp_path / "payload.zip"
    with zipfile.ZipFile(payload, "w", zipfile.ZIP_DEFLATED) as other:
        for path in sorted(AGENT.rglob("*.py"), reverse=True):
            other.write(path, f"far/away/_agent/{path.relative_to(AGENT)}")
        other.writestr("far/away/_agent/__pycache__/log.cpython-311.pyc", b"")
        other.writestr("far/away/_agent_else.py", b"")
    assert archive.pack(archive.packed_sources(str(payload), "far/away/_agent")) == archive.build(str(AGENT))


def test_a_running_version_imports_from_its_own_file_after_its_name_means_another(tmp_path):
    """The second version lacks what the first one has yet to import."""
    late = b"from .greeting import WORD\n"
    waits = b"def main():\n    print(flush=True)\n    input()\n    from . import late\n"
    waits += b"    print(late.WORD, flush=True)\n    input()\n"
    old = {"__init__.py": b"", "cli.py": waits, "late.py": late, "greeting.py": b"WORD = 'old'\n"}
    (tmp_path / "agent-1.pyz").write_bytes(archive.pack(old))
    (tmp_path / "agent-2.pyz").write_bytes(archive.pack({"__init__.py": b"", "cli.py": b"def main(): ..."}))
    link = tmp_path / "agent.pyz"
    link.symlink_to("agent-1.pyz")
    command = [sys.executable, str(link)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        try:
            running.stdout.readline()
            (tmp_path / "other").symlink_to("agent-2.pyz")
            (tmp_path / "other").rename(link)
            running.stdin.write("\n")
            running.stdin.flush()
            assert running.stdout.readline() == "old\n"
            maps = Path(f"/proc/{running.pid}/maps").read_text()
            assert "agent-1.pyz" in maps and "agent-2.pyz" not in maps, "the maps do not show which version is in use"
        finally:
            running.kill()
