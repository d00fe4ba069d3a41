# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A tag that does not match the version is refused; another one gets its part of the changelog."""

from __future__ import annotations

import pytest
import release_notes

CHANGELOG = r"""# onprem\.lb Release Notes

<a id="v1-10-0"></a>
## v1\.10\.0

<a id="minor-changes"></a>
### Minor Changes

* role pair \- the newer one\.

<a id="v1-1-0"></a>
## v1\.1\.0

* role pair \- the older one\.

<a id="v1-0-0"></a>
## v1\.0\.0
"""


def test_a_version_is_described_by_its_own_part_of_the_changelog():
    newer = release_notes.notes("v1.10.0", "1.10.0", CHANGELOG)
    assert newer.startswith('<a id="minor-changes">') and newer.endswith("the newer one\\.\n")
    assert release_notes.notes("v1.1.0", "1.1.0", CHANGELOG) == "* role pair \\- the older one\\.\n"


@pytest.mark.parametrize(
    "tag, version, fragments, fault",
    [
        ("v1.1.0", "1.10.0", [], "galaxy.yml says 1.10.0"),
        ("1.1.0", "1.1.0", [], "the tag is 1.1.0"),
        ("v1.1.1", "1.1.1", [], "nothing of v1.1.1"),
        ("v1.0.0", "1.0.0", [], "nothing of v1.0.0"),
        ("v1.1.0", "1.1.0", ["dns.yml", "pair.yml"], "dns.yml, pair.yml"),
    ],
)
def test_a_tag_that_does_not_fit_is_refused(tag, version, fragments, fault):
    with pytest.raises(ValueError, match=fault):
        release_notes.notes(tag, version, CHANGELOG, fragments)
