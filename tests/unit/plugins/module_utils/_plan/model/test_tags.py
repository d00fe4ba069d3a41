# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stages of a run, by its tags."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.tags import STAGES, stages


@pytest.mark.parametrize(
    "run, skip, found",
    [
        (["all"], [], [*STAGES]),
        (["verify", "configure"], [], ["configure", "verify"]),
        (["all"], ["verify"], ["preflight", "install", "configure"]),
        (["tagged", "mine"], [], [*STAGES]),
    ],
    ids=["without tags", "in their order", "all but one", "tags of a user's own"],
)
def test_a_run_has_the_stages_of_its_tags_or_all(run, skip, found):
    assert stages(run, skip) == found
