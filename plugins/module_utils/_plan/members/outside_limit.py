# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The record of a member that --limit leaves out of the play, which the plan needs as well. Pure."""

from __future__ import annotations

import json
from typing import Any, Dict, Mapping

UNSET = {"engine": "auto", "interface": ""}  # what each host may have of its own


def recorded(
    record: Mapping[str, Any], name: str, variables: Mapping[str, Any], of_play: Mapping[str, Any], prefix: str
) -> Dict[str, Any]:
    """Return the record of a member outside --limit, of which the inventory says its engine and its interface.

    One that the inventory sets for neither host is the play's, for both.

    :param record: of the host of the play that acts for it, as the action `layout_members` has it
    :param variables: of the member; likewise ``of_play``, those of that host
    """
    settings = json.loads(record["settings"])
    given = {key: f"{prefix}_{key}" for key in UNSET}
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
