# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runs of a scenario share the archives of modules, as long as these have the same sources."""

from __future__ import annotations

import os

from ansible import constants
from support import archives


def test_what_a_run_has_built_another_one_finds(tmp_path, monkeypatch):
    for run in ("first", "second"):
        (tmp_path / run).mkdir()
        monkeypatch.setattr(constants, "DEFAULT_LOCAL_TMP", str(tmp_path / run))
        archives.share(tmp_path / "scenario")
    (tmp_path / "first/ansiballz_cache/module").write_text("archive")
    assert (tmp_path / "second/ansiballz_cache/module").read_text() == "archive"


def test_for_other_sources_or_another_ansible_archives_are_built_anew(tmp_path, monkeypatch):
    source = tmp_path / "module_utils" / "file.py"
    source.parent.mkdir()
    source.write_text("1")
    versions = [archives.version_of(tmp_path)]
    os.utime(source, ns=(1, 1))
    versions.append(archives.version_of(tmp_path))
    (tmp_path / "another.py").touch()
    versions.append(archives.version_of(tmp_path))
    monkeypatch.setattr(archives, "__version__", "1")
    versions.append(archives.version_of(tmp_path))
    assert len({*versions}) == len(versions)
