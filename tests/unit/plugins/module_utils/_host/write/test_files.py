"""Files are replaced all together or not at all, and never by something their program refuses."""

from __future__ import annotations

import contextlib
import os
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.write import files as _files
from support.marks import as_root


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
    pending, checked = apply([wanted(path, "good\n", "haproxy")], programs, dry=True)
    assert (len(pending), checked.unchecked, len(programs.asked)) == (1, [], 1)
    assert os.listdir(tmp_path) == []
    with pytest.raises(_files.Refused):
        apply([wanted(path, "bad\n", "haproxy")], programs, dry=True)


@pytest.mark.parametrize(
    "warning",
    [
        "'http-request' rules ignored for frontend 'a' as they require HTTP mode.",
        "parsing [PATH:19] : 'default_backend' ignored because backend 'evil' has no frontend capability.",
        "'stats' statement ignored for proxy 'st' as it requires HTTP mode.",
    ],
)
@pytest.mark.parametrize("dry", [True, False])
def test_a_file_of_which_haproxy_ignores_lines_is_refused(tmp_path, warning, dry):
    """The words of HAProxy 2.6, which ends with code 0."""
    path = tmp_path / "haproxy.cfg"
    with pytest.raises(_files.Refused) as refused:
        said = f"[WARNING]  (77) : config : {warning}"
        _files.replace_all(
            _files.changes([wanted(path, "x\n", "haproxy")]),
            lambda name: name,
            lambda command: (0, "Configuration file is valid\n", said.replace("PATH", command[-1])),
            os.rename,
            dry,
        )
    assert f"[WARNING]  (77) : config : {warning.replace('PATH', str(path))}" in str(refused.value)
    assert not path.exists()


@pytest.mark.parametrize("dry, mode", [(True, 0o600), (False, 0o640)])
def test_what_a_dry_run_writes_for_the_program_to_check_is_for_its_owner_alone(tmp_path, dry, mode):
    class Looks(Programs):
        def run(self, command):
            modes.append(os.stat(command[-1]).st_mode & 0o777)
            return super().run(command)

    modes = []
    apply([wanted(tmp_path / "haproxy.cfg", "a password", "haproxy", "0640")], Looks(), dry=dry)
    assert modes == [mode]


def test_any_other_warning_is_passed_on(tmp_path):
    """HAProxy calls it an alert, too, that it goes on without a line."""
    path = str(tmp_path / "a.conf")
    said = [
        ("haproxy", "[NOTICE]   (77) : config : so\n[WARNING]  (77) : config : log format ignored for frontend 'a'\n"),
        (
            "haproxy",
            "[NOTICE]   (77) : config : so\n[ALERT]    (77) : config : 'pidfile' already specified. Continuing.\n",
        ),
        ("keepalived", "(Line 7) something odd\n"),
    ]
    for program, output in said:
        checked = _files.replace_all(
            _files.changes([wanted(path, "x\n", program)]),
            lambda name: name,
            lambda _command, output=output: (0, "", output),
            os.rename,
            True,
        )
        assert checked.warnings == [
            f"{program} accepts the new {path} with a warning: {output.splitlines()[-1].strip()}"
        ]


def test_a_program_that_is_not_installed_yet_is_said(tmp_path):
    path = tmp_path / "a.conf"
    plain = wanted(tmp_path / "plain.conf", "x\n")
    _pending, checked = apply([wanted(path, "x\n", "haproxy"), plain], Programs(installed=()), dry=True)
    assert checked.unchecked == [str(path)]


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


MARKED = "# Managed by Ansible, onprem.lb.haproxy: changes made here are lost.\n"
KEPT = "a.conf.before-onprem-lb"


def keeping(path, content=MARKED, **changes):
    return {**wanted(path, content), "keep": True, **changes}


def test_a_file_of_others_is_kept_whole_when_it_is_replaced_and_comes_back(tmp_path):
    path = tmp_path / "a.conf"
    path.write_bytes(b"theirs \xff\n")
    path.chmod(0o604)
    before = path.stat()
    apply([keeping(path)])
    assert (path.read_text(), sorted(os.listdir(tmp_path))) == (MARKED, ["a.conf", KEPT])
    assert _files.changes([keeping(path)]) == [], "the second run changes nothing"
    assert _files.put_back([str(path)]) == [], "its place is taken"
    apply([{**wanted(path, "", state="absent"), "own_only": True}])
    _files.replace_all(_files.put_back([str(path)]), None, None, os.rename, False)
    after = path.stat()
    assert (after.st_ino, after.st_mode, path.read_bytes()) == (before.st_ino, before.st_mode, b"theirs \xff\n")
    assert os.listdir(tmp_path) == ["a.conf"]


def test_a_link_of_others_is_kept_as_a_link(tmp_path):
    (tmp_path / "elsewhere").write_text("theirs\n")
    os.symlink("elsewhere", tmp_path / "a.conf")
    apply([keeping(tmp_path / "a.conf")])
    assert os.readlink(tmp_path / KEPT) == "elsewhere" and not (tmp_path / "a.conf").is_symlink()
    assert (tmp_path / "elsewhere").read_text() == "theirs\n"


@pytest.mark.parametrize("text, keep", [(MARKED + "older\n", True), ("theirs\n", False)])
def test_an_own_file_is_not_kept_and_neither_is_one_that_need_not_be(tmp_path, text, keep):
    (tmp_path / "a.conf").write_text(text)
    apply([keeping(tmp_path / "a.conf", keep=keep)])
    assert os.listdir(tmp_path) == ["a.conf"]


