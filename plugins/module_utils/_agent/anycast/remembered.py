# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which VIPs an earlier process of this daemon had: one that was killed, or made place for another version.

A VIP that has left the configuration meanwhile would otherwise stay for ever. A file that cannot be read says nothing,
and nothing is removed for that.
"""

from __future__ import annotations

import json
import os
from typing import Any

from ..config.schema import Faults, read, read_list
from . import config
from .settings import Settings, Vip

NAME = "vips.json"  # beside the status socket, in a folder that goes when the unit stops
REMEMBERED = {key: config.CONFIGURATION[key] for key in ("vips", "interface")}
VIP = {key: config.VIP[key] for key in ("name", "address")}


def path_of(settings: Settings) -> str:
    return os.path.join(os.path.dirname(settings.status_socket), NAME)


def save(settings: Settings) -> None:
    """Raises OSError."""
    path = path_of(settings)
    vips = [{"name": vip.name, "address": vip.ip} for vip in settings.vips]
    with open(f"{path}.new", "w", encoding="ascii") as file:
        json.dump({"interface": settings.interface, "vips": vips}, file)
    os.replace(file.name, path)


def load(settings: Settings) -> Settings:
    """Return what an earlier process had, without VIPs if that is not known."""
    try:
        with open(path_of(settings), encoding="ascii") as file:
            return _settings(json.load(file))
    except (OSError, ValueError, RecursionError):
        return Settings(())


def _settings(data: Any) -> Settings:
    faults: Faults = []
    whole = read(REMEMBERED, data, NAME, faults)
    vips = read_list(VIP, whole["vips"], NAME, faults)
    if faults:
        return Settings(())
    return Settings(tuple(Vip(vip["name"], config.alone(vip["address"]), ()) for vip in vips), (), whole["interface"])
