# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock of a member whose record of an earlier run cannot be read."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._host import lock
from ansible_collections.onprem.lb.plugins.module_utils._host.states import records
from ansible_collections.onprem.lb.plugins.modules import member_lock
from support.modules import refusal


def test_a_damaged_record_is_named_with_its_mend_and_nothing_is_locked(monkeypatch, tmp_path):
    monkeypatch.setattr(lock, "PATH", str(tmp_path / "lock"))
    monkeypatch.setattr(records, "DUE", str(tmp_path / "due.json"))
    (tmp_path / "due.json").write_text("{")
    said = refusal(member_lock, {"state": "present", "purpose": "a run", "holder": {"pid": 1}})
    assert said.startswith(f"{tmp_path}/due.json is damaged") and said.endswith("Remove this file, and repeat the run.")
    assert not (tmp_path / "lock").exists()
