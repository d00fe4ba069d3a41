# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Renders the templates of this collection's roles without Ansible.

Ansible's lookup copies all variables of a host for each template, and looks for templates in each value that one uses.
With ten thousand servers that takes up to ten seconds a file.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any, Iterable, Mapping

from ansible_collections.onprem.lb.plugins.filter import quoting
from ansible_collections.onprem.lb.plugins.module_utils._shared import load_records
from jinja2 import Environment, FileSystemLoader, StrictUndefined

ROLES = Path(__file__).resolve().parents[2] / "roles"


def render(name: str, variables: Mapping[str, Any]) -> str:
    """Return the text of a template; ROLE/FILE names it, and it has no other variables."""
    role, _slash, file = name.partition("/")
    return _environment(role).get_template(file).render(variables)


def compile_all(roles: Iterable[str]) -> None:
    """Compile the templates of roles. Ansible's workers, which begin as copies of this process, need not do it then."""
    for role in roles:
        for file in _environment(role).list_templates():
            _environment(role).get_template(file)


@functools.lru_cache(maxsize=None)
def _environment(role: str) -> Environment:
    """Return an environment with Ansible's settings of Jinja, and the filters that the templates use."""
    folder = FileSystemLoader(ROLES / role / "templates")
    jinja = Environment(loader=folder, trim_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined)
    jinja.filters["from_json"] = json.loads
    jinja.filters["onprem.lb.recording"] = load_records.recording
    for each, function in quoting.FilterModule().filters().items():
        jinja.filters[f"onprem.lb.{each}"] = function
    return jinja
