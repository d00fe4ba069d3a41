# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a user may set for a rollback."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

from ..._agent.config.schema import Faults, Field, boolean, number, read
from ..._shared.state_ids import ID


def _id(value: Any) -> Tuple[Any, Optional[str]]:
    if value == "" or (isinstance(value, str) and ID.fullmatch(value)):
        return value, None
    return None, "the ID of a state is wanted, such as 20260131T120000Z; -e rollback_list=true lists them."


SETTINGS = {
    "to": Field(_id, ""),
    "list": Field(boolean, False),
    "undo_after": Field(number(0, 3600, " seconds"), 35),
    "break_lock": Field(boolean, False),
    "downgrade": Field(boolean, False),
}


def faults(given: Dict[str, Any], playbook: str) -> Faults:
    """Return what is wrong with the variables of a rollback, or of the restore that leads to one.

    :param given: without the prefix, which is the playbook's name
    """
    found: Faults = []
    read(SETTINGS, given, playbook, found)
    return [fault.replace(f"{playbook}.", f"{playbook}_") for fault in found]
