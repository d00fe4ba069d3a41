# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each cluster is played once."""

from __future__ import annotations

import pytest
from support.plans import forecasts


@pytest.fixture(scope="package", autouse=True)
def the_same_cluster_is_played_once():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(*forecasts.REMEMBERED)
        yield
