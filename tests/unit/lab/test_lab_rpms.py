# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The image `rpm`: a host of the RedHat family, made of Debian's programs."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._shared import platforms
from support.paths import ROOT

from lab import image
from lab.rpms import build
from lab.rpms.packages import PACKAGES

TREE = ROOT / "lab" / "rpms" / "tree"
BY_NAME = {package.name: package for package in PACKAGES}


def test_a_host_of_it_is_of_the_family():
    assert platforms.os_family((TREE / "lab-release/usr/lib/os-release").read_text()) == "RedHat"


def test_each_folder_of_files_is_a_packages():
    assert {folder.name for folder in TREE.iterdir()} <= set(BY_NAME)


@pytest.mark.parametrize("package", [each for each in PACKAGES if each.unit], ids=lambda each: each.name)
def test_a_unit_is_the_familys(package):
    unit = (TREE / package.name / "usr/lib/systemd/system" / package.unit).read_text()
    assert "/etc/default/" not in unit and "/usr/lib/frr/" not in unit


@pytest.mark.parametrize("package", PACKAGES, ids=lambda each: each.name)
def test_the_one_spec_file_is_filled_in_for_each_package(package, tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "a.conf").touch()
    listed = [*build.files(package, tmp_path)]
    assert '%config(noreplace) "/etc/a.conf"' in listed
    filled = build.spec(package, "1.0", 2, tmp_path, tmp_path / "files")
    assert f"Name: {package.name}\n" in filled and "{" not in filled.replace("%{", "")


def test_it_has_none_of_debians_packages_that_it_gets_as_rpms():
    included = set(image.recipe("rpm")[-2].partition("=")[2].split(","))
    assert not included & {deb for package in PACKAGES for deb in package.debs}


def test_it_is_built_again_when_a_file_of_its_packages_changes(tmp_path, monkeypatch):
    (tmp_path / image.RPMS).mkdir(parents=True)
    monkeypatch.setattr(image, "CHECKOUT", tmp_path)
    of_debian, before = image.recipe_hash("debian12"), image.recipe_hash("rpm")
    (tmp_path / image.RPMS / "package.spec").write_text("another")
    assert image.recipe_hash("rpm") != before and image.recipe_hash("debian12") == of_debian
