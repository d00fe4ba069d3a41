# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a backup has, and what of it fits the members of an inventory."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.operations import backup
from ansible_collections.onprem.lb.plugins.module_utils._shared import versions
from support.damages import damaged, deep

MADE, FILE = "20260131T120000Z", "backups/20260131T120000Z.json"
DATA = {"files": [{"path": "/etc/haproxy/haproxy.cfg"}]}


def member(name, members=("lb1", "lb2"), locks=(), **state):
    state = state or {"saved": DATA, "engine": "native"}
    return {
        "name": name,
        "members": list(members),
        "vips": ["192.0.2.10"],
        "engine": "auto",
        "seen": {},
        "state": state,
        "locks": [*locks],
    }


def make(*given):
    return backup.make(list(given), MADE, FILE)


def test_what_is_made_can_be_read():
    made = make(member("lb1"), member("lb2"))
    assert made.faults == []
    assert made.lines == [f"{FILE}: the state of lb1, lb2, with the VRRP password. Keep it as you keep a key."]
    found = backup.read(made.text, FILE, ["lb1", "lb2"])
    assert (found.faults, found.backup, found.members) == ([], MADE, {"lb1": DATA, "lb2": DATA})


HIDDEN = {"unreachable": True, "msg": "<error censored due to no log>"}
SILENT = {"item": "lb2", "answered": False, "msg": "lb2 cannot be reached as root: No route to host."}
OF_OTHER = {**SILENT, "item": "lb3", "msg": "lb3 cannot be reached as root: Down."}
LOCKED = {"item": "lb2", "answered": True, "msg": "lb2 is locked by a run."}


@pytest.mark.parametrize(
    "lacking, sentence",
    [
        ([], "lb2 is outside --limit"),
        ([member("lb2", msg="No route to host.\n")], "lb2 cannot be read: No route to host"),
        ([member("lb2", saved=DATA, engine="")], "lb2 has nothing of this collection"),
        ([member("lb2", locks=[OF_OTHER, SILENT], **HIDDEN)], "lb2 cannot be reached as root: No route to host"),
        ([member("lb2", locks=[LOCKED], msg="No space left.")], "lb2 cannot be read: No space left"),
    ],
)
def test_what_it_lacks_is_said(lacking, sentence):
    made = make(member("lb1"), *lacking)
    assert made.lines[1:] == [f"It lacks what is not here: {sentence}."]
    assert list(json.loads(made.text)["members"]) == ["lb1"]


def test_a_backup_of_nothing_is_refused():
    made = make(member("lb1", msg="down"), member("lb2", saved=DATA, engine=""))
    assert made == backup.Backup(
        ["There is nothing to back up: lb1 cannot be read: down; lb2 has nothing of this collection."]
    )


def test_one_file_may_have_several_pairs_and_each_takes_its_own():
    made = make(member("lb1"), member("lb2"), member("lb8", ("lb8", "lb9")), member("lb9", ("lb8", "lb9")))
    assert sorted(backup.read(made.text, FILE, ["lb8", "lb9"]).members) == ["lb8", "lb9"]


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("---", "it is not JSON (Expecting value: line 1 column 1 (char 0)). Give a file that onprem.lb.backup wrote."),
        ("[]", "it lacks an ID or members. Give a file that onprem.lb.backup wrote."),
        ('{"backup": "x", "members": {}}', "it lacks an ID or members. Give a file that onprem.lb.backup wrote."),
        ('{"backup": "20260131T120000Z"}', "it lacks an ID or members. Give a file that onprem.lb.backup wrote."),
    ],
)
def test_what_is_no_backup_is_refused(text, sentence):
    assert backup.read(text, FILE, ["lb1"]).faults == [f"restore_file is {FILE}, which is not a backup: {sentence}"]


def test_a_backup_of_others_is_refused():
    text = make(member("lb1"), member("lb2")).text
    assert backup.read(text, FILE, ["lb8"]).faults == [
        f"restore_file is {FILE}, the backup of lb1, lb2 of 2026-01-31 12:00:00 UTC, and the members here are lb8: "
        "choose the pair by --limit, or give another file."
    ]


def test_a_backup_of_a_newer_version_is_refused_unless_the_user_accepts_it(monkeypatch):
    monkeypatch.setattr(versions, "VERSION", "1.2.0")
    text = make(member("lb1")).text
    assert backup.read(text, FILE, ["lb1"]).faults == []
    monkeypatch.setattr(versions, "VERSION", "1.1.0")
    (fault,) = backup.read(text, FILE, ["lb1"]).faults
    assert fault.startswith(f"onprem.lb 1.2.0 wrote {FILE}, and this is 1.1.0")
    assert fault.endswith("or go on with -e restore_downgrade=true.")
    assert backup.read(text, FILE, ["lb1"], True).members == {"lb1": DATA}


PAIR = ["lb1", "lb2"]


def test_a_backup_of_which_any_part_was_changed_is_refused_in_one_sentence():
    whole = json.loads(make(member("lb1"), member("lb2")).text)
    for done, record in damaged(whole):
        found = backup.read(json.dumps(record), FILE, PAIR, downgrades=True)
        if record == {**whole, "sha256": None} or isinstance(record, dict) and {*whole} - {*record} == {"sha256"}:
            assert found.members == {"lb1": DATA, "lb2": DATA} or "sha256" in record, done
        elif record != whole:
            assert len(found.faults) == 1 and found.members == {}, done
            assert found.faults[0].startswith(f"restore_file is {FILE}, ") and "\n" not in found.faults[0]


def test_a_backup_without_a_checksum_is_read_whole_or_not_at_all():
    whole = {key: value for key, value in json.loads(make(member("lb1")).text).items() if key != "sha256"}
    for done, record in damaged(whole):
        found = backup.read(json.dumps(record), FILE, PAIR, downgrades=True)
        assert found.faults or found.members == {"lb1": record["members"]["lb1"]}, done
        backup.of_others(found._asdict(), FILE, "lb1", ["192.0.2.10/24"])
    assert "it is not JSON" in backup.read(deep(), FILE, PAIR).faults[0]


@pytest.mark.parametrize(
    "data, there",
    [
        ({"instances": [{"addresses": ["192.0.2.20/24"]}]}, "192.0.2.20"),
        ({"instances": [], "served": ["2001:db8::20"]}, "2001:db8::20"),
    ],
)
def test_a_backup_of_another_pair_with_the_same_names_is_known_by_its_vips(data, there):
    text = make(member("lb1", saved=data, engine="native")).text
    found = backup.read(text, FILE, ["lb1"])._asdict()
    assert backup.of_others(found, FILE, "lb1", ["192.0.2.10/24"]) == [
        f"restore_file is {FILE}, in which lb1 has the VIPs {there}, and in the inventory it has 192.0.2.10: give a "
        "backup of this pair, or go on with -e restore_other_vips=true if it had these."
    ]
    for vips in ([f"{there}/24", "192.0.2.10"], []):  # one of several is the same; nothing is known
        assert backup.of_others(found, FILE, "lb1", vips) == []
    assert backup.of_others(found, FILE, "lb2", ["192.0.2.10/24"]) == []  # of whom it has nothing
