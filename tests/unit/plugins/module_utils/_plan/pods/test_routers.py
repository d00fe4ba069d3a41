# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the sidecar reads of the routers that a plan gives to a pod."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._agent.keepalived import conf
from ansible_collections.onprem.lb.plugins.module_utils._agent.sidecar import router
from support.plans import pods


def test_the_agents_routers_are_those_of_keepalived():
    """The same plan by both engines: what each holds is the same."""
    ours = router.of_agent(pods.text("vrrp.json", engine="agent"))
    theirs = conf.routers(pods.text("keepalived.conf"))
    for one, other in zip(ours, theirs):
        assert (one.name, one.interface, one.vrid, one.held) == (other.name, other.interface, other.vrid, other.held)
    assert len(ours) == len(theirs)
