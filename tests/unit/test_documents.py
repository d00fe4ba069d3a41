# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pages have no dead link among themselves, and the README has the sections that a certified collection needs."""

from __future__ import annotations

import re

import pytest
from support.documents import anchors, headings, links
from support.paths import DOCS, README, ROLES, ROOT

PAGES = [README, *sorted(ROOT.glob("*.md")), *sorted(DOCS.glob("*.md")), *sorted(ROLES.glob("*/README.md"))]
SECTIONS = [
    "Description",
    "Requirements",
    "Installation",
    "Use cases",
    "What you can rely on",
    "Tested with",
    "Included content",
    "Support",
    "Release notes",
    "Licence",
]
TODAY = ("kubeadm", "OpenShift 4 (UPI)", "RKE2", "k3s", "any other TCP service")


@pytest.mark.parametrize("page", dict.fromkeys(PAGES), ids=lambda page: str(page.relative_to(ROOT)))
def test_each_link_leads_to_a_file_and_to_a_heading_there(page):
    for link in links(page):
        if not re.match(r"\w+:", link):
            name, _hash, anchor = link.partition("#")
            target = page.parent / name if name else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


def test_the_readme_has_the_sections_of_a_certified_collection_in_their_order():
    assert [heading for heading, level in headings(README) if level == 2] == SECTIONS


def test_the_readme_opens_with_what_readers_run_today():
    opening = README.read_text().partition("##")[0]
    assert all(name in opening for name in TODAY) and "OpenShift 3" not in opening
