# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the layouts say about wrong inputs, of hosts that were read and, as in a forecast, of hosts that were not."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as _ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair

from support.plans import clusters, pairs


def of(members):
    return _pair.plan(members).faults


def of_pair(**settings):
    return _pair.plan(pairs.pair(**settings)).faults


def of_service(engine="auto", **service):
    """The faults of a pair with one service."""
    return of_pair(engine=engine, services=[{"name": "web", "port": 443, "servers": ["192.0.2.21"], **service}])


def of_cluster(**settings):
    return _ipi.plan(clusters.cluster(**settings)).faults


def of_forecast(*addresses, **settings):
    """The faults of a pair whose members were not read, each with the address by which Ansible reaches it."""
    members = [{**pairs.member(at, **settings), "host": None} for at in range(1, len(addresses) + 1)]
    return _pair.plan([{**one, "address": address} for one, address in zip(members, addresses)]).faults
