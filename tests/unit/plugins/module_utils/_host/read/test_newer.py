# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that a newer version has set up is known by the record of any of its layouts."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import newer
from ansible_collections.onprem.lb.plugins.module_utils._shared import versions


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.setattr(newer, "RECORDS", str(tmp_path / "onprem-lb-*-members.json"))
    return lambda layout, text: (tmp_path / f"onprem-lb-{layout}-members.json").write_text(text)


def test_a_host_of_this_version_or_of_an_older_one_or_of_none_may_be_changed(written):
    assert newer.refusal("pair_downgrade") == ""
    written("pair", '{"lb1": ["192.0.2.1"]}')
    written("ipi", json.dumps(versions.marked({"lb1": ["192.0.2.1"]})))
    assert newer.refusal("pair_downgrade") == ""


@pytest.mark.parametrize("text", ['{"written by": "99.0.0"}', '{"lb1": [', "\xff"])
@pytest.mark.parametrize("layout", ["ipi", "pair"])
def test_one_record_of_a_newer_version_or_a_damaged_one_is_enough(written, layout, text):
    written("pair", "{}")
    written("ipi", "{}")
    written(layout, text)
    said = newer.refusal("pair_downgrade")
    assert f"onprem-lb-{layout}-members.json" in said and said.endswith("or go on with -e pair_downgrade=true.")
