# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module config_files with certificates whose text is in the inventory, and the installed haproxy to judge them."""

from __future__ import annotations

import hashlib
import json
import os

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.states import changes, restoring, snapshot
from ansible_collections.onprem.lb.plugins.module_utils._host.write import files
from ansible_collections.onprem.lb.plugins.modules import config_files
from support.certificates import certificate_text
from support.modules import refusal, run
from support.programs import Installed
from support.states import native

WEB, RENEWED = certificate_text(), certificate_text("renewed")
SECRET = WEB.split("PRIVATE KEY-----")[1].split()[0]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    made = tmp_path / "certificates"
    monkeypatch.setattr(files.paths, "CERTIFICATES", str(made))
    return made


@pytest.fixture
def config(tmp_path):
    return tmp_path / "haproxy.cfg"


def named(folder, text):
    return folder / f"web-{hashlib.sha256(text.encode()).hexdigest()[:16]}.pem"


def wanted(config, folder, *texts, rest=""):
    """Return what a run gives the module."""
    crts = " ".join(f"crt {named(folder, text)}" for text in texts)
    ssl = f"ssl {crts}" if crts else ""
    cfg = f"defaults\n  timeout client 1s\nfrontend web\n  mode tcp\n  bind 127.0.0.1:1 {ssl}\n{rest}"
    own = [{"path": str(named(folder, text)), "content": text, "mode": "0600", "diff": False} for text in texts]
    return {"files": [*own, {"path": str(config), "content": cfg, "check": "haproxy"}], "unnamed_certificates": True}


@pytest.mark.parametrize("check", [True, False])
def test_haproxy_tests_its_configuration_with_a_certificate_that_is_not_there_yet(config, folder, check):
    said = run(config_files, wanted(config, folder, WEB, RENEWED), Installed(), check=check)
    assert said["paths"] == [str(named(folder, WEB)), str(named(folder, RENEWED)), str(config)]
    assert SECRET not in json.dumps(said)
    assert config.exists() is folder.exists() is not check
    if not check:
        assert named(folder, WEB).read_text() == WEB
        assert named(folder, WEB).stat().st_mode & 0o777 == 0o600
        assert run(config_files, wanted(config, folder, WEB, RENEWED), Installed())["paths"] == []
        assert Installed().run(["haproxy", "-c", "-f", str(config)])[0] == 0


@pytest.mark.parametrize("check", [True, False])
def test_what_haproxy_refuses_replaces_no_certificate_and_names_the_place_that_it_would_have(config, folder, check):
    run(config_files, wanted(config, folder, WEB), Installed())
    bad = wanted(config, folder, RENEWED.replace("MII", "XXX"), rest="  nonsense\n")
    said = refusal(config_files, bad, programs=Installed(), check=check)
    assert str(named(folder, RENEWED.replace("MII", "XXX"))) in said
    assert "nonsense" in said
    assert f"{config}:" in said
    assert os.listdir(folder) == [named(folder, WEB).name]
    assert str(named(folder, WEB)) in config.read_text()


def test_a_file_that_somebody_deleted_is_written_again_though_haproxys_is_as_wanted(config, folder):
    run(config_files, wanted(config, folder, WEB), Installed())
    named(folder, WEB).unlink()
    assert run(config_files, wanted(config, folder, WEB), Installed())["paths"] == [str(named(folder, WEB))]
    assert named(folder, WEB).read_text() == WEB


def test_a_renewed_one_takes_the_place_of_none_and_the_former_goes_when_nothing_names_it(config, folder):
    run(config_files, wanted(config, folder, WEB), Installed())
    said = run(config_files, wanted(config, folder, RENEWED), Installed())
    assert said["paths"] == [str(named(folder, RENEWED)), str(config), str(named(folder, WEB))]
    assert said["deleted"] == [str(named(folder, WEB))]
    assert os.listdir(folder) == [named(folder, RENEWED).name]
    assert all(SECRET not in json.dumps(each) for each in said["diff"])


def test_one_that_raw_lines_name_and_what_is_of_others_stays(config, folder):
    run(config_files, wanted(config, folder, WEB), Installed())
    # The latter was changed, or is no text of ours.
    theirs = [folder / "theirs.pem", folder / "web-0123456789abcdef.pem"]
    for each in theirs:
        each.write_text(RENEWED)
    raw = f"frontend raw\n  mode tcp\n  bind 127.0.0.1:2 ssl crt {named(folder, WEB)}\n"
    said = run(config_files, wanted(config, folder, RENEWED, rest=raw), Installed())
    assert said["deleted"] == []
    assert {*os.listdir(folder)} == {each.name for each in [*theirs, named(folder, WEB), named(folder, RENEWED)]}


