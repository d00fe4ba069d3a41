# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host of each platform says of itself is understood: its os-release, its packages and where they come from."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import facts, reader
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader
from ansible_collections.onprem.lb.plugins.module_utils._shared import platforms
from support.programs import Programs

# The lines ID and ID_LIKE as each distribution ships them.
OS_RELEASES = {
    "Debian 12": ("ID=debian", "Debian"),
    "Debian 13": ("ID=debian", "Debian"),
    "Ubuntu 24.04": ("ID=ubuntu\nID_LIKE=debian", "Debian"),
    "RHEL 9": ('ID="rhel"\nID_LIKE="fedora"', "RedHat"),
    "Rocky 9": ('ID="rocky"\nID_LIKE="rhel centos fedora"', "RedHat"),
    "Alma 9": ('ID="almalinux"\nID_LIKE="rhel centos fedora"', "RedHat"),
    "CentOS Stream 10": ('ID="centos"\nID_LIKE="rhel fedora"', "RedHat"),
    "Oracle 9": ('ID="ol"\nID_LIKE="fedora"', "RedHat"),
    "Fedora 41": ("ID=fedora", "RedHat"),
    "SLES 15": ('ID="sles"\nID_LIKE="suse"', "sles"),
    "Alpine 3": ("ID=alpine", "alpine"),
}
RPM = "haproxy install ok installed\npackage keepalived is not installed\n"
REPO = "[appstream]\nname=AppStream\nmetalink=https://mirrors.example/metalink?repo=appstream\n"


@pytest.fixture
def reached(monkeypatch, tmp_path):
    """A RedHat host's dnf.conf and one repository; gives the places that were tried, of which none answers."""
    tried = []
    (tmp_path / "os.repo").write_text(REPO)
    (tmp_path / "dnf.conf").write_text("[main]\n")
    monkeypatch.setattr(reader, "YUM_SOURCES", (f"{tmp_path}/*.repo",))
    monkeypatch.setattr(reader, "YUM_SETTINGS", (f"{tmp_path}/dnf.conf",))
    monkeypatch.setattr(facts, "any_reachable", lambda places, timeout: tried.extend(places))
    return tried


@pytest.mark.parametrize("name", OS_RELEASES)
def test_each_distribution_is_of_its_family_or_is_named(name):
    ids, family = OS_RELEASES[name]
    text = f'NAME="{name}"\nVERSION_ID="9"\nPLATFORM_ID="platform:el9"\n{ids}\nVARIANT_ID=server\n'
    assert platforms.os_family(text) == family
    assert (platforms.family_problem(family) == "") == (family in ("Debian", "RedHat"))


def test_rpm_is_asked_of_packages_and_ends_with_the_number_of_those_that_it_lacks():
    programs = Programs({"rpm": (1, RPM, "")})
    assert Reader(programs.run, programs.find).packages(["haproxy", "keepalived"]).missing == ["keepalived"]
    assert programs.ran == ["rpm --query --queryformat %{NAME} install ok installed\\n haproxy keepalived"]


def test_a_package_that_rpm_has_in_two_architectures_is_there():
    programs = Programs({"rpm": "haproxy install ok installed\n" * 2})
    assert Reader(programs.run, programs.find).packages(["haproxy"]).missing == []


@pytest.mark.parametrize("own, tool", [("rpm", "dpkg-query"), ("dpkg-query", "rpm")])
def test_the_other_familys_manager_which_knows_nothing_is_not_believed(own, tool):
    programs = Programs({own: "haproxy install ok installed\n", tool: (1, "", "no packages found\n")})
    assert Reader(programs.run, programs.find).packages(["haproxy"]).missing == []


def test_without_apt_the_repositories_of_dnf_say_where_packages_come_from(reached):
    said = Reader(None, Programs({"dnf": ""}).find).unobtainable(["keepalived"])
    assert said == "none of its package sources can be reached (mirrors.example)"
    assert reached == [("mirrors.example", 443)]


def test_dnfs_proxy_stands_for_its_repositories(reached, tmp_path):
    (tmp_path / "dnf.conf").write_text("[main]\nproxy=http://proxy.example:3128\n")
    assert Reader(None, Programs().find).unobtainable(["keepalived"]).endswith("(proxy.example)")
    assert reached == [("proxy.example", 3128)]


FILTERED = (
    "All matches were filtered out by exclude filtering for argument: haproxy\nError: Unable to find a match: haproxy\n"
)
NO_REPOSITORY = (
    "Error: Failed to download metadata for repo 'baseos': Cannot download repomd.xml: All mirrors were tried\n"
)


@pytest.mark.parametrize(
    "said, filtered, unobtainable",
    [
        ("Operation aborted.\n", [], ""),
        (FILTERED, ["haproxy"], ""),
        ("No match for argument: a\nError: Unable to find a match: a\n", [], "dnf says: Unable to find a match: a"),
        (NO_REPOSITORY, [], f"dnf says: {NO_REPOSITORY[7:].rstrip()}"),
        ("Error: \n Problem: conflicting requests\n", [], "dnf says: Problem: conflicting requests"),
    ],
)
def test_what_dnf_would_refuse_is_known_before_it_is_to_install(said, filtered, unobtainable):
    programs = Programs({"dnf": "", "env": (1, "", said)})
    answer = Reader(programs.run, programs.find).asked_dnf(["haproxy", "keepalived"])
    assert ([*answer.filtered], answer.unobtainable) == (filtered, unobtainable)
    assert all(sentence.startswith(f"{name} is not installed") for name, sentence in answer.filtered.items())
    assert programs.ran[0].startswith("env LC_ALL=C /usr/sbin/dnf --assumeno ")


def test_dnf_is_asked_neither_of_nothing_nor_where_apt_is():
    alone, beside_apt = Programs({"dnf": ""}), Programs({"dnf": "", "apt-get": ""})
    Reader(alone.run, alone.find).asked_dnf([])
    Reader(beside_apt.run, beside_apt.find).asked_dnf(["haproxy"])
    assert alone.ran == beside_apt.ran == []


def test_where_apt_has_no_lists_there_is_none_to_be_fetched(tmp_path):
    assert Reader(None, None).package_lists_are_fresh(str(tmp_path / "lists"))
