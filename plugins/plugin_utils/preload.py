# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Imports the filters and lookups of this collection, and compiles its templates, before Ansible forks.

Ansible imports an action plugin in its main process, and then forks a worker for each task of each host. A worker that
evaluates one filter imports all filters of the collection, which takes longer than what most tasks do. The workers
inherit what the main process has imported and compiled.
"""

from __future__ import annotations

import importlib
import pkgutil

from ansible_collections.onprem.lb.plugins import filter as filters
from ansible_collections.onprem.lb.plugins import lookup as lookups
from ansible_collections.onprem.lb.plugins.plugin_utils import templates

DEPLOYED = ("haproxy", "ipi", "keepalived", "layout")  # the roles whose templates each deployment renders


def import_filters_and_lookups() -> None:
    """Import each module of plugins/filter and plugins/lookup."""
    for package in (filters, lookups):
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")


def compile_templates() -> None:
    """Compile what each deployment renders."""
    templates.compile_all(DEPLOYED)