def test_what_others_have_written_is_left_when_only_own_files_are_deleted(tmp_path):
    (tmp_path / "a.conf").write_text("theirs\n")
    assert _files.changes([{**wanted(tmp_path / "a.conf", "", state="absent"), "own_only": True}]) == []
    assert len(_files.changes([wanted(tmp_path / "a.conf", "", state="absent")])) == 1


def test_a_file_is_set_aside_and_put_back(tmp_path):
    path = tmp_path / "a.conf"
    path.write_text("theirs\n")
    _files.replace_all(_files.set_aside([str(path), str(tmp_path / "none")]), None, None, os.rename, False)
    assert os.listdir(tmp_path) == [KEPT]
    (change,) = _files.put_back([str(path), str(tmp_path / "none")])
    assert (change.diff["before"], change.diff["after"]) == ("", "theirs\n")
    _files.replace_all([change], None, None, os.rename, True)
    assert os.listdir(tmp_path) == [KEPT], "a dry run"
    _files.replace_all([change], None, None, os.rename, False)
    assert os.listdir(tmp_path) == ["a.conf"]


def test_a_file_that_cannot_be_moved_brings_back_what_was_kept_before_it(tmp_path):
    one, two = tmp_path / "a.conf", tmp_path / "b.conf"
    one.write_text("theirs\n")

    def move(source, destination):
        if destination == str(two):
            raise OSError("no room")
        os.rename(source, destination)

    with pytest.raises(OSError, match="no room"):
        apply([keeping(one), wanted(two, "new\n")], move=move)
    assert (os.listdir(tmp_path), one.read_text()) == (["a.conf"], "theirs\n")


def test_an_interruption_between_the_two_names_is_repaired(tmp_path):
    path = tmp_path / "a.conf"
    path.write_text("theirs\n")
    os.link(path, tmp_path / KEPT)
    _files.replace_all(_files.put_back([str(path)]), None, None, os.rename, False)
    assert (os.listdir(tmp_path), path.read_text()) == (["a.conf"], "theirs\n")
    os.link(path, tmp_path / KEPT)
    apply([keeping(path)])
    assert (path.read_text(), (tmp_path / KEPT).read_text()) == (MARKED, "theirs\n")


def test_the_folder_of_a_units_drop_ins_goes_with_the_last_one_and_no_other_folder_does(tmp_path):
    units, others = tmp_path / "haproxy.service.d", tmp_path / "haproxy"
    for folder in (units, others):
        folder.mkdir()
        (folder / "a.conf").write_text("")
    (units / "limits.conf").write_text("")
    apply([wanted(folder / "a.conf", "", state="absent") for folder in (units, others)])
    assert units.exists() and others.exists()
    apply([wanted(units / "limits.conf", "", state="absent")])
    assert others.exists() and not units.exists()


@contextlib.contextmanager
def mounted(folder, *options):
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", *options, folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def test_a_folder_goes_with_all_that_it_has_and_a_link_alone(tmp_path):
    folder = tmp_path / "ours"
    (folder / "deep" / "deeper").mkdir(parents=True)
    (folder / "deep" / "file").touch()
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "file").touch()
    (folder / "link").symlink_to(tmp_path / "theirs")
    assert _files.is_left(str(folder))
    for path in (folder, tmp_path / "nothing"):
        _files.remove(str(path))
        assert not _files.is_left(str(path))
    assert [path.name for path in tmp_path.rglob("*")] == ["theirs", "file"]


@as_root
@pytest.mark.parametrize("is_bound", [False, True])
def test_a_folder_on_which_a_file_system_is_mounted_stays_empty_and_is_not_removed_again(tmp_path, is_bound):
    folder, source = tmp_path / "ours here", tmp_path / "source"
    source.mkdir()
    with mounted(folder, *(["--bind", source] if is_bound else ["-t", "tmpfs", "tmpfs"])):
        (folder / "states").mkdir()
        (folder / "states" / "file").touch()
        assert _files.is_left(str(folder))
        _files.remove(str(folder))
        assert folder.is_dir() and [*folder.iterdir()] == []
        assert not _files.is_left(str(folder))


@as_root
def test_what_is_mounted_within_a_folder_is_somebody_elses(tmp_path):
    folder = tmp_path / "ours"
    with mounted(folder / "deep" / "theirs", "-t", "tmpfs", "tmpfs"):
        (folder / "file").touch()
        (folder / "deep" / "theirs" / "file").touch()
        _files.remove(str(folder))
        left = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
        assert left == ["deep", "deep/theirs", "deep/theirs/file"]


def test_a_folder_that_cannot_be_deleted_for_another_reason_fails(tmp_path, monkeypatch):
    def refused(_path):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "rmdir", refused)
    with pytest.raises(PermissionError):
        _files.remove(str(tmp_path))


@pytest.mark.parametrize(
    "text, goes",
    [("0\n", True), ("1\n", True), ("2\n", True), ("", True), ("-254", True), ("root:x:0:0\n", False), ("0 1", False)],
)
def test_a_file_that_a_user_names_goes_only_if_it_says_whether_the_balancer_is_down(tmp_path, text, goes):
    path = tmp_path / "haproxy.down"
    path.write_text(text)
    apply([{**wanted(path, "", state="absent"), "own_only": True}])
    assert path.exists() is not goes


def test_what_is_no_file_is_left_where_a_users_own_would_go(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        assert _files.changes([{**wanted(path, "", state="absent"), "own_only": True}]) == []
