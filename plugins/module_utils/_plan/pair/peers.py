# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The members of a pair as HAProxy's peers. Pure."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional

from ..._agent.config.schema import Faults
from ..members.subnets import Placement
from ..model import binds, peers, raw_binds


def read(
    settings: Mapping[str, Any],
    placements: Mapping[str, Mapping[str, Placement]],
    services: List[Dict[str, Any]],
    faults: Faults,
) -> Optional[Dict[str, Any]]:
    """Return the members as peers, and exempt their addresses from limits; None where no service has a table."""
    own = {name: [each.address for each in at.values()] for name, at in placements.items()}
    floating = [address for at in placements.values() for address in at]
    peers.never_limited(services, [address for each in own.values() for address in each] + floating)
    members = [{"name": name, "address": addresses[0]} for name, addresses in own.items() if addresses]
    tuning = {"peers_port": settings["peers_port"], "global_lines": [], "extra_lines": []}
    found: Optional[Dict[str, Any]] = peers.read(members, services, tuning, "")["peers"]
    raw = raw_binds.plain(raw_binds.of_services(services, "pair_services"))
    wrong = peers.clashes(found, services, [*binds.of_answers(settings["answer_port"], "pair_answer_port"), *raw])
    faults.extend(fault.replace("haproxy_peers_port", "pair_peers_port", 1) for fault in wrong)
    return found
