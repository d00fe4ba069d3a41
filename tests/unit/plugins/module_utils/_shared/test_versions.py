# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which version has set a host up, and which one must not write over another one's work."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent import VERSION
from ansible_collections.onprem.lb.plugins.module_utils._shared import versions

FILE = "/etc/onprem-lb-pair-members.json"
MEMBERS = {"lb1": ["192.0.2.1"]}


@pytest.mark.parametrize(
    "record, found",
    [
        ("", ""),
        (json.dumps(versions.marked(MEMBERS)), VERSION),
        (json.dumps(MEMBERS), "1.0.0"),
        ('{"lb1": [', versions.UNKNOWN),
        ("[]", versions.UNKNOWN),
    ],
)
def test_a_record_says_which_version_wrote_it(record, found):
    assert versions.written_by(record) == found


ORDER = ["1.0.0", "1.1.0-dev", "1.1.0", "1.1.1", "1.9.0", "1.10.0", "2.0.0-dev", "2.0.0"]


@pytest.mark.parametrize("own", ORDER)
def test_only_a_newer_version_is_in_the_way(monkeypatch, own):
    monkeypatch.setattr(versions, "VERSION", own)
    refused = [version for version in ORDER if versions.refusal(FILE, version, "pair_downgrade")]
    assert refused == ORDER[ORDER.index(own) + 1 :] and versions.refusal(FILE, "", "pair_downgrade") == ""


def test_the_refusal_names_both_versions_and_the_mend(monkeypatch):
    monkeypatch.setattr(versions, "VERSION", "1.1.0")
    assert versions.refusal(FILE, "1.2.0", "pair_downgrade") == (
        f"onprem.lb 1.2.0 wrote {FILE}, and this is 1.1.0: install 1.2.0 or a later one, or go on with "
        "-e pair_downgrade=true."
    )


@pytest.mark.parametrize("version", [versions.UNKNOWN, "1.2", "None"])
def test_a_version_that_cannot_be_read_may_be_newer(version):
    assert versions.refusal(FILE, version, "ipi_downgrade") == (
        f"{FILE} does not say which version of onprem.lb wrote it, so it may be a newer one: mend that, or go on with "
        "-e ipi_downgrade=true."
    )
