# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of keys and defaults in the pages, held against the schemas."""

from __future__ import annotations

import json


def rows(text, heading):
    """Return the first table after some words, as a mapping of its first column to its second."""
    lines = text[text.index(heading) :].splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith(("| ---", "|---")))
    found = {}
    for line in lines[first + 1 :]:
        if not line.startswith("|"):
            break
        _edge, key, default, *_rest = line.split("|")
        found[key.strip().strip("`")] = default.strip().strip("`")
    return found


def expected(schema):
    """Return the same of a schema."""
    return {key: "required" if field.required else _shown(field.default) for key, field in schema.items()}


def _shown(default):
    if isinstance(default, str) and default:
        return default
    return {"null": ""}.get(json.dumps(default), json.dumps(default))
