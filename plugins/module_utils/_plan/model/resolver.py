# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a user may set for the resolver of a node. Whose names it answers, a layout or `dns.layouts` judges. Pure."""

from __future__ import annotations

from typing import Any, Dict, Sequence

from ..._agent.config.schema import Faults, Field, address, boolean, integer, list_of, mapping, read
from . import values

TTL = 30  # seconds: how long a client may still have the answer of before
SETTINGS = {
    "layout": Field(mapping, {}),
    "ttl": Field(integer(0, 86400, "a number of seconds"), TTL),
    "listen": Field(list_of(address), []),
    "address": Field(values.optional(address), ""),
    "follows": Field(boolean, False),
}


def model(given: Dict[str, Any]) -> Faults:
    """Return what is wrong with the variables together, as far as no host need be known."""
    settings = read(SETTINGS, given, "resolver", [])
    return unheard(settings["address"], settings["listen"])


def unheard(own: str, listen: Sequence[str]) -> Faults:
    """Refuse to have the host ask at an address at which the resolver does not listen."""
    if not own or not listen or own in listen:
        return []
    return [f"resolver_address is {own}, which resolver_listen lacks: add it there."]
