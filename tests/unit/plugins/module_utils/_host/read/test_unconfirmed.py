# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a member says of a change that no run has confirmed."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host import records
from ansible_collections.onprem.lb.plugins.module_utils._host.read import unconfirmed
from ansible_collections.onprem.lb.plugins.module_utils._host.read.unconfirmed import sentence

RUN = "20260131T120000Z"
DUE, RETURNED = {"id": RUN, "after": 40.0}, {"id": RUN, "at": "2026-01-31 12:01:00 UTC"}


@pytest.mark.parametrize(
    "due, returned, said",
    [
        ({}, {}, ""),
        (
            DUE,
            {},
            f"returns to what it ran before {RUN} once it has heard of no run for 40 s, unless onprem.lb.site confirms",
        ),
        (
            DUE,
            RETURNED,
            f"is returning to what it ran before {RUN}. Its router starts on its own, and cannot be started by hand",
        ),
        (DUE, {**RETURNED, "waits": "192.0.2.10 is held with other settings"}, f"before {RUN}: 192.0.2.10 is held"),
        ({}, RETURNED, f"has returned to what it ran before {RUN}, at 2026-01-31 12:01:00 UTC (journalctl"),
        ({}, {**RETURNED, "stays": "nobody has taken 192.0.2.10"}, "but for its router: nobody has taken 192.0.2.10"),
        (
            {},
            {**RETURNED, "others": "/etc/a.cfg"},
            "but for /etc/a.cfg, which somebody else has changed since (journalctl",
        ),
        ({}, {**RETURNED, "stays": "no answer", "kept": "FRR"}, "but for FRR: no answer"),
        (
            {},
            {**RETURNED, "stays": "no answer", "kept": records.WHOLE},
            f"has stayed as it was and not returned to what it ran before {RUN}: no answer (journalctl",
        ),
        ({}, {"run": RUN, "id": RUN}, "at an unknown time"),
    ],
)
def test_it_says_what_it_does_and_what_it_waits_for(due, returned, said):
    assert said in sentence(due, returned) and bool(said) is bool(sentence(due, returned))


@pytest.mark.parametrize("due, returned", [(DUE, {}), (DUE, RETURNED), ({}, RETURNED)])
def test_it_names_the_mend(due, returned):
    assert "onprem.lb.site" in sentence(due, returned)


def test_a_damaged_record_is_named_with_its_mend(monkeypatch, tmp_path):
    monkeypatch.setattr(records, "DUE", str(tmp_path / "due.json"))
    monkeypatch.setattr(records, "RETURNED", str(tmp_path / "returned.json"))
    assert unconfirmed.read() == ""
    (tmp_path / "due.json").write_text("{")
    assert f"{tmp_path}/due.json is damaged" in unconfirmed.read() and "onprem.lb.site" in unconfirmed.read()
