# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter openshift_vrids. How VRIDs are derived: test_vrid."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.onprem.lb.plugins.filter.vrrp import openshift_vrids


def test_a_cluster_has_two():
    assert openshift_vrids("vmware") == {"api": 109, "ingress": 124}


def test_what_no_cluster_is_called_is_refused_in_one_sentence():
    with pytest.raises(AnsibleFilterError) as refused:
        openshift_vrids("")
    assert refused.value.message == "The cluster's name is empty: give the name from its install-config."
