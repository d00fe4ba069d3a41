# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is verified of a member that has changed its engine, before the next one does."""

from __future__ import annotations

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from support.paths import ROLES

EXPECTED = {"vips": ["192.0.2.10"], "targets": [["192.0.2.10", 8443]]}


@pytest.mark.parametrize("migrating, targets", [("lb2", []), ("lb1", EXPECTED["targets"])])
def test_new_services_answer_through_the_vips_once_the_last_member_has_migrated(migrating, targets):
    """Until then the VIPs may be on a member with the engine and the services of before."""
    loader = DataLoader()
    tasks = loader.load_from_file(str(ROLES / "layout" / "tasks" / "migrate.yml"), trusted_as_template=True)
    (verify,) = [task for task in tasks if task.get("ansible.builtin.include_tasks") == "verify.yml"]
    known = {"__layout_me": {"expected": EXPECTED}, "__layout_plan": {"migration_order": ["lb2", "lb1"]}}
    variables = {**known, **verify["vars"], "__layout_migrating": migrating}
    expected = Templar(loader=loader, variables=variables).template(verify["vars"]["__layout_expected"])
    assert expected == {**EXPECTED, "targets": targets}
