# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module config_files: what is asked of it, said by it, and left by it. How files are replaced: test_files."""

from __future__ import annotations

import hashlib
import os
import shlex

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import in_force
from ansible_collections.onprem.lb.plugins.modules import config_files
from support.modules import refusal, run
from support.programs import Programs

REFUSES = Programs({"haproxy": (1, "", "[ALERT] config : unknown keyword 'bad'\n")})
TAKES = Programs({"haproxy": ""})


def keepalived_conf(password, priority=100):
    return f"    auth_pass {password}\n    priority {priority}\n"


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({}, "missing required arguments: files"),
        ({"files": [{"content": "x"}]}, "missing required arguments: path found in files"),
        ({"files": "none"}, "dictionary requested"),
        (
            {"files": [{"path": "/x", "check": "nginx"}]},
            "value of check must be one of: none, haproxy, ",
        ),
        ({"files": [{"path": "/x", "state": "gone"}]}, "value of state must be one of: present, absent"),
        ({"files": [{"path": "/x", "owner": "me"}]}, "module: files.owner. Supported parameters include"),
        ({"files": [], "secrets": {"a": 1}}, "cannot be converted to a list"),
        ({"files": [{"path": "/x", "mode": "u=rw"}]}, "The mode of /x is u=rw: write an octal one in quotes"),
    ],
)
def test_a_wrong_argument_is_named(given, sentence):
    assert sentence in refusal(config_files, given, check=True)


def test_a_file_is_written_once(tmp_path):
    file = {"path": str(tmp_path / "a.conf"), "content": "text\n", "mode": "0600"}
    first = run(config_files, {"files": [file]})
    assert (first["changed"], first["paths"], (tmp_path / "a.conf").read_text()) == (True, [file["path"]], "text\n")
    again = run(config_files, {"files": [file]})
    assert (again["changed"], again["paths"], again["diff"]) == (False, [], [])


def test_check_mode_says_the_same_and_writes_nothing(tmp_path):
    (tmp_path / "gone.conf").write_text("old\n")
    files = [
        {"path": str(tmp_path / "a.conf"), "content": "text\n", "check": "haproxy"},
        {"path": str(tmp_path / "gone.conf"), "state": "absent"},
    ]
    said = run(config_files, {"files": files}, TAKES, check=True)
    assert os.listdir(tmp_path) == ["gone.conf"]
    done = run(config_files, {"files": files}, TAKES)
    assert os.listdir(tmp_path) == ["a.conf"]
    keys = ("changed", "paths", "diff", "unchecked", "stale")
    assert [said[key] for key in keys] == [done[key] for key in keys] and said["changed"]


def test_a_refusal_is_one_sentence_and_changes_no_file(tmp_path):
    good, bad = tmp_path / "good.conf", tmp_path / "bad.cfg"
    good.write_text("old\n")
    files = [
        {"path": str(good), "content": "new\n"},
        {"path": str(bad), "content": "bad\n", "check": "haproxy"},
    ]
    for check in (True, False):
        assert refusal(config_files, {"files": files}, programs=REFUSES, check=check) == (
            f"haproxy refuses the new {bad}, so nothing was changed. "
            "It says: [ALERT] config : unknown keyword 'bad' (exit code 1)"
        )
    assert (os.listdir(tmp_path), good.read_text()) == (["good.conf"], "old\n")


def test_a_place_where_nothing_can_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    said = refusal(config_files, {"files": [{"path": str(tmp_path / "file" / "a.conf"), "content": "x"}]})
    assert said.startswith(f"{tmp_path}/file is no folder, and")


def test_a_program_that_is_not_there_yet_is_said(tmp_path):
    file = {"path": str(tmp_path / "a.conf"), "content": "x\n", "check": "keepalived"}
    assert run(config_files, {"files": [file]}, check=True)["unchecked"] == [file["path"]]


@pytest.mark.parametrize("check", [True, False])
def test_no_password_is_in_a_result_neither_the_new_one_nor_the_one_before(tmp_path, check):
    path = tmp_path / "keepalived.conf"
    path.write_text(keepalived_conf("before77", 99))
    given = {"files": [{"path": str(path), "content": keepalived_conf("secret88")}], "secrets": ["secret88"]}
    result = run(config_files, given, check=check)
    assert "secret88" not in str(result) and "before77" not in str(result)
    assert "priority 99" in result["diff"][0]["before"] and "priority 100" in result["diff"][0]["after"]


