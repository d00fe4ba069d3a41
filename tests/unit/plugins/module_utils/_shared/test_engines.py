# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose a listening socket is."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._shared import engines


@pytest.mark.parametrize(
    "listener, own",
    [
        ({"program": "haproxy"}, True),
        ({"program": "haproxy", "runs_in": "haproxy.service"}, True),
        ({"program": "haproxy", "runs_in": "another.service"}, False),
        ({"program": "nginx", "runs_in": ""}, False),
        ({"program": "python3", "runs_in": engines.PODS.balancer}, True),
    ],
)
def test_a_socket_is_own_by_its_program_and_by_where_that_runs(listener, own):
    assert engines.is_own(listener, ["haproxy"]) is own
