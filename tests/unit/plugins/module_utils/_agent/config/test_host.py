# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that a configuration names: only what no other user can change is run."""

from __future__ import annotations

import errno
import os
import pwd
import stat
from types import SimpleNamespace

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.config import host

STRANGER, RUNNER = 4711, 4712


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "bin" / "check"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def owned(monkeypatch):
    """Says that paths have another owner, group or mode than they have; folders above count as root's."""
    claims = {}
    real = os.lstat

    def claimed(path):
        found = real(path)
        claim = {"st_mode": found.st_mode, "st_uid": 0, "st_gid": 0, **claims.get(str(path), {})}
        return SimpleNamespace(**claim)

    monkeypatch.setattr(host.os, "lstat", claimed)
    monkeypatch.setattr(host.os, "geteuid", lambda: 0)
    monkeypatch.setattr(host.pwd, "getpwnam", lambda name: SimpleNamespace(pw_uid=RUNNER))
    return claims


def test_a_program_that_only_root_or_its_user_may_change_is_good(program, owned):
    assert host.program(str(program), "runner") is None
    owned[str(program)] = {"st_uid": RUNNER}
    assert host.program(str(program), "runner") is None


def test_roots_group_is_root_and_who_runs_the_agent_has_nothing_to_win(program, owned, monkeypatch):
    owned[str(program)] = {"st_mode": stat.S_IFREG | 0o775}
    assert host.program(str(program), "runner") is None
    monkeypatch.setattr(host.os, "geteuid", lambda: STRANGER)
    owned[str(program)] = {"st_uid": STRANGER}
    assert host.program(str(program), "runner") is None


@pytest.mark.parametrize(
    "claim",
    [
        {"st_uid": STRANGER},
        {"st_mode": stat.S_IFREG | 0o757},
        {"st_mode": stat.S_IFREG | 0o775, "st_gid": STRANGER},
    ],
    ids=["another owner", "everybody writes", "a group writes"],
)
def test_a_program_that_others_may_change_is_refused(program, owned, claim):
    owned[str(program)] = claim
    wrong = host.program(str(program), "runner")
    assert wrong == f"others than root and runner may change {program}: chown it to root, chmod go-w."


@pytest.mark.parametrize(
    "claim", [{"st_uid": STRANGER}, {"st_mode": stat.S_IFDIR | 0o777}], ids=["another owner", "everybody writes"]
)
def test_a_program_in_a_folder_that_others_may_change_is_refused(program, owned, claim):
    owned[str(program.parent)] = claim
    assert f"may change {program.parent}:" in host.program(str(program), "runner")


def test_a_folder_like_tmp_is_no_danger_to_what_is_in_it(program, owned):
    owned[str(program.parent)] = {"st_mode": stat.S_IFDIR | stat.S_ISVTX | 0o777}
    assert host.program(str(program), "runner") is None


@pytest.fixture
def linked(program):
    """A link to the program in another folder, behind a link to that folder: way -> real, real/check -> program."""
    folder = program.parent.parent
    (folder / "real").mkdir()
    (folder / "real" / "check").symlink_to("../bin/check")
    (folder / "way").symlink_to(folder / "real")
    return folder / "way" / "check"


def test_a_program_behind_links_that_only_root_may_change_is_good(linked, owned):
    assert host.program(str(linked), "runner") is None


@pytest.mark.parametrize("stranger", ["bin", "bin/check", "real"])
def test_everything_that_links_lead_through_counts(program, linked, owned, stranger):
    """A user who may change the folder of a link may point it elsewhere: the path is executed as it is written."""
    place = program.parent.parent / stranger
    owned[str(place)] = {"st_uid": STRANGER}
    wrong = host.program(str(linked), "runner")
    assert wrong == f"others than root and runner may change {place}: chown it to root, chmod go-w."


@pytest.mark.parametrize("stranger", ["way", "real/check"])
def test_a_link_of_another_owner_is_refused(program, linked, owned, stranger):
    place = program.parent.parent / stranger
    owned[str(place)] = {"st_uid": STRANGER}
    wrong = host.program(str(linked), "runner")
    assert wrong == f"others than root and runner may change the link {place}: chown -h it to root."


def test_the_folder_behind_two_dots_is_the_parent_of_where_a_link_leads(program, linked, owned):
    (program.parent.parent / "deep").symlink_to("/usr/bin")
    path = program.parent.parent / "deep" / ".." / "bin" / "true"
    assert host.program(str(path), "runner") is None
    owned["/usr"] = {"st_uid": STRANGER}
    assert "may change /usr:" in host.program(str(path), "runner")


def test_a_group_with_an_access_list_is_not_roots_group_alone(program, owned, monkeypatch):
    owned[str(program)] = {"st_mode": stat.S_IFREG | 0o775}
    monkeypatch.setattr(host.os, "getxattr", lambda path, name: name == "system.posix_acl_access" and b"an ACL")
    assert f"may change {program}:" in host.program(str(program), "runner")


def test_a_program_that_vanishes_while_it_is_checked_is_refused(program, monkeypatch):
    def vanished(_path):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")

    monkeypatch.setattr(host.os, "lstat", vanished)
    me = pwd.getpwuid(os.geteuid()).pw_name
    assert host.program(str(program), me) == "it cannot be run: No such file or directory."


def test_an_interface_is_there_or_not():
    assert host.has_interface("lo")
    assert not host.has_interface("there-is-none")


def test_what_cannot_be_run_is_refused(program):
    me = pwd.getpwuid(os.geteuid()).pw_name
    assert host.program(str(program), me) is None
    assert host.program(str(program), "no-such-user") == "it cannot be run: this host has no user no-such-user."
    assert host.program(str(program) + "x", me) == "it cannot be run: No such file or directory."
    assert host.program(str(program.parent), me) == "it cannot be run: it is not an executable file."
    program.chmod(0o644)
    assert host.program(str(program), me) == "it cannot be run: it is not an executable file."
