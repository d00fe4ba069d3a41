# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What must hold for a Virtual Router, keepalived's or this agent's. Pure.

An instance is a dict with the keys of the model, each value good by itself: see ``schema.read``. Times are seconds.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Dict, List, Optional, Tuple

from ..config.schema import Faults, Field, integer, word

AUTH_PASS_LENGTH = 8  # what both ends compare; RFC 2338 section 5.3.10
V3_INTERVAL = (0.01, 40.95)  # 12 bits of centiseconds, RFC 9568 section 5.2.7
V2_INTERVAL = (1, 255)  # 8 bits of seconds, RFC 3768 section 5.3.7

TRACKED = {
    "name": Field(word, required=True),
    # 0 means: its failure puts the instance into FAULT.
    "weight": Field(integer(-253, 253), 0),
}


def vip(value: Any) -> Tuple[Any, Optional[str]]:
    """An address with its prefix length; without one it is a host's alone."""
    try:
        interface = ipaddress.ip_interface(str(value))
    except ValueError:
        return None, "an address, with or without a prefix length, is wanted."
    return (str(interface) if "/" in str(value) else f"{interface.ip}/{interface.max_prefixlen}"), None


def spelled_out(given: Any) -> Any:
    """A bare name is the common case of something tracked."""
    return [{"name": item} if isinstance(item, str) else item for item in given] if isinstance(given, list) else given


def family(instance: Dict[str, Any], place: str, faults: Faults) -> int:
    """Return 4 or 6: a Virtual Router protects one family, RFC 9568 section 1.5."""
    families = {ipaddress.ip_interface(address).version for address in instance["addresses"]}
    if len(families) > 1:
        faults.append(f"{place}.addresses mixes IPv4 and IPv6: make an instance for each, they may share the VRID.")
    return min(families, default=4)


def contradictions(instance: Dict[str, Any], place: str) -> Faults:
    """What each value allows by itself and what does not go together. Its ``family`` is known."""
    faults = []
    version, interval = instance["version"], instance["advert_interval"]
    if instance["family"] == 6 and version == 2:
        faults.append(f"{place}.version is 2: IPv6 addresses need VRRP version 3.")
    low, high = V2_INTERVAL if version == 2 else V3_INTERVAL
    if not low <= interval <= high or (version == 2 and interval != int(interval)):
        unit = "whole seconds" if version == 2 else "seconds"
        mend = "; version 3 takes fractions" if version == 2 and interval < 1 else ""
        faults.append(
            f"{place}.advert_interval is {interval}: VRRP version {version} takes {low} to {high} {unit}{mend}."
        )
    if instance["auth_pass"] and version == 3:
        faults.append(f"{place}.auth_pass is set: VRRP version 3 has no authentication, leave it out.")
    if not instance["multicast"] and not instance["peers"]:
        # Unicast to nobody: every member would believe it is alone and take the VIP.
        faults.append(f"{place}.peers is empty: name the other members, or set multicast to true.")
    return faults


def too_long(auth_pass: str, place: str) -> Faults:
    """Refuse what VRRP would cut silently. The sentence does not repeat the password."""
    if len(auth_pass.encode()) > AUTH_PASS_LENGTH:
        return [
            f"{place} has {len(auth_pass)} characters: VRRP compares the first {AUTH_PASS_LENGTH} only, shorten it."
        ]
    return []


def vrid_clashes(instances: List[Dict[str, Any]], place: str) -> Faults:
    """The same VRID twice on one link and in one family is one Virtual Router to everybody else."""
    seen: Dict[Tuple[Any, ...], str] = {}
    faults = []
    for instance in instances:
        key = (instance["interface"], instance["vrid"], instance["family"])
        if key in seen and None not in key:
            faults.append(
                f"{place}: {seen[key]} and {instance['name']} both have VRID {instance['vrid']} on "
                f"{instance['interface']}: give one of them another VRID."
            )
        seen.setdefault(key, instance["name"])
    return faults


def undefined(named: List[Dict[str, Any]], defined: List[Dict[str, Any]], place: str) -> Faults:
    """Return a sentence for each item that is named and not there."""
    known = [item["name"] for item in defined]
    return [
        f"{place} names '{item['name']}', which is not defined: known are {', '.join(map(str, known)) or 'none'}."
        for item in named
        if item["name"] not in known
    ]
