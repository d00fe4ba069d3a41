# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Ansible's main process imports, so that none of its workers has to."""

from __future__ import annotations

import importlib

from ansible_collections.onprem.lb.plugins.plugin_utils import preload
from support.paths import ROOT

PACKAGE = "ansible_collections.onprem.lb.plugins"


def test_each_file_of_filters_and_lookups_is_imported(monkeypatch):
    imported = []
    monkeypatch.setattr(importlib, "import_module", imported.append)
    preload.import_filters_and_lookups()
    files = [path for kind in ("filter", "lookup") for path in (ROOT / "plugins" / kind).glob("*.py")]
    assert len(files) > 2
    assert sorted(imported) == sorted(f"{PACKAGE}.{path.parent.name}.{path.stem}" for path in files)
