# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a member keeps on the way back to a state."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host import records
from ansible_collections.onprem.lb.plugins.module_utils._host.firewall import system
from ansible_collections.onprem.lb.plugins.module_utils._host.states import keeping
from ansible_collections.onprem.lb.plugins.module_utils._host.states.snapshot import NAMES
from ansible_collections.onprem.lb.plugins.module_utils._host.write import files
from ansible_collections.onprem.lb.plugins.module_utils._shared import held_back
from support.states import CONFIGS, RUNS, STOPPED, file, native

HAPROXY, AGENT = CONFIGS["haproxy"], "/etc/onprem-lb-agent/vrrp.json"


def checksum(text):
    return records.checksum(text.encode())


@pytest.fixture
def armed(monkeypatch, tmp_path):
    for name in ("DUE", "WRITTEN"):
        monkeypatch.setattr(records, name, str(tmp_path / "undo" / name))
    records.write(records.DUE, {"run": "a run"})


@pytest.mark.parametrize(
    "now, written, stays",
    [
        ("two", {}, [HAPROXY]),
        ("two", {HAPROXY: ["what the run wrote"]}, [HAPROXY]),
        ("two", {HAPROXY: ["", "TWO"]}, []),
        ("one", {}, []),
    ],
)
def test_a_file_that_no_run_has_left_so_is_of_somebody_else(now, written, stays):
    found = native(served=now)
    known = {
        path: [checksum(found.files[0].content.decode()) if each == "TWO" else each for each in sums]
        for path, sums in written.items()
    }
    assert keeping.of_others(found, native(), known) == stays


def test_programs_are_never_of_somebody_else_and_a_file_that_is_gone_is_of_nobody():
    program = file("/usr/local/lib/onprem-lb-agent/agent-1.pyz", "new")
    now = native()._replace(files=[*native().files[1:], program])
    assert keeping.of_others(now, native(), {}) == []


def test_a_run_notes_what_it_writes_before_it_does(armed, tmp_path):
    path, seen = tmp_path / "a.cfg", []

    def move(source, destination):
        seen.append(records.read(records.WRITTEN))
        raise OSError("no room")

    wanted = [{"path": str(path), "content": "text \udcff", "mode": "0644", "state": "present", "check": "none"}]
    with pytest.raises(OSError):
        files.replace_all(files.changes(wanted), lambda _name: None, lambda _command: (0, "", ""), move, dry=False)
    assert seen == [{str(path): [records.checksum(b"text \xff")]}]


def test_every_text_that_runs_have_written_to_a_path_is_known(armed):
    for content in (b"one", b"two", b"one"):
        records.note_written({"/etc/a": content})
    assert records.read(records.WRITTEN) == {"/etc/a": sorted([checksum("one"), checksum("two")])}


def test_without_an_undo_nothing_is_noted(armed):
    records.forget(records.DUE)
    records.note_written({"/etc/a": b"one"})
    assert records.read(records.WRITTEN) == {}


def test_the_firewall_notes_its_files_too(armed, tmp_path):
    class Module:
        tmpdir = str(tmp_path)

        def atomic_move(self, source, destination):
            assert records.read(records.WRITTEN) == {destination: [checksum("rules")]}

    system.Host(Module()).write(str(tmp_path / "open-firewall"), "rules", 0o755)


def test_a_router_stays_with_its_files_and_the_rest_is_of_the_state():
    record = file(held_back.PATHS[held_back.SWITCHOVER])
    then = native(keepalived=STOPPED)
    then = then._replace(files=[*then.files, record])
    now = native(served="two", routed="two")
    kept = keeping.with_router(now, then)
    assert then.files[0] in kept.files and now.files[1] in kept.files and record not in kept.files
    assert kept.units["keepalived.service"] == RUNS and kept.instances == now.instances


@pytest.mark.parametrize(
    "text, same", [('{"checks": 1, "instances": [2]}', True), ('{"checks": 2}', False), ("{", False)]
)
def test_what_an_agents_router_checks_decides_what_stays_with_it(text, same):
    unit = file("/etc/systemd/system/onprem-lb-vrrp.service")
    then = native()._replace(
        files=[unit, file(AGENT, json.dumps({"checks": 1})), file("/etc/onprem-lb-agent/proxy.json", "then")]
    )
    now = native()._replace(files=[unit, file(AGENT, text), file("/etc/onprem-lb-agent/proxy.json", "now")])
    assert (then.files[2] in keeping.with_router(now, then).files) is same
    assert now.files[1] in keeping.with_router(now, then).files


def test_an_engine_that_has_changed_stays_whole():
    now = native()
    then = now._replace(files=[file(AGENT, "{}"), file("/etc/systemd/system/onprem-lb-vrrp.service")])
    assert keeping.with_router(now, then) == now


def test_the_names_stay_with_the_vips_of_the_router_that_stays():
    now, then = (native(routed=word) for word in ("two", "one"))
    now, then = (
        each._replace(files=[*each.files, *(file(path, text) for path in NAMES)])
        for each, text in ((now, "two"), (then, "one"))
    )
    assert {file(path, "two") for path in NAMES} <= {*keeping.with_router(now, then).files}
