# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A backup's state comes to a member: what it may have, and what it is called there."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.states import manager, snapshot, state_data, store
from support.damages import damaged
from support.states import CONFIGS, GATE_CONF, MARK, RUNS, announcing, file, native

HERE, MADE = "20260201T120000Z", "20260131T120000Z"


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """The states of the member, in a folder of the test."""
    monkeypatch.setattr(store.save, "__defaults__", ("", str(tmp_path)))
    return lambda: [store.load(each, str(tmp_path)) for each in store.ids(str(tmp_path))]


@pytest.fixture
def member(monkeypatch):
    found = manager.Member(lambda *_command: (0, "", ""), None, CONFIGS, [])
    monkeypatch.setattr(manager.Member, "now", lambda _member: native(served="now"))
    return found


def through_a_file(snap):
    return json.loads(json.dumps(state_data.as_data(snap)))


def test_it_is_saved_beside_the_others_and_says_that_it_is_a_backup(saved, member):
    found = manager.imported(member, through_a_file(native(served="then")), HERE, MADE, dry=False)
    assert saved() == [store.State(HERE, "a backup", native(served="then"), MADE)]
    assert (found["id"], found["backup"], found["engine"]) == (HERE, MADE, "native")
    assert (found["is_present"], found["files"]) == (False, [CONFIGS["haproxy"]])


def test_a_dry_run_compares_and_saves_nothing(saved, member):
    assert manager.imported(member, through_a_file(native(served="now")), HERE, MADE, dry=True)["is_present"]
    assert saved() == []


def test_what_is_exported_is_imported_as_it_was(member):
    assert store.judged(json.loads(json.dumps(manager.exported(member))), CONFIGS) == native(served="now")


def with_file(path):
    return native()._replace(files=[*native().files, file(path)])


@pytest.mark.parametrize(
    "strange",
    [
        "/etc/passwd",
        "/etc/onprem-lb/../passwd",
        "/etc/onprem-lb/deeper/passwd",
        "/etc/systemd/system/haproxy.service.d/other.conf",
        "etc/onprem-lb/open-firewall",
    ],
)
def test_no_file_of_others_is_taken_from_a_backup(strange):
    with pytest.raises(store.Refused) as refused:
        store.judged(through_a_file(with_file(strange)), CONFIGS)
    assert str(refused.value) == (f"The backup has {strange}, which is not this collection's: use an unchanged backup.")


def test_no_unit_of_others_is_started_by_a_backup():
    with pytest.raises(store.Refused, match="has sshd.service, which is not this collection's"):
        store.judged(through_a_file(native()._replace(units={"sshd.service": RUNS})), CONFIGS)


def test_every_file_that_a_state_may_have_is_taken():
    own = ["/etc/onprem-lb/open-firewall", "/etc/onprem-lb-pair-members.json", "/var/lib/onprem.lb/maintenance.json"]
    for path in own:
        assert store.judged(through_a_file(with_file(path)), CONFIGS).files[-1] == file(path, MARK)


@pytest.mark.parametrize("data", [{}, {"files": 1}, {"files": [{"path": 1}], "units": {}}, [], None])
def test_a_damaged_backup_is_a_sentence(data):
    with pytest.raises(store.Refused, match="^The backup is damaged: its data of this member cannot be read"):
        store.judged(data, CONFIGS)


WHOLE = [
    native()._replace(openings=["tcp 443 from anywhere", "vrrp from 192.0.2.12"], interfaces=["eth0"]),
    announcing(),
    native()._replace(files=[*native().files, snapshot.File(GATE_CONF, 0o777, 0, 0, target="/x", label=b"a:b")]),
]


@pytest.mark.parametrize("snap", WHOLE)
def test_a_state_of_which_any_part_is_damaged_is_refused_or_returned_exactly(snap):
    """Those that are refused are sentences; the others are what the data say, and can be compared and written."""
    wrong = []
    for done, data in damaged(through_a_file(snap)):
        try:
            found = store.judged(data, CONFIGS)
            manager._compared(store.State(HERE, "a backup", found), native(), [])
        except store.Refused as refused:
            assert str(refused).endswith("use an unchanged backup.") or "set haproxy_config_path" in str(refused)
            continue
        except Exception as error:  # whatever it is, it is a Python error
            wrong.append((done, repr(error)))
            continue
        again = through_a_file(found)
        if {key: value for key, value in again.items() if key in data} != data:
            wrong.append((done, "not as it was"))
    assert wrong == []


def test_what_is_saved_can_be_loaded_or_is_refused_before_anything_changes(tmp_path):
    (instance,) = native().instances
    odd = native()._replace(instances=[{**instance, "priority": 10**12, "advert_interval": 1e300}])
    store.save(store.State(HERE, "a run", odd), folder=str(tmp_path))
    assert store.load(HERE, str(tmp_path)).saved == odd
    with pytest.raises(store.Refused, match="^This member's state cannot be saved, so it would have no way back "):
        store.save(store.State(MADE, "a run", native()._replace(openings=["tcp x from y"])), folder=str(tmp_path))
    assert store.ids(str(tmp_path)) == [HERE]


def test_a_damaged_state_is_listed_and_hides_no_other_one(tmp_path, monkeypatch):
    for each in (HERE, MADE):
        store.save(store.State(each, "a run", native()), folder=str(tmp_path))
    (tmp_path / f"{MADE}.json").write_text("{")
    monkeypatch.setattr(store.ids, "__defaults__", (str(tmp_path),))
    monkeypatch.setattr(store.load, "__defaults__", (str(tmp_path),))
    found = manager.listed(SimpleNamespace(now=native, run=None))
    assert [each["id"] for each in found["states"]] == [HERE]
    assert list(found["damaged"]) == [MADE] and f"The state {MADE} is damaged" in found["damaged"][MADE]


def test_no_content_and_no_password_of_a_damaged_state_is_repeated():
    data = through_a_file(native())
    data["files"][0]["content"] = "Zq7Zq7Zq?"
    data["instances"][0]["auth_pass"] = ["Zq7Zq7Zq"]
    with pytest.raises(store.Refused) as refused:
        store.judged(data, CONFIGS)
    assert "files[0].content is a secret (text)" in str(refused.value) and "Zq7Zq7Zq" not in str(refused.value)


def test_another_path_of_a_configuration_is_named_with_the_mend():
    elsewhere = {**CONFIGS, "haproxy": "/opt/haproxy.cfg"}
    with pytest.raises(store.Refused) as refused:
        store.judged(through_a_file(native()), elsewhere)
    assert str(refused.value) == (
        "The backup has the configurations /etc/haproxy/haproxy.cfg and /etc/keepalived/keepalived.conf, and here "
        "they are /etc/keepalived/keepalived.conf and /opt/haproxy.cfg: set haproxy_config_path and "
        "keepalived_config_path as they were."
    )
