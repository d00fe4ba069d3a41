# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The record of a member that --limit leaves out of the play, which the plan needs as well. Pure."""

from __future__ import annotations

import json
from typing import Any, Collection, Dict, List, Mapping

# What each host may have of its own, with the layouts' defaults.
UNSET: Dict[str, Any] = {"engine": "auto", "interface": "", "vrrp_interface": "", "bgp": {}, "bgp_peers": []}


def own_variables(prefix: str) -> List[str]:
    """Return the variables of a member outside --limit that its record needs."""
    return ["ansible_host", "group_names", *(f"{prefix}_{key}" for key in UNSET)]


def recorded(
    record: Mapping[str, Any], name: str, variables: Mapping[str, Any], of_play: Collection[str], prefix: str
) -> Dict[str, Any]:
    """Return the record of a member outside --limit, of which the inventory says what may differ between members.

    What the inventory sets for neither host is the play's, for both.

    :param record: of the host of the play that acts for it, as the action `layout_members` has it
    :param variables: what the inventory sets for the member; of that host ``of_play`` has the names
    """
    settings = json.loads(record["settings"])
    given = {key: f"{prefix}_{key}" for key in UNSET if key in settings}
    usual = {key: UNSET[key] if full in of_play else settings[key] for key, full in given.items()}
    own = {key: variables.get(full, usual[key]) for key, full in given.items()}
    return {
        "name": name,
        "address": variables.get("ansible_host", name),
        "groups": variables["group_names"],
        "members": record["members"],
        "outside_limit": True,
        "host": None,
        "settings": json.dumps({**settings, **own}, default=str),
    }