def test_no_password_is_in_a_diff_also_where_it_is_not_named_as_a_secret(tmp_path):
    given = {"files": [{"path": str(tmp_path / "a.conf"), "content": keepalived_conf("secret88")}]}
    assert run(config_files, given)["diff"][0]["after"] == keepalived_conf("********")


def test_no_password_is_in_a_refusal(tmp_path):
    file = {"path": str(tmp_path / "a.cfg"), "content": keepalived_conf("secret88"), "check": "haproxy"}
    echoes = Programs({"haproxy": (1, "", "[ALERT] config : unknown keyword in 'auth_pass secret88'\n")})
    result = run(config_files, {"files": [file], "secrets": ["secret88"]}, echoes)
    assert result["failed"] and "auth_pass ********" in result["msg"] and "secret88" not in str(result)


@pytest.mark.parametrize(
    "line",
    ['tcp-check send "AUTH secret88\\r\\n"', "tcp-check send AUTH\\ secret88\\r\\n", "tcp-check send 'AUTH secret88'"],
)
def test_what_a_check_logs_in_with_is_no_part_of_a_difference(tmp_path, line):
    given = {"files": [{"path": str(tmp_path / "a.cfg"), "content": f"backend a\n    tcp-check {line}\n"}]}
    (diff,) = run(config_files, given)["diff"]
    assert "secret88" not in diff["after"] and "AUTH" in diff["after"]


SAYS = {
    "haproxy": (1, "", "[ALERT] config : parsing [{}:1] : '{}' is no address at line 1 of file '{}'.\n"),
    "keepalived": (5, "", "({}: Line 1) Unknown keyword 'own'\n(list: Line 1) Unknown keyword '{}' in {}\n"),
}


@pytest.mark.parametrize("program", SAYS)
def test_no_word_of_another_file_that_a_program_quotes_is_in_a_refusal(tmp_path, program):
    others = tmp_path / "list"
    others.write_text("root:$y$j9T$abcd:19000::\n")
    path = tmp_path / "a.cfg"
    code, out, err = SAYS[program]
    echoes = Programs({program: (code, out, err.format(path, "root:$y$j9T$abcd:19000::", others))})
    content = f"own -f {others}\ninclude list\n"
    given = {"files": [{"path": str(path), "content": content, "check": program}]}
    result = run(config_files, given, echoes)
    assert result["failed"] and "abcd" not in str(result) and str(tmp_path) in result["msg"] and "list" in result["msg"]


def texts(value):
    """Yield every text of a result."""
    if isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts(item)
    else:
        yield str(value)


PASSWORDS = ["x7", "it's", "a b#c", 'q"uote', "back\\slash", "$HOME", "Ünïcode", "p" * 300]


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("password", PASSWORDS, ids=range(len(PASSWORDS)))
def test_no_password_of_any_length_or_character_is_in_anything_that_the_module_says(tmp_path, password, check):
    """As with -vvv and --diff, which also print what the module was called with."""
    path, written = tmp_path / "a.cfg", shlex.quote(password)
    before = f"user ops insecure-password {written}\nstats auth ops:{written}\n"
    path.write_text(before)
    given = {"files": [{"path": str(path), "content": f"# new\n{before}", "check": "haproxy"}], "secrets": [password]}
    echoes = Programs({"haproxy": (1, "", f"[ALERT] : unknown 'ops:{password}' and {written} in '{before}'\n")})
    for programs in (echoes, TAKES):
        printed = "\n".join(texts(run(config_files, given, programs, check=check)))
        assert password not in printed and written not in printed


@pytest.mark.parametrize(
    "directive",
    [
        *("insecure-password", "stats auth", "http-check send hdr Authorization", "set-header authorization"),
        *("http-request replace-header X-Api-Key", "http-request add-header Cookie", "setenv KEY", "presetenv KEY"),
        "tcp-check send AUTH",
    ],
)
def test_no_password_is_in_what_ansible_prints_even_if_it_is_not_named_as_a_secret(tmp_path, directive):
    content = f"{directive} 'it'\"'\"'s #1'\n"
    printed = "\n".join(texts(run(config_files, {"files": [{"path": str(tmp_path / "a.cfg"), "content": content}]})))
    assert "s #1" not in printed and directive in printed