def test_without_any_the_folder_is_gone(config, folder):
    run(config_files, wanted(config, folder, WEB), Installed())
    run(config_files, wanted(config, folder), Installed())
    assert not folder.exists()
    assert run(config_files, wanted(config, folder), Installed())["paths"] == []


def test_nothing_goes_if_the_folder_cannot_be_read(config, folder, monkeypatch):
    run(config_files, wanted(config, folder, WEB), Installed())
    monkeypatch.setattr(os, "listdir", lambda _path: os.scandir(config / "no folder"))
    assert run(config_files, wanted(config, folder), Installed())["deleted"] == []


def test_a_return_to_a_state_brings_the_former_certificate_back_before_haproxy_is_reloaded(tmp_path):
    paths = [f"/etc/onprem-lb-certificates/{named(tmp_path, text).name}" for text in (WEB, RENEWED)]
    assert all(snapshot.is_own(path, []) for path in paths)
    then, now = (
        native()._replace(files=[*native().files, snapshot.File(path, 0o600, os.getuid(), os.getgid(), content=text)])
        for path, text in zip(paths, (WEB.encode(), RENEWED.encode()))
    )
    for path in paths[1:]:
        place = tmp_path / path[1:]
        place.parent.mkdir(parents=True)
        place.write_text(RENEWED)
    assert snapshot.present([], str(tmp_path)) == paths[1:]
    assert restoring.files(now, then, str(tmp_path)) == paths
    assert (tmp_path / paths[0][1:]).read_text() == WEB
    assert (tmp_path / paths[0][1:]).stat().st_mode & 0o777 == 0o600
    assert snapshot.present([], str(tmp_path)) == paths[:1]
    cfg = [each for each in then.files if each.path == then.configs["haproxy"]]
    other = [cfg[0]._replace(content=b"other\n") if each in cfg else each for each in now.files]
    todo = changes.of_units(now._replace(files=other), then, [*paths, cfg[0].path])
    assert ["systemctl", "reload", "haproxy.service"] in todo


def test_a_return_keeps_the_certificate_that_a_configuration_of_somebody_else_names():
    path = "/etc/onprem-lb-certificates/web-0123456789abcdef.pem"
    pem = snapshot.File(path, 0o600, 0, 0, content=b"x")
    (cfg,) = [each for each in native().files if each.path == native().configs["haproxy"]]
    others = [each for each in native().files if each != cfg]
    edited = cfg._replace(content=f"bind :443 ssl crt {path}".encode())
    now = native()._replace(files=[*others, edited, pem])
    assert changes.of_files(now, native()).delete == [path]
    assert changes.of_files(now, native()._replace(files=[*others, edited])).delete == []


def test_a_return_writes_a_certificate_before_the_configuration_that_names_it():
    path = "/etc/onprem-lb-certificates/web-0123456789abcdef.pem"
    then = native()._replace(files=[*native().files, snapshot.File(path, 0o600, 0, 0, content=b"x")])
    now = native()._replace(files=[])
    assert changes.of_files(now, then).paths[0] == path


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("what", ["a file", "a link to nothing", "a file in its path"])
def test_what_is_in_the_place_of_a_folder_is_named_and_stays(config, folder, monkeypatch, what, check):
    place = folder
    if what == "a file in its path":
        monkeypatch.setattr(files.paths, "CERTIFICATES", str(folder / "deeper"))
        folder = folder / "deeper"
    place.symlink_to("nowhere") if what == "a link to nothing" else place.write_text("of somebody")
    said = refusal(config_files, wanted(config, folder, WEB), programs=Installed(), check=check)
    assert said == f"{place} is no folder, and {named(folder, WEB)} is to be in it: rename it. Nothing was changed."
    assert not config.exists() and os.path.lexists(place) and not place.is_dir()


def test_a_link_to_a_folder_of_somebody_is_used_and_stays(config, folder, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "elsewhere" / "of somebody").touch()
    folder.symlink_to("elsewhere")
    run(config_files, wanted(config, folder, WEB), Installed())
    assert named(folder, WEB).read_text() == WEB
    run(config_files, wanted(config, folder), Installed())
    assert folder.is_symlink() and os.listdir(folder) == ["of somebody"]


@pytest.mark.parametrize("mask", [0o077, 0o000])
def test_a_key_is_its_owners_alone_whatever_the_umask(config, folder, mask):
    before = os.umask(mask)
    try:
        run(config_files, wanted(config, folder, WEB), Installed())
    finally:
        os.umask(before)
    assert named(folder, WEB).stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o022 == 0
