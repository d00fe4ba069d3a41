# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan of many equal entries is as much work for each as one of few, and says as little of each."""

from __future__ import annotations

import functools

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from support import growth
from support.plans import clusters

GROWN = {
    "api_vips": "198.51.100.9",
    "ingress_vips": "198.51.100.9",
    "machine_networks": "198.51.100.0/24",
    "checks": {"gateway": "198.51.100.1"},
}


@pytest.mark.parametrize("key", GROWN)
def test_work_and_sentences_grow_with_their_number_alone(key):
    growth.check(lambda number: functools.partial(ipi.plan, clusters.cluster(**{key: [GROWN[key]] * number})))
