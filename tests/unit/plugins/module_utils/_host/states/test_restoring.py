# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a state comes back onto the disk."""

from __future__ import annotations

import os

from ansible_collections.onprem.lb.plugins.module_utils._host.states import restoring
from ansible_collections.onprem.lb.plugins.module_utils._host.states.snapshot import File
from support.states import CONFIGS, native


def test_a_file_is_on_the_disk_with_its_mode_and_its_owner_before_it_takes_its_place(tmp_path, monkeypatch):
    done = []
    for name in ("fchmod", "fchown", "fsync", "rename"):
        monkeypatch.setattr(restoring.os, name, lambda *given, name=name: done.append((name, *given[1:])))
    path, (_haproxys, *others) = CONFIGS["haproxy"], native().files
    then = native()._replace(files=[File(path, 0o640, 101, 102, content=b"then\n"), *others])
    assert restoring.files(native(), then, str(tmp_path)) == [path]
    place = tmp_path / path[1:]
    assert done == [("fchmod", 0o640), ("fchown", 101, 102), ("fsync",), ("rename", str(place))]
    (candidate,) = os.listdir(place.parent)
    assert place.with_name(candidate).read_bytes() == b"then\n"
    assert candidate.startswith(".") and candidate.endswith(".new"), "programs that read whole folders ignore it"