@pytest.mark.parametrize("loaded", ["text\n", "old text\n"])
def test_a_file_that_its_unit_has_not_loaded_counts_as_changed(tmp_path, monkeypatch, loaded):
    path, record = tmp_path / "keepalived.conf", tmp_path / "record"
    path.write_text("text\n")
    path.chmod(0o644)
    record.write_text(f"{hashlib.sha256(loaded.encode()).hexdigest()}  {path}\n12.34 45.67\n")
    monkeypatch.setattr(in_force, "record_of", lambda _program: str(record))
    file = {"path": str(path), "content": "text\n", "unit": "keepalived.service"}
    result = run(config_files, {"files": [file]}, Programs({"systemctl": "ActiveState=active\n"}))
    stale = [] if loaded == "text\n" else [f"keepalived.service has not loaded {path} since it changed."]
    assert (result["changed"], result["stale"], result["paths"]) == (bool(stale), stale, [])


@pytest.fixture
def renewed(tmp_path, monkeypatch):
    """A haproxy.cfg that haproxy runs, and a certificate in it that has been replaced since; the module's arguments."""
    path, certificate, record = tmp_path / "haproxy.cfg", tmp_path / "web.pem", tmp_path / "record"
    path.write_text(f"bind :443 ssl crt {certificate}\n")
    path.chmod(0o644)
    certificate.write_text("new\n")
    checksums = [hashlib.sha256(text).hexdigest() for text in (path.read_bytes(), b"old\n")]
    record.write_text(f"{checksums[0]}  {path}\n12.34 45.67\n{checksums[1]}  {certificate}\n")
    monkeypatch.setattr(in_force, "record_of", lambda _program: str(record))
    monkeypatch.setattr(in_force.facts, "youngest", lambda _pid, _stats: float("inf"))
    return {"path": str(path), "content": path.read_text(), "unit": "haproxy.service", "check": "haproxy"}


@pytest.mark.parametrize("check", [True, False])
def test_a_file_that_it_names_and_that_has_been_replaced_counts_as_changed_and_is_named(renewed, tmp_path, check):
    programs = Programs({"systemctl": "ActiveState=active\nMainPID=7\n", "haproxy": (0, "", "")})
    found = run(config_files, {"files": [renewed]}, programs, check=check)
    sentence = f"haproxy.service has not loaded {tmp_path}/web.pem since it changed."
    assert (found["changed"], found["stale"], found["paths"]) == (True, [sentence], [])
    assert found["diff"] == [{"prepared": f"{sentence}\n"}]


@pytest.mark.parametrize("check", [True, False])
def test_what_a_program_would_not_load_again_is_refused_before_it_is_asked_to(renewed, tmp_path, check):
    refuses = (1, "", f"[ALERT] : {tmp_path}/web.pem: no key\n")
    programs = Programs({"systemctl": "ActiveState=active\nMainPID=7\n", "haproxy": refuses})
    said = refusal(config_files, {"files": [renewed]}, programs=programs, check=check)
    assert said.startswith(f"haproxy refuses {tmp_path}/haproxy.cfg, so nothing was changed. It says: [ALERT] : ")


def test_a_file_of_others_makes_room_and_comes_back(tmp_path):
    cfg, drop_in = tmp_path / "haproxy.cfg", tmp_path / "limits.conf"
    cfg.write_text("theirs\n")
    drop_in.write_text("[Service]\n")
    ours = {"path": str(cfg), "content": "# Managed by Ansible, onprem.lb.haproxy.\n", "keep": True}
    adopted = {"files": [ours], "set_aside": [str(drop_in)]}
    for check in (True, False):
        said = run(config_files, adopted, check=check)
        assert (said["changed"], said["paths"]) == (True, [str(drop_in), str(cfg)])
    assert sorted(os.listdir(tmp_path)) == [
        "haproxy.cfg",
        "haproxy.cfg.before-onprem-lb",
        "limits.conf.before-onprem-lb",
    ]
    assert not run(config_files, adopted)["changed"]
    gone = {"path": str(cfg), "state": "absent", "own_only": True}
    run(config_files, {"files": [gone]})
    run(config_files, {"files": [gone], "put_back": [str(cfg), str(drop_in)]})
    assert (sorted(os.listdir(tmp_path)), cfg.read_text()) == (["haproxy.cfg", "limits.conf"], "theirs\n")


