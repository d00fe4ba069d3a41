"""Files are replaced all together or not at all, and never by something their program refuses."""

from __future__ import annotations

import os

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host import files as _files


class Programs:
    """haproxy, keepalived and nft, as far as `files` asks them: they refuse a file that holds the word `bad`."""

    def __init__(self, installed=("haproxy", "keepalived", "nft")):
        self.installed = installed
        self.asked = []

    def find(self, name):
        return f"/usr/sbin/{name}" if name in self.installed else None

    def run(self, command):
        if "--version" in command:
            return 0, "", "Keepalived v2.3.3 (03/30,2025)"
        path = command[-1]
        self.asked.append(path)
        with open(path, encoding="utf-8") as file:
            if "bad" not in file.read():
                return 0, "", ""
        if "haproxy" in command[0]:
            return 1, "", f"[NOTICE] so\n[ALERT] config : parsing [{path}:3] : unknown keyword 'bad'\n"
        if "nft" in command[0]:
            assert "--check" in command, "nft would load it"
            return 1, "", f"{path}:3:1-3: Error: syntax error, unexpected 'bad'\nNOTICE what is there\n^^^\n"
        return 5, "", f"({path}: Line 3) Unknown keyword 'bad'"


def wanted(path, content, check="none", mode="0644", state="present"):
    return {"path": str(path), "content": content, "mode": mode, "state": state, "check": check}


def apply(files, programs=None, dry=False, move=os.rename):
    programs = programs or Programs()
    pending = _files.changes(files)
    return pending, _files.replace_all(pending, programs.find, programs.run, move, dry)


def test_a_new_file_is_written_with_its_mode_and_the_second_time_nothing_changes(tmp_path):
    files = [wanted(tmp_path / "sub" / "a.conf", "text\n", mode="0600")]
    apply(files)
    assert (tmp_path / "sub" / "a.conf").read_text() == "text\n"
    assert (tmp_path / "sub" / "a.conf").stat().st_mode & 0o777 == 0o600
    assert _files.changes(files) == []


def test_a_wrong_mode_alone_is_mended(tmp_path):
    path = tmp_path / "a.conf"
    path.write_text("text\n")
    path.chmod(0o644)
    files = [wanted(path, "text\n", mode="0600")]
    assert len(_files.changes(files)) == 1
    apply(files)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("check", ["haproxy", "keepalived", "nft"])
def test_a_refused_file_leaves_every_file_as_it_was(tmp_path, check):
    one, two = tmp_path / "one.conf", tmp_path / "two.conf"
    one.write_text("old one\n")
    two.write_text("old two\n")
    with pytest.raises(_files.Refused) as refused:
        apply([wanted(one, "new one\n"), wanted(two, "bad\n", check)])
    assert (one.read_text(), two.read_text()) == ("old one\n", "old two\n")
    assert sorted(os.listdir(tmp_path)) == ["one.conf", "two.conf"], "a candidate was left behind"
    sentence = str(refused.value)
    assert f"{check} refuses the new {two}, so nothing was changed" in sentence
    assert "'bad'" in sentence and ".new" not in sentence and "NOTICE" not in sentence


@pytest.mark.parametrize("check", ["haproxy", "keepalived", "nft"])
def test_a_program_that_refuses_without_a_word_refuses_all_the_same(tmp_path, check):
    path = tmp_path / "a.conf"
    with pytest.raises(_files.Refused):
        _files.replace_all(
            _files.changes([wanted(path, "x\n", check)]),
            lambda name: name,
            lambda command: (1, "", ""),
            os.rename,
            False,
        )
    assert not path.exists()


def test_after_a_refusal_the_next_good_run_succeeds(tmp_path):
    path = tmp_path / "a.conf"
    path.write_text("old\n")
    with pytest.raises(_files.Refused):
        apply([wanted(path, "bad\n", "haproxy")])
    apply([wanted(path, "good\n", "haproxy")])
    assert path.read_text() == "good\n"


def test_a_dry_run_asks_the_program_and_changes_nothing(tmp_path):
    programs = Programs()
    path = tmp_path / "etc" / "a.conf"
    pending, unchecked = apply([wanted(path, "good\n", "haproxy")], programs, dry=True)
    assert (len(pending), unchecked, len(programs.asked)) == (1, [], 1)
    assert os.listdir(tmp_path) == []
    with pytest.raises(_files.Refused):
        apply([wanted(path, "bad\n", "haproxy")], programs, dry=True)


def test_a_program_that_is_not_installed_yet_is_said(tmp_path):
    path = tmp_path / "a.conf"
    plain = wanted(tmp_path / "plain.conf", "x\n")
    _pending, unchecked = apply([wanted(path, "x\n", "haproxy"), plain], Programs(installed=()), dry=True)
    assert unchecked == [str(path)]


def test_what_is_no_longer_wanted_goes(tmp_path):
    path = tmp_path / "a.conf"
    path.write_text("old\n")
    files = [wanted(path, "", state="absent")]
    assert _files.changes(files)[0].diff["after_header"].endswith("(absent)")
    apply(files)
    assert not path.exists()
    assert _files.changes(files) == []


def test_a_file_that_cannot_be_moved_takes_the_earlier_ones_back(tmp_path):
    one, new, two = tmp_path / "one.conf", tmp_path / "new.conf", tmp_path / "two.conf"
    one.write_text("old one\n")
    two.write_text("old two\n")

    def move(source, destination):
        if destination == str(two):
            raise OSError("no space")
        os.rename(source, destination)

    with pytest.raises(OSError, match="no space"):
        apply([wanted(one, "1\n"), wanted(new, "n\n"), wanted(two, "2\n")], move=move)
    assert (one.read_text(), two.read_text()) == ("old one\n", "old two\n")
    assert sorted(os.listdir(tmp_path)) == ["one.conf", "two.conf"]


def test_a_diff_shows_neither_the_old_password_nor_the_new_one(tmp_path):
    path = tmp_path / "keepalived.conf"
    path.write_text("    auth_pass old12345\n    user ops insecure-password older\n    priority 100\n")
    diff = _files.changes([wanted(path, '    auth_pass "new12345"\n    priority 101\n')])[0].diff
    shown = diff["before"] + diff["after"]
    assert not any(secret in shown for secret in ("old12345", "older", "new12345"))
    assert "priority 100" in diff["before"] and "priority 101" in diff["after"]
