# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a state comes back onto the disk."""

from __future__ import annotations

import os

from ansible_collections.onprem.lb.plugins.module_utils._host.states import changes, restoring
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


def test_frr_loads_its_file_as_its_role_does_and_what_fails_is_said_and_hinders_nothing(tmp_path, monkeypatch):
    ran, took, said = [], [], []
    conf = tmp_path / "frr.conf"
    conf.write_text("router bgp 64512\n")
    monkeypatch.setattr(restoring.paths, "FRR_CONFIG", str(conf))
    monkeypatch.setattr(restoring.frr, "take", lambda _frr, text: took.append(text) or "It says no.")
    todo = [changes.LOAD_FRR, ["systemctl", "reload", "onprem-lb-anycast.service"]]
    failed = restoring.commands(lambda command: ran.append(command) or (0, "", ""), todo, said.append)
    assert failed == ["It says no."] and took == ["router bgp 64512\n"]
    assert ran == todo[1:] and said == [" ".join(each) for each in todo]
    conf.unlink()
    (why,) = restoring.commands(lambda _command: (0, "", ""), todo[:1], said.append)
    assert why.startswith("FRR goes on with what it runs")