UNIT = "watch.path"


class Systemd:
    """A systemd with one unit, which sees which of some files are there at each of its commands."""

    def __init__(self, folder, state="inactive", enabled=False, outdated=False):
        self.folder, self.state, self.enabled, self.outdated, self.seen = folder, state, enabled, outdated, []

    def __call__(self, words):
        if words[1] == "show":
            enabled, outdated = ("enabled" if self.enabled else "disabled"), ("yes" if self.outdated else "no")
            properties = f"ActiveState={self.state}\nUnitFileState={enabled}\nNeedDaemonReload={outdated}\n"
            return (0, f"Id={UNIT}\n{properties}", "")
        self.seen.append((words[1], sorted(os.listdir(self.folder))))
        return (0, "", "")


def of_a_unit(tmp_path, monkeypatch, systemd, check=False, **given):
    """Return the result for a unit whose file is in a folder that counts as systemd's."""
    monkeypatch.setattr(in_force, "UNIT_FILES", f"{tmp_path}/")
    monkeypatch.setattr(config_files.config_files.units, "UNIT_FILES", f"{tmp_path}/")
    file = {"path": str(tmp_path / UNIT), "content": "[Path]\n", "unit": UNIT, **given.pop("file", {})}
    arguments = {"files": [file], "units": [{"name": UNIT, **given.pop("run_so", {})}], **given}
    return run(config_files, arguments, Programs({"systemctl": systemd}), check=check)


def test_a_unit_runs_with_the_file_that_was_written_before(tmp_path, monkeypatch):
    systemd = Systemd(tmp_path)
    done = of_a_unit(tmp_path, monkeypatch, systemd)
    assert done["changed"]
    assert systemd.seen == [("daemon-reload", [UNIT]), ("enable", [UNIT]), ("restart", [UNIT])]
    assert done["commands"] == ["systemctl daemon-reload", f"systemctl enable {UNIT}", f"systemctl restart {UNIT}"]
    again = Systemd(tmp_path, "active", enabled=True)
    assert not of_a_unit(tmp_path, monkeypatch, again)["changed"] and again.seen == []


def test_a_file_that_systemd_has_not_read_is_read_and_the_unit_restarted(tmp_path, monkeypatch):
    (tmp_path / UNIT).write_text("[Path]\n")
    systemd = Systemd(tmp_path, "active", enabled=True, outdated=True)
    assert of_a_unit(tmp_path, monkeypatch, systemd)["changed"]
    assert [verb for verb, _files in systemd.seen] == ["daemon-reload", "restart"]


def test_a_unit_stops_before_its_file_goes_and_systemd_forgets_it(tmp_path, monkeypatch):
    (tmp_path / UNIT).write_text("[Path]\n")
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "agent.pyz").write_text("")
    systemd = Systemd(tmp_path, "active", enabled=True)
    gone = {"file": {"state": "absent"}, "run_so": {"state": "stopped"}, "folders": [str(tmp_path / "program")]}
    said = of_a_unit(tmp_path, monkeypatch, systemd, check=True, **gone)
    assert said["changed"] and systemd.seen == [] and len(os.listdir(tmp_path)) == 2
    done = of_a_unit(tmp_path, monkeypatch, systemd, **gone)
    there = ["program", UNIT]
    assert systemd.seen == [("disable", there), ("stop", there), ("daemon-reload", [])]
    assert done["paths"] == said["paths"] == [str(tmp_path / UNIT), str(tmp_path / "program")]
    assert done["commands"] == said["commands"] and done["diff"] == said["diff"]
    assert not of_a_unit(tmp_path, monkeypatch, Systemd(tmp_path), **gone)["changed"]


