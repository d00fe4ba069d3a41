# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook restore, played against recorded results: what of a backup is hidden, and who gets it."""

from __future__ import annotations

import json

from support.recorded_hosts import PAIR, PAIR_VARIABLES, locked, seen
from support.recorded_plays import run

BACKUP, PASSWORD = "20260131T120000Z", "Zq7Zq7Zq"
STATE = {"id": BACKUP, "purpose": "a backup", "backup": BACKUP, "engine": "native", "is_present": False}
STATE.update(
    files=["/etc/haproxy/haproxy.cfg"],
    changes_link=False,
    keeps_names=False,
    unicast={"now": {}, "then": {}},
    could_serve=True,
    reach={"now": "vrrp", "then": "vrrp"},
    announced={"now": [], "vips": [], "sessions": [], "units": ["haproxy.service"]},
    settle=5.0,
)


def restored(tmp_path, names=("lb1", "lb2"), imported=None, check=False, lock=locked, **of_state):
    (tmp_path / "backup.json").write_text(
        json.dumps({"backup": BACKUP, "members": {name: {"auth_pass": PASSWORD} for name in names}})
    )
    imports = []

    def member_state(call):
        if call.given["state"] == "imported":
            imports.append(call.given["id"])
            return imported or {"states": [{**STATE, "id": call.given["id"], **of_state}], "engine": "native"}
        if call.given["state"] == "listed":
            return {"states": [{**STATE, "id": imports[-1], **of_state}], "engine": "native"}
        return {"changed": True, "postponed": True, "returned_within": 55}

    answers = {"member_lock": lock, "member_info": seen, "member_state": member_state}
    file = str(tmp_path / "backup.json")
    return run("restore", PAIR, answers, check=check, restore_file=file, **PAIR_VARIABLES)


def imports(play):
    return [(call.on, call.check) for call in play.of("member_state") if call.given["state"] == "imported"]


def locked_by(play):
    return [call.on for call in play.of("member_lock") if not call.check]


def test_what_a_backup_has_is_compared_first_then_saved_and_then_restored(tmp_path):
    play = restored(tmp_path)
    assert play.code == 0
    assert imports(play) == [("lb1", True), ("lb2", True), ("lb1", False), ("lb2", False)]
    done = play.did("member_state")
    assert done.index("lb2 member_state armed") < done.index("lb1 member_state restored")
    assert done[-2:] == ["lb1 member_state confirmed", "lb2 member_state confirmed"]


def test_members_that_a_newer_version_has_set_up_are_refused_before_a_state_is_saved_there(tmp_path):
    def newer(call):
        assert call.given["downgrade_variable"] == "restore_downgrade"
        return {"failed": True, "msg": "lb1: onprem.lb 99.0.0 wrote it."}

    play = restored(tmp_path, lock=newer)
    assert play.code == 2 and imports(play) == [] and "99.0.0" in str(play.said) + str(play.failures)


def test_no_password_of_the_backup_is_shown(tmp_path):
    play = restored(tmp_path)
    assert len([call for call in play.calls if PASSWORD in str(call.given)]) == 4
    assert [text for text in play.shown if PASSWORD in text] == []


def test_a_dry_run_compares_and_goes_no_further(tmp_path):
    play = restored(tmp_path, check=True)
    assert play.code == 0 and {check for _name, check in imports(play)} == {True}
    assert locked_by(play) == [] and "Next: run the same command without --check." in str(play.said)


def test_a_member_that_runs_as_in_the_backup_stays_as_it_is(tmp_path):
    play = restored(tmp_path, is_present=True)
    assert play.code == 0 and len(imports(play)) == 2 and locked_by(play) == []


def test_a_member_that_the_backup_lacks_stays_as_it_is(tmp_path):
    play = restored(tmp_path, names=("lb1",))
    assert play.code == 0 and imports(play) == [("lb1", True), ("lb1", False)]
    assert "lb2 has no state" in str(play.said)


def test_a_backup_that_a_member_cannot_compare_is_refused_before_anything_is_saved(tmp_path):
    play = restored(tmp_path, imported={"failed": True, "msg": "no room"})
    assert play.code == 2 and play.faults() == [["lb1: no room", "lb2: no room"]] and len(imports(play)) == 2


def test_a_file_is_required():
    play = run("restore", PAIR, {}, **PAIR_VARIABLES)
    assert play.code == 2 and "restore_file is not set" in str(play.faults()) and play.calls == []
