# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes ``ansible_collections.onprem.lb`` importable from a plain checkout, whatever its folder is called."""

from __future__ import annotations

import importlib.util
import sys

from support.paths import COLLECTIONS, ROOT


def make_importable() -> None:
    # ansible-test has its own finder, and then the collection is there already.
    try:
        if importlib.util.find_spec("ansible_collections.onprem.lb.plugins.module_utils"):
            return
    except (ImportError, ValueError):
        pass
    link = COLLECTIONS / "ansible_collections" / "onprem" / "lb"
    if not link.exists():
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(ROOT, target_is_directory=True)
    sys.path.insert(0, str(COLLECTIONS))