def test_systemd_forgets_a_drop_in_that_goes_although_no_unit_is_named(tmp_path, monkeypatch):
    (tmp_path / UNIT).write_text("[Path]\n")
    systemd = Systemd(tmp_path)
    of_a_unit(tmp_path, monkeypatch, systemd, file={"state": "absent", "unit": None}, units=[])
    assert systemd.seen == [("daemon-reload", [])]


def test_a_unit_that_fails_is_said_and_its_file_stays_for_the_next_run(tmp_path, monkeypatch):
    def fails(words):
        return (1, "", "Unit watch.path is masked.") if words[1] == "enable" else Systemd(tmp_path)(words)

    monkeypatch.setattr(in_force, "UNIT_FILES", f"{tmp_path}/")
    file = {"path": str(tmp_path / UNIT), "content": "[Path]\n", "unit": UNIT}
    programs = Programs({"systemctl": fails, "journalctl": ""})
    result = run(config_files, {"files": [file], "units": [{"name": UNIT}]}, programs)
    assert result["failed"] and result["msg"] == f"`systemctl enable {UNIT}` failed: Unit watch.path is masked."
    assert os.listdir(tmp_path) == [UNIT]


def test_a_run_that_the_member_has_returned_from_stops_no_unit(tmp_path, monkeypatch):
    monkeypatch.setattr(config_files.files.records, "has_returned", lambda: True)
    systemd = Systemd(tmp_path, "active", enabled=True)
    gone = {"file": {"state": "absent"}, "run_so": {"state": "stopped"}}
    result = of_a_unit(tmp_path, monkeypatch, systemd, **gone)
    assert result["failed"] and "has returned to its previous settings" in result["msg"] and systemd.seen == []


@pytest.mark.parametrize("state", ["present", "absent"])
def test_the_difference_of_a_secret_shows_neither_the_new_one_nor_the_former_one(tmp_path, state):
    path = tmp_path / "token"
    path.write_text("the-former-token")
    given = {"path": str(path), "content": "the-new-token", "state": state}
    assert "the-former-token" in str(run(config_files, {"files": [given]}, check=True)["diff"])
    result = run(config_files, {"files": [{**given, "diff": False}]})
    assert result["changed"] and "token" not in str([(each["before"], each["after"]) for each in result["diff"]])


def test_a_file_that_is_refused_stops_no_unit(tmp_path):
    systemd = Systemd(tmp_path, "active", enabled=True)
    bad = {"path": str(tmp_path / "bad.cfg"), "content": "bad\n", "check": "haproxy"}
    programs = Programs({**REFUSES.answers, "systemctl": systemd})
    result = run(config_files, {"files": [bad], "units": [{"name": UNIT, "state": "stopped"}]}, programs)
    assert result["failed"] and "so nothing was changed" in result["msg"] and systemd.seen == []


def test_a_folder_that_was_moved_elsewhere_goes_as_the_link_that_is_left(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_text("")
    (tmp_path / "folder").symlink_to(tmp_path / "elsewhere")
    given = {"files": [], "folders": [str(tmp_path / "folder")]}
    assert run(config_files, given)["paths"] == [str(tmp_path / "folder")]
    assert os.listdir(tmp_path) == ["elsewhere"] and os.listdir(tmp_path / "elsewhere") == ["file"]
    assert not run(config_files, given)["changed"]


def test_a_folder_that_stays_because_something_is_mounted_there_is_named(tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    monkeypatch.setattr(config_files.config_files.files, "remove", lambda _path: None)
    given = {"files": [], "folders": [str(tmp_path / "folder")]}
    (said,) = run(config_files, given)["warnings"]
    assert said.startswith(f"{tmp_path}/folder stays, because a file system is mounted there, or further down: unmount")


def test_the_file_of_others_comes_back_where_ours_goes_in_the_same_call(tmp_path):
    path = tmp_path / "a.service"
    path.write_text("# Managed by Ansible, onprem.lb.test.\n")
    (tmp_path / "a.service.before-onprem-lb").write_text("of others\n")
    given = {"files": [{"path": str(path), "state": "absent", "own_only": True}], "put_back": [str(path)]}
    run(config_files, given)
    assert (os.listdir(tmp_path), path.read_text()) == (["a.service"], "of others\n")
    assert not run(config_files, given)["changed"]
