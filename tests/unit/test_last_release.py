# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An unchanged inventory gets what the last release made of it, or the changelog tells what differs."""

from __future__ import annotations

import itertools

import pytest
import yaml
from support import releases
from support.rendered import cases

HOW = """{version} rendered otherwise, in these cases. If that is meant, name the lines by their beginning in
changelogs/differences.yml, below the fragment that tells users of the change; '*' stands for anything."""


@pytest.fixture(scope="module")
def release():
    return releases.last()


@pytest.fixture(scope="module")
def differences(release):
    return releases.differences(release)


def test_the_changelog_tells_of_each_difference_from_the_last_release(release, differences):
    entries = [entry for each in releases.told().values() for entry in each]
    untold = [
        f"  {case}: {found.file} - {found.line}"
        for found, case in differences.items()
        if not any(releases.names(entry, found) for entry in entries)
    ]
    assert not untold, "\n".join([HOW.format(version=release.version), *sorted(untold)])


def test_the_changelog_tells_of_no_difference_that_there_is_not(differences):
    idle = [
        f"{fragment}: {entry}"
        for fragment, entries in releases.told().items()
        for entry in entries
        if not any(releases.names(entry, found) for found in differences)
    ]
    assert not idle
    assert [name for name in releases.told() if not (releases.CHANGELOGS / "fragments" / name).exists()] == []


def test_the_record_is_of_the_last_release_of_the_changelog(release):
    released = yaml.safe_load((releases.CHANGELOGS / "changelog.yaml").read_text())["releases"]
    assert release.version == max(released, key=lambda each: [int(part) for part in each.split(".")])


def test_a_tree_that_differs_from_a_release_has_another_version(release):
    has_changed = releases.product() != release.product
    assert (releases.version() == release.version) != has_changed, "set the next version, such as 1.2.0-dev"


def test_there_is_nothing_to_tell_of_a_release_that_has_just_been_recorded(tmp_path, monkeypatch):
    folder, told = tmp_path / "released", tmp_path / "differences.yml"
    folder.mkdir()
    (folder / "0.9.0.json.xz").write_text("the one before")
    told.write_text("---\n# What differs.\nanswers.yml:\n  - plan - haproxy_hung\n")
    monkeypatch.setattr(releases, "FOLDER", folder)
    monkeypatch.setattr(releases, "TOLD", told)
    monkeypatch.setattr(releases.rendered, "cases", lambda: itertools.islice(cases(), 2))
    releases.record()
    assert (releases.last().version, len(releases.last().cases)) == (releases.version(), 2)
    assert releases.differences(releases.last()) == {} == releases.told()
    assert told.read_text() == "---\n# What differs.\n{}\n"
