# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether a member that has rebooted is as it was before. Pure; runs on the controller."""

from __future__ import annotations

from typing import Any, Dict, List

# What has to be the same again, and what it is called.
SAME = {
    "engine": "engine",
    "versions": "versions",
    "macs": "hardware addresses",
    "ports": "ports",
    "servers": "servers",
    "unable": "faults",
    "stale": "unloaded files",
}


def differences(before: Dict[str, Any], now: Dict[str, Any]) -> List[str]:
    """Return a sentence for each thing that is not as it was; before the reboot is over, that it is not.

    :param before: what `member_info` returned before the reboot
    :param now: what it returns; without ``booted`` it could not be read
    """
    if not now.get("booted"):
        return [f"It cannot be read: {now.get('msg', 'no answer')}"]
    if now["booted"] == before.get("booted"):
        return ["It has not rebooted yet."]
    was, is_ = _compared(before), _compared(now)
    return [
        f"Its {name} {'were' if name.endswith('s') else 'was'} {_shown(was[key])}, and now {_shown(is_[key])}."
        for key, name in SAME.items()
        if was[key] != is_[key]
    ]


def _compared(found: Dict[str, Any]) -> Dict[str, Any]:
    servers = {key: found["servers"][key] for key in ("total", "up")}
    return {**found, "servers": servers}


def _shown(value: Any) -> str:
    """Return a value in words."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(each)}" for key, each in value.items()) or "none"
    if isinstance(value, list):
        return " ".join(map(_shown, value)) or "none"
    return str(value).rstrip(".") or "none"
