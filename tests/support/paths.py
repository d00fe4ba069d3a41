# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folders of the checkout."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COLLECTIONS = ROOT / ".cache" / "collections"
MODULE_UTILS = ROOT / "plugins" / "module_utils"
AGENT = MODULE_UTILS / "_agent"
MODULES = ROOT / "plugins" / "modules"
ACTIONS = ROOT / "plugins" / "action"
FILTERS = ROOT / "plugins" / "filter"
ROLES = ROOT / "roles"
PLAYBOOKS = ROOT / "playbooks"
DOCS = ROOT / "docs"
PICTURES = DOCS / "pictures"
MONITORING = DOCS / "monitoring"
EXAMPLES = ROOT / "examples"
README = ROOT / "README.md"
GOLDEN = ROOT / "tests" / "golden"
